"""store - a read beside 1,000 machines a second that are taken in: what others wait for the disk.

Each round starts a hub on an empty state, in a network namespace of its own, and asks it through
its admin socket (load.c). $WEFT_BEFORE is a program to compare with, such as a release whose hub
waited for the disk itself; without it there is the rate alone, and nobody beside the reader.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from lab import wait_for  # noqa: E402 - the path is set above

LOAD = ROOT / "build/test/bench/bench-store"
RATE = 1000


def one(weft: str, rate: int, seconds: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="weft-bench-store.") as top:
        sock = Path(top, "hub.sock")
        with open(Path(top, "log"), "wb") as log, subprocess.Popen(
                ["unshare", "-n", weft, "hub", "up", "--public", "192.0.2.1", "--state",
                 f"{top}/state", "--socket", sock, "--no-dataplane", "--cidr4", "10.42.0.0/16"],
                stdout=log, stderr=log) as hub:
            try:
                wait_for(sock.exists, 10, "the hub's socket")
                said = subprocess.run([LOAD, sock, str(rate), str(seconds)],
                                      stdout=subprocess.PIPE, check=True).stdout
            finally:
                hub.terminate()
    found = json.loads(said)
    return {"addedEachSecond": found["added"], "readP50Ms": found["p50"],
            "readP99Ms": found["p99"], "readWorstMs": found["worst"]}


def measure(rounds: int, seconds: int) -> dict:
    weft = os.environ.get("WEFT", str(ROOT / "build/weft"))
    runs = {"alone": (weft, 1), "weft": (weft, RATE)}
    if os.environ.get("WEFT_BEFORE"):
        runs["before"] = (os.environ["WEFT_BEFORE"], RATE)
    found: dict[str, list] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (program, rate) in runs.items():
            found[name].append(one(program, rate, seconds))
    return {name: {key: statistics.median(run[key] for run in all_runs) for key in all_runs[0]}
            for name, all_runs in found.items()}
