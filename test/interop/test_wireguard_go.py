"""`weft wg` and wireguard-go as two ends of a tunnel.

    u (weft) ── [ s ] ── g (wireguard-go)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from lab import Lab, wait_for
from lab.support.topologies import one_switch

from .traffic import drops, flood, inner_address, stats, transfer
from .wgpeer import WgPeer, preshared_key

pytestmark = pytest.mark.namespaces

PAIR = one_switch("s", "192.0.2", {"u": 1, "g": 2}, v6=True)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.from_text(PAIR, capture=False) as lab:
        yield lab


@pytest.fixture
def make(lab: Lab, weft) -> Iterator[Callable[..., dict[str, WgPeer]]]:
    """Makes the two ends, which do not know each other yet."""
    with ExitStack() as stack:
        def make(*options: str) -> dict[str, WgPeer]:
            ours = WgPeer.userspace(lab.host("u"), [weft, "wg", *options])
            stack.callback(ours.remove)
            # TCP of the test before may repeat its last segment, before we have begun.
            theirs = WgPeer.userspace(
                lab.host("g"), ["wireguard-go"], allow=["no known endpoint for peer"])
            stack.callback(theirs.remove)
            ours.configure(["10.7.0.1/24", "fd07::1/64"])
            theirs.configure(["10.7.0.2/24", "fd07::2/64"])
            return {"weft": ours, "go": theirs}

        yield make


@pytest.fixture
def ends(make) -> dict[str, WgPeer]:
    return make()


def connect(ends: dict[str, WgPeer], first: str = "weft", **options) -> tuple[WgPeer, WgPeer]:
    initiator, responder = ends[first], ends["go" if first == "weft" else "weft"]
    responder.add_peer(initiator, **options)
    initiator.add_peer(responder, endpoint=True, **options)
    return initiator, responder


@pytest.mark.parametrize("first", ["weft", "go"])
def test_handshake_and_data(ends, first, tmp_path):
    initiator, responder = connect(ends, first, preshared_key=preshared_key())
    assert initiator.state(responder).handshake == 0
    assert responder.state(initiator).endpoint == "(none)"

    initiator.ping(responder)
    assert responder.state(initiator).endpoint == f"{initiator.machine.address()}:51820"
    assert responder.state(initiator).handshake > 0
    assert initiator.state(responder).handshake > 0
    for version in (4, 6):
        for size in (0, 1, 56, 1300, 1392, 9000):  # the last ones are fragmented inside
            initiator.ping(responder, version, size=size)
            responder.ping(initiator, version, size=size)
        transfer(tmp_path, initiator, responder, version)
        transfer(tmp_path, responder, initiator, version)


def test_over_ipv6(ends, tmp_path):
    ours, theirs = ends["weft"], ends["go"]
    theirs.add_peer(ours)
    ours.add_peer(theirs, endpoint="[2001:db8::2]:51820")
    ours.ping(theirs)
    assert theirs.state(ours).endpoint == "[2001:db8::1]:51820"
    transfer(tmp_path, ours, theirs)
    transfer(tmp_path, theirs, ours, 6)


@pytest.mark.parametrize("off", ["all", "udp-gso", "udp-gro", "tso", "uso"])
def test_without_an_offload(make, weft, off, tmp_path):
    """Each offload can be missing: the counters say so, and every byte still arrives."""
    ends = make("--no-offload", off)
    connect(ends)
    seen = stats(ends["weft"], weft)
    for name in ("udp-gso", "udp-gro", "tso", "uso") if off == "all" else (off,):
        assert seen[f"offload_{name}"] == "off"
        assert seen[f"offload_{name}_why"]
    transfer(tmp_path, ends["weft"], ends["go"], 4, 1 << 20)
    transfer(tmp_path, ends["go"], ends["weft"], 6, 1 << 20)


def test_inner_packets_larger_than_the_path(ends, tmp_path):
    """With an inner MTU of 3000 the outer packets exceed 1500 bytes: they are fragmented."""
    ours, theirs = connect(ends)
    for end in (ours, theirs):
        end.machine.run(["ip", "link", "set", "wg0", "mtu", "3000"])
    ours.ping(theirs, size=2900)
    theirs.ping(ours, 6, size=2900)
    transfer(tmp_path, ours, theirs)
    transfer(tmp_path, theirs, ours)


def test_packets_before_the_session_are_not_lost(ends):
    """The first packet waits for the handshake that it causes, and then goes."""
    ours, theirs = connect(ends)
    result = ours.machine.run(["ping", "-c1", "-W15", inner_address(theirs, 4)])
    assert " 0% packet loss" in result.out


def test_we_move(ends):
    """Our address changes; the other end follows with the next packet."""
    ours, theirs = connect(ends)
    ours.ping(theirs)
    old, new = f"{ours.machine.address()}/24", "192.0.2.11/24"
    for was, becomes in ((old, new), (new, old)):
        # In this order: the kernel takes a network's further addresses away with the first one.
        ours.machine.run(["ip", "address", "del", was, "dev", "s"])
        ours.machine.run(["ip", "address", "add", becomes, "dev", "s"])
        ours.ping(theirs)
        assert theirs.state(ours).endpoint == becomes.replace("/24", ":51820")
        theirs.ping(ours)


def test_they_move(ends):
    """The other end's port changes, as behind a NAT that forgets; we follow."""
    ours, theirs = connect(ends)
    ours.ping(theirs)
    theirs.set("listen-port", 51999)
    theirs.ping(ours)
    assert ours.state(theirs).endpoint == f"{theirs.machine.address()}:51999"
    ours.ping(theirs)


