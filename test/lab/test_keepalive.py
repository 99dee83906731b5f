"""How long a NAT keeps a silent UDP mapping is measured, and the keepalive set under it.

    hub ── [ wan ] ── short ── [ lan-s ] ── s1     a NAT that forgets after 5 s
              │
              ├─────── long ── [ lan-l ] ── l1     one that forgets after 10 s
              └─────── open                        an address of its own

All three measure at the same time.  Nothing but the hello of each node's WireGuard holds its
mapping between the hub's heartbeats, each 10 s: with the usual 10 s, s1 would be lost.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

SHORT_S, LONG_S = 5, 10
TOPOLOGY = """
switch wan 198.51.100.0/24
switch lan-s 10.1.0.0/24 gateway=short
switch lan-l 10.2.0.0/24 gateway=long
host hub
host open
nat short port-restricted out=wan
nat long  port-restricted out=wan
host s1
host l1
link hub   wan 198.51.100.10
link open  wan 198.51.100.11
link short wan 198.51.100.20
link long  wan 198.51.100.30
link short lan-s 10.1.0.1
link long  lan-l 10.2.0.1
link s1 lan-s 10.1.0.11
link l1 lan-l 10.2.0.11
"""


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        lab.nat("short").set_udp_idle(SHORT_S)
        lab.nat("long").set_udp_idle(LONG_S)
        site = Site(lab, weft)
        site.join("s1", "l1", "open")
        yield site


def keepalive(node: AgentNode) -> dict:
    return node.status()["keepalive"]


def told(node: AgentNode) -> str:
    """What the engine has: the seconds of the one peer that has any, the hub."""
    listing = node.host.run(["wg", "show", "weft0", "persistent-keepalive"], quiet=True).out
    [seconds] = [line.split()[1] for line in listing.splitlines() if line.split()[1] != "off"]
    return seconds


def test_each_nat_is_measured(site: Site) -> None:
    start = time.monotonic()
    s1, l1 = site.nodes["s1"], site.nodes["l1"]
    assert keepalive(s1)["from"] == "default" and keepalive(s1)["seconds"] <= 10
    assert "measured" in keepalive(s1)["why"]
    for node, idle_s in ((s1, SHORT_S), (l1, LONG_S)):
        wait_for(lambda node=node: keepalive(node)["from"] == "measured", 75,
                 f"{node.name} to measure")
        found = keepalive(node)
        print(f"{node.name}: forgotten after {idle_s} s; measured {found['survivedSeconds']} to "
              f"{found['forgottenSeconds']} s, keepalive {found['seconds']} s, after "
              f"{time.monotonic() - start:.0f} s")
        assert found["survivedSeconds"] < idle_s + 1 and found["forgottenSeconds"] > idle_s - 1
        assert found["forgottenSeconds"] - found["survivedSeconds"] <= 2.5
        assert idle_s / 2 <= found["seconds"] < idle_s
        assert re.match(r"the NAT forgets a silent UDP mapping after about \d+ s$", found["found"])
        wait_for(lambda node=node: told(node) == str(keepalive(node)["seconds"]), 5, "the engine")
