"""What the data plane relies on in this kernel, each behaviour in a few lines.

A failure here says that the kernel, not Weft, is other than expected; Weft itself finds out at its
start (net/tun/offload.h) and does without.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab

pytestmark = pytest.mark.namespaces

UDP_SEGMENT, UDP_GRO = 103, 104
SOL_NETLINK, NETLINK_LISTEN_ALL_NSID = 270, 8
TUNSETIFF, TUNSETOFFLOAD, TUNGETDEVNETNS = 0x400454CA, 0x400454D0, 0x54E3
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR, IFF_MULTI_QUEUE = 0x1, 0x1000, 0x4000, 0x100
TUN_F_CSUM, TUN_F_TSO, TUN_F_USO = 0x1, 0x6, 0x60

SEGMENT = 1452
# What a UDP datagram over IPv4 can carry at most.
RUN_MAX = 65507 // SEGMENT * SEGMENT


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two UDP sockets on the loopback, the first connected to the second, which does GRO."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tx, \
         socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rx:
        rx.bind(("127.0.0.1", 0))
        rx.settimeout(20)
        rx.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        tx.connect(rx.getsockname())
        yield tx, rx


@pytest.fixture
def host() -> Iterator[Host]:
    with Lab.from_text("host h\n", capture=False) as lab:
        yield lab.host("h")


@pytest.fixture
def tun(host: Host) -> Iterator[int]:
    """A TUN interface that is opened here and lives in the namespace of `host`."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        name = f"wpf{os.getpid()}"[:15]
        fcntl.ioctl(fd, TUNSETIFF, struct.pack(
            "16sH22x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
        host.run(["true"])  # the namespace is there
        assert os.system(f"ip link set {name} netns {host.namespace.pid} name tun0") == 0
        yield fd
    finally:
        os.close(fd)


def segmented(n_bytes: int) -> tuple[bytes, list]:
    data = bytes(i * 7 & 255 for i in range(n_bytes))
    return data, [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", SEGMENT))]


def test_a_run_of_64_kib_leaves_and_arrives_in_one_call(pair):
    tx, rx = pair
    data, control = segmented(RUN_MAX)
    tx.sendmsg([data], control)
    got, ancillary, _, _ = rx.recvmsg(65536, 64)
    assert got == data
    assert ancillary[0][:2] == (socket.IPPROTO_UDP, UDP_GRO)
    assert struct.unpack("i", ancillary[0][2])[0] == SEGMENT


def test_the_last_datagram_of_a_run_may_be_shorter(pair):
    tx, rx = pair
    data, control = segmented(3 * SEGMENT + 1)
    tx.sendmsg([data], control)
    assert rx.recvmsg(65536, 64)[0] == data


def test_64_segments_are_taken(pair):
    tx, rx = pair
    data = bytes(64 * 100)
    tx.sendmsg([data], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", 100))])
    n = 0
    while n < len(data):
        n += len(rx.recv(65536))


def test_one_sender_stays_on_one_socket_of_a_shared_port():
    receivers = []
    port = 0
    for _ in range(4):
        rx = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        rx.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        rx.bind(("127.0.0.1", port))
        port = rx.getsockname()[1]
        receivers.append(rx)
    used = set()
    for _ in range(16):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tx:
            tx.connect(("127.0.0.1", port))
            for _ in range(5):
                tx.send(b"x")
        ready = select.select(receivers, [], [], 5)[0]
        assert len(ready) == 1
        for _ in range(5):
            ready[0].recv(10, socket.MSG_DONTWAIT)
        used.add(ready[0].fileno())
    assert len(used) > 1
    for rx in receivers:
        rx.close()


def test_tun_takes_segmentation_offloads(tun):
    fcntl.ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO)
    fcntl.ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO | TUN_F_USO)


def test_tun_tells_its_namespace(tun, host):
    fd = fcntl.ioctl(tun, TUNGETDEVNETNS)
    try:
        assert os.fstat(fd).st_ino == Path(f"/proc/{host.namespace.pid}/ns/net").stat().st_ino
    finally:
        os.close(fd)


def test_tun_says_when_it_is_deleted(tun, host):
    poller = select.poll()
    poller.register(tun, select.POLLIN)
    assert poller.poll(0) == []
    host.run(["ip", "link", "delete", "tun0"])
    events = poller.poll(5000)
    assert events and events[0][1] & select.POLLERR
    with pytest.raises(OSError):
        os.read(tun, 100)


def test_tun_has_several_queues():
    name = f"wpq{os.getpid()}"[:15]
    fds = []
    for _ in range(3):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack(
            "16sH22x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE))
        fds.append(fd)
    for fd in fds:
        os.close(fd)


def test_netlink_hears_of_other_namespaces():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as nl:
        nl.setsockopt(SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, 1)
