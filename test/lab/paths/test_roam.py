"""A node that moves while it talks: its address, its NAT's mapping, its whole uplink.

    hub ── [ wan ] ──┬── nat-a ── [ lan-a ] ──┐
                     ├── isp ──── [ other ] ──┴── a
                     └── nat-b ── [ lan-b ] ───── b

What a measures is the longest time without an answer to pings at 10 ms, from each event until the
path is direct again; a TCP connection runs through all of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.network.process import Daemon
from lab.support.pinging import LONGEST_GAP_S, Pings
from lab.support.stock_mesh import ask

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
switch lan-a 192.168.1.0/24 gateway=nat-a
nat nat-a port-restricted out=wan
link nat-a wan 203.0.113.21
link nat-a lan-a 192.168.1.1
switch other 198.51.100.0/24
router isp
link isp wan 203.0.113.23
link isp other 198.51.100.1
host a no-v6
link a lan-a 192.168.1.11
link a other 198.51.100.11
switch lan-b 192.168.2.0/24 gateway=nat-b
nat nat-b port-restricted out=wan
link nat-b wan 203.0.113.22
link nat-b lan-b 192.168.2.1
host b no-v6
link b lan-b 192.168.2.11
route hub 198.51.100.0/24 via=isp
route nat-b 198.51.100.0/24 via=isp
"""
DIRECT = {("a", "b"): {"direct"}}

# Of the pings and the flow, in the time in which a score of pings is answered.
FEW_PACKETS = 10


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        lab.host("a").run(["ip", "link", "set", "other", "down"])
        yield Site(lab, weft)


def new_address(site: Site) -> None:
    """DHCP has another one: the old one goes, and its routes with it."""
    a = site.lab.host("a")
    a.run(["ip", "address", "del", "192.168.1.11/24", "dev", "lan-a"])
    a.run(["ip", "address", "add", "192.168.1.77/24", "dev", "lan-a"])
    a.run(["ip", "route", "add", "default", "via", "192.168.1.1", "dev", "lan-a"])


def nat_restarts(site: Site) -> None:
    site.lab.nat("nat-a").flush_mappings(new_ports=True)


def new_uplink(site: Site) -> None:
    """The cable of the old one is pulled; its address stays where it was."""
    a = site.lab.host("a")
    a.run(["ip", "link", "set", "lan-a", "down"])
    a.run(["ip", "link", "set", "other", "up"])
    a.run(["ip", "route", "replace", "default", "via", "198.51.100.1", "dev", "other"])


def moved_route(site: Site) -> None:
    """The first uplink is back and preferred; the other one, and its address, stay up."""
    a = site.lab.host("a")
    a.run(["ip", "link", "set", "lan-a", "up"])
    a.run(["ip", "route", "replace", "default", "via", "192.168.1.1", "dev", "lan-a"])


def relayed(site: Site) -> int:
    """How many packets the hub has relayed so far."""
    metrics = ask(site.hub, "GET", "http://hub/v1/metrics", socket="/run/weft/hub.sock")
    return int(re.search(r"^weft_relay_packets_total (\d+)", metrics, re.MULTILINE)[1])


def is_direct(site: Site, pings: Pings) -> bool:
    """Both say so, and what is answered does not pass the hub."""
    before = relayed(site)
    pings.wait_more()
    passed = relayed(site) - before
    kinds = site.kinds()
    return passed < FEW_PACKETS and {kinds[("a", "b")], kinds[("b", "a")]} == {"direct"}


def start_flow(site: Site) -> Daemon:
    """5 Mbit/s over one connection from a to b."""
    a, b = site.nodes["a"], site.nodes["b"]
    server = b.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf-server")
    server.wait_line("listening")
    flow = a.host.spawn(["iperf3", "-c", b.address(), "-t", 300, "-b", "5M", "-i", "0.2",
                         "--forceflush"], name="iperf")
    wait_moving(flow)
    return flow


def wait_moving(flow: Daemon) -> None:
    """Until it has carried data in three more intervals."""
    def n_moved() -> int:
        return sum(float(m[1]) > 0 for m in
                   re.finditer(r"sec +([\d.]+) [KMG]?Bytes", "\n".join(flow.lines())))
    n = n_moved()
    wait_for(lambda: n_moved() >= n + 3 or not flow.running, 15, "the connection to move data")
    assert flow.running, flow.lines()[-3:]


EVENTS: dict[str, Callable[[Site], None]] = {
    "a new address": new_address,
    "a NAT that restarts": nat_restarts,
    "a new uplink": new_uplink,
    "a moved route": moved_route,
}


def test_traffic_outlives_every_move(site: Site) -> None:
    a, b = site.join("a", "b")
    site.wait_paths(DIRECT, 30)
    pings = Pings(a.host, b.address())
    flow = start_flow(site)
    gaps = {}
    for what, happen in EVENTS.items():
        wait_for(lambda: is_direct(site, pings), 70, f"a direct path before {what}")
        began, moment = time.time(), time.monotonic()
        happen(site)
        pings.wait_more()
        wait_for(lambda: is_direct(site, pings), 70, f"a direct path after {what}")
        search_s = time.monotonic() - moment
        wait_moving(flow)
        gaps[what] = pings.longest_gap_s(since=began)
        print(f"FIGURE {what}: no answer for {gaps[what]:.2f} s (to be below 3); "
              f"direct after {search_s:.1f} s (to be below 6)", flush=True)
    assert flow.running
    flow.stop()
    pings.stop()
    assert all(gap < LONGEST_GAP_S for gap in gaps.values()), gaps
