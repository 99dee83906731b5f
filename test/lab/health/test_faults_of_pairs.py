"""Faults of a pair of nodes, one at a time: what is found of each, and that nothing else is.

The network is that of net.py.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support import PROGRAMS
from lab.support.agents import AgentNode

from .net import QUARTET, Net, drop, fault, join, part, undo, wait_quiet

pytestmark = pytest.mark.namespaces

# What agents say of such faults.
ANY = [".*"]
# All that WireGuard sends begins with one of these; what looks for paths does not.
TUNNEL = "@th,64,8 1-4"
SOCKET, REAL_SOCKET = "/run/wireguard/weft0.sock", "/run/wireguard/real.sock"


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        made = Net(lab, weft)
        for node in made.nodes.values():
            node.agent.allow(*ANY)
        yield made


def set_edge(net: Net, *words: str) -> None:
    net.site.hub.run([net.site.weft, "edge", "set", "a", "b", *words], quiet=True)


def test_a_firewall_inside_of_the_tunnel(net: Net) -> None:
    """b's kernel drops what comes from a through the tunnel; both agents and sessions are well."""
    b = net.lab.host("b")
    with fault(net, "WEFT-PATH-001", "a--b", 30) as found:
        drop(b, "dead", "input", f"ip saddr {net.nodes['a'].address()}")
        said = found()
        assert said["about"] == "pair" and said["severity"] == "critical"
        assert "through the tunnel, but at its underlay endpoint it does" in said["text"]
        undo(b, "dead")


def test_a_firewall_that_knows_wireguard(net: Net) -> None:
    """The packets of the tunnel are dropped, and not those by which paths are found."""
    with fault(net, "WEFT-PATH-001", "a--b", 30, over_s=60) as found:
        part(net, "a", "b", TUNNEL)
        assert "through the tunnel, but at its underlay endpoint it does" in found()["text"]
        join(net, "a", "b")


def test_a_pair_that_must_not_be_relayed(net: Net) -> None:
    with fault(net, "WEFT-PATH-002", "a--b", 60, over_s=150) as found:
        set_edge(net, "--path", "direct")
        part(net, "a", "b")
        assert "has no path to" in found()["text"]
        # So do the nodes themselves.
        wait_for(lambda: "WEFT-PATH-002" in {one["code"] for one in
                                             net.nodes["a"].status()["findings"]}, 60, "a's word")
        join(net, "a", "b")
        set_edge(net, "--path", "auto")


def test_a_pair_that_is_relayed_on_purpose(net: Net) -> None:
    """Nothing is wrong then."""
    wait_quiet(net, 60, "nothing to be found before")
    set_edge(net, "--path", "relay")
    net.site.wait_paths({("a", "b"): {"relay"}}, 30)
    until = time.monotonic() + 40

    def is_over() -> bool:
        assert [one for one in net.findings() if one["severity"] != "note"] == []
        return time.monotonic() > until

    wait_for(is_over, 60, "some time to pass")
    set_edge(net, "--path", "auto")
    wait_quiet(net, 150, "the direct path")


@contextlib.contextmanager
def older_engine(node: AgentNode) -> Iterator[None]:
    """A data plane that keeps no rates answers in the place of the node's."""
    node.host.run(["mv", SOCKET, REAL_SOCKET], quiet=True)
    older = node.host.spawn(["/usr/bin/python3", PROGRAMS / "older_data_plane.py", SOCKET,
                             REAL_SOCKET], name="older")
    older.wait_line("listening")
    node.host.run(["chown", "weft", SOCKET], quiet=True)
    yield
    older.stop()
    node.host.run(["mv", REAL_SOCKET, SOCKET], quiet=True)


def test_an_edge_whose_rate_is_not_kept(net: Net) -> None:
    with older_engine(net.nodes["b"]), fault(net, "WEFT-APPLY-002", "a--b", 60) as found:
        set_edge(net, "--rate", "50Mbit")
        assert "b cannot apply it: its rate is not kept: " in found()["text"]
        set_edge(net, "--rate", "none")


def test_a_node_whose_rate_is_not_kept(net: Net) -> None:
    set_rate = [net.site.weft, "node", "set", "b", "--rate"]
    with older_engine(net.nodes["b"]), fault(net, "WEFT-RATE-001", "b", 60) as found:
        net.site.hub.run([*set_rate, "50Mbit"], quiet=True)
        assert "rates are not kept: " in found()["text"]
        net.site.hub.run([*set_rate, "none"], quiet=True)


def start_flow(net: Net, frm: str, to: str) -> Daemon:
    """Some 1,800 datagrams a second; with so small a window no queue of the lab overflows."""
    net.lab.host(to).spawn(["iperf3", "-s", "-1", "--forceflush"],
                           name="sink").wait_line("listening")
    return net.lab.host(frm).spawn(
        ["iperf3", "-c", net.nodes[to].address(), "-b", "20M", "-w", "128K", "-t", "0",
         "--forceflush"], name="load")


@pytest.mark.parametrize(("frm", "to", "permille", "code"), [
    ("a", "b", 5, "WEFT-LOSS-001"), ("b", "a", 20, "WEFT-LOSS-002")])
def test_a_way_that_loses_packets(net: Net, frm: str, to: str, permille: int, code: str) -> None:
    flow = start_flow(net, frm, to)
    with fault(net, code, f"{frm}>{to}", 90, over_s=150) as found:
        drop(net.lab.host(to), "lossy", "prerouting",
             f"ip saddr {net.lab.host(frm).address(4)} meta l4proto udp "
             f"numgen random mod 1000 < {permille}")
        said = found()
        assert said["about"] == "way"
        assert f"% of what {frm} sends to {to} does not arrive: " in said["text"]
        undo(net.lab.host(to), "lossy")
    assert flow.running
    flow.stop()


def test_a_pair_that_a_mesh_wants_direct(net: Net) -> None:
    """And that never was."""
    d = AgentNode(net.lab.host("d"), net.site.weft)
    net.site.set_topology("mesh")
    with fault(net, "WEFT-PATH-004", "a--d", 110, over_s=150) as found:
        part(net, "a", "d")
        d.join(net.site.token(), allow=ANY)
        d.reaches(net.nodes["a"], 30)
        assert "though only direct paths are wanted" in found()["text"]
        wait_for(lambda: "WEFT-PATH-004  a--d" in d.run("status").out, 60, "d's word")
        join(net, "a", "d")
    net.site.set_topology("auto")
