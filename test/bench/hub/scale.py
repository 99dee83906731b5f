#!/usr/bin/python3
"""scale - how a hub bears many nodes: enrolment, watches, memory, disk, how fast a change is told.

    scale.py [NODES]        prints JSON; needs root; $WEFT or build/weft

Two namespaces and a link: the hub with --no-dataplane in one, and in the other one process that is
all nodes, each with its own source address. The change is a report with new candidates: told to
all, it is timed from the request to the last node's line.
"""

from __future__ import annotations

import base64
import ctypes
import http.client
import json
import os
import pathlib
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/vectors"))
import member_reference  # noqa: E402
import noise_reference  # noqa: E402
from member_reference import Signer, key_of, public_of  # noqa: E402

WEFT = pathlib.Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
HUB = ("10.42.0.1", 8443)
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE
CLONE_NEWNET = 0x40000000
IDLE_S = 30  # three heartbeats
SODIUM = ctypes.CDLL("libsodium.so.23")


def x25519(scalar: bytes, point: bytes) -> bytes:
    """In place of the one in Python, which is a hundred times slower than the hub's."""
    shared = ctypes.create_string_buffer(32)
    assert SODIUM.crypto_scalarmult(shared, scalar, point) == 0
    return shared.raw


member_reference.x25519 = noise_reference.x25519 = x25519


def enter_namespaces() -> int:
    """Make both; this process is then in the nodes'. Gives a pid that is in the hub's."""
    libc = ctypes.CDLL(None, use_errno=True)
    read_end, write_end = os.pipe()
    assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    holder = os.fork()
    if holder == 0:
        libc.unshare(CLONE_NEWNET)
        os.write(write_end, b"x")
        signal.pause()
    os.read(read_end, 1)
    inside = ["nsenter", "-t", str(holder), "-n"]
    commands = [
        f"ip link add nodes type veth peer name weft-default netns {holder}",
        "ip link set lo up", "ip addr add 172.16.0.2/30 dev nodes", "ip link set nodes up",
        # All of the block but the hub's address is local here.
        "ip route add local 10.42.0.0/16 dev lo",
        "ip route add table local 10.42.0.1/32 via 172.16.0.1"]
    hub_commands = [
        "ip link set lo up", "ip addr add 172.16.0.1/30 dev weft-default",
        "ip addr add 10.42.0.1/32 dev weft-default", "ip link set weft-default up",
        "ip route add 10.42.0.0/16 via 172.16.0.2"]
    for command in commands:
        subprocess.run(command.split(), check=True)
    for command in hub_commands:
        subprocess.run([*inside, *command.split()], check=True)
    return holder


def start_hub(holder: int, directory: str) -> subprocess.Popen:
    hub = subprocess.Popen(
        ["nsenter", "-t", str(holder), "-n", WEFT, "hub", "up", "--public", "172.16.0.1", "--state",
         f"{directory}/state", "--socket", f"{directory}/sock", "--no-dataplane", "--cidr4",
         "10.42.0.0/16", "--log-level", "error"],
        stdout=subprocess.PIPE, text=True)
    assert "is up" in hub.stdout.readline()
    return hub


def new_secret(directory: str, uses: int) -> str:
    token = subprocess.run(
        [WEFT, "token", "new", "--uses", str(uses), "--ttl", "1h", "--socket", f"{directory}/sock"],
        check=True, stdout=subprocess.PIPE, text=True).stdout.strip().removeprefix("weft1.")
    return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["s"]


class Member:
    """A node: its address, and what signs its requests."""

    def __init__(self, address: str, secret: bytes, hub_key: str) -> None:
        self.address = address
        self.signer = Signer(key_of(secret, base64.b64decode(hub_key), public_of(secret)))

    def header(self, method: str, path: str, body: str = "") -> str:
        return self.signer.sign(method, path, body.encode())


def field_of(text: bytes, begin: bytes, name: bytes) -> str:
    """The first text of that name after @begin."""
    return text[text.index(begin):].split(b'"%s":"' % name, 1)[1].split(b'"', 1)[0].decode()


