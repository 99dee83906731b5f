"""A name server on port 53 of a host, which knows the names that it is given and no others.

    name_server.py NAME=ADDRESS[,ADDRESS...]...
    name_server.py @FILE            of such words, read again for each question

What does not fit into 512 bytes is said to be cut, and is told over TCP. Names below "silent." get
no answer.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
import threading
from pathlib import Path

NXDOMAIN = 3
TYPE_A = 1
TRUNCATED = 0x0200
UDP_MAX = 512


def answer(query: bytes, names: dict[str, str], most: int) -> bytes:
    """RFC 1035 4.1: one question; labels without compression end with a zero."""
    end = query.index(0, 12)
    labels, at = [], 12
    while at < end:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[end + 1:end + 3])[0]
    known = names.get(".".join(labels))
    addresses = known.split(",") if known and kind == TYPE_A else []
    question = query[12:end + 5]
    records = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", TYPE_A, 1, 60, 4) +
                       ipaddress.IPv4Address(address).packed for address in addresses)
    flags = 0x8580 | (0 if known else NXDOMAIN)
    if 12 + len(question) + len(records) > most:
        flags, addresses, records = flags | TRUNCATED, [], b""
    header = struct.pack(">HHHHHH", *struct.unpack(">H", query[:2]), flags, 1, len(addresses), 0, 0)
    return header + question + records


def read_names(words: list[str]) -> dict[str, str]:
    if words[0].startswith("@"):
        words = Path(words[0][1:]).read_text().split()
    return dict(word.split("=") for word in words)


def serve_tcp(listener: socket.socket) -> None:
    while True:
        conn, _ = listener.accept()
        with conn, conn.makefile("rb") as stream:
            while len(size := stream.read(2)) == 2:
                query = stream.read(struct.unpack(">H", size)[0])
                whole = answer(query, read_names(sys.argv[1:]), 65535)
                conn.sendall(struct.pack(">H", len(whole)) + whole)


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, \
            socket.create_server(("", 53)) as listener:
        sock.bind(("", 53))
        threading.Thread(target=serve_tcp, args=(listener,), daemon=True).start()
        print("listening", flush=True)
        while True:
            query, peer = sock.recvfrom(2048)
            if b"\x06silent\0" in query:
                continue
            sock.sendto(answer(query, read_names(sys.argv[1:]), UDP_MAX), peer)


if __name__ == "__main__":
    main()
