#!/usr/bin/python3
"""rdzv - the hub's TCPStore beside PyTorch's own server, in one run.

    rdzv.py [ROUNDS]        prints JSON; needs root and python3-torch; $WEFT or build/weft

A lab of two hosts and a link: both servers on one, the client on the other, so both have the same
way. Rounds alternate between the servers. "set+get" is PyTorch's client on one connection, without
a pause; "barrier" is 256 connections that each add one to a counter and wait for a key that the
last of them sets, driven with bytes by one process, which costs both servers the same.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import statistics
import struct
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SERVER = ("10.42.0.1", 29999)
PAIRS = 2000
CLIENTS = 256
BARRIERS = 20
SET, GET, ADD, WAIT = 0, 2, 3, 5


# ---- the client, on its host ----------------------------------------------------------------

def text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def set_get(address: str, port: int) -> float:
    """Pairs a second."""
    from torch.distributed import TCPStore
    store = TCPStore(address, port, is_master=False, wait_for_workers=False,
                     timeout=timedelta(seconds=30))
    start = time.perf_counter()
    for i in range(PAIRS):
        store.set(f"key{i % 100}", f"value{i}")
        assert store.get(f"key{i % 100}") == b"value%d" % i
    return PAIRS / (time.perf_counter() - start)


def take(socks: list, size: int) -> None:
    """So many bytes from each."""
    chosen = selectors.DefaultSelector()
    left = {}
    for sock in socks:
        chosen.register(sock, selectors.EVENT_READ)
        left[sock] = size
    while left:
        for key, _ in chosen.select(30):
            left[key.fileobj] -= len(key.fileobj.recv(left[key.fileobj]))
            if left[key.fileobj] == 0:
                chosen.unregister(key.fileobj)
                del left[key.fileobj]
    chosen.close()


def barrier(address: str, port: int) -> float:
    """Barriers a second."""
    socks = [socket.create_connection((address, port)) for _ in range(CLIENTS)]
    run = b"%d" % time.monotonic_ns()
    start = time.perf_counter()
    for i in range(BARRIERS):
        name = run + b"/%d" % i
        for sock in socks:
            sock.sendall(bytes([ADD]) + text(name) + struct.pack("<q", 1) + bytes([WAIT]) +
                         struct.pack("<Q", 1) + text(name + b"/all"))
        take(socks, 8)
        last = socket.create_connection((address, port))
        last.sendall(bytes([SET]) + text(name + b"/all") + text(b"1"))
        take(socks, 1)
        last.close()
    seconds = time.perf_counter() - start
    for sock in socks:
        sock.close()
    return BARRIERS / seconds


def serve() -> None:
    from torch.distributed import TCPStore
    store = TCPStore("0.0.0.0", SERVER[1], is_master=True, wait_for_workers=False)
    print("serving", store.port, flush=True)
    time.sleep(600)


# ---- the lab --------------------------------------------------------------------------------

def measure(rounds: int) -> dict:
    sys.path[:0] = [str(ROOT / "test")]
    from hub.hub import TOPOLOGY, Hub, member_call
    from lab import Lab
    weft = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
    with tempfile.TemporaryDirectory() as directory, Lab.from_text(TOPOLOGY, capture=False) as lab:
        hub = Hub(lab, weft, Path(directory)).start()
        member = lab.host("a")
        hub.enrol(member, hub.secret(), name="a")
        port = member_call(member, "POST", "/v1/jobs/bench/rendezvous")[1]["c10d"]["port"]
        theirs = lab.host("hub").spawn([sys.executable, __file__, "serve"], name="torch")
        theirs.wait_line("serving", 60)
        figures: dict = {}
        for _ in range(rounds):
            for name, at in (("torch", SERVER), ("weft", (SERVER[0], port))):
                done = member.run([sys.executable, __file__, "client", *at], quiet=True)
                for what, rate in json.loads(done.out.splitlines()[-1]).items():
                    figures.setdefault(what, {}).setdefault(name, []).append(rate)
        hub.daemon.stop()
        theirs.kill9()
    return {what: by | {"ratio": round(statistics.median(by["weft"]) /
                                       statistics.median(by["torch"]), 2)}
            for what, by in figures.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["client"]:
        at = sys.argv[2], int(sys.argv[3])
        print(json.dumps({"set+get per second": round(set_get(*at)),
                          "barriers of 256 per second": round(barrier(*at), 1)}))
    else:
        print(json.dumps(measure(int(sys.argv[1]) if sys.argv[1:] else 5), indent=2))
