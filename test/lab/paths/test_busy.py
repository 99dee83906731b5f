"""Nodes that measure all the time, on a machine whose processors are all taken: no path changes.

    hub ── [ wan ] ──┬── nat-a ── [ lan-a ] ── n1, n2
                     ├── nat-b ── [ lan-b ] ── n3
                     └── nat-c ── [ lan-c ] ── n4

A training node is always as busy as this. WEFT_BUSY_S says for how many seconds, of which there are
few in a normal run; WEFT_BUSY_S=1200 is what a change of the paths' code is to stand.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import Site
from lab.support.network.process import Daemon

pytestmark = pytest.mark.namespaces

BUSY_S = int(os.environ.get("WEFT_BUSY_S", "40"))
TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
nat nat-a port-restricted out=wan
nat nat-b port-restricted out=wan
nat nat-c port-restricted out=wan
switch lan-a 192.168.1.0/24 gateway=nat-a
switch lan-b 192.168.2.0/24 gateway=nat-b
switch lan-c 192.168.3.0/24 gateway=nat-c
link nat-a wan 203.0.113.21
link nat-b wan 203.0.113.22
link nat-c wan 203.0.113.23
link nat-a lan-a 192.168.1.1
link nat-b lan-b 192.168.2.1
link nat-c lan-c 192.168.3.1
host n1 no-v6
host n2 no-v6
host n3 no-v6
host n4 no-v6
link n1 lan-a 192.168.1.11
link n2 lan-a 192.168.1.12
link n3 lan-b 192.168.2.11
link n4 lan-c 192.168.3.11
"""
PATHS = {("n1", "n2"): {"lan"}, **{pair: {"direct"} for pair in (
    ("n1", "n3"), ("n1", "n4"), ("n2", "n3"), ("n2", "n4"), ("n3", "n4"))}}
# What is asked beside the overlay: the peer where it can be, else the NAT that it is behind.
OUTSIDE = {"n1": "203.0.113.21", "n2": "203.0.113.21", "n3": "203.0.113.22", "n4": "203.0.113.23"}
ANSWER = re.compile(r"^\[(\d+\.\d+)\] .*bytes from")
# What an agent says when an edge goes another way.
MOVED = re.compile(r"(lan|direct) path |through the relay|than the direct path|through another")


class Underlay:
    """Pings beside the overlay, of each pair, five a second."""

    def __init__(self, site: Site) -> None:
        self.pings = {}
        for a, b in PATHS:
            address = site.nodes[b].host.address(4) if (a, b) == ("n1", "n2") else OUTSIDE[b]
            self.pings[a, b] = site.nodes[a].host.spawn(
                ["ping", "-D", "-i", "0.2", address], name=f"underlay-{b}")
        for ping in self.pings.values():
            ping.wait_line("bytes from", 10)

    def answers(self, pair: tuple[str, str], since: float, until: float) -> bool:
        """Did it answer all that time, with no second without an answer?"""
        ping: Daemon = self.pings[pair if pair in self.pings else pair[::-1]]
        times = [float(m[1]) for m in map(ANSWER.match, ping.lines()) if m]
        within = [since, *(t for t in times if since < t < until), until]
        return all(b - a < 1 for a, b in zip(within, within[1:]))


def measure(site: Site, until: float) -> int:
    """preflight and bench in turn, again and again; how many of both ended with a result."""
    n = 0
    while time.monotonic() < until:
        for words in (["preflight", "--force"], ["bench", "--force", "--ms", "100"]):
            # A pair that is slow is no reason to stop, nor is a node that another one measures.
            done = site.nodes["n1"].host.run([site.weft, *words], check=False, quiet=True,
                                             timeout_s=300)
            n += done.rc in (0, 3)
    return n


def watch(site: Site, until: float) -> tuple[int, list[tuple[float, tuple[str, str], str, str]]]:
    """Looks at all paths once a second: how often, and each change (when, who, before, after)."""
    before = site.kinds()
    n, changes = 1, []
    while time.monotonic() < until:
        due = time.monotonic() + 1
        found = site.kinds()
        n += 1
        changes += [(time.time(), pair, before[pair], found[pair])
                    for pair in found if found[pair] != before[pair]]
        before = found
        time.sleep(max(0, due - time.monotonic()))
    return n, changes


def moves(site: Site) -> list[str]:
    """What the agents have said of edges that went another way."""
    return [f"{node.name}: {line}" for node in site.nodes.values()
            for line in node.agent.lines() if MOVED.search(line)]


def fallen(site: Site) -> list[dict]:
    """The hub's events of edges that have lost their direct path."""
    done = site.hub.run([site.weft, "get", "events", "--json"], quiet=True)
    return [event for event in json.loads(done.out)["events"] if event["type"] == "FellBack"]


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def test_no_path_changes_on_a_busy_machine(site: Site) -> None:
    site.join("n1", "n2", "n3", "n4")
    for node in site.nodes.values():
        node.agent.allow("the hub")
    site.wait_paths(PATHS, 60)
    underlay = Underlay(site)
    for node in site.nodes.values():
        for _ in range(max(1, (os.cpu_count() or 1) // 2)):
            node.host.spawn(["sh", "-c", "while :; do :; done"], name="busy")
    said = len(moves(site))
    until = time.monotonic() + BUSY_S
    with ThreadPoolExecutor(2) as pool:
        measuring = pool.submit(measure, site, until)
        n_looks, changes = pool.submit(watch, site, until).result()
        n_measured = measuring.result()
    new = moves(site)[said:]
    unexcused = [change for change in changes
                 if underlay.answers(change[1], change[0] - 5, change[0])]
    print(f"FIGURE busy for {BUSY_S} s: {n_measured} measurements, {n_looks} looks at {len(PATHS)} "
          f"pairs, {len(changes)} changes (to be 0), {len(unexcused)} of them while the underlay "
          f"answered, {len(new)} lines of paths that moved (to be 0)")
    for line in new:
        print(line)
    assert n_measured > 0
    assert not unexcused
    assert not fallen(site)
