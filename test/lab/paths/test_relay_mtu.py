"""What a relay carries: found, told to both ends, and found again when the line changes.

    hub ── [ wan ] ── a: through an emulated link, which may lose long packets, in one direction too
                 └─── b

All that the two say to each other goes through the hub. The underlay has IPv4, or IPv6 alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site
from lab.support.network.laboratory import Host
from lab.support.waiting import wait_for

pytestmark = pytest.mark.namespaces

UNDERLAYS = {
    4: """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host a
link a wan 203.0.113.11 emulated
host b
link b wan 203.0.113.12
""",
    6: """
switch wan 2001:db8::/64
host hub
link hub wan 2001:db8::10
host a
link a wan 2001:db8::11 emulated
host b
link b wan 2001:db8::12
""",
}

# Around an inner packet, by the underlay's version; an MTU is a multiple of 16.
OVERHEAD = {4: 60, 6: 80}

# The network's MTU: an emulated link is none that counts as one of the machine's.
FULL = 1420 // 16 * 16


@pytest.fixture(scope="module", params=(4, 6), ids=("v4", "v6"))
def site(weft: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    with Lab.from_text(UNDERLAYS[request.param], capture=False) as lab:
        site = Site(lab, weft)
        site.set_topology("hub")
        site.join("a", "b")
        site.wait_paths({("a", "b"): {"relay"}}, 60)
        yield site


def inner(site: Site, size: int) -> int:
    links = site.lab.topology.links_of("hub")
    version = 4 if any(link.address(4) for link in links) else 6
    return (size - OVERHEAD[version]) // 16 * 16


def hub_address(site: Site, version: int) -> str:
    specs = [node["spec"] for node in site.hub_nodes().values()]
    return next(spec[f"address{version}"] for spec in specs if "hub" in spec)


def route_mtu(host: Host, address: str, *words: str) -> int:
    said = host.run(["ip", "route", "get", address, *words], quiet=True).out
    return int((re.search(r"mtu (?:lock )?(\d+)", said) or ["", "0"])[1])


def sizes(site: Site) -> dict[str, int]:
    """What each of the three sends the others, by the routes of its kernel."""
    a, b = site.nodes["a"], site.nodes["b"]
    found = {"a's status": a.peers()["b"]["mtu"], "b's status": b.peers()["a"]["mtu"]}
    for version in (4, 6):
        found |= {
            f"a to b, v{version}": route_mtu(a.host, b.address(version)),
            f"b to a, v{version}": route_mtu(b.host, a.address(version)),
            f"a to the hub, v{version}": route_mtu(a.host, hub_address(site, version)),
            f"the hub to a, v{version}": route_mtu(
                site.hub, a.address(version), "from", hub_address(site, version)),
        }
    return found


def wait_sizes(site: Site, mtu: int, within_s: float) -> float:
    """Wait until all of them are that; gives how long it took. IPv6 has no routes below 1280."""
    began = time.monotonic()
    last: dict[str, int] = {}

    def are_there() -> bool:
        last.clear()
        last.update(sizes(site))
        return all(found == (max(mtu, 1280) if "v6" in name else mtu)
                   for name, found in last.items())

    try:
        wait_for(are_there, within_s, f"{mtu} as the MTU of what is relayed")
    except AssertionError:
        print(last, flush=True)
        raise
    return time.monotonic() - began


def whole_pings(node: AgentNode, address: str, mtu: int) -> None:
    """A packet of that size passes whole, and no larger one."""
    if ":" in address and mtu < 1280:
        return
    header = 48 if ":" in address else 28
    node.insist_ping(address, "-M", "do", "-s", mtu - header)
    assert not node.can_ping(address, "-M", "do", "-s", mtu - header + 1)


def test_it_grows(site: Site) -> None:
    a, b = site.nodes["a"], site.nodes["b"]
    took = wait_sizes(site, FULL, 60)
    print(f"FIGURE what is relayed has grown to {FULL} after {took:.1f} s", flush=True)
    for version in (4, 6):
        whole_pings(a, b.address(version), FULL)
        whole_pings(b, a.address(version), FULL)


@pytest.mark.parametrize("direction", ("", "out_", "in_"), ids=("both", "out", "in"))
def test_a_hole_is_found(site: Site, direction: str) -> None:
    """Under traffic; and what the line carries is used again when it is mended."""
    a, b = site.nodes["a"], site.nodes["b"]
    pings = [a.host.spawn(["ping", "-i", "0.2", b.address()], name="ping"),
             a.host.spawn(["ping", "-i", "0.2", hub_address(site, 4)], name="ping")]
    wait_sizes(site, FULL, 200)
    site.lab.link("a").set(**{f"{direction}path_mtu": "1400"})
    took = wait_sizes(site, inner(site, 1400), 60)
    print(f"FIGURE a hole of 1400, {direction or 'both'}: left after {took:.1f} s "
          "(to be below 15)", flush=True)
    whole_pings(a, b.address(), inner(site, 1400))
    whole_pings(b, a.address(), inner(site, 1400))
    site.lab.link("a").set(**{f"{direction}path_mtu": "0"})
    took = wait_sizes(site, FULL, 300)
    print(f"FIGURE mended, it is used again after {took:.1f} s (to be below 120)", flush=True)
    for ping in pings:
        ping.stop()
