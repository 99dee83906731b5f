#!/usr/bin/python3
"""store_load - what many clients, or large values, do to a TCPStore; prints one line of JSON.

    store_load late ADDRESS PORT CLIENTS SIZE   so many ask for one key, and read it when all have
    store_load append ADDRESS PORT SIZE COUNT   so many empty and short appends to a value
    store_load large ADDRESS PORT [own]         values around the limits, with PyTorch's client
    store_load barrier ADDRESS PORT COUNT       so many come to a barrier
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from datetime import timedelta

SET, GET, NUM_KEYS, APPEND = 0, 2, 6, 9
MIB = 1 << 20


def u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def text(data: bytes) -> bytes:
    return u64(len(data)) + data


def take(sock: socket.socket, size: int) -> bytes:
    """So many bytes; fewer when the other end hangs up."""
    data = bytearray()
    while len(data) < size:
        try:
            more = sock.recv(min(size - len(data), MIB))
        except ConnectionResetError:
            break
        if not more:
            break
        data += more
    return bytes(data)


def connect(address: str, port: str, first: bytes = b"") -> socket.socket:
    sock = socket.create_connection((address, int(port)), timeout=60)
    sock.sendall(first)
    return sock


def late(address: str, port: str, clients: str, size: str) -> dict:
    value = bytes(range(256)) * (int(size) // 256)
    writer = connect(address, port, bytes([SET]) + text(b"key") + text(value) + bytes([NUM_KEYS]))
    take(writer, 8)
    asking = [connect(address, port, bytes([GET]) + text(b"key")) for _ in range(int(clients))]
    for sock in asking:  # each has been sent the length before any reads the rest
        assert take(sock, 8) == u64(len(value))
    return {"whole": sum(take(sock, len(value)) == value for sock in asking)}


def append(address: str, port: str, size: str, count: str) -> dict:
    sock = connect(address, port, bytes([SET]) + text(b"long") + text(b"x" * int(size)))
    one = bytes([APPEND]) + text(b"long")
    sock.sendall((one + text(b"") + one + text(b"y")) * (int(count) // 2) + bytes([GET]) +
                 text(b"long"))
    length = struct.unpack("<Q", take(sock, 8))[0]
    return {"length": length, "end": take(sock, length)[-3:].decode()}


def outcome(call) -> str:
    try:
        call()
    except RuntimeError:
        return "failed"
    return "worked"


def large(address: str, port: str, own: str = "") -> dict:
    from torch.distributed import TCPStore
    options = {"timeout": timedelta(seconds=30), "wait_for_workers": False}
    server = TCPStore(address, int(port), is_master=True, **options) if own else None
    at = (address, server.port if server else int(port))

    def store() -> TCPStore:
        return TCPStore(*at, is_master=False, **options)

    first = store()
    first.set("eight", "x" * (8 * MIB))
    answers = {"eight": len(store().get("eight"))}
    first.set("eight", "y" * (8 * MIB))
    first.num_keys()  # nothing says when a set is done but the answer to what comes behind it
    answers["again"] = set(store().get("eight")) == {ord("y")}
    answers["swapped"] = len(first.compare_set("eight", "y" * (8 * MIB), "z" * (4 * MIB)))
    del first
    if not own:
        # Whoever asks too much is told by the very call, which waits for an answer.
        answers["swap too long"] = outcome(
            lambda: store().compare_set("other", "", "x" * (9 * MIB)))
        answers["set too long"] = outcome(lambda: store().set("other", "x" * (64 * MIB)))
        answers["then"] = len(store().get("eight"))
    return answers


def barrier(address: str, port: str, count: str) -> dict:
    hello = b"\0" + struct.pack("<I", 0x3C85F7CE)
    come = bytes([18]) + text(b"all") + u64(int(count))
    waiting = [connect(address, port, hello + come) for _ in range(int(count) - 1)]
    probe = connect(address, port, hello + bytes([3]) + text(b"all"))
    counted = []
    while not counted or counted[-1] != b"%d" % (int(count) - 1):
        counted.append(take(probe, struct.unpack("<Q", take(probe, 8))[0]))
        probe.sendall(bytes([3]) + text(b"all"))
    waiting[0].setblocking(False)
    try:
        early = waiting[0].recv(1).hex()
    except BlockingIOError:
        early = "nothing"
    waiting[0].settimeout(60)
    waiting.append(connect(address, port, hello + come))
    return {"early": early, "open": [take(sock, 1).hex() for sock in waiting].count("00")}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