def enrol(secret: str, n: int) -> Member:
    """One node. The snapshot is read only as far as is needed."""
    connection = http.client.HTTPSConnection("172.16.0.1", 8443, context=TLS, timeout=60)
    own = os.urandom(32)
    key = base64.b64encode(public_of(own)).decode()
    connection.request("POST", "/v1/enrol", json.dumps(
        {"secret": secret, "publicKey": key, "name": f"node-{n:05d}"}))
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    connection.close()
    address = field_of(text, b'"publicKey":"%s"' % key.encode(), b"address4")
    return Member(address, own, field_of(text, b'"metadata":{"name":"hub"', b"publicKey"))


def send(member: Member, request: str) -> socket.socket:
    """A connection from the node's address, with the beginning of its request."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    sock.bind((member.address, 0))
    sock.connect(HUB)
    sock.sendall(request.encode())
    return sock


def learn(member: Member) -> None:
    """Ask in vain, so that the hub says which proofs it takes; what an agent does once a run."""
    sock = send(member, f"GET /v1/jobs HTTP/1.1\r\nHost: {HUB[0]}\r\n\r\n")
    with sock, sock.makefile("rb") as answer:
        assert member.signer.learn(json.loads(answer.read().partition(b"\r\n\r\n")[2]))


class Watch:
    """One node's watch; counts bytes and looks for a mark."""

    def __init__(self, member: Member) -> None:
        learn(member)
        self.sock = send(member, f"GET /v1/watch HTTP/1.1\r\nHost: {HUB[0]}\r\n"
                         f"Authorization: {member.header('GET', '/v1/watch')}\r\n\r\n")
        self.tail = b""

    def take(self, mark: bytes) -> bool:
        """Read once; has the mark come?"""
        data = self.sock.recv(1 << 20)
        assert data, "the hub closed a watch"
        found = mark in self.tail + data
        self.tail = data[-200:]
        return found


def wait_for_all(selector: selectors.BaseSelector, n: int, mark: bytes) -> float:
    """Read until every watch has seen the mark; when the last one did."""
    done: set[int] = set()
    while len(done) < n:
        for key, _ in selector.select(30):
            if key.data.take(mark):
                done.add(key.fd)
    return time.monotonic()


def resident_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def disk_mib(directory: pathlib.Path) -> float:
    return sum(f.stat().st_blocks for f in directory.rglob("*")) * 512 / (1 << 20)


def cpu_s(pid: int) -> float:
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_percent(pid: int, selector: selectors.BaseSelector) -> float:
    """Of one core, while the hub only tells everybody that it is there."""
    began, before = time.monotonic(), cpu_s(pid)
    while time.monotonic() < began + IDLE_S:
        for key, _ in selector.select(1):
            key.data.take(b"heartbeat")
    return (cpu_s(pid) - before) / (time.monotonic() - began) * 100


def report(member: Member, mark: str) -> None:
    connection = http.client.HTTPConnection(*HUB, source_address=(member.address, 0), timeout=60)
    body = json.dumps({"node": {"candidates": [{"type": "host", "endpoint": mark}]}})
    connection.request("PUT", "/v1/status", body,
                       {"Authorization": member.header("PUT", "/v1/status", body)})
    assert connection.getresponse().status == 204
    connection.close()


def measure(n: int, directory: str, holder: int) -> dict:
    hub = start_hub(holder, directory)
    secret = new_secret(directory, n)
    began = time.monotonic()
    members = [enrol(secret, i) for i in range(n)]
    enrolled = time.monotonic()
    selector = selectors.DefaultSelector()
    for member in members:
        watch = Watch(member)
        selector.register(watch.sock, selectors.EVENT_READ, watch)
    listening = wait_for_all(selector, n, b"]}\n")
    times = []
    for i in range(5):
        start = time.monotonic()
        mark = f"192.0.2.{i + 1}:51820"  # an endpoint that no other node reports
        report(members[i], mark)
        times.append(wait_for_all(selector, n, mark.encode()) - start)
    result = {"nodes": n, "enrol_per_s": round(n / (enrolled - began)),
              "snapshots_s": round(listening - enrolled, 2),
              "change_told_s": [round(t, 3) for t in times],
              "hub_resident_mib": round(resident_mib(hub.pid)),
              "hub_disk_mib": round(disk_mib(pathlib.Path(directory, "state")), 1),
              "hub_idle_cpu_percent": round(idle_percent(hub.pid, selector), 2)}
    hub.terminate()
    hub.wait()
    return result


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    holder = enter_namespaces()
    try:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(measure(n, directory, holder)))
    finally:
        os.kill(holder, signal.SIGKILL)


if __name__ == "__main__":
    main()
