"""NATs and firewalls behave as RFC 4787 names them, seen by UDP sockets on both sides.

    out1   out2        203.0.113.1, .2
      |     |
     [ wan ]
        |
        a              the NAT, 203.0.113.10
        |
     [ lan ]
      |     |
     in1   in2         10.1.0.11, .12; no IPv6 address is translated

That a packet is *not* let in is shown without waiting: one that must be let in is sent after it,
and must be the first to arrive.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from lab import Lab, wait_for
from lab.support.prober import Prober

pytestmark = pytest.mark.namespaces

SITE = """
switch wan 203.0.113.0/24 2001:db8::/64
switch lan 10.1.0.0/24 2001:db8:1::/64 gateway=a
host out1
host out2
host in1
host in2
{gate}
link out1 wan 203.0.113.1 2001:db8::1
link out2 wan 203.0.113.2 2001:db8::2
link a wan 203.0.113.10 2001:db8::10
link a lan 10.1.0.1 2001:db8:1::1
link in1 lan 10.1.0.11 2001:db8:1::11
link in2 lan 10.1.0.12 2001:db8:1::12
route out1 2001:db8:1::/64 via=a
route out2 2001:db8:1::/64 via=a
"""

# kind: is the mapping endpoint-independent, who may answer through it besides the one asked
KINDS = {
    "full-cone": (True, {"other port", "other address"}),
    "address-restricted": (True, {"other port"}),
    "port-restricted": (True, set()),
    "masquerade": (True, set()),
    "symmetric": (False, set()),
}


class Site:
    """The lab above, with sockets where the tests need them."""

    def __init__(self, lab: Lab, stack: ExitStack) -> None:
        self.lab = lab
        self.nat = lab.nat("a")
        self.inside = stack.enter_context(Prober(lab.host("in1"), port=5000))
        self.asked = stack.enter_context(Prober(lab.host("out1"), port=7000))
        self.other_port = stack.enter_context(Prober(lab.host("out1"), port=7001))
        self.other_address = stack.enter_context(Prober(lab.host("out2"), port=7000))

    def open(self) -> tuple[str, int]:
        """Send from inside to the asked one; return the endpoint that it saw."""
        self.inside.send(self.asked.endpoint, "hello")
        return self.asked.receives("hello")


@pytest.fixture
def site(request: pytest.FixtureRequest):
    with Lab.from_text(SITE.format(gate=request.param)) as lab, ExitStack() as stack:
        yield Site(lab, stack)


def gates(**nats: str):
    return pytest.mark.parametrize("site", nats.values(), ids=nats.keys(), indirect=True)


def every_kind(options: str = ""):
    return pytest.mark.parametrize(
        ("kind", "site"), [(kind, f"nat a {kind} out=wan {options}") for kind in KINDS],
        ids=KINDS, indirect=["site"])


@every_kind()
def test_mapping(kind, site):
    seen = [site.open()]
    for remote in (site.other_port, site.other_address):
        site.inside.send(remote.endpoint, "hello")
        seen.append(remote.receives("hello"))
    assert {address for address, _ in seen} == {"203.0.113.10"}
    is_independent, _ = KINDS[kind]
    assert len(set(seen)) == (1 if is_independent else 3)


@every_kind()
def test_filtering(kind, site):
    mapped = site.open()
    site.other_port.send(mapped, "other-port")
    site.other_address.send(mapped, "other-address")
    site.asked.send(mapped, "asked")
    arrived = {}
    while "asked" not in arrived:
        text, sender = site.inside.receive()
        arrived[text] = sender
    _, admitted = KINDS[kind]
    assert arrived.keys() - {"asked"} == {text.replace(" ", "-") for text in admitted}
    assert arrived["asked"] == site.asked.endpoint


@every_kind()
def test_who_spoils_a_mapping(kind, site):
    """A stranger who sends first makes only a gateway without a filter choose another port."""
    site.asked.send(("203.0.113.10", 5000), "too-early")
    mapped = site.open()
    if kind == "masquerade":
        assert mapped != ("203.0.113.10", 5000)
    elif kind != "symmetric":
        assert mapped == ("203.0.113.10", 5000)
    site.asked.send(mapped, "answer")
    site.inside.receives("answer")


@gates(port_restricted="nat a port-restricted out=wan", symmetric="nat a symmetric out=wan")
def test_inside_hosts_with_the_same_port_are_kept_apart(site):
    with Prober(site.lab.host("in2"), port=5000) as second:
        first_seen = site.open()
        second.send(site.asked.endpoint, "second")
        second_seen = site.asked.receives("second")
        assert first_seen != second_seen
        site.asked.send(second_seen, "to-second")
        site.asked.send(first_seen, "to-first")
        second.receives("to-second")
        site.inside.receives("to-first")


@every_kind("udp-idle=3s")
def test_an_idle_mapping_expires(kind, site):
    mapped = site.open()
    site.asked.send(mapped, "while-alive")
    site.inside.receives("while-alive")
    wait_for(lambda: not site.nat.mappings(), 10, "the mapping to expire")
    site.asked.send(mapped, "too-late")
    mapped_again = site.open()
    site.asked.send(mapped_again, "after")
    site.inside.receives("after")
    # To a gateway without a filter the late packet was one for itself.
    assert (mapped_again == mapped) == (kind not in ("symmetric", "masquerade"))


@gates(short="nat a port-restricted out=wan udp-idle=5s/60s")
def test_an_answered_mapping_lives_longer(site):
    """Linux counts a flow as a stream once it has been used both ways for two seconds."""
    def is_stream() -> bool:
        site.asked.send(site.open(), "answer")
        site.inside.receives("answer")
        return "[ASSURED]" in site.lab.host("a").run(["conntrack", "-L"], quiet=True).out

    wait_for(is_stream, 10, "the flow to be a stream")
    listing = site.lab.host("a").run(["conntrack", "-L", "-p", "udp"]).out
    remaining_s = int(listing.split()[2])
    assert 40 < remaining_s <= 60


@gates(port_restricted="nat a port-restricted out=wan", symmetric="nat a symmetric out=wan")
def test_flushed_mappings_can_move(site):
    before = site.open()
    assert [m.outside for m in site.nat.mappings()] == [before]
    site.nat.flush_mappings(new_ports=True)
    assert site.nat.mappings() == []
    site.asked.send(before, "to-the-old-one")
    after = site.open()
    assert after != before
    site.asked.send(after, "to-the-new-one")
    site.inside.receives("to-the-new-one")


@gates(cone="nat a full-cone out=wan")
def test_a_cone_keeps_its_ports(site):
    with pytest.raises(ValueError, match="a is full-cone"):
        site.nat.flush_mappings(new_ports=True)
    before = site.open()
    site.nat.flush_mappings()
    site.other_address.send(before, "too-early")
    assert site.open() == before
    site.other_address.send(before, "welcome")
    site.inside.receives("welcome")


@gates(nat="nat a port-restricted out=wan", firewall="firewall a out=wan", router="router a")
def test_blocked_udp(site):
    for host in ("out1", "out2"):  # the way back, where nothing is translated
        site.lab.host(host).run(["ip", "route", "add", "10.1.0.0/24", "via", "203.0.113.10"])
    mapped = site.open()
    site.nat.block_udp()
    site.inside.send(site.asked.endpoint, "out")
    site.asked.send(mapped, "in")
    site.lab.host("in1").run(["ping", "-c1", "-W15", "203.0.113.1"])
    site.nat.block_udp(False)
    assert site.open() == mapped
    site.asked.send(mapped, "in-again")
    site.inside.receives("in-again")


@gates(nat="nat a port-restricted out=wan udp=blocked", router="router a udp=blocked")
def test_udp_blocked_from_the_start_in_both_families(site):
    with Prober(site.lab.host("in1"), "2001:db8:1::11") as inside6, \
            Prober(site.lab.host("out1"), "2001:db8::1") as asked6:
        site.inside.send(site.asked.endpoint, "blocked")
        inside6.send(asked6.endpoint, "blocked")
        site.lab.host("in1").run(["ping", "-c1", "-W15", "2001:db8::1"])
        site.nat.block_udp(False)
        inside6.send(asked6.endpoint, "open")
        asked6.receives("open")


@gates(nat="nat a symmetric out=wan", firewall="firewall a out=wan")
def test_ipv6_is_filtered_but_not_translated(site):
    with Prober(site.lab.host("in1"), "2001:db8:1::11") as inside6, \
            Prober(site.lab.host("out1"), "2001:db8::1") as asked6, \
            Prober(site.lab.host("out2"), "2001:db8::2") as stranger6:
        inside6.send(asked6.endpoint, "hello")
        assert asked6.receives("hello") == inside6.endpoint
        stranger6.send(inside6.endpoint, "unasked")
        asked6.send(inside6.endpoint, "answer")
        inside6.receives("answer")


@gates(firewall="firewall a out=wan")
def test_a_firewall_translates_nothing(site):
    site.lab.host("out1").run(["ip", "route", "add", "10.1.0.0/24", "via", "203.0.113.10"])
    assert site.open() == site.inside.endpoint
