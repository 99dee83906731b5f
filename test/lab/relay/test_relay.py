"""The blind relay, from end to end: what passes, that it passes unread, and that NATs may move.

                    hub        other
                     |           |
             [ net 198.51.100.0/24, 2001:db8::/64 ]        the internet
                |                    |
                a                    b                     NATs: port-restricted, symmetric
                |                    |
             [lan-a]              [lan-b]
                n1                   n2
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import PROGRAMS
from lab.support.stock_mesh import PORT, Hub, Node
from lab.support.wire import Datagram, capture


pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch net 198.51.100.0/24 2001:db8::/64
switch lan-a 10.1.0.0/24 gateway=a
switch lan-b 10.2.0.0/24 gateway=b
host hub
host other
nat  a port-restricted out=net
nat  b symmetric out=net
host n1
host n2
link hub   net 198.51.100.10 2001:db8::10
link other net 198.51.100.66 2001:db8::66
link a     net 198.51.100.20
link b     net 198.51.100.30
link a lan-a 10.1.0.1
link b lan-b 10.2.0.1
link n1 lan-a 10.1.0.11
link n2 lan-b 10.2.0.12
"""
SCRIPTED = PROGRAMS / "scripted_initiator.py"
PING = 1200          # bytes of echo data in the packets that a test looks at
DATAGRAM = 1232 + 32  # such a packet, padded to 16, in a data message
SHADOW = 1 << 30     # mappings of this size are a sanitizer's own books, mostly not there
FULL_MTU = 1420 - 28  # echo data of a packet as long as the interface's MTU


class Pair:
    """A hub and two nodes behind a NAT each, which have only the hub's address for each other."""

    def __init__(self, lab: Lab, weft: Path, first: list, second: list) -> None:
        self.lab = lab
        self.hub = Hub(lab.host("hub"), weft)
        self.n1 = self.hub.add_node(lab.host("n1"), first)
        self.n2 = self.hub.add_node(lab.host("n2"), second)
        self.n1.meet(self.n2)
        self.n1.wg.ping(self.n2.wg)


@pytest.fixture(scope="module")
def pair(weft: Path) -> Iterator[Pair]:
    """Weft's own data plane at one end, and a stock WireGuard at the other."""
    with Lab.from_text(TOPOLOGY) as lab:
        yield Pair(lab, weft, [weft, "wg"], ["wireguard-go"])


def is_relayed(datagram: Datagram) -> bool:
    return datagram.payload[0] == 4 and len(datagram.payload) == DATAGRAM


def send_pings(node: Node, to: Node, n: int = 1) -> None:
    for _ in range(n):
        node.insist_ping(to.address4, PING)


def test_both_families_pass_at_full_mtu(pair: Pair) -> None:
    for version in (4, 6):
        pair.n1.wg.ping(pair.n2.wg, version)
        pair.n2.wg.ping(pair.n1.wg, version)
    pair.n1.host.run(["ping", "-c1", "-W10", "-Mdo", "-s", FULL_MTU, pair.n2.address4])


def test_every_datagram_leaves_the_hub_as_it_came(pair: Pair) -> None:
    """Byte by byte, with the outer header's ECN, which weft's data plane takes from the inner."""
    with capture(pair.hub.host, "net", PORT) as seen:
        pair.n1.host.run(
            ["ping", "-c3", "-i0.2", "-W10", "-Q2", "-s", PING, pair.n2.address4])
        wait_for(lambda: sum(map(is_relayed, seen.datagrams())) == 12, 10,
                 "three requests and three answers, each in and out")
        relayed = list(filter(is_relayed, seen.datagrams()))
    here = (pair.hub.host.address(), PORT)
    assert Counter((d.payload, d.tos) for d in relayed if d.to == here) == \
        Counter((d.payload, d.tos) for d in relayed if d.source == here)
    assert {d.tos for d in relayed if d.source[0] == "198.51.100.20"} == {2}
    assert {d.source[0] for d in relayed if d.to == here} == {"198.51.100.20", "198.51.100.30"}


def test_the_hub_has_no_session_for_the_edge(pair: Pair) -> None:
    """wg(8) on the hub: one peer for each node, with that node's own addresses, and little sent."""
    send_pings(pair.n1, pair.n2, 3)
    dump = pair.hub.host.run(["wg", "show", "weft-default", "dump"]).out.splitlines()[1:]
    peers = {fields[0]: fields for fields in (line.split("\t") for line in dump)}
    assert set(peers) == {pair.n1.wg.public_key, pair.n2.wg.public_key}
    for node in (pair.n1, pair.n2):
        fields = peers[node.wg.public_key]
        assert set(fields[3].split(",")) == {
            f"{a.ip}/{a.ip.max_prefixlen}" for a in node.wg.addresses}
        assert int(fields[5]) < 3 * DATAGRAM, "the pings went through the node's own session"


