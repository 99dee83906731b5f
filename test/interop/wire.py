"""The network below a tunnel: what crosses an interface, and datagrams that a stranger makes.

    with Capture(lab.host("u"), "s", port=51820) as capture:
        ...
        sizes = [len(d.payload) for d in capture.datagrams() if d.is_outgoing]
    inject(lab.host("x"), sender=("192.0.2.1", 51820), receiver=("192.0.2.2", 51820), payload=old)

A socket stays in the network namespace in which it was opened, so the sockets here are ordinary
ones of this process that live in a lab host.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import threading
from dataclasses import dataclass

from lab import Host

INITIATION, RESPONSE, COOKIE_REPLY, DATA = 1, 2, 3, 4
KEEPALIVE_SIZE = 32

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
UDP = 17


def socket_in(host: Host, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """A socket of this process that lives in the network of `host`."""
    opened: list[socket.socket] = []

    def open_there() -> None:
        # Only this thread moves, and it ends here.
        descriptor = os.open(f"/proc/{host.namespace.pid}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0) == 0:
                opened.append(socket.socket(family, kind, protocol))
        finally:
            os.close(descriptor)

    thread = threading.Thread(target=open_there)
    thread.start()
    thread.join()
    if not opened:
        raise OSError(f"cannot open a socket in {host.name}")
    return opened[0]


@dataclass(frozen=True)
class Datagram:
    """One IP packet as it crossed an interface; ports and payload are of UDP, else 0 and b""."""

    is_outgoing: bool
    tos: int  # the TOS or traffic class byte
    sender: tuple[str, int]
    receiver: tuple[str, int]
    payload: bytes

    @property
    def type(self) -> int:
        """WireGuard's message type; 0 if there is none."""
        return self.payload[0] if len(self.payload) >= 4 else 0


class Capture:
    """What crosses an interface of a host from now on; use it in a `with` block.

    With a port it is only the UDP datagrams from or to that one.  With an IPv4 address it is only
    the packets from or to that one, and the kernel sees to it: use it while somebody floods.
    """

    def __init__(
            self, host: Host, interface: str, port: int | None = None, address: str = "") -> None:
        self._port = port
        self._socket = socket_in(host, socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        if address:
            self._attach_filter(int(ipaddress.IPv4Address(address)))
        self._socket.bind((interface, ETH_P_ALL))
        self._socket.setblocking(False)
        self._seen: list[Datagram] = []

    def _attach_filter(self, address: int) -> None:
        load_word, if_equal, end = 0x20, 0x15, 0x06
        code = b"".join(struct.pack("HBBI", *step) for step in (
            (load_word, 0, 0, 12), (if_equal, 2, 0, address),
            (load_word, 0, 0, 16), (if_equal, 0, 1, address),
            (end, 0, 0, 0xFFFF), (end, 0, 0, 0)))
        kept = ctypes.create_string_buffer(code)
        self._socket.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", 6, ctypes.addressof(kept)))

    def datagrams(self) -> list[Datagram]:
        """All packets so far."""
        while True:
            try:
                packet, address = self._socket.recvfrom(65536)
            except BlockingIOError:
                return list(self._seen)
            datagram = _parse(packet, address[2] == socket.PACKET_OUTGOING)
            if datagram and self._port in (None, datagram.sender[1], datagram.receiver[1]):
                self._seen.append(datagram)

    def messages(self, kind: int, *, is_outgoing: bool) -> list[Datagram]:
        """The WireGuard messages of one type and direction so far."""
        return [d for d in self.datagrams() if d.type == kind and d.is_outgoing == is_outgoing]

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _parse(packet: bytes, is_outgoing: bool) -> Datagram | None:
    version = packet[0] >> 4 if packet else 0
    if version == 4:
        tos, protocol, header = packet[1], packet[9], (packet[0] & 15) * 4
        addresses = packet[12:16], packet[16:20]
    elif version == 6:
        tos, protocol, header = int.from_bytes(packet[:2], "big") >> 4 & 255, packet[6], 40
        addresses = packet[8:24], packet[24:40]
    else:
        return None
    ports, payload = (0, 0), b""
    if protocol == UDP:
        *ports, length = struct.unpack_from("!HHH", packet, header)
        payload = packet[header + 8:header + length]
    ends = [(str(ipaddress.ip_address(a)), p) for a, p in zip(addresses, ports, strict=True)]
    return Datagram(is_outgoing, tos, ends[0], ends[1], payload)


def inject(host: Host, sender: tuple[str, int], receiver: tuple[str, int], payload: bytes) -> None:
    """Send an IPv4 datagram from `host` that claims to come from `sender`."""
    udp = struct.pack("!HHHH", sender[1], receiver[1], 8 + len(payload), 0) + payload
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, UDP, 0,
        socket.inet_aton(sender[0]), socket.inet_aton(receiver[0]))
    with socket_in(host, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(header + udp, (receiver[0], 0))
