"""Paths between agents, kept while lines and programs die around them.

    hub ── [ wan ] ──┬── nat-a ── [ lan-a ] ── a
                     └── nat-b ── [ lan-b ] ── b

test_matrix.py has every kind of NAT; here both can be punched, and the figures of one pair count.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.network.process import Daemon
from lab.support.pinging import LONGEST_GAP_S, Pings

pytestmark = pytest.mark.namespaces

# Two nodes behind NATs that can be punched, 50 ms apart; the hub is in the middle.
PAIR = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
switch lan-a 192.168.1.0/24 gateway=nat-a
nat nat-a port-restricted out=wan
link nat-a wan 203.0.113.21 delay=12500us
link nat-a lan-a 192.168.1.1
host a no-v6
link a lan-a 192.168.1.11
switch lan-b 192.168.2.0/24 gateway=nat-b
nat nat-b port-restricted out=wan
link nat-b wan 203.0.113.22 delay=12500us
link nat-b lan-b 192.168.2.1
host b no-v6
link b lan-b 192.168.2.11
"""
DIRECT = {("a", "b"): {"direct"}}
RELAY = {("a", "b"): {"relay"}}


@pytest.fixture
def pair(weft: Path) -> Iterator[Site]:
    with Lab.from_text(PAIR, capture=False) as lab:
        yield Site(lab, weft)


def block_between(site: Site, on: bool) -> None:
    """Nothing passes between the two NATs any more; the hub is reached by both as before."""
    for name, other in (("nat-a", "203.0.113.22"), ("nat-b", "203.0.113.21")):
        table = ("table inet cut {\nchain cut {\ntype filter hook prerouting priority -300\n"
                 f"ip saddr {other} drop\n}}\n}}\n")
        argv = ["nft", "-f", "-"] if on else ["nft", "delete", "table", "inet", "cut"]
        site.lab.host(name).run(argv, stdin=table if on else None, quiet=True)


def test_first_packet_and_direct(pair: Site) -> None:
    a, b = pair.join("a", "b")
    start = time.monotonic()
    a.reaches(b, 5)
    first = time.monotonic() - start
    pair.wait_paths(DIRECT, 30)
    direct = time.monotonic() - start
    print(f"FIGURE first packet after join: {first:.2f} s (to be below 1); "
          f"direct: {direct:.2f} s (to be below 3); 50 ms RTT")
    # A first handshake that is lost is begun again after 5 s, and a way that was missed is looked
    # for after 60 s; neither is what happens here, on a machine as busy as may be.
    assert first < 5
    assert direct < 15


def test_a_path_that_dies_is_left_and_found_again(pair: Site) -> None:
    a, b = pair.join("a", "b")
    pair.wait_paths(DIRECT, 30)
    pings = Pings(a.host, b.address())
    block_between(pair, True)
    pair.wait_paths(RELAY, 10)
    pings.wait_more()
    pings.stop()
    gap = pings.longest_gap_s()
    print(f"FIGURE path dies, direct to relay: no answer for {gap:.2f} s (to be below 3)")
    assert gap < LONGEST_GAP_S
    block_between(pair, False)
    pair.wait_paths(DIRECT, 75)
    # Whoever dies around it: the engine, the agent, the hub.
    for node in (a, b):
        node.agent.stop()
        node.start()
    a.reaches(b, 5)
    pair.wait_paths(DIRECT, 30)


def test_an_agent_that_stands_still(pair: Site) -> None:
    """As one does whose machine has better things to do: its engine goes on, and so does the path.

    It answers no pings of the paths, but what it sends comes in by the direct path.
    """
    a, b = pair.join("a", "b")
    pair.wait_paths(DIRECT, 30)
    pings = Pings(a.host, b.address())
    pings.wait_more(100)
    said = len(a.agent.lines())
    os.kill(b.agent.pid, signal.SIGSTOP)
    try:
        before = asked(a, "b")
        wait_for(lambda: asked(a, "b")[0] >= before[0] + 12, 20, "a's agent to ping in vain")
        pings.wait_more(200)
        assert a.peers()["b"]["path"] == "direct"
    finally:
        os.kill(b.agent.pid, signal.SIGCONT)
    wait_for(lambda: asked(a, "b")[1] >= before[1] + 2, 20, "b's agent to answer")
    pair.wait_paths(DIRECT, 30)
    pings.stop()
    assert not [line for line in a.agent.lines()[said:] if "through the relay" in line]


