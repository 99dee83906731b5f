"""Two networks with the same block of addresses on one hub, which checks reverse paths strictly.

        hub    n1   n2     n3   n4       n1, n2: network default; n3, n4: network two
         |      |    |      |    |       n1 and n3 are 10.42.0.2, n2 and n4 are 10.42.0.3
     [ net 198.51.100.0/24 ]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support import ROOT
from lab.support.stock_mesh import API_PORT, Hub, Node
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

VECTORS = ROOT / "test/vectors"

TOPOLOGY = one_switch("net", "198.51.100", {"hub": 10, "n1": 11, "n2": 12, "n3": 13, "n4": 14})
# The first line of the watch: who the hub takes the asking node for.
FIRST_EVENT = f"""
import json, sys, urllib.error, urllib.request
sys.path.insert(0, "{VECTORS}")
from member_reference import signer_of
url, secret, hub = sys.argv[1:]
signer = signer_of(secret, hub)
for _ in range(2):
    proof = signer.sign("GET", "/v1/watch")
    request = urllib.request.Request(url, headers={{"Authorization": proof}})
    try:
        with urllib.request.urlopen(request, timeout=60) as watch:
            print(watch.readline().decode())
            break
    except urllib.error.HTTPError as refused:
        assert refused.code == 401 and signer.learn(json.loads(refused.read()))
"""


class Twins:
    """A pair of nodes in each network."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        host = lab.host("hub")
        host.run(["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1",
                  "net.ipv4.conf.default.rp_filter=1"])
        self.hub = Hub(host, weft)
        self.hub.add_network("two", "10.42.0.0/16")
        self.n1, self.n2 = (self.hub.add_node(lab.host(n), [weft, "wg"]) for n in ("n1", "n2"))
        self.n3, self.n4 = (self.hub.add_node(lab.host(n), [weft, "wg"], "two")
                            for n in ("n3", "n4"))
        self.n1.meet(self.n2)
        self.n3.meet(self.n4)


@pytest.fixture(scope="module")
def twins(weft: Path) -> Iterator[Twins]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Twins(lab, weft)


def first_event(node: Node) -> dict:
    """The node's watch, over the overlay."""
    url = f"http://{node.hub_spec['address4']}:{API_PORT}/v1/watch"
    return json.loads(node.host.run(["/usr/bin/python3", "-c", FIRST_EVENT, url,
                                     node.wg.private_key, node.hub_spec["publicKey"]]).out)


def echo_replies(node: Node) -> int:
    """How many the node has received, whether or not it asked."""
    names, values = (line.split() for line in node.host.run(
        ["grep", "^Icmp:", "/proc/net/snmp"], quiet=True).out.splitlines())
    return int(values[names.index("InEchoReps")])


def test_each_pair_is_relayed_to_its_own(twins: Twins) -> None:
    assert twins.n1.address4 == twins.n3.address4
    assert twins.n2.address4 == twins.n4.address4
    twins.n1.wg.ping(twins.n2.wg)
    twins.n3.wg.ping(twins.n4.wg)
    assert twins.n1.wg.state(twins.n2.wg).rx_bytes > 0
    assert twins.n3.wg.state(twins.n4.wg).rx_bytes > 0


def test_each_node_is_known_in_its_own_network(twins: Twins) -> None:
    for node, network in ((twins.n1, "default"), (twins.n3, "two"), (twins.n4, "two")):
        event = first_event(node)
        assert event["self"] == node.name
        assert event["network"]["metadata"]["name"] == network
        assert {n["metadata"]["name"] for n in event["nodes"]} == {
            "hub", *(("n1", "n2") if network == "default" else ("n3", "n4"))}


def test_no_answer_goes_to_the_namesake(twins: Twins) -> None:
    """n3 pings the hub, which would answer to 10.42.0.2 by the interface that came first: to n1."""
    twins.n1.insist_ping(twins.n1.hub_spec["address4"])
    before = echo_replies(twins.n1)
    assert not twins.n3.can_ping(twins.n3.hub_spec["address4"])
    assert echo_replies(twins.n1) == before
    assert twins.hub.drops("not-served") > 0


def test_the_shadow_ends_with_what_cast_it(twins: Twins) -> None:
    twins.hub.run("network", "rm", "default")
    twins.n3.insist_ping(twins.n3.hub_spec["address4"])
    assert first_event(twins.n3)["self"] == "n3"
    twins.n3.wg.ping(twins.n4.wg)


def test_a_block_that_the_machine_uses_is_refused(twins: Twins) -> None:
    done = twins.hub.host.run(
        [twins.hub.weft, "network", "add", "three", "--cidr4", "198.51.100.128/25"], check=False)
    assert done.rc != 0
    assert "198.51.100.128/25 collides with the route 198.51.100.0/24 of net" in done.err
