"""Two machines that are in two networks at once: no path of one leads through the other.

    hub        203.0.113.10       hub2      203.0.113.20
     |                             |
   [            wan                 ]
    |            |
   a1           a2                          .11, .12; each has weft0 and weft1
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.member.test_names import TOPOLOGY, Node, Site

pytestmark = pytest.mark.namespaces

# In the second network's block.
THROUGH_WEFT1 = "10.43.200.2"
WAN = ipaddress.ip_network("203.0.113.0/24")


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft)


def ways(node: Node, peer: str) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses at which that peer is looked for."""
    done = node.host.run([node.weft, "paths", peer, "--json", *node.places[2:]], check=False,
                         quiet=True)
    found = json.loads(done.out)["candidates"] if done.rc == 0 else []
    return {ipaddress.ip_address(way["endpoint"].rpartition(":")[0].strip("[]")) for way in found}


def test_no_path_leads_through_another_network(site: Site) -> None:
    second = [Node(site.lab.host(name), site.weft, "weft1") for name in ("a1", "a2")]
    for node in (site.a1, site.a2):
        node.join(site.token(), "--name", node.host.name)
    for node in second:
        node.join(site.token("hub2"), "--name", node.host.name)
    # Who looks at its addresses again finds those of the other network.
    for number, node in enumerate((site.a1, site.a2), 101):
        node.host.run(["ip", "address", "add", f"203.0.113.{number}/24", "dev", "wan"])
    # Of a2's own, but here it would be reached through weft1.
    site.a2.host.run(["ip", "address", "add", f"{THROUGH_WEFT1}/32", "dev", "wan"])
    wait_for(lambda: THROUGH_WEFT1 in site.lab.host("hub").run(
        [site.weft, "get", "Node", "a2"], quiet=True).out, 30, "a2 to offer it")
    for node, peer in ((site.a1, "a2"), (site.a2, "a1"), (second[0], "a2"), (second[1], "a1")):
        wait_for(lambda node=node, peer=peer: len(ways(node, peer)) >= 2, 30,
                 f"{node.interface} of {node.host.name} to hear of both addresses of {peer}")
        assert all(address in WAN for address in ways(node, peer)), ways(node, peer)
    # A part of that block that leads elsewhere is no overlay.
    site.a1.host.run(["ip", "route", "add", f"{THROUGH_WEFT1}/32", "dev", "wan"])
    wait_for(lambda: ipaddress.ip_address(THROUGH_WEFT1) in ways(site.a1, "a2"), 30,
             "a1 to look for a2 there, too")
    site.a1.host.run(["ip", "route", "delete", f"{THROUGH_WEFT1}/32", "dev", "wan"])
    wait_for(lambda: ipaddress.ip_address(THROUGH_WEFT1) not in ways(site.a1, "a2"), 30,
             "a1 to look for it there no more")
