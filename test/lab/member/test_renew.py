"""The data plane's process is replaced under a TCP connection at full rate.

    hub ──┐                    the pair is direct through both NATs, or relayed by the hub
    a ─ na┤ net
    b ─ nb┘
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import PROGRAMS, TOPOLOGIES
from lab.support.agents import STATE, AgentNode, Site
from lab.support.streaming import Stream

pytestmark = pytest.mark.namespaces

TOPOLOGY = TOPOLOGIES / "two-nats.topo"
SOCKET, REAL_SOCKET = "/run/wireguard/weft0.sock", "/run/wireguard/real.sock"
TIMESTAMPS = f"{STATE}/timestamp"
OLDER = PROGRAMS / "older_data_plane.py"
# What a figure is to be, and what a machine that is busy otherwise may make of it.
GAP_S, DEADLINE_S = 1, 15


@pytest.fixture(scope="module")
def pair(weft: Path) -> Iterator[tuple[Site, AgentNode, AgentNode]]:
    with Lab.from_file(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        a, b = site.join("a", "b", words=dict.fromkeys("ab", ["--engine", "userspace"]))
        yield site, a, b


def link_number(node: AgentNode) -> str:
    return node.host.run(["ip", "-o", "link", "show", "weft0"], check=False,
                         quiet=True).out.split(":")[0]


@pytest.mark.parametrize("path", ["direct", "relay"])
@pytest.mark.parametrize("sends", ["a", "b"])
def test_renewed_under_a_full_flow(pair: tuple[Site, AgentNode, AgentNode], path: str,
                                   sends: str) -> None:
    site, a, b = pair
    site.hub.run([site.weft, "edge", "set", "a", "b", "--path", path])
    site.wait_paths({("a", "b"): {path}}, 20)
    sender, receiver = (a, b) if sends == "a" else (b, a)
    stream = Stream(sender.host, receiver.host, receiver.address())
    [pid], link = a.host.pids("weft-wg"), link_number(a)
    mtu = a.status()["self"]["mtu"]
    began = time.time()
    said = a.host.run([site.weft, "agent", "--renew-engine"]).out
    assert said == "The data plane of weft0 runs anew.\n"
    assert a.host.pids("weft-wg") not in ([], [pid])
    assert link_number(a) == link
    stream.wait_more()
    stream.stop()
    gap = stream.longest_gap_s(since=began)
    print(f"FIGURE renewed under a {path} flow {'from' if sends == 'a' else 'to'} it: "
          f"nothing arrived for {gap:.2f} s (to be under {GAP_S} s)")
    assert gap < DEADLINE_S
    assert a.status()["self"]["mtu"] == mtu


def test_goes_with_its_process_again(pair: tuple[Site, AgentNode, AgentNode]) -> None:
    """An interface that was taken over is as mortal as one that was made."""
    a = pair[1]
    [pid], link = a.host.pids("weft-wg"), link_number(a)
    a.agent.allow("warning: agent: (the path to|weft0 is not as)")
    os.kill(pid, 9)
    wait_for(lambda: a.host.pids("weft-wg") not in ([], [pid]), 20, "another data plane")
    wait_for(lambda: link_number(a) not in ("", link), 20, "another interface")
    # One that found the interface in use ends by itself.
    wait_for(lambda: len(a.host.pids("weft-wg")) == 1, 20, "one data plane alone")


def test_of_an_older_version(pair: tuple[Site, AgentNode, AgentNode]) -> None:
    """It cannot hand its interface over: that is made anew, and the flow goes on all the same."""
    site, a, b = pair
    [pid] = a.host.pids("weft-wg")
    a.agent.stop()
    os.kill(pid, 15)
    wait_for(lambda: not a.host.pids("weft-wg"), 20, "the data plane to end")
    # A killed data plane leaves dates up to five minutes ahead, and peers refuse older ones.
    a.host.spawn([site.weft, "wg", "-f", "weft0", "--socket", REAL_SOCKET, "--timestamps",
                  TIMESTAMPS], name="wg")
    wait_for(lambda: REAL_SOCKET in a.host.run(["ss", "-xl"], quiet=True).out, 20, "it to serve")
    older = a.host.spawn([sys.executable, OLDER, SOCKET, REAL_SOCKET], name="older")
    older.wait_line("listening")
    a.start(allow=["paths cannot be looked for", "the path to"])
    [pid] = a.host.pids("weft-wg")
    a.reaches(b, within_s=20)
    stream = Stream(a.host, b.host, b.address())
    a.host.run([site.weft, "agent", "--renew-engine"])
    assert a.host.pids("weft-wg") not in ([], [pid])
    stream.wait_more()
    stream.stop()


def test_taken_down_and_up_again(pair: tuple[Site, AgentNode, AgentNode]) -> None:
    """By the agent, and without one: the network is kept."""
    site, a, b = pair

    def what_is_up() -> list[str]:
        link = a.host.run(["ip", "link", "show", "weft0"], check=False, quiet=True)
        hosts = a.host.run(["cat", "/etc/hosts"], quiet=True).out
        return ([link.out] if link.rc == 0 else []) + ([hosts] if "weft" in hosts else [])

    wait_for(lambda: len(what_is_up()) == 2, 20, "interface and names of a")
    a.host.run([site.weft, "agent", "--take-down"])
    assert not what_is_up()
    assert a.agent.wait() == 0
    a.start()
    a.reaches(b, within_s=20)
    a.agent.stop()
    assert what_is_up()
    a.host.run([site.weft, "agent", "--take-down"])
    assert not what_is_up()
    a.start()
    a.reaches(b, within_s=20)
