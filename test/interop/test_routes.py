"""A machine with two uplinks, and which of its addresses `weft wg` answers from.

    u ──┬── [ one ] ──┬── r ── [ far ] ── v
        └── [ two ] ──┘
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.pinging import LONGEST_GAP_S, Pings

from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch one 192.0.2.0/24
switch two 198.51.100.0/24
switch far 203.0.113.0/24 gateway=r
router r
link r one 192.0.2.254
link r two 198.51.100.254
link r far 203.0.113.254
host u no-v6
link u one 192.0.2.1
link u two 198.51.100.1
host v no-v6
link v far 203.0.113.1
"""
BY_ONE = "192.0.2.1:51820"
BY_TWO = "198.51.100.1:51820"


@pytest.fixture
def ends(weft: Path) -> Iterator[tuple[WgPeer, WgPeer]]:
    """u, with its default route by one, and v: not connected yet."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        u = WgPeer.userspace(lab.host("u"), [weft, "wg"])
        v = WgPeer.userspace(lab.host("v"), [weft, "wg"])
        u.configure(["10.7.0.1/24"])
        v.configure(["10.7.0.2/24"])
        route_by(u, "one")
        yield u, v


def route_by(u: WgPeer, uplink: str) -> None:
    gateway = {"one": "192.0.2.254", "two": "198.51.100.254"}[uplink]
    u.machine.run(["ip", "route", "replace", "default", "via", gateway, "dev", uplink])


def test_a_peer_is_answered_by_the_uplink_that_the_route_has(ends):
    u, v = ends
    r = u.machine.lab.host("r")
    # As a provider does: nobody else's addresses.
    r.run(["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1"])
    u.add_peer(v, endpoint=True)
    v.add_peer(u)
    pings = Pings(u.machine, "10.7.0.2")
    assert v.state(u).endpoint == BY_ONE
    for uplink, expected in ("two", BY_TWO), ("one", BY_ONE):
        pings.wait_more()
        began = time.time()
        route_by(u, uplink)
        wait_for(lambda at=expected: v.state(u).endpoint == at, 5, f"v to hear u by {uplink}")
        pings.wait_more()
        gap = pings.longest_gap_s(since=began)
        print(f"FIGURE the route moves to {uplink}: no answer for {gap:.2f} s (to be below 1)")
        assert gap < LONGEST_GAP_S
    pings.stop()


def test_an_uplink_that_never_had_the_route_answers_all_the_same(ends):
    u, v = ends
    u.add_peer(v)
    v.add_peer(u, endpoint=BY_TWO)
    v.ping(u)
    # Something changes, and for longer than it takes to look at the routes.
    u.machine.run(["ip", "route", "add", "203.0.113.128/25", "via", "192.0.2.254"])
    v.machine.run(["ping", "-q", "-c", 20, "-i", "0.1", "10.7.0.1"])
    assert v.state(u).endpoint == BY_TWO
