"""The topology language: what a file may say, what it may not, and how it is drawn."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from lab import Topology, TopologyError
from lab.support import TOPOLOGIES
from lab.support.network.construction import routes
from lab.support.network.drawing import draw

FILES = sorted(TOPOLOGIES.glob("*.topo"))

SITE = """
switch wan 203.0.113.0/24 2001:db8::/64   # the internet
switch lan 10.1.0.0/24 gateway=a mtu=9000
host hub
nat a symmetric out=wan udp-idle=30s/120s
host n1 no-v6
link hub wan 203.0.113.1 2001:db8::1
link a wan 203.0.113.2 delay=5ms in.loss=1% path-mtu=1400
link a lan 10.1.0.1
link n1 lan 10.1.0.11 mtu=1500
route hub 10.1.0.0/24 via=a
"""


def test_statements_are_understood():
    topology = Topology.from_text(SITE)
    assert list(topology.nodes) == ["hub", "a", "n1"]
    nat = topology.nodes["a"]
    assert (nat.kind, nat.outside) == ("symmetric", "wan")
    assert (nat.udp_idle_s, nat.udp_stream_idle_s, nat.blocks_udp) == (30, 120, False)
    assert not topology.nodes["n1"].has_v6
    uplink = topology.links_of("a")[0]
    assert uplink.emulated
    assert uplink.emulation == ["delay=5ms", "in.loss=1%", "mtu=1400"]
    assert [link.mtu for link in topology.links] == [1500, 1500, 9000, 1500]
    assert not topology.links_of("n1")[0].emulated
    assert topology.links_of("hub")[0].address(6) == ip_address("2001:db8::1")


def test_routes_follow_gateways_and_statements():
    topology = Topology.from_text(SITE)
    assert routes(topology, topology.nodes["n1"]) == ["ip route add default via 10.1.0.1 dev lan"]
    assert routes(topology, topology.nodes["a"]) == []
    assert routes(topology, topology.nodes["hub"]) == ["ip route add 10.1.0.0/24 via 203.0.113.2"]


@pytest.mark.parametrize(("statement", "message"), [
    ("bridge x", "'bridge' is not a statement"),
    ("host", "a host needs a name"),
    ("host Big", "a host needs a name"),
    ("host a-name-of-16-long", "at most 15"),
    ("host lo", "means something to the kernel"),
    ("host hub", "already the name"),
    ("host x what", "'what' is not understood here"),
    ("host x udp=blocked", "udp= is not known here"),
    ("router x udp=open", "udp= can only be udp=blocked"),
    ("nat x", "a nat needs a kind"),
    ("nat x conical out=wan", "a nat needs a kind"),
    ("nat x symmetric", "needs out=SWITCH"),
    ("nat x symmetric out=lan", "x has no link to it"),
    ("nat x symmetric out=wan udp-idle=30", "'30' is not a time in whole seconds"),
    ("switch x 10.1.0.1/24", "is not a prefix"),
    ("switch x 10.1.0.0/24 10.2.0.0/24", "at most one IPv4 and one IPv6"),
    ("switch x gateway=nobody", "there is no node 'nobody'"),
    ("switch x gateway=hub", "the gateway hub has no link to x"),
    ("switch x mtu=100", "from 576 to 65535"),
    ("link hub", "a link is:"),
    ("link hub lan 10.9.0.1", "10.9.0.1 is not in a prefix of lan"),
    ("link hub lan 10.1.0.11", "already the address of n1"),
    ("link hub lan 10.1.0.256", "is not an IPv4 or IPv6 address"),
    ("link hub wan", "already has a link to wan"),
    ("link hub nowhere", "there is no switch 'nowhere'"),
    ("link hub lan 10.1.0.2 delay=5", "delay=5 is not a time"),
    ("link hub lan 10.1.0.2 delay=5ms delay=6ms", "delay= is given twice"),
    ("link hub lan 10.1.0.2 colour=red", "colour= is not known here"),
    ("link hub lan 10.1.0.2 mtu=9001", "more than the 9000 of lan"),
    ("route hub 10.0.0.0/8", "a route is:"),
    ("route hub 10.0.0.0/8 via=n1", "n1 has no IPv4 address on a switch of hub"),
    ("seed one", "one whole number"),
])
def test_an_error_names_file_line_and_reason(statement, message):
    with pytest.raises(TopologyError) as error:
        Topology.from_text(SITE + statement, "some.topo")
    line = len((SITE + statement).splitlines())
    assert str(error.value).startswith(f"some.topo:{line}: ")
    assert message in str(error.value)


def test_v6_address_on_a_host_without_v6_is_refused():
    with pytest.raises(TopologyError, match="n2 is no-v6"):
        Topology.from_text(SITE + "host n2 no-v6\nlink n2 wan 2001:db8::2")


def test_drawing():
    assert draw(Topology.from_text(SITE)) == """\
[wan] 203.0.113.0/24 2001:db8::/64
├─ hub  203.0.113.1 2001:db8::1
└─ a (symmetric nat)  203.0.113.2 delay=5ms in.loss=1% mtu=1400
   └─ 10.1.0.1  [lan] 10.1.0.0/24 mtu=9000
      └─ n1 no-v6  10.1.0.11
"""


def test_drawing_of_a_loop_and_a_loner_ends():
    text = "switch s\nswitch t\nhost x\nhost y\nhost z\n"
    text += "".join(f"link {node} {switch}\n" for node in "xy" for switch in "st")
    picture = draw(Topology.from_text(text))
    assert picture.count("(above)") == 2
    assert picture.endswith("z (no link)\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_topologies_are_understood(path):
    assert Topology.from_file(path).nodes
