"""Datagrams of a lab, byte by byte: seen on an interface, or sent by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .network.laboratory import Host
from .waiting import wait_for

ETHERNET, IP_V4, UDP = 14, 20, 8
DONT_FRAGMENT, MORE_FRAGMENTS = 0x4000, 0x2000  # of the IPv4 header, RFC 791

# Sends each payload from one socket, and prints what came back, until each has had an answer or
# nothing came for a while.
EXCHANGE = """
import json, socket, sys
address, port, wait_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
udp = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
for payload in json.load(sys.stdin):
    udp.sendto(bytes.fromhex(payload), (address, port))
udp.settimeout(wait_s)
answers = []
try:
    while len(answers) < int(sys.argv[4]):
        answers.append(udp.recv(65536).hex())
except TimeoutError:
    pass
print(json.dumps(answers))
"""

# The kernel writes the IP header around it; the UDP checksum may be left out.
FROM_PORT = """
import socket, struct, sys
source, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
payload = bytes.fromhex(sys.stdin.read())
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
raw.sendto(struct.pack(">HHHH", source, port, 8 + len(payload), 0) + payload, (address, 0))
"""


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram over IPv4, or the first fragment of one."""

    source: tuple[str, int]
    to: tuple[str, int]
    tos: int  # DSCP and ECN
    flags: int  # DONT_FRAGMENT, MORE_FRAGMENTS
    payload: bytes


class Capture:
    """What passes an interface."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def datagrams(self) -> list[Datagram]:
        """All so far."""
        blob = self._path.read_bytes()
        found, at = [], 24  # the file's header
        while at + 16 <= len(blob):
            (length,) = struct.unpack_from("<I", blob, at + 8)
            ip = blob[at + 16 + ETHERNET:at + 16 + length]
            at += 16 + length
            if len(ip) < IP_V4 + UDP:
                break  # it is just being written
            ports = struct.unpack_from(">HH", ip, IP_V4)
            (flags,) = struct.unpack_from(">H", ip, 6)
            found.append(Datagram((_dotted(ip[12:16]), ports[0]), (_dotted(ip[16:20]), ports[1]),
                                  ip[1], flags & (DONT_FRAGMENT | MORE_FRAGMENTS),
                                  ip[IP_V4 + UDP:]))
        return found

    def wait_for(self, condition, what: str) -> list[Datagram]:
        """Those that meet the condition, once there is one."""
        return wait_for(lambda: list(filter(condition, self.datagrams())), 10, what)


@contextmanager
def capture(host: Host, interface: str, port: int | None = None) -> Iterator[Capture]:
    """See all datagrams over IPv4, or those from or to a UDP port."""
    path = host.lab.logs / f"{host.name}-{interface}-{port or 'all'}.pcap"
    # Without a port later fragments would pass, too.
    wanted = f"ip and udp port {port}" if port else "ip and udp and ip[6:2] & 0x1fff = 0"
    tcpdump = host.spawn(
        ["tcpdump", "-i", interface, "-U", "--immediate-mode", "-w", path, wanted])
    tcpdump.wait_line("listening on")
    yield Capture(path)
    tcpdump.stop()


def exchange(host: Host, address: str, port: int, payloads: list[bytes],
             wait_s: float = 10) -> list[bytes]:
    """Send all from one new socket; gives what is answered.

    That ends with a silence of `wait_s`, or with as many answers as there were payloads.
    """
    argv = ["/usr/bin/python3", "-c", EXCHANGE, address, port, wait_s, len(payloads)]
    done = host.run(argv, quiet=True,
                    stdin=json.dumps([payload.hex() for payload in payloads]))
    return [bytes.fromhex(answer) for answer in json.loads(done.out)]


def send_from_port(host: Host, source: int, address: str, port: int, payload: bytes) -> None:
    """Send from a port that another program of the host has."""
    host.run(["/usr/bin/python3", "-c", FROM_PORT, source, address, port], quiet=True,
             stdin=payload.hex())


def _dotted(b: bytes) -> str:
    return ".".join(map(str, b))