def test_a_removed_peer_is_cut_off_at_once(ends):
    ours, theirs = connect(ends)
    ours.ping(theirs)
    ours.set("peer", theirs.public_key, "remove")
    before = theirs.state(ours).rx_bytes
    for end, address in ((theirs, inner_address(ours, 4)), (ours, inner_address(theirs, 4))):
        assert end.machine.run(["ping", "-c2", "-i0.2", "-W1", address], check=False).rc != 0
    assert theirs.state(ours).rx_bytes == before


def test_an_unreachable_address_is_answered(ends):
    """What no peer's allowed IPs hold is refused at once, as by the kernel's WireGuard."""
    ours, _ = connect(ends)
    ours.machine.run(["ip", "-6", "route", "add", "fd99::/64", "dev", "wg0"])
    for address in ("10.7.0.99", "fd99::1"):
        result = ours.machine.run(["ping", "-c1", "-W3", address], check=False)
        assert "nreachable" in result.out, result.out


def test_source_addresses_are_enforced(ends, weft):
    """Cryptokey routing: an inner source that is not the peer's own is dropped."""
    ours, theirs = connect(ends)
    ours.ping(theirs)
    theirs.machine.run(["ip", "address", "add", "10.7.0.77/32", "dev", "wg0"])
    argv = ["ping", "-c2", "-i0.2", "-W1", "-I", "10.7.0.77", inner_address(ours, 4)]
    assert theirs.machine.run(argv, check=False).rc != 0
    assert int(stats(ours, weft)["drop_source-not-allowed"]) >= 2


def test_congestion_marks_are_carried(ends):
    """ECT goes to the outer header, and a mark that the outer one got comes back inside."""
    ours, theirs = connect(ends)
    ours.ping(theirs)
    # What leaves u is counted at g by the ECN bits of the outer header.
    theirs.machine.run(["nft", "add table ip t; add chain ip t in { type filter hook input "
                        "priority 0; }; add rule ip t in udp dport 51820 ip ecn ect0 counter"])
    ours.machine.run(["ping", "-c3", "-i0.1", "-Q2", inner_address(theirs, 4)])
    rules = theirs.machine.run(["nft", "list", "table", "ip", "t"]).out
    assert "packets 3 " in rules, rules
    # Towards u every outer packet is marked; u's own stack then sees marked inner packets.
    ours.machine.run(["nft", "add table ip t; add chain ip t pre { type filter hook prerouting "
                      "priority -300; }; add rule ip t pre iif s udp dport 51820 ip ecn set ce; "
                      "add chain ip t in { type filter hook input priority 0; }; "
                      "add rule ip t in iif wg0 icmp type echo-reply ip ecn ce counter"])
    ours.machine.run(["ping", "-c3", "-i0.1", "-Q2", inner_address(theirs, 4)])
    rules = ours.machine.run(["nft", "list", "table", "ip", "t"]).out
    ours.machine.run(["nft", "delete", "table", "ip", "t"])
    theirs.machine.run(["nft", "delete", "table", "ip", "t"])
    assert "packets 3 " in rules, rules


def test_garbage_at_line_rate(lab, ends, weft, tmp_path):
    """Nonsense is dropped by reason, answered by nothing, and does not stop the traffic."""
    ours, theirs = connect(ends)
    ours.ping(theirs)
    sender = flood(lab.host("g"), "garbage", ours.machine.address(), 51820)
    sender.wait_line("^ready")
    transfer(tmp_path, theirs, ours, 4, 1 << 20)
    transfer(tmp_path, ours, theirs, 4, 1 << 20)
    wait_for(lambda: sum(drops(ours, weft).values()) > 10_000, 20, "much nonsense to be dropped")
    sender.stop()
    told = sender.wait_line(r"sent (\d+), answers (\d+)")
    assert int(told[2]) == 0
    seen = stats(ours, weft)
    for reason in ("unknown-type", "mac1-invalid", "unknown-index"):
        assert int(seen[f"drop_{reason}"]) > 1000, reason
    assert ours.daemon.running


def test_cookies_under_load(lab, ends, weft):
    """A flood of initiations is answered with cookies, and an honest peer still gets in."""
    ours, theirs = ends["weft"], ends["go"]
    sender = flood(lab.host("g"), "initiations", ours.machine.address(), 51820,
                   key=ours.public_key.strip(), rate=20_000)
    sender.wait_line("^ready")
    wait_for(lambda: int(stats(ours, weft)["drop_under-load"]) > 100, 20, "the cookie replies")
    connect({"weft": ours, "go": theirs}, "go")
    theirs.ping(ours, deadline_s=40)
    sender.stop()
    told = sender.wait_line(r"sent (\d+), answers (\d+), answer bytes (\d+)")
    assert int(told[2]) > 0
    assert int(told[3]) == int(told[2]) * 64  # cookie replies, and shorter than what they answer
