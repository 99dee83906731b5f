"""A hub whose line is full: it is found, the heaviest pair goes through another relay, and then
nothing is found any more.

    hub, r1, a, b, c, d ── [ wan ]

r1 is farther away than the hub. Between a, b, c and d UDP is dropped, so they are relayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

PORT = 51820
MEMBERS = {"a": 21, "b": 22, "c": 23, "d": 24}
TOPOLOGY = "\n".join(
    ["switch wan 203.0.113.0/24", "host hub no-v6", "link hub wan 203.0.113.10 delay=2ms",
     "host r1 no-v6", "link r1 wan 203.0.113.11 delay=12ms"]
    + [line for name, number in MEMBERS.items()
       for line in (f"host {name} no-v6", f"link {name} wan 203.0.113.{number}")])
RULES = "table inet apart {{\nchain in {{\ntype filter hook input priority 0\n{rule}\n}}\n}}\n"
LINE = "10Mbit"
# With all headers a--b takes 4.9 Mbit/s, and c--d 4.7.
FLOWS = {("a", "b"): "4600K", ("c", "d"): "4400K"}
# Half a minute until the line counts as full, and what the rates need to be smooth.
FULL_WITHIN_S = 90
SECONDS = "150"


class LineSite(Site):
    """A hub of a small line, another relay, and two pairs that need one."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, "--line", LINE, versions=(4,))
        for name in MEMBERS:
            others = ", ".join(f"203.0.113.{number}" for other, number in MEMBERS.items()
                               if other != name)
            rule = f"ip saddr {{ {others} }} meta l4proto udp drop"
            lab.host(name).run(["nft", "-f", "-"], stdin=RULES.format(rule=rule))
        token = self.hub.run([weft, "token", "new", "--relay"], quiet=True).out.strip()
        relay = AgentNode(lab.host("r1"), weft)
        relay.join(token, "--relay", "--endpoint", f"{relay.host.address()}:{PORT}")
        relay.agent.wait_line("this node relays for others", 20)
        self.nodes["r1"] = relay
        self.join(*MEMBERS)
        for x, y in FLOWS:
            self.nodes[x].reaches(self.nodes[y], 30)

    def get(self, what: str) -> dict:
        return json.loads(self.hub.run([self.weft, "get", what, "--json"], quiet=True).out)

    def codes(self) -> set[tuple[str, str]]:
        return {(one["code"], one["subject"]) for one in self.get("findings")["findings"]}

    def relays(self, x: str, y: str) -> set[str | None]:
        """Through which relay each of the two says that it reaches the other."""
        return {self.nodes[p].peers()[q]["relay"] for p, q in ((x, y), (y, x))}

    def knows_both(self, name: str, peer: str) -> bool:
        relays = {relay["name"]: relay for relay in self.nodes[name].paths(peer)["relays"]}
        return all(relays.get(relay, {}).get("rttMs") and relays[relay].get("peerRttMs")
                   for relay in ("hub", "r1"))


@pytest.fixture
def site(weft: Path) -> Iterator[LineSite]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield LineSite(lab, weft)


def test_a_hub_near_its_limit_moves_its_heaviest_pair(site: LineSite) -> None:
    """Only that pair goes; it and the hub say why."""
    for x, y in FLOWS:
        wait_for(lambda x=x, y=y: site.relays(x, y) == {"hub"}, 30,
                 f"{x} and {y} to go through the hub, which is nearest")
        wait_for(lambda x=x, y=y: site.knows_both(x, y) and site.knows_both(y, x), 90,
                 f"{x} and {y} to have measured both relays")
    assert not {one for one in site.codes() if one[1] == "hub"}
    for (x, y), rate in FLOWS.items():
        node = site.nodes[y]
        server = node.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="server")
        server.wait_line("listening")
        site.nodes[x].host.spawn(
            ["iperf3", "-c", node.address(), "-u", "-b", rate, "-l", "1200", "-t", SECONDS],
            name="flow")
    wait_for(lambda: ("WEFT-HUB-005", "hub") in site.codes(), FULL_WITHIN_S,
             "the hub's line to be found full")
    wait_for(lambda: site.relays("a", "b") == {"r1"}, 30, "a and b to go through the other relay")
    assert site.relays("c", "d") == {"hub"}
    wait_for(lambda: not {one for one in site.codes() if one[1] == "hub"}, 40,
             "nothing to be found of the hub's line any more")
    # It says so: in an event, where the pair is shown at the hub, and at both ends.
    asked = [one for one in site.get("events")["events"] if one["type"] == "AskedAway"]
    assert [one["object"] for one in asked] == ["a--b"]
    assert "the line of hub is full" in asked[0]["text"]
    edges = {edge["name"]: edge for edge in site.get("edges")["edges"]}
    assert "the line of hub is full" in edges["a--b"]["why"]
    assert edges["c--d"]["why"] == ""
    for name, peer in (("a", "b"), ("b", "a")):
        assert "a nearer relay is full" in site.nodes[name].peers()[peer]["why"]
    # And it stays so: nobody is moved to and fro.
    assert site.relays("a", "b") == {"r1"}
    assert site.relays("c", "d") == {"hub"}
