"""Asks a member's measuring service what it should refuse; a line for each answer.

    refused_orders.py ADDRESS                 with orders that the node's agent proves
    refused_orders.py --without-key ADDRESS   as any program of the machine could
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import struct
import sys

PORT = 51829
MAGIC = 0x57667001
PING = 1


AGENT = "/run/weft/agent.sock"


def exchange(sock: socket.socket, order: dict) -> dict:
    sock.sendall(json.dumps(order).encode() + b"\n")
    return json.loads(sock.makefile().readline())


def ask(sock: socket.socket, order: dict) -> str:
    return "refused" if "error" in exchange(sock, order) else "ok"


def proof_of(address: str, order: dict, challenge: str) -> str:
    """The agent's, for that order to that member."""
    agent = http.client.HTTPConnection("localhost")
    agent.sock = socket.socket(socket.AF_UNIX)
    agent.sock.connect(AGENT)
    agent.request("POST", "/v1/measure/proofs",
                  json.dumps(order | {"challenges": {address: challenge}}))
    return json.loads(agent.getresponse().read())["proofs"][address]


def begin_session(sock: socket.socket, address: str, order: dict) -> dict:
    """The answer to a session that is proven as the member wants it."""
    challenge = exchange(sock, order)["challenge"]
    return exchange(sock, order | {"proof": proof_of(address, order, challenge)})


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


def without_key(address: str) -> None:
    order = {"op": "session", "id": os.urandom(16).hex(), "purpose": "test", "seconds": 600}
    with connect(address) as sock:
        print("no proof:", exchange(sock, order)["error"])
        print("a guess:", exchange(sock, order | {"proof": os.urandom(16).hex()})["error"])
    with connect(address) as sock:
        print("facts:", ask(sock, {"op": "facts"}))
    with connect(address) as sock:
        sock.sendall(b'{"op": "session"')
        # Held open, and more like it, so that there is no room for others.
        held = [connect(address) for _ in range(200)]
        print("holding", flush=True)
        signal.pause()  # until it is killed
        assert held


def main() -> None:
    address = sys.argv[-1]
    if "--without-key" in sys.argv:
        without_key(address)
        return
    session, other = os.urandom(16), os.urandom(16)
    begin = {"op": "session", "id": session.hex(), "purpose": "test", "seconds": 30}
    with connect(address) as sock:
        print("light before a session:", ask(sock, {"op": "light", "peer": address, "pings": 1}))
    with connect(address) as sock:
        print("session:", "ok" if "ok" in begin_session(sock, address, begin) else "refused")
        with connect(address) as second:
            refusal = begin_session(second, address, begin | {"id": other.hex()})
            print("second session:", "refused" if "error" in refusal else "ok")
        with connect(address) as data:
            print("sink with another id:",
                  ask(data, {"op": "sink", "id": other.hex(), "ms": 100}))
        with connect(address) as data:
            print("no order:", ask(data, {"op": "reboot"}))
        print("ping of the session:", ping(address, session))
        print("ping of another session:", ping(address, other))


if __name__ == "__main__":
    main()
