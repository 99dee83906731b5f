"""Datagrams of one flow that arrive one by one are found, and weft tune has them arrive merged.

    hub             203.0.113.10
     |
   [ wan ]
    |   |
   n1 ─ n2          203.0.113.11, .12; and a veth from one to the other, "wire", 10.9.0.1 and .2

On "wan" their UDP is dropped. On "wire" what n1 sends is cut up, as a network card does it, and n2
has GRO: Linux 6.18 merges nothing there without rx-udp-gro-forwarding.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
KNOB = "wire rx-udp-gro-forwarding"
RULES = "table inet apart {{\nchain out {{\ntype filter hook output priority 0\n{rule}\n}}\n}}\n"
FOUND = ("WEFT-OFFLOAD-002", "n2")
# From the first datagrams to the finding, and until it is gone.
BOUND_S = 30


class Pair(Site):
    """n1 sends to n2."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        self.n1, self.n2 = self.join("n1", "n2", allow=dict.fromkeys(("n1", "n2"), [".*"]))
        self.wire()
        self.n1.reaches(self.n2)
        self.wait_paths({("n1", "n2"): {"direct", "lan"}}, 60)
        server = self.n2.host.spawn(["iperf3", "--server", "--forceflush"], name="iperf-server",
                                    allow=[".*"])
        server.wait_line("listening")

    def wire(self) -> None:
        """The veth, which is the only way from one to the other but for the hub's."""
        one, two = self.n1.host, self.n2.host
        one.run(["ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns",
                 two.namespace.pid])
        for last, host, other in ((1, one, two), (2, two, one)):
            drop = f"ip daddr {other.address(4)} meta l4proto udp drop"
            host.run(["nft", "-f", "-"], stdin=RULES.format(rule=drop))
            host.run(["ip", "address", "add", f"10.9.0.{last}/24", "dev", "wire"])
            host.run(["ip", "link", "set", "wire", "up"])
        one.run(["ethtool", "-K", "wire", "tx-udp-segmentation", "off"])
        two.run(["ethtool", "-K", "wire", "gro", "on"])

    def send(self, seconds: int) -> Daemon:
        return self.n1.host.spawn(["iperf3", "-t", seconds, "-i", "1", "--forceflush", "-c",
                                   self.n2.address()], name="iperf", allow=[".*"])

    def rate(self) -> float:
        """Bit/s that get through, once the server has done with who came before."""
        client = ["iperf3", "-t", "3", "--json", "-c", self.n2.address()]
        done: list[str] = []

        def is_done() -> bool:
            result = self.n1.host.run(client, check=False, quiet=True, timeout_s=60)
            done.append(result.out)
            return result.rc == 0

        wait_for(is_done, 60, "a transfer")
        return json.loads(done[-1])["end"]["sum_received"]["bits_per_second"]


def merging(node: AgentNode) -> dict:
    return node.status()["self"].get("merging", {})


def setting(node: AgentNode) -> dict:
    found = json.loads(node.run("tune", "--json").out)["settings"]
    return next(one for one in found if one["name"] == KNOB)


def is_forwarding(node: AgentNode) -> bool:
    said = node.host.run(["ethtool", "-k", "wire"], quiet=True).out
    return "rx-udp-gro-forwarding: on" in said


def check_found(site: Pair) -> None:
    """By the traffic that there is: at the node, at the hub, and once."""
    n2 = site.n2
    assert FOUND not in n2.found("note")
    flow = site.send(60)
    wait_for(lambda: FOUND in n2.found("note"), BOUND_S, "that datagrams come one by one")
    wait_for(lambda: FOUND in site.found("note"), BOUND_S, "the hub to hear of it")
    flow.stop()
    assert merging(n2)["device"] == "wire" and merging(n2)["percent"] < 2
    # What the engine says of its offload is what the line does.
    gro = next(one for one in n2.status()["self"]["offloads"] if one["name"] == "udp-gro")
    assert gro == {"name": "udp-gro", "on": False, "why": "datagrams of one flow arrive one by one"}
    assert ("WEFT-OFFLOAD-001", "n2") not in n2.found("note")


def check_mended(site: Pair) -> None:
    """weft tune shows it, sets it, and shows what became of it."""
    n2 = site.n2
    wanted = setting(n2)
    assert (wanted["now"], wanted["wanted"], wanted["changes"]) == ("off", "on", True)
    n2.run("tune", "--apply")
    assert is_forwarding(n2)
    wait_for(lambda: FOUND not in n2.found("note"), BOUND_S, "the finding to go")
    flow = site.send(60)
    wait_for(lambda: merging(n2).get("percent", 0) >= 2, BOUND_S, "datagrams to come merged")
    flow.stop()
    assert all(one["on"] for one in n2.status()["self"]["offloads"] if one["name"] == "udp-gro")
    shown = setting(n2)
    assert shown["now"] == "on" and not shown["changes"] and "came merged" in shown["why"]


def check_boot(site: Pair) -> None:
    """What a boot takes away the agent sets again, until weft tune --undo."""
    n2 = site.n2
    for is_kept in (True, False):
        n2.agent.stop()
        n2.host.run(["ethtool", "-K", "wire", "rx-udp-gro-forwarding", "off"])
        n2.start()
        assert is_forwarding(n2) == is_kept
        if is_kept:
            restored = json.loads(n2.run("tune", "--undo", "--json").out)["restored"]
            assert {"name": KNOB, "value": "off"} in restored
            assert not is_forwarding(n2)


def test_datagrams_that_come_one_by_one(weft: Path) -> None:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Pair(lab, weft)
        check_found(site)
        before = site.rate()
        check_mended(site)
        after = site.rate()
        print(f"FIGURE {before / 1e6:.0f} Mbit/s while datagrams came one by one, "
              f"{after / 1e6:.0f} Mbit/s with {merging(site.n2)['percent']} % of them merged")
        check_boot(site)