def asked(node: AgentNode, peer: str) -> tuple[int, int]:
    """Pings of the agents, by all ways, and answers to them."""
    ways = node.paths(peer)["candidates"]
    return sum(way["pings"] for way in ways), sum(way["pongs"] for way in ways)


def n_remembered(site: Site) -> int:
    """Of how many nodes the hub has written down where they are; it does so each two seconds."""
    done = site.hub.run(["cat", "/var/lib/weft/hub/addresses.json"], check=False, quiet=True)
    return len(json.loads(done.out)["default"]) if done.rc == 0 else 0


def test_the_hub_dies_under_relayed_edges(pair: Site) -> None:
    a, b = pair.join("a", "b")
    pair.hub.run([pair.weft, "edge", "set", "a", "b", "--path", "relay"])
    pair.wait_paths(RELAY, 5)
    for node in pair.nodes.values():
        node.agent.allow("the hub does not answer|UDP to the hub")
    pings = Pings(a.host, b.address())
    wait_for(lambda: n_remembered(pair) == 2, 10, "the hub to remember both nodes")
    pair.daemon.kill9()
    pair.start_hub()
    up = time.time()
    pings.wait_more()
    pings.stop()
    after = [moment for moment in pings.answered() if moment > up]
    print(f"FIGURE hub killed: relayed again {after[0] - up:.2f} s after it was back "
          "(to be below 3)")
    assert after[0] - up < LONGEST_GAP_S


def test_the_engine_dies(pair: Site) -> None:
    a, b = pair.join("a", "b")
    pair.wait_paths(DIRECT, 30)
    a.agent.allow("is gone|does not answer|trying again|cannot")
    a.host.run(["ip", "link", "delete", "weft0"])
    a.reaches(b, 20)
    pair.wait_paths(DIRECT, 30)


# ---- a flow that moves -----------------------------------------------------------------------


def moved(flow: Daemon) -> list[float]:
    """What a TCP flow has carried in each interval of 100 ms, in the units of iperf3."""
    return [float(m[1]) for m in re.finditer(
        r"sec +([\d.]+) [KMG]?Bytes +[\d.]+ [KMG]?bits/sec +\d+ ", "\n".join(flow.lines()))]


def wait_moving(flow: Daemon, intervals: int = 20) -> None:
    """Until it has carried data in so many more of them."""
    n = sum(map(bool, moved(flow)))
    wait_for(lambda: sum(map(bool, moved(flow))) >= n + intervals or not flow.running, 20,
             "the flow to run")
    assert flow.running, flow.lines()[-3:]


def test_a_tcp_flow_moves_up(pair: Site) -> None:
    """From the relay to the direct path, at full rate: it is not reset, and never silent for long.

    A switch that lost packets would stall it for a fifth of a second, and one to a path that
    carries nothing until that is found out. Whoever shares the machine's cores stalls it, too.
    """
    a, b = pair.join("a", "b")
    pair.hub.run([pair.weft, "edge", "set", "a", "b", "--path", "relay"])
    pair.wait_paths(RELAY, 5)
    a.reaches(b, 5)
    b.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf-server").wait_line("listening")
    flow = a.host.spawn(["iperf3", "-c", b.address(), "-t", "300", "-i", "0.1", "--forceflush"],
                        name="iperf")
    wait_moving(flow)
    pair.hub.run([pair.weft, "edge", "set", "a", "b", "--path", "auto"])
    pair.wait_paths(DIRECT, 30)
    wait_moving(flow)
    stall = longest_run(amount == 0 for amount in moved(flow))
    flow.stop()
    print(f"FIGURE relay to direct under TCP: {stall / 10:.1f} s without data at most "
          "(to be at most 0.1)")
    assert stall <= 20


def longest_run(flags) -> int:
    """How many true ones come one after the other, at most."""
    return max((len(list(group)) for flag, group in itertools.groupby(flags) if flag), default=0)
