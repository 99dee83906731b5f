#!/usr/bin/python3
"""echo_order.py - numbered datagrams there and back: one at a time, and many at once.

    echo_order.py serve ADDRESS
    echo_order.py ask ADDRESS ROUNDS

Both ends insist that each flow's numbers come in order and that none is missing: `serve` echoes
only the number that follows, so a packet that was overtaken or lost leaves its flow without
answers. `ask` prints "in order" and how many came back, or says what did not.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

PORT = 7100
FLOWS = 8
BURST = 40  # of each flow, more than any worker takes for quiet
ROOM = 4 << 20  # bytes for a burst at the reader, so that it loses nothing
SO_RCVBUFFORCE = 33
LONE_S = 0.06  # of one datagram at a time: longer than a port stays busy after a burst
NUMBER = struct.Struct("!Q")
PAD = bytes(100)


def serve(address: str) -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
    server.bind((address, PORT))
    expected: dict[tuple, int] = {}
    print("ready", flush=True)
    while True:
        data, sender = server.recvfrom(2048)
        if NUMBER.unpack_from(data)[0] == expected.get(sender, 0):
            expected[sender] = expected.get(sender, 0) + 1
            server.sendto(data, sender)


class Flow:
    """One socket, and the numbers that went out and came back by it."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((address, PORT))
        self.socket.settimeout(60)
        self.sent = self.received = 0

    def send(self) -> None:
        self.socket.send(NUMBER.pack(self.sent) + PAD)
        self.sent += 1

    def receive(self) -> None:
        number = NUMBER.unpack_from(self.socket.recv(2048))[0]
        if number != self.received:
            sys.exit(f"answer {number} came where {self.received} was due")
        self.received += 1


def ask(address: str, rounds: int) -> None:
    flows = [Flow(address) for _ in range(FLOWS)]
    for _ in range(rounds):
        until = time.monotonic() + LONE_S
        while time.monotonic() < until:
            for flow in flows:
                flow.send()
                flow.receive()
        for _ in range(BURST):
            for flow in flows:
                flow.send()
        for flow in flows:
            while flow.received < flow.sent:
                flow.receive()
    print("in order", sum(flow.received for flow in flows))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        ask(sys.argv[2], int(sys.argv[3]))
