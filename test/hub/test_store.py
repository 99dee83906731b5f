"""A job's TCPStore under many clients, large values, and requests that are made to cost much."""

from __future__ import annotations

import json
import time
from pathlib import Path

from .hub import Hub, member_call
from .test_rendezvous import PYTHON, join, members, needs_torch

LOAD = Path(__file__).parent / "store_load.py"


def load(host, *words: object) -> dict:
    return json.loads(host.run([PYTHON, LOAD, *words], quiet=True).out.splitlines()[-1])


def test_who_reads_late_is_not_hung_up_on(hub: Hub) -> None:
    """80 clients are sent 72 MB in all, which the store has once."""
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    assert load(a, "late", "10.42.0.1", port, 80, 900_096) == {"whole": 80}
    (job,) = [j for j in member_call(a, "GET", "/v1/jobs")[1]["jobs"] if j["job"] == "train"]
    assert 900_000 < job["bytes"] < 2_000_000, job
    assert job["limitHits"] == 0, job


def test_appends_stall_nobody(hub: Hub) -> None:
    """A value of a mebibyte is appended to 40,000 times; the hub's other APIs answer meanwhile."""
    a, b = members(hub, "a", "b")
    port = join(a, "train")["c10d"]["port"]
    flood = a.spawn([PYTHON, LOAD, "append", "10.42.0.1", port, 1 << 20, 40_000], name="flood")
    slowest = 0.0
    while flood.running:
        start = time.monotonic()
        assert member_call(b, "GET", "/v1/jobs")[0] == 200
        slowest = max(slowest, time.monotonic() - start)
    print(f"FIGURE slowest request beside 40,000 appends to 1 MiB: {slowest * 1000:.0f} ms")
    flood.wait_line(r'"length": 1068576, "end": "yyy"')


@needs_torch
def test_large_values(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    ours = load(a, "large", "10.42.0.1", port)
    theirs = load(a, "large", "127.0.0.1", 0, "own")
    assert {name: ours[name] for name in theirs} == theirs
    assert ours["swap too long"] == "failed" and ours["set too long"] == "failed", ours
    assert ours["then"] == 4 << 20
    (job,) = [j for j in member_call(a, "GET", "/v1/jobs")[1]["jobs"] if j["job"] == "train"]
    assert job["limitHits"] == 2 and job["lastLimit"] == "a request was too long", job
    assert job in json.loads(hub.run("jobs", "--json").out)["jobs"]
    assert "2 a request was too long" in hub.run("jobs").out


def test_a_barrier(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    assert load(a, "barrier", "10.42.0.1", port, 64) == {"early": "nothing", "open": 64}
