"""`weft wg` against the kernel's WireGuard, under load and on a bad line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, wait_for

from .kernel_tunnel import PORT, Ends, machines, transfer_from_kernel, transfer_to_kernel, tunnel
from .traffic import flood
from .vm.kernelvm import KernelVm
from .wire import COOKIE_REPLY, INITIATION, Capture, Datagram

# So many handshake messages may wait in the kernel's WireGuard, and from an eighth on it is under
# load; in ours so many of strangers, and from a quarter on.
KERNEL_QUEUE = 4096
WEFT_QUEUE = 256

pytestmark = pytest.mark.namespaces


@pytest.fixture(scope="module")
def vm() -> Iterator[KernelVm]:
    with machines() as a_vm:
        yield a_vm


@pytest.fixture
def ends(vm: KernelVm, weft: Path) -> Iterator[Ends]:
    with tunnel(vm, vm.host.lab.host("u"), weft) as made:
        yield made


def _flood(ends: Ends, on: str, **pace: int) -> Daemon:
    """Initiations of a stranger that only their mac1 tells from good ones.

    With ahead= as fast as that end answers, whatever this machine makes of it: always loaded, and
    never without room for who has no cookie yet.
    """
    end = ends.weft if on == "weft" else ends.kernel
    sender = flood(
        ends.lab.host("x"), "initiations", end.machine.address(), PORT, key=end.public_key, **pace)
    sender.wait_line("^ready")
    return sender


def _capture(ends: Ends) -> Capture:
    return Capture(ends.weft.machine, "s", PORT, ends.kernel.machine.address())


def _has_mac2(initiation: Datagram) -> bool:
    return initiation.payload[-16:] != bytes(16)


def test_the_kernel_gets_in_under_load_after_a_cookie(ends):
    ends.join("kernel")
    sender = _flood(ends, "weft", ahead=WEFT_QUEUE // 2)
    with _capture(ends) as capture:
        ends.wait_drop("under-load")
        ends.kernel.machine.run(["sh", "-c", "ping -c 60 10.7.0.2 > /dev/null 2>&1 &"])
        wait_for(lambda: capture.messages(COOKIE_REPLY, is_outgoing=True), 40, "weft's cookie")
        # Who has the cookie finds room in the queue, however full it is of others.
        sender.stop()
        sender = _flood(ends, "weft")
        wait_for(
            lambda: ends.kernel.state(ends.weft).handshake > 0, 30, "the kernel's handshake")
        initiations = capture.messages(INITIATION, is_outgoing=False)
    sender.stop()
    assert not _has_mac2(initiations[0])
    assert _has_mac2(initiations[-1])
    ends.kernel.ping(ends.weft)


def test_weft_gets_in_with_the_kernels_cookie(ends):
    ends.join("weft")
    sender = _flood(ends, "kernel", ahead=KERNEL_QUEUE // 4)
    with _capture(ends) as capture:
        ends.weft.set("peer", ends.kernel.public_key, "persistent-keepalive", 1)
        wait_for(
            lambda: capture.messages(COOKIE_REPLY, is_outgoing=False), 40, "the kernel's cookie")
        wait_for(lambda: ends.weft.state(ends.kernel).handshake > 0, 30, "weft's handshake")
        initiations = capture.messages(INITIATION, is_outgoing=True)
    sender.stop()
    assert not _has_mac2(initiations[0])
    assert _has_mac2(initiations[-1])


def test_loss_reordering_and_duplicates(ends):
    ends.join()
    ends.weft.ping(ends.kernel)
    ends.kernel.machine.run(
        ["tc", "qdisc", "add", "dev", "s", "root", "netem", "duplicate", "20%"])
    ends.lab.link("k").set(loss="1%", reorder="5%", delay="3ms")
    try:
        transfer_to_kernel(ends, 1 << 20)
        transfer_from_kernel(ends, 1 << 20)
        counted = ends.dropped()
        assert counted["replayed"] > 0
        assert counted["tag-invalid"] == counted["unknown-index"] == 0
        link = ends.lab.link("k").counters()
        assert link["in"]["loss"] + link["out"]["loss"] > 0
    finally:
        ends.lab.link("k").set(loss="0%", reorder="0%", delay="0ms")
        ends.kernel.machine.run(["tc", "qdisc", "delete", "dev", "s", "root"])
    ends.weft.ping(ends.kernel)
