"""Asks a member's measuring service what it should refuse; a line for each answer.

    refused_orders.py ADDRESS
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

PORT = 51829
MAGIC = 0x57667001
PING = 1


def ask(sock: socket.socket, order: dict) -> str:
    sock.sendall(json.dumps(order).encode() + b"\n")
    answer = json.loads(sock.makefile().readline())
    return "refused" if "error" in answer else "ok"


def connect(address: str) -> socket.socket:
    return socket.create_connection((address, PORT), timeout=60)


def ping(address: str, session: bytes) -> str:
    frame = struct.pack(">IBBH16sIIqqq", MAGIC, PING, 0, 0, session, 1, 0, 0, 0, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(3)
        sock.sendto(frame + bytes(1000), (address, PORT))
        try:
            return f"answered with {len(sock.recv(2000))} bytes"
        except TimeoutError:
            return "silence"


def main() -> None:
    address = sys.argv[1]
    session, other = os.urandom(16), os.urandom(16)
    begin = {"op": "session", "id": session.hex(), "purpose": "test", "seconds": 30}
    with connect(address) as sock:
        print("light before a session:", ask(sock, {"op": "light", "peer": address, "pings": 1}))
    with connect(address) as sock:
        print("session:", ask(sock, begin))
        with connect(address) as second:
            print("second session:", ask(second, begin | {"id": other.hex()}))
        with connect(address) as data:
            print("sink with another id:",
                  ask(data, {"op": "sink", "id": other.hex(), "ms": 100}))
        with connect(address) as data:
            print("no order:", ask(data, {"op": "reboot"}))
        print("ping of the session:", ping(address, session))
        print("ping of another session:", ping(address, other))


if __name__ == "__main__":
    main()
