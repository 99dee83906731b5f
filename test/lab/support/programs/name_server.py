"""A name server on UDP port 53 of a host, which knows the names that it is given and no others.

    name_server.py NAME=ADDRESS...
    name_server.py @FILE            of such words, read again for each question
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from pathlib import Path

NXDOMAIN = 3
TYPE_A = 1


def answer(query: bytes, names: dict[str, str]) -> bytes:
    """RFC 1035 4.1: one question; labels without compression end with a zero."""
    end = query.index(0, 12)
    labels, at = [], 12
    while at < end:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[end + 1:end + 3])[0]
    address = names.get(".".join(labels))
    question = query[12:end + 5]
    header = struct.pack(">HHHHHH", *struct.unpack(">H", query[:2]),
                         0x8580 | (0 if address else NXDOMAIN), 1,
                         int(bool(address) and kind == TYPE_A), 0, 0)
    record = b""
    if address and kind == TYPE_A:
        record = b"\xc0\x0c" + struct.pack(">HHIH", TYPE_A, 1, 60, 4) + \
            ipaddress.IPv4Address(address).packed
    return header + question + record


def read_names(words: list[str]) -> dict[str, str]:
    if words[0].startswith("@"):
        words = Path(words[0][1:]).read_text().split()
    return dict(word.split("=") for word in words)


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", 53))
        print("listening", flush=True)
        while True:
            query, peer = sock.recvfrom(2048)
            sock.sendto(answer(query, read_names(sys.argv[1:])), peer)


if __name__ == "__main__":
    main()