def writable_memory(pid: int) -> Iterator[bytes]:
    """All that a process holds and can change."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines():
            where, permissions = line.split()[:2]
            if not permissions.startswith("rw") or "[vvar" in line:
                continue
            start, end = (int(part, 16) for part in where.split("-"))
            if end - start < SHADOW:
                memory.seek(start)
                yield memory.read(end - start)


def holds(pid: int, needles: list[str]) -> list[bool]:
    found = [False] * len(needles)
    for blob in writable_memory(pid):
        for i, needle in enumerate(needles):
            found[i] |= bytes.fromhex(needle) in blob
    return found


def test_the_edge_keys_are_nowhere_in_the_hub(pair: Pair) -> None:
    """A node that tells its keys talks to the hub, and through it to n1: only one of the two
    sessions' keys are in the hub's memory. The other's are in n1's, so they were looked for right.
    """
    other = pair.lab.host("other")
    secret = os.urandom(32)
    public = subprocess.run(["wg", "pubkey"], input=base64.b64encode(secret).decode(), check=True,
                            capture_output=True, encoding="ascii").stdout.strip()
    pair.hub.enrol(other, public, "scripted")
    pair.n1.wg.set("peer", public, "allowed-ips", "10.42.0.250")
    script = other.namespace.enter(
        ["/usr/bin/python3", SCRIPTED, secret.hex(), pair.hub.host.address(), PORT,
         *(base64.b64decode(key).hex() for key in (pair.n1.hub_spec["publicKey"],
                                                   pair.n1.wg.public_key))])
    with subprocess.Popen(script, env=other.namespace.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, encoding="ascii") as process:
        with_hub, with_n1 = json.loads(process.stdout.readline())
        keys = {name: session["secrets"] for name, session in
                (("hub", with_hub), ("n1", with_n1))}
        wait_for(lambda: int(pair.n1.wg.machine.run(
            ["wg", "show", pair.n1.wg.interface, "latest-handshakes"], quiet=True)
            .out.split(public)[1].split()[0]) > 0, 5, "n1 to use the session")
        assert holds(pair.hub.daemon.pid, keys["hub"][:2]) == [True, True]
        assert holds(pair.n1.wg.daemon.pid, keys["n1"][:2]) == [True, True]
        assert holds(pair.hub.daemon.pid, keys["n1"]) == [False, False, False]
        process.stdin.close()
    pair.n1.wg.set("peer", public, "remove")


def test_what_the_hub_changes_is_refused(pair: Pair, weft: Path) -> None:
    """Four bytes of ciphertext are changed as they leave the hub's machine for n1."""
    hub, n1 = pair.hub.host, pair.n1
    rule = (f"ip daddr 198.51.100.20 udp sport {PORT} udp length {DATAGRAM + 8} "
            "@th,480,32 set 0xdeadbeef udp checksum set 0")
    hub.run(["nft", "add table ip harm; add chain ip harm out "
             f"{{ type filter hook output priority 0; }}; add rule ip harm out {rule}"])
    before = stat(n1, weft, "drop_tag-invalid")
    assert not pair.n2.can_ping(n1.address4, PING)
    assert stat(n1, weft, "drop_tag-invalid") > before
    pair.n2.insist_ping(n1.address4)  # what was not changed passes
    hub.run(["nft", "delete table ip harm"])
    send_pings(pair.n2, n1)


def stat(node: Node, weft: Path, name: str) -> int:
    """A counter of `weft wg`."""
    lines = node.host.run([weft, "wg", node.wg.interface, "--stats"], quiet=True).out.splitlines()
    return next(int(line.split("=")[1]) for line in lines if line.startswith(f"{name}="))


def test_a_moved_node_is_found_with_its_next_packet_to_the_hub(pair: Pair) -> None:
    n1, n2 = pair.n1, pair.n2
    hub_key = n1.hub_spec["publicKey"]
    send_pings(n2, n1)
    n1.wg.set("peer", hub_key, "persistent-keepalive", 0)
    pair.lab.nat("a").flush_mappings(new_ports=True)
    before = pair.hub.drops("relay-unknown-sender")
    assert not n2.can_ping(n1.address4), "nobody knows yet where n1 is"
    assert not n1.can_ping(n2.address4), "nor who speaks from there"
    assert pair.hub.drops("relay-unknown-sender") > before
    n1.insist_ping(n1.hub_spec["address4"])
    send_pings(n2, n1)
    send_pings(n1, n2)
    n1.wg.set("peer", hub_key, "persistent-keepalive", 5)
