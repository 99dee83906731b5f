"""`weft wg` against the Linux kernel's own WireGuard.

The machines are drawn in kernel_tunnel.py.  What takes two minutes is in test_rekey.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for

from .kernel_tunnel import Ends, machines, transfer_from_kernel, transfer_to_kernel, tunnel
from .vm.kernelvm import KernelVm
from .wgpeer import preshared_key
from .wire import DATA, INITIATION, KEEPALIVE_SIZE, RESPONSE, Capture, inject

pytestmark = pytest.mark.namespaces

@pytest.fixture(scope="module")
def vm() -> Iterator[KernelVm]:
    with machines() as a_vm:
        yield a_vm


@pytest.fixture(scope="module")
def lab(vm: KernelVm) -> Lab:
    return vm.host.lab


@pytest.fixture
def ends(vm: KernelVm, weft: Path) -> Iterator[Ends]:
    """A tunnel whose ends do not know each other yet."""
    with tunnel(vm, vm.host.lab.host("u"), weft) as made:
        yield made


@pytest.fixture
def moving_ends(vm: KernelVm, weft: Path) -> Iterator[Ends]:
    """The same with weft on a host whose addresses may be changed."""
    with tunnel(vm, vm.host.lab.host("r"), weft) as made:
        yield made


# ---- handshake and data ----


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("first", ["weft", "kernel"])
def test_handshake_and_data(ends, first, version):
    ends.join(first, preshared_key(), version)
    initiator, responder = ends.order(first)
    assert responder.state(initiator).endpoint == "(none)"
    with ends.capture() as capture:
        initiator.ping(responder)
        initiations = capture.messages(INITIATION, is_outgoing=first == "weft")
        responses = capture.messages(RESPONSE, is_outgoing=first != "weft")
    assert len(initiations) == len(responses) == 1
    assert initiations[0].tos == responses[0].tos
    address = initiator.machine.address(version)
    place = f"[{address}]:51820" if version == 6 else f"{address}:51820"
    seen = responder.state(initiator)
    assert seen.endpoint == place
    assert seen.handshake > 0
    assert initiator.state(responder).handshake > 0
    for inner in (4, 6):
        responder.ping(initiator, inner, size=1300)
        initiator.ping(responder, inner, size=1300)
    for end, peer in ((initiator, responder), (responder, initiator)):
        assert end.state(peer).rx_bytes > 4 * 1300
        assert end.state(peer).tx_bytes > 4 * 1300
    # Both count the same bytes: all messages, from the first byte to the tag.
    assert initiator.state(responder).tx_bytes == responder.state(initiator).rx_bytes
    assert responder.state(initiator).tx_bytes == initiator.state(responder).rx_bytes


def test_tcp_arrives_whole_in_full_size_packets(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    with Capture(ends.weft.machine, "wg0") as inner:
        transfer_to_kernel(ends, 4 << 20)
        transfer_from_kernel(ends, 4 << 20)
        assert len(inner.datagrams()) > 10
    counted = ends.dropped()
    assert all(n == 0 for reason, n in counted.items() if reason != "no-route"), counted


def test_lengths_and_padding_are_the_kernels(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    with ends.capture() as capture:
        for size in (16, 36, 37, 100, 1391, 1392):
            padded = min((28 + size + 15) // 16 * 16, 1420)
            ends.weft.ping(ends.kernel, size=size)
            for is_outgoing in (True, False):
                sent = capture.messages(DATA, is_outgoing=is_outgoing)
                assert len(sent[-1].payload) == 32 + padded, (size, is_outgoing)


# ---- ECN ----

NOT_ECT, ECT_1, ECT_0, CE = range(4)
DSCP_EF = 0xB8


def _echo_tos(ends: Ends, tos: int, version: int) -> tuple[int, int, int]:
    """Ping with this TOS; gives that of weft's datagram, of the kernel's, of the answer."""
    address = "10.7.0.1" if version == 4 else "fd07::1"
    with ends.capture() as outer, Capture(ends.weft.machine, "wg0") as inner:
        ends.weft.machine.run(["ping", "-c1", "-W15", "-Q", tos, address])
        ours = outer.messages(DATA, is_outgoing=True)
        theirs = outer.messages(DATA, is_outgoing=False)
        answers = [packet for packet in inner.datagrams() if not packet.is_outgoing]
    assert len(ours) == len(theirs) == len(answers) == 1
    return ours[0].tos, theirs[0].tos, answers[0].tos


@pytest.mark.parametrize("version", [4, 6])
def test_ecn_goes_out_as_the_kernels(ends, version):
    ends.join()
    ends.weft.ping(ends.kernel)
    for dscp in (0, DSCP_EF):
        for ecn in (NOT_ECT, ECT_1, ECT_0, CE):
            expected = ECT_0 if ecn == CE else ecn
            assert _echo_tos(ends, dscp | ecn, version) == (expected, expected, dscp | ecn)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("marked", ["to weft", "to the kernel"])
def test_congestion_on_the_way_reaches_the_inner_packet(ends, marked, version):
    ends.join()
    ends.weft.ping(ends.kernel)
    hook = "prerouting" if marked == "to weft" else "postrouting"
    ends.weft.machine.run(["nft", "-f", "-"], stdin=f"""
        table ip marks {{
            chain c {{
                type filter hook {hook} priority 0;
                udp dport 51820 ip ecn set ce
            }}
        }}""")
    try:
        for ecn in (NOT_ECT, ECT_1, ECT_0, CE):
            expected = NOT_ECT if ecn == NOT_ECT else CE
            assert _echo_tos(ends, DSCP_EF | ecn, version)[2] == DSCP_EF | expected
    finally:
        ends.weft.machine.run(["nft", "delete", "table", "ip", "marks"])


# ---- keepalive ----


def test_weft_answers_data_with_a_keepalive_at_least(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    with ends.capture() as capture:
        def keepalives() -> int:
            sent = capture.messages(DATA, is_outgoing=True)
            return sum(len(d.payload) == KEEPALIVE_SIZE for d in sent)

        began = time.monotonic()
        ends.weft.ping(ends.kernel)
        wait_for(keepalives, 15, "weft's keepalive")
        assert time.monotonic() - began > 9
        assert keepalives() == 1


def test_persistent_keepalive_opens_and_holds_a_session(ends):
    with ends.capture() as capture:
        ends.kernel.add_peer(ends.weft)
        ends.weft.add_peer(ends.kernel, endpoint=True, keepalive_s=1)
        wait_for(
            lambda: len(capture.messages(DATA, is_outgoing=True)) >= 4, 10, "four keepalives")
        sent = capture.messages(DATA, is_outgoing=True)
        assert all(len(d.payload) == KEEPALIVE_SIZE for d in sent), sent
        assert not capture.messages(DATA, is_outgoing=False)
        assert len(capture.messages(INITIATION, is_outgoing=True)) == 1
    assert ends.kernel.state(ends.weft).handshake > 0
    assert ends.weft.state(ends.kernel).keepalive == "1"


# ---- roaming ----


def test_weft_moves_and_the_session_goes_on(moving_ends):
    ends = moving_ends
    ends.join()
    ends.weft.ping(ends.kernel)
    began = ends.weft.state(ends.kernel).handshake
    host = ends.weft.machine
    host.run(["ip", "address", "add", "192.0.2.33/24", "dev", "s"])
    host.run(["ip", "address", "delete", "192.0.2.3/24", "dev", "s"])
    host.run(["ip", "address", "replace", "192.0.2.33/24", "dev", "s"])
    try:
        ends.weft.ping(ends.kernel)
        assert ends.kernel.state(ends.weft).endpoint == "192.0.2.33:51820"
        ends.kernel.ping(ends.weft)
        ends.weft.set("listen-port", 51999)
        ends.weft.ping(ends.kernel)
        assert ends.kernel.state(ends.weft).endpoint == "192.0.2.33:51999"
        ends.kernel.ping(ends.weft)
        ends.weft.set("peer", ends.kernel.public_key, "endpoint", "[2001:db8::1]:51820")
        ends.weft.ping(ends.kernel)
        assert ends.kernel.state(ends.weft).endpoint == "[2001:db8::3]:51999"
        assert ends.weft.state(ends.kernel).handshake == began
    finally:
        host.run(["ip", "address", "replace", "192.0.2.3/24", "dev", "s"])
        host.run(["ip", "address", "delete", "192.0.2.33/24", "dev", "s"])


def test_the_kernel_moves_and_weft_follows(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    began = ends.weft.state(ends.kernel).handshake
    ends.kernel.set("listen-port", 51999)
    ends.kernel.ping(ends.weft)
    assert ends.weft.state(ends.kernel).endpoint == "192.0.2.1:51999"
    ends.weft.ping(ends.kernel)
    ends.kernel.set("peer", ends.weft.public_key, "endpoint", "[2001:db8::2]:51820")
    ends.kernel.ping(ends.weft)
    assert ends.weft.state(ends.kernel).endpoint == "[2001:db8::1]:51999"
    ends.weft.ping(ends.kernel)
    assert ends.weft.state(ends.kernel).handshake == began


# ---- refusals ----


@pytest.mark.parametrize("first", ["weft", "kernel"])
def test_a_wrong_preshared_key_gives_no_session(ends, first):
    initiator, responder = ends.order(first)
    responder.add_peer(initiator, preshared_key=preshared_key())
    initiator.add_peer(responder, endpoint=True, preshared_key=preshared_key())
    assert not initiator.can_ping(responder)
    assert initiator.state(responder).handshake == 0
    assert responder.state(initiator).handshake == 0
    if first == "weft":
        assert ends.dropped()["handshake-invalid"] == 1


def assert_not_answered(ends, reason: str) -> None:
    """What the kernel sends is dropped for that reason, and nothing of WireGuard's comes back."""
    with ends.capture() as capture:
        ends.kernel.machine.run(["ping", "-c1", "-W1", "10.7.0.2"], check=False)
        ends.wait_drop(reason)
        assert not [d for d in capture.datagrams() if d.is_outgoing and d.type]


