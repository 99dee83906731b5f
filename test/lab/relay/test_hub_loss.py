"""Three hubs on one etcd serve a network; one of them is killed, and its nodes go to another.

    etcd, hub, hub-b, hub-c ── [ wan ] ── a, b           a and b meet directly
                                   ├── nat-c ── c        both NATs symmetric: c and d meet through
                                   └── nat-d ── d        a hub only
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import CIDR4, AgentNode
from lab.support.etcd import start_etcd
from lab.support.pinging import Pings

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not shutil.which("etcd"), reason="there is no etcd (Debian's etcd-server)"),
]

ADDRESSES = {"etcd": 10, "hub": 11, "hub-b": 12, "hub-c": 13, "a": 14, "b": 15}
HUBS = ("hub", "hub-b", "hub-c")
CLIENT = "http://203.0.113.10:2379"
PEER = "http://203.0.113.10:2380"
STORE = "etcd://203.0.113.10?prefix=/weft/lab"
# What a node may say of a hub that was killed.
COMPLAINTS = ["the hub does not answer|UDP to the hub|report"]
# Answers to pings, 100 a second.
BEFORE, AFTER = 100, 600
SEQUENCE = re.compile(r"icmp_seq=(\d+)")


def topology() -> str:
    lines = ["switch wan 203.0.113.0/24"]
    for name, last in ADDRESSES.items():
        lines += [f"host {name} no-v6", f"link {name} wan 203.0.113.{last}"]
    for number, name in enumerate("cd", 21):
        lines += [f"switch lan-{name} 192.168.{number}.0/24 gateway=nat-{name}",
                  f"nat nat-{name} symmetric out=wan", f"link nat-{name} wan 203.0.113.{number}",
                  f"link nat-{name} lan-{name} 192.168.{number}.1",
                  f"host {name} no-v6", f"link {name} lan-{name} 192.168.{number}.11"]
    return "\n".join(lines)


class Site:
    """The three hubs, and four nodes that have joined."""

    def __init__(self, lab: Lab, weft: Path, directory: Path) -> None:
        self.lab = lab
        self.weft = weft
        start_etcd(lab.host("etcd"), directory, CLIENT, PEER)
        self.hubs = {name: self.start_hub(name) for name in HUBS}
        self.nodes = {name: self.join(name, by) for name, by in zip("abcd", (*HUBS, "hub"))}

    def start_hub(self, name: str):
        host = self.lab.host(name)
        daemon = host.spawn([self.weft, "hub", "up", "--name", name, "--public", host.address(),
                             "--cidr4", CIDR4, "--store", STORE], name=name)
        daemon.wait_line("weft hub is up", 20)
        return daemon

    def join(self, name: str, hub: str) -> AgentNode:
        token = self.lab.host(hub).run([self.weft, "token", "new"], quiet=True).out.strip()
        node = AgentNode(self.lab.host(name), self.weft)
        node.join(token, allow=COMPLAINTS)
        return node

    def home_of(self, name: str) -> str:
        return self.nodes[name].status()["hub"]["name"]

    def is_served(self, name: str) -> bool:
        return self.nodes[name].status()["hub"]["reachable"]

    def admit(self, hub: str) -> None:
        """Change something of the node a, so that all nodes are told."""
        self.lab.host(hub).run([self.weft, "node", "set", "a", "--relay", "yes"], quiet=True)

    def is_told(self, name: str) -> bool:
        """Has that node been told of it?"""
        snapshot = json.loads(self.lab.host(name).run(
            ["curl", "-s", "--unix-socket", "/run/weft/agent.sock", "http://localhost/v1/snapshot"],
            quiet=True).out)
        return any(node["spec"].get("relay") for node in snapshot["nodes"]
                   if node["metadata"]["name"] == "a")


@pytest.fixture
def site(weft: Path, tmp_path: Path) -> Iterator[Site]:
    with Lab.from_text(topology(), capture=False) as lab:
        site = Site(lab, weft, tmp_path / "etcd")
        yield site
        # They end before their etcd does, or they would wait for it.
        for daemon in site.hubs.values():
            assert not daemon.running or daemon.stop() == 0


def lost(pings: Pings) -> set[int]:
    """Packets before the last answer that had none."""
    seen = {int(m[1]) for m in map(SEQUENCE.search, pings.daemon.lines()) if m}
    return set(range(min(seen), max(seen))) - seen


def wait_all_know(site: Site) -> None:
    """Each node has a session with each hub, and knows them by name."""
    def know() -> bool:
        return all([hub["reachable"] for hub in node.status().get("hubs", [])] == [True] * 3
                   for node in site.nodes.values())
    wait_for(know, 40, "each node to have a session with each hub")


def test_a_hub_is_killed(site: Site) -> None:
    wait_all_know(site)
    a, b, c, d = (site.nodes[name] for name in "abcd")
    for node, other in ((a, b), (c, d), (a, c)):
        node.reaches(other, within_s=20)
    wait_for(lambda: a.peers()["b"]["path"] in ("lan", "direct"), 20, "a direct path")
    wait_for(lambda: c.peers()["d"]["path"] == "relay", 20, "a relayed path")
    direct, relayed = Pings(a.host, b.address()), Pings(c.host, d.address())
    direct.wait_more(BEFORE)
    relayed.wait_more(BEFORE)

    killed = site.home_of("c")
    theirs = [name for name in site.nodes if site.home_of(name) == killed]
    others = [hub for hub in HUBS if hub != killed]
    site.hubs[killed].kill9()
    at = time.monotonic()
    wait_for(lambda: all(site.is_served(name) and site.home_of(name) in others for name in theirs),
             30, "its nodes to be served by another hub")
    served_s = time.monotonic() - at
    site.admit(others[0])
    wait_for(lambda: all(map(site.is_told, site.nodes)), 20, "all nodes to be told of a change")
    relayed.wait_more(AFTER)
    direct.wait_more(AFTER)
    print(f"FIGURE a hub is killed: its {len(theirs)} nodes served again after {served_s:.1f} s, "
          f"relayed packets stood still for {relayed.longest_gap_s():.1f} s (to be below 5)")
    assert relayed.longest_gap_s() < 15
    assert not lost(direct), "a direct path has lost packets"
    direct.stop()
    relayed.stop()
    for name in site.nodes:
        told = {hub["name"]: hub for hub in site.nodes[name].status()["hubs"]}
        assert not told[killed]["serves"]
    assert f"hub {killed} at" in c.run("status").out
