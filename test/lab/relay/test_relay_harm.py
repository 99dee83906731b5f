"""Those who mean harm to a hub and its members, and what they get.

      hub   n1   n2   n3   stranger
       |     |    |    |       |
     [ net 198.51.100.0/24, 2001:db8::/64 ]
"""

from __future__ import annotations

import ipaddress
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.stock_mesh import PORT, Hub, Node
from lab.support.topologies import one_switch
from lab.support.wire import Datagram, capture, exchange, send_from_port

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch(
    "net", "198.51.100", {"hub": 10, "n1": 11, "n2": 12, "n3": 13, "stranger": 66}, v6=True)
PING = 1200
DATAGRAM = 1232 + 32  # such a packet, padded to 16, in a data message

BINDING = struct.pack(">HHI", 1, 0, 0x2112a442) + b"transaction1"
# With a SOFTWARE attribute of twenty characters: as long as the longest answer to it.
BINDING_PADDED = struct.pack(">HHI", 1, 24, 0x2112a442) + b"transaction2" + \
    struct.pack(">HH", 0x8022, 20) + b"a client of the test"


class Town:
    """A hub and three nodes; n1 and n2 have each other as peers, n3 nobody but the hub."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.hub = Hub(lab.host("hub"), weft)
        self.n1, self.n2, self.n3 = (
            self.hub.add_node(lab.host(name), [weft, "wg"]) for name in ("n1", "n2", "n3"))
        self.n1.meet(self.n2)
        self.n1.wg.ping(self.n2.wg)
        self.n3.host.run(["ping", "-c1", "-W15", self.n3.hub_spec["address4"]])
        self.stranger = lab.host("stranger")
        self.hub_address = self.hub.host.address()


@pytest.fixture(scope="module")
def town(weft: Path) -> Iterator[Town]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Town(lab, weft)


def steal(town: Town) -> bytes:
    """A datagram from n1 to n2, as somebody on the way sees it."""
    def is_it(d: Datagram) -> bool:
        return d.source[0] == town.n1.host.address() and len(d.payload) == DATAGRAM

    with capture(town.hub.host, "net", PORT) as seen:
        town.n1.insist_ping(town.n2.address4, PING)
        return seen.wait_for(is_it, "a datagram to steal")[0].payload


def wait_dropped(town: Town, reason: str, n: float) -> None:
    """Until the hub has dropped so many, and not one more."""
    wait_for(lambda: town.hub.drops(reason) >= n, 5, f"the hub to count {n:g} {reason}")
    assert town.hub.drops(reason) == n


def test_a_stolen_index_moves_nothing_from_elsewhere(town: Town) -> None:
    stolen = steal(town)
    made_up = stolen[:8] + os.urandom(len(stolen) - 8)
    relayed, before = town.hub.relayed(), town.hub.drops("relay-unknown-sender")
    assert exchange(town.stranger, town.hub_address, PORT, [stolen, made_up], 0.3) == []
    wait_dropped(town, "relay-unknown-sender", before + 2)
    # Nor does a member's address help: the index is not one of its own sessions.
    before = town.hub.drops("relay-no-lease")
    for payload in (stolen, made_up):
        send_from_port(town.n3.host, town.n3.wg.port(), town.hub_address, PORT, payload)
    wait_dropped(town, "relay-no-lease", before + 2)
    assert town.hub.relayed() == relayed
    town.n1.insist_ping(town.n2.address4, PING)  # and the session goes on


def test_a_stranger_gets_nothing_for_garbage(town: Town) -> None:
    """Whatever is no STUN request is not answered, so there is nothing to amplify."""
    garbage = [bytes([first]) + os.urandom(n) for n in (0, 3, 30, 63, 91, 147, 1400)
               for first in (0, 1, 2, 3, 4, 5, 0x80, 0xff)]
    typed = [struct.pack("<I", kind) + os.urandom(n - 4)
             for kind, n in ((1, 148), (2, 92), (3, 64), (4, 32), (4, 1300))]
    assert exchange(town.stranger, town.hub_address, PORT, garbage + typed * 50, 0.5) == []
    town.n1.insist_ping(town.n2.address4)


@pytest.mark.parametrize(("version", "length"), [(4, 32), (6, 44)])
def test_stun_tells_where_a_request_came_from(town: Town, version: int, length: int) -> None:
    asker = town.stranger
    (answer,) = exchange(asker, town.hub.host.address(version), PORT, [BINDING])
    assert len(answer) == length
    assert answer[:2] == b"\x01\x01" and answer[4:20] == BINDING[4:]
    kind, _, family, _ = struct.unpack_from(">HHHH", answer, 20)
    assert (kind, family) == (0x20, 1 if version == 4 else 2)
    mask = answer[4:20]
    shown = bytes(a ^ b for a, b in zip(answer[28:], mask))
    assert shown == ipaddress.ip_address(asker.address(version)).packed


def test_stun_amplifies_little_and_seldom(town: Town) -> None:
    """Answers that are longer than their requests are few; the others are as many as asked for."""
    before, began = town.hub.drops("stun-rate-limited"), time.monotonic()
    short = exchange(town.stranger, town.hub_address, PORT, [BINDING] * 200, 0.3)
    took = time.monotonic() - began
    assert 1 <= len(short) <= 5 + 20 * took, "five at once and twenty a second"
    wait_dropped(town, "stun-rate-limited", before + 200 - len(short))
    padded = exchange(town.stranger, town.hub_address, PORT, [BINDING_PADDED] * 100)
    assert len(padded) == 100
    assert all(len(answer) <= len(BINDING_PADDED) for answer in padded)


def test_nothing_crosses_in_the_hubs_own_sessions(town: Town) -> None:
    """n3 sends to n1 through its session with the hub, which forwards IP packets, as many
    machines do that run containers. What arrives there in the clear goes nowhere.
    """
    hub, n3 = town.hub.host, town.n3
    hub.run(["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
    spec = n3.hub_spec
    everybody = [f"{a.network}" for a in n3.wg.addresses]
    n3.wg.set("peer", spec["publicKey"], "allowed-ips", ",".join(everybody))
    before = town.hub.drops("not-served")
    assert not n3.can_ping(town.n1.address4)
    assert n3.host.run(["ping", "-c1", "-W1", town.n1.wg.addresses[1].ip], check=False).rc != 0
    wait_dropped(town, "not-served", before + 2)
    n3.insist_ping(spec["address4"])
    n3.wg.set("peer", spec["publicKey"], "allowed-ips", f"{spec['address4']},{spec['address6']}")


def test_an_edge_that_is_off_is_not_relayed(town: Town) -> None:
    town.hub.run("edge", "set", "n1", "n2", "--path", "off")
    assert not town.n1.can_ping(town.n2.address4)
    assert not town.n2.can_ping(town.n1.address4)
    town.hub.run("edge", "set", "n1", "n2", "--path", "auto")
    town.n1.wg.ping(town.n2.wg, deadline_s=30)


def test_a_removed_node_is_cut_off(town: Town) -> None:
    """At once for relayed packets; its own session with the hub within two seconds."""
    town.n1.insist_ping(town.n2.address4)
    town.hub.run("node", "rm", "n2")
    assert not town.n1.can_ping(town.n2.address4)
    assert not town.n2.can_ping(town.n1.address4)
    wait_for(lambda: not can_reach_hub(town.n2), 2, "the hub to know n2 no more")


def can_reach_hub(node: Node) -> bool:
    argv = ["ping", "-c1", "-W0.3", node.hub_spec["address4"]]
    return node.host.run(argv, check=False, quiet=True).rc == 0
