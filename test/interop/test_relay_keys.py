"""Our own keys of the configuration protocol that make a `weft wg` a relay, and let an edge use it.

    a, b, m, n ── [ s ]     all of them `weft wg`: m and n relay, a and b send each other through m
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab import Lab, wait_for

from .frame_client import FrameClient
from .own_keys import drops, set_peer, uapi
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

ADDRESSES = {"a": 1, "b": 2, "m": 3, "n": 4}
TOPOLOGY = "\n".join(["switch s 192.0.2.0/24", *(
    f"host {name}\nlink {name} s 192.0.2.{last}" for name, last in ADDRESSES.items())])
M, N = "192.0.2.3:51820", "192.0.2.4:51820"


class Four:
    """Two ends and two that may relay, all with sessions but for that of the two ends."""

    def __init__(self, lab: Lab, program: Path, stack: ExitStack) -> None:
        def make(name: str) -> WgPeer:
            end = WgPeer.userspace(lab.host(name), [program, "wg"])
            stack.callback(end.remove)
            assert uapi(end, "set=1\nrelay=true\n\n") == {"errno": "-22"}, "without a key"
            end.configure([f"10.7.0.{ADDRESSES[name]}/24"])
            return end

        self.a, self.b, self.m, self.n = map(make, "abmn")
        self.a.add_peer(self.b, endpoint=M)
        self.b.add_peer(self.a, endpoint=M)
        for relay in (self.m, self.n):
            for end in (self.a, self.b):
                relay.add_peer(end)
                end.add_peer(relay, endpoint=True)
                end.ping(relay)

    def greet(self) -> None:
        """The relay learns from a handshake for whom the ends' packets are."""
        set_peer(self.a, self.b, "handshake=now")

    def passes(self) -> bool:
        return self.a.can_ping(self.b, wait_s=0.5)

    def wait_passing(self) -> None:
        def greeted() -> bool:
            self.greet()
            return self.passes()

        wait_for(greeted, 10, "a to reach b through a relay")

    def endpoint_at_b(self) -> str:
        return self.b.state(self.a).endpoint


@pytest.fixture
def four(weft: Path) -> Iterator[Four]:
    with Lab.from_text(TOPOLOGY) as lab, ExitStack() as stack:
        yield Four(lab, weft, stack)


def switch_relay(end: WgPeer, is_on: bool) -> None:
    assert uapi(end, f"set=1\nrelay={'true' if is_on else 'false'}\n\n") == {"errno": "0"}


def test_a_relay_passes_on_for_those_it_is_told_to(four: Four) -> None:
    a, b, m = four.a, four.b, four.m
    four.greet()
    assert not four.passes()
    switch_relay(m, True)
    four.greet()
    assert not four.passes()
    set_peer(m, a, "relayed=true")
    four.greet()
    assert not four.passes()
    assert drops(m, "relay-no-match") > 0
    assert a.state(b).handshake == b.state(a).handshake == 0
    set_peer(m, b, "relayed=true")
    four.wait_passing()
    shown = uapi(m, "get=1\n\n")
    assert shown["relay"] == shown["relayed"] == "true"
    # What is relayed is none of the relay's own traffic; its own goes on.
    before = m.state(a).rx_bytes
    argv = ["ping", "-c", 10, "-i", 0.01, "-s", 1300, "10.7.0.2"]
    a.machine.run(argv, quiet=True)
    assert m.state(a).rx_bytes < before + 1300
    a.ping(m)
    # A peer that is unmarked is cut off at once, and marked again it needs a handshake.
    set_peer(m, b, "relayed=false")
    assert not four.passes()
    set_peer(m, b, "relayed=true")
    assert not four.passes()
    four.wait_passing()
    # The marks outlive the relay being turned off.
    switch_relay(m, False)
    assert not four.passes()
    assert uapi(m, "get=1\n\n")["relayed"] == "true"
    switch_relay(m, True)
    four.wait_passing()
    key = base64.b64decode(a.private_key).hex()[::-1]
    assert uapi(m, f"set=1\nprivate_key={key}\n\n") == {"errno": "0"}
    assert "relay" not in uapi(m, "get=1\n\n")
    assert not four.passes()


def test_an_edge_moves_to_another_relay_with_a_session(four: Four) -> None:
    a, b = four.a, four.b
    for relay in (four.m, four.n):
        switch_relay(relay, True)
        for end in (a, b):
            set_peer(relay, end, "relayed=true")
    four.wait_passing()
    FrameClient(b)  # without a client nothing is pinned
    set_peer(b, a, "pinned_endpoint=true")
    a.set("peer", b.public_key, "endpoint", N)
    lost = drops(four.m, "relay-no-lease")
    four.greet()
    # Its answers go to the relay that was told, and that knows nothing of the new session.
    assert not four.passes()
    assert drops(four.m, "relay-no-lease") > lost
    assert four.endpoint_at_b() == M
    set_peer(b, a, "pinned_endpoint=session")
    assert uapi(b, "get=1\n\n")["pinned_endpoint"] == "session"
    four.wait_passing()
    assert four.endpoint_at_b() == N
    # Data of that session moves nothing, wherever it comes from.
    a.set("peer", b.public_key, "endpoint", "192.0.2.2:51820")
    a.ping(b)
    assert four.endpoint_at_b() == N