def test_an_unknown_key_is_not_answered(ends):
    ends.kernel.add_peer(ends.weft, endpoint=True)
    assert_not_answered(ends, "unknown-peer")


def test_a_message_for_another_key_is_not_answered(ends):
    ends.join("kernel")
    ends.weft.set("private-key", "/dev/stdin", stdin=ends.kernel.private_key)
    assert_not_answered(ends, "mac1-invalid")


def test_a_removed_peer_is_cut_off_and_may_come_back(ends):
    ends.join("kernel")
    ends.kernel.ping(ends.weft)
    ends.kernel.machine.run(["sh", "-c", "ping -i 0.1 -c 60 10.7.0.2 > /dev/null 2>&1 &"])
    ends.weft.set("peer", ends.kernel.public_key, "remove")
    ends.wait_drop("unknown-index", 5)
    answered = ends.kernel.machine.run(["ping", "-c1", "-W1", "10.7.0.2"], check=False)
    assert answered.rc != 0
    ends.weft.add_peer(ends.kernel, endpoint=True)
    ends.weft.ping(ends.kernel)
    ends.kernel.ping(ends.weft)


def test_inner_sources_that_are_not_allowed_are_dropped(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    vm = ends.kernel.machine
    vm.run(["ip", "address", "add", "10.7.0.99/24", "dev", "wg0"])
    vm.run(["ip", "address", "add", "fd07::99/64", "dev", "wg0", "nodad"])
    for source, target in (("10.7.0.99", "10.7.0.2"), ("fd07::99", "fd07::2")):
        before = ends.dropped()["source-not-allowed"]
        with Capture(ends.weft.machine, "wg0") as inner:
            vm.run(["ping", "-c2", "-W1", "-I", source, target], check=False)
            ends.wait_drop("source-not-allowed", before + 1)
            assert not [d for d in inner.datagrams() if d.sender[0] == source]
    ends.weft.ping(ends.kernel)


# ---- what a stranger on the path may do ----


def test_replayed_and_forged_datagrams_change_nothing(ends, lab):
    ends.join("kernel")
    with ends.capture() as capture:
        ends.kernel.ping(ends.weft)
        old_data = capture.messages(DATA, is_outgoing=False)[0].payload
        old_initiation = capture.messages(INITIATION, is_outgoing=False)[0].payload
    forged = old_data[:-1] + bytes([old_data[-1] ^ 1])
    no_index = old_data[:4] + b"\xff\xff\xff\xff" + old_data[8:]
    kernel, ours, stranger = ("192.0.2.1", 51820), ("192.0.2.2", 51820), ("192.0.2.4", 51820)
    before = ends.weft.state(ends.kernel)
    for sender in (kernel, stranger):
        with ends.capture() as capture:
            for payload, reason in (
                    (old_data, "replayed"), (forged, "tag-invalid"), (no_index, "unknown-index"),
                    (old_initiation, "handshake-invalid"), (old_data[:-1], "tag-invalid"),
                    (old_data[:20], "truncated"), (b"\x05" + old_data[1:],
                                                                "unknown-type")):
                n = ends.dropped()[reason]
                inject(lab.host("x"), sender, ours, payload)
                ends.wait_drop(reason, n)
            assert not [d for d in capture.datagrams() if d.is_outgoing and d.type]
    after = ends.weft.state(ends.kernel)
    assert after.endpoint == before.endpoint == "192.0.2.1:51820"
    assert after.rx_bytes == before.rx_bytes
    assert after.handshake == before.handshake
    ends.kernel.ping(ends.weft)
