"""A hub that was broken into tells its members of blocks and addresses that the network never had.

The hub's own program runs, with its WireGuard; what members ask of it on the overlay is answered by
another program in its place, for as long as a rule of the packet filter leads there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab import wait_for
from lab.support.agents import HUB_AWAY, AgentNode

from .conftest import Pair

pytestmark = pytest.mark.namespaces

PROGRAM = Path(__file__).parents[1] / "support/programs/lying_hub.py"
LIES = ("whole_block4", "whole_block6", "whole_node", "later_block4", "later_node")
# What the agent says of each, and what comes of the stand-in's end.
SAID = (r"they give the network the blocks", r"they give \"n[12]\" the addresses", HUB_AWAY,
        "similar lines suppressed", "the hub's stream", "watch", "report")
LEAD_ASTRAY = """
table ip astray {
    chain pre {
        type nat hook prerouting priority dstnat
        iifname "weft-default" tcp dport 8443 redirect to :9443
    }
}
"""


def routes(node: AgentNode) -> list[str]:
    """Where the routes lead; what a path carries is measured, and may grow meanwhile."""
    said = [node.host.run(["ip", version, "route", "show", "dev", "weft0"], quiet=True).out
            for version in ("-4", "-6")]
    return sorted(re.split(" metric | mtu ", line)[0]
                  for text in said for line in text.splitlines())


def refused(node: AgentNode) -> str:
    return node.status()["hub"].get("refused") or ""


def told(node: AgentNode) -> dict:
    """What the hub has told this node."""
    return json.loads(node.host.run(
        ["curl", "-s", "--unix-socket", "/run/weft/agent.sock", "http://localhost/v1/snapshot"],
        quiet=True).out)


def test_blocks_and_addresses_that_the_network_never_had(site: Pair, tmp_path: Path) -> None:
    for node in (site.n1, site.n2):
        node.join(site.token(), allow=SAID)
    nodes = site.n1, site.n2
    wait_for(lambda: site.n1.peer_names() == {"n2"} and site.n2.peer_names() == {"n1"}, 20,
             "the two to hear of each other")
    site.n1.reaches(site.n2)
    before = {node.name: routes(node) for node in nodes}
    addresses = {node.name: node.address() for node in nodes}
    kept = tmp_path / "told.json"
    kept.write_text(json.dumps({node.address(): told(node) for node in nodes}), encoding="utf-8")

    site.hub.run(["nft", "-f", "-"], stdin=LEAD_ASTRAY)
    liar = site.hub.spawn(["/usr/bin/python3", PROGRAM, 9443, kept], name="liar")
    liar.wait_line("^lying", 20)
    site.daemon.stop()
    site.start_hub()

    def every_lie_was_told() -> bool:
        return set(f"{lie} to {address}" for lie in LIES for address in addresses.values()) <= set(
            liar.lines())

    wait_for(every_lie_was_told, 180, "every member to be told every lie")
    for node in nodes:
        wait_for(lambda: refused(node) != "", 60, f"{node.name} to say that it refuses them")
        assert "they give" in refused(node)
        assert ("WEFT-EVENT-001", "hub") in node.found("critical")
        assert "its events are refused" in node.run("status").out
        assert any("they give" in line for line in node.agent.lines())
        # None of it became a route, a peer's address or a name.
        assert routes(node) == before[node.name]
        assert node.address() == addresses[node.name]
        assert {peer["address4"] for peer in node.peers().values()} == {
            address for name, address in addresses.items() if name != node.name}
        assert "8.8.8.8" not in node.host.run(["cat", "/etc/hosts"], quiet=True).out
    # What is known goes on.
    site.n1.reaches(site.n2)

    site.hub.run(["nft", "delete", "table", "ip", "astray"])
    liar.stop()
    for node in nodes:
        wait_for(lambda: refused(node) == "" and node.status()["hub"]["reachable"], 120,
                 f"{node.name} to be told the truth")
        assert "its events are refused" not in node.run("status").out
        assert ("WEFT-EVENT-001", "hub") not in node.found("critical")
        assert routes(node) == before[node.name]
    site.n1.reaches(site.n2)
    site.n2.reaches(site.n1)
