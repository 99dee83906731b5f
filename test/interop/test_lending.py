"""Quiet and busy by turns: a TUN queue changes hands between its thread and an rx worker.

    u (weft) ── [ s ] ── v (weft)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.topologies import one_switch

from .traffic import HERE, drops, inner_address, stats
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

PAIR = one_switch("s", "192.0.2", {"u": 1, "v": 2})
ROUNDS = 10


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(PAIR, capture=False) as lab:
        yield lab


def _pair(lab: Lab, program: list) -> tuple[WgPeer, WgPeer]:
    u, v = (WgPeer.userspace(lab.host(name), program) for name in ("u", "v"))
    u.configure(["10.7.0.1/24"])
    v.configure(["10.7.0.2/24"])
    u.add_peer(v, endpoint=True)
    v.add_peer(u, endpoint=True)
    u.ping(v)
    return u, v


def _lendings(end: WgPeer, weft: Path) -> int:
    return int(stats(end, weft)["queues_lent"])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("cipher", ["chacha20poly1305", "aes256gcm"])
def test_order_is_kept_while_queues_change_hands(lab: Lab, weft: Path, threads: int, cipher: str):
    ends = _pair(lab, [weft, "wg", "--threads", threads, "--cipher", cipher])
    echo = HERE / "echo_order.py"
    address = inner_address(ends[1], 4)
    before = [_lendings(end, weft) for end in ends]
    server = ends[1].machine.spawn([sys.executable, echo, "serve", address])
    server.wait_line("^ready")
    said = ends[0].machine.run([sys.executable, echo, "ask", address, ROUNDS], timeout_s=60).out
    assert said.startswith("in order")
    # Every burst took the queues back, and they were lent again after it.
    assert all(_lendings(end, weft) - was >= ROUNDS // 2 for end, was in zip(ends, before))
    assert sum(sum(drops(end, weft).values()) for end in ends) == 0
    # While it was quiet, the worker preempted nobody.
    assert all(int(stats(end, weft)["courtesies"]) > 0 for end in ends)
    for end in ends:
        end.remove()


def test_many_at_once_cross_a_lone_flow(lab: Lab, weft: Path):
    """Full streams beside lone datagrams, both ways: they pass the streams, each in its order."""
    u, v = _pair(lab, [weft, "wg"])
    near, far = (inner_address(end, 4) for end in (u, v))
    echo = HERE / "echo_order.py"
    v.machine.spawn([sys.executable, echo, "serve", far]).wait_line("^ready")
    server = u.machine.spawn(["iperf3", "--server", "--one-off", "--forceflush", "--bind", near])
    server.wait_line("listening")
    stream = v.machine.spawn(["iperf3", "--client", near, "--time", "2", "--bidir"])
    assert u.machine.run([sys.executable, echo, "ask", far, 5], timeout_s=60).out.startswith("in")
    stream.wait(20)
