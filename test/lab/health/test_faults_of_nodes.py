"""Faults of one node that its own agent finds, and that the hub shows by its word, one at a time.

The network is that of net.py.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode

from .net import ALLOWED, QUARTET, Net, drop, fault, join, part, undo, wait_quiet

pytestmark = pytest.mark.namespaces

HUB = "203.0.113.10"
# What agents say of such faults.
ANY = [".*"]
STRANGER = "c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vyc3RyYW5nZXI="


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        made = Net(lab, weft)
        for node in made.nodes.values():
            node.agent.allow(*ANY)
        yield made


def test_all_from_the_hub_is_lost(net: Net) -> None:
    """Nor does TLS get through, which was not open before: so it is the hub that names the way."""
    b = net.lab.host("b")
    with fault(net, "WEFT-ONEWAY-001", "hub>b", 30, over_s=60) as found:
        drop(b, "nothing", "input", f"ip saddr {HUB}")
        assert "while packets of b arrive at the hub" in found()["text"]
        undo(b, "nothing")


def test_the_hub_and_a_node_hear_nothing_of_each_other(net: Net) -> None:
    """Others reach it, so its machine is not down, and nobody says that its agent is silent."""
    b = net.lab.host("b")
    with fault(net, "WEFT-NODE-006", "b", 45, over_s=60) as found:
        drop(b, "nothing", "input", f"ip saddr {HUB}")
        drop(b, "nothing_out", "output", f"ip daddr {HUB}")
        assert re.search("while the probe of [ac] reaches it", found()["text"])
        undo(b, "nothing")
        undo(b, "nothing_out")


def test_udp_to_the_hub_is_blocked(net: Net) -> None:
    b = net.lab.host("b")
    with fault(net, "WEFT-UDP-001", "b", 60, over_s=150) as found:
        drop(b, "noudp", "output", f"ip daddr {HUB} meta l4proto udp")
        drop(b, "noudpin", "input", f"ip saddr {HUB} meta l4proto udp")
        assert found()["about"] == "node"
        undo(b, "noudp")
        undo(b, "noudpin")


def test_udp_from_the_hub_is_blocked(net: Net) -> None:
    """The node comes in TLS before the hub misses it, and says which direction it is."""
    b = net.lab.host("b")
    with fault(net, "WEFT-UDP-002", "b", 60, over_s=150) as found:
        drop(b, "noudpin", "input", f"ip saddr {HUB} meta l4proto udp")
        assert "nothing that the hub sends by UDP arrives" in found()["text"]
        undo(b, "noudpin")


def test_a_pair_that_has_lost_its_direct_path(net: Net) -> None:
    with fault(net, "WEFT-PATH-003", "a--b", 90, over_s=150) as found:
        part(net, "a", "b")
        found()
        join(net, "a", "b")


def test_a_peer_that_somebody_has_added(net: Net) -> None:
    """It is removed at once, and said for ten minutes: here it is enough that it is said."""
    seen = []

    def look() -> bool:
        seen[:] = [one for one in net.findings() if one["code"] == "WEFT-PEERS-001"]
        return bool(seen)

    net.lab.host("b").run(["wg", "set", "weft0", "peer", STRANGER, "allowed-ips", "10.99.0.0/16"],
                          quiet=True)
    wait_for(look, 60, "the peer to be said")
    assert [one["subject"] for one in seen] == ["b"]
    assert STRANGER in seen[0]["text"]
    # The agent that is started anew knows nothing of it.
    node = net.nodes["b"]
    node.agent.stop()
    node.start(allow=ANY)
    wait_quiet(net, 120, "it to be over")


def test_names_that_cannot_be_written(net: Net) -> None:
    c = net.lab.host("c")
    with fault(net, "WEFT-NAME-002", "c", 60, over_s=120) as found:
        c.run(["mount", "--bind", "-o", "ro", "/etc/hosts", "/etc/hosts"], quiet=True)
        # A name comes, which is to be written.
        d = AgentNode(net.lab.host("d"), net.site.weft)
        d.join(net.site.token(), allow=ALLOWED)
        assert "/etc/hosts" in found()["text"]
        c.run(["umount", "/etc/hosts"], quiet=True)


def test_a_probe_that_was_killed(net: Net) -> None:
    with fault(net, "WEFT-PROBE-001", "b", 30) as found:
        net.probes["b"].kill9()
        found()
        net.start_probe("b")


def test_all_programs_of_a_node_are_gone(net: Net) -> None:
    """Its kernel lives, and says so; neither its agent nor its WireGuard does."""
    node = net.nodes["b"]
    with fault(net, "WEFT-NODE-001", "b", 120, over_s=60) as found:
        node.agent.kill9()
        for pid in node.pids("weft-wg") + node.pids("weft"):
            os.kill(pid, signal.SIGKILL)
        assert re.search("has acknowledged nothing|has no session with the hub", found()["text"])
        node.start(allow=ANY)
        net.start_probe("b")
