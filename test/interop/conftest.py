"""What the interop tests share: a stock kernel in a virtual machine, and tunnels that grow old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Daemon, Lab, unavailable, wait_for
from lab.support.topologies import one_switch

from interop.vm import image
from interop.vm.kernelvm import KernelVm
from interop.wgpeer import WgPeer

PAIR = one_switch("s", "192.0.2", {"k": 1, "u": 2}, v6=True)


@pytest.fixture(scope="module")
def kernel_vm() -> Iterator[KernelVm]:
    """A stock kernel as `k` of a lab, with a host `u` beside it; booted once for each file."""
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(PAIR) as lab, KernelVm(lab.host("k")) as vm:
        yield vm


@dataclass(frozen=True)
class Rekeying:
    """A tunnel with constant traffic, for test_rekey.py."""

    initiator: WgPeer
    responder: WgPeer
    pinger: Daemon  # five a second
    handshakes: Daemon  # of the session, each second
    started: float


KERNEL: list = []  # instead of a program's words: a virtual machine's kernel


def _rekeying_ends(stack: ExitStack, lab: Lab, first: list, second: list) -> Iterator[WgPeer]:
    for name, words in (("k", first), ("u", second)):
        if words is KERNEL:
            yield WgPeer.kernel(stack.enter_context(KernelVm(lab.host(name))))
        else:
            yield WgPeer.userspace(lab.host(name), words)


def start_rekeying(stack: ExitStack, first: list, second: list) -> Rekeying:
    lab = stack.enter_context(Lab.from_text(PAIR, capture=False))
    initiator, responder = _rekeying_ends(stack, lab, first, second)
    initiator.configure(["10.7.0.1/24"])
    responder.configure(["10.7.0.2/24"])
    responder.add_peer(initiator)
    initiator.add_peer(responder, endpoint=True)
    initiator.ping(responder)
    wait_for(lambda: initiator.state(responder).handshake, 5, "the first handshake")
    # A virtual machine answers; whoever began the session is to renew it all the same.
    pinging, pinged = (responder, initiator) if first is KERNEL else (initiator, responder)
    pinger = pinging.machine.spawn(["ping", "-i0.2", pinged.addresses[0].ip])
    # Written down as they happen: whoever looks may come minutes late.
    watch = f"while sleep 1; do wg show {pinging.interface} latest-handshakes; done"
    handshakes = pinging.machine.spawn(["sh", "-c", watch])
    return Rekeying(initiator, responder, pinger, handshakes, time.monotonic())


@pytest.fixture(scope="session")
def rekeying(weft: Path) -> Iterator[dict[str, Rekeying]]:
    ours, theirs = [weft, "wg"], ["wireguard-go"]
    with ExitStack() as stack:
        kernels = {} if image.why_not() else {
            "weft-kernel": start_rekeying(stack, ours, KERNEL),
            "kernel-weft": start_rekeying(stack, KERNEL, ours),
        }
        yield {
            "weft-go": start_rekeying(stack, ours, theirs),
            "go-weft": start_rekeying(stack, theirs, ours),
            "weft-weft": start_rekeying(stack, ours, ours),
            **kernels,
        }


@pytest.fixture(scope="session", autouse=True)
def start_early(request: pytest.FixtureRequest) -> None:
    """Begin what takes two minutes before everything else, if it is to run at all."""
    wanted = any("rekeying" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if wanted and not unavailable():
        request.getfixturevalue("rekeying")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What began early is looked at last."""
    items.sort(key=lambda item: "rekeying" in getattr(item, "fixturenames", ()))
