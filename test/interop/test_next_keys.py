"""Keys that change under traffic: each end answers under two until the other one has moved.

    a (weft) ── [ s ] ── b (weft, wireguard-go or the kernel in a virtual machine)
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.topologies import one_switch

from .own_keys import set_peer, uapi
from .traffic import inner_address, transfer
from .vm.kernelvm import KernelVm
from .wgpeer import WgPeer, _wg

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("s", "192.0.2", {"a": 1, "b": 2}, v6=True)
GET = "get=1\n\n"
PINGS_PER_S = 100
# So many pings between two steps: each state is one that packets have gone in.
BETWEEN = 30


def to_hex(key: str) -> str:
    return base64.b64decode(key).hex()


class NextKey:
    """What an end goes on with."""

    def __init__(self) -> None:
        self.private = _wg(["genkey"])
        self.public = _wg(["pubkey"], self.private)

    def become_of(self, end: WgPeer) -> None:
        end.private_key, end.public_key = self.private, self.public


def set_own(end: WgPeer, *lines: str) -> None:
    text = "\n".join(lines)
    assert uapi(end, f"set=1\n{text}\n\n") == {"errno": "0"}


def offer(end: WgPeer, key: NextKey) -> None:
    """The end answers under the key, too."""
    set_own(end, f"next_private_key={to_hex(key.private)}")


def expect(end: WgPeer, peer: WgPeer, key: NextKey) -> None:
    """The end takes the key for one of that peer's."""
    set_peer(end, peer, f"next_public_key={to_hex(key.public)}")


def use(end: WgPeer) -> None:
    set_own(end, "initiate_with_next=true")


def has_moved(end: WgPeer, peer: WgPeer) -> bool:
    """They have a session under the end's next key, and the peer has it from there."""
    return (uapi(end, GET).get("session_next") == "true"
            and uapi(peer, GET).get("heard_next") == "true")


def commit(end: WgPeer, peer: WgPeer, key: NextKey) -> None:
    """The key is the only one, at both ends."""
    set_own(end, f"private_key={to_hex(key.private)}")
    set_own(peer, f"public_key={to_hex(key.public)}", f"replaces={to_hex(end.public_key)}",
            "update_only=true")
    key.become_of(end)
    assert "next_private_key" not in uapi(end, GET)
    assert "next_public_key" not in uapi(peer, GET)


class Pings:
    """A hundred a second, of which none may be lost."""

    def __init__(self, stack: ExitStack, src: WgPeer, dst: WgPeer) -> None:
        self.pinger = src.machine.spawn(["ping", f"-i{1 / PINGS_PER_S}", inner_address(dst, 4)])
        stack.callback(self.pinger.stop)
        self.go_on()

    def answered(self) -> set[int]:
        return {int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", "\n".join(self.pinger.lines()))}

    def go_on(self) -> None:
        """There has been progress."""
        before = len(self.answered())
        wait_for(lambda: len(self.answered()) >= before + BETWEEN, 10, "pings to go on")

    def lost(self) -> set[int]:
        self.go_on()
        answered = self.answered()
        # The last ones may be under way.
        return set(range(1, max(answered) - 2)) - answered


class Flow:
    """Such pings, and a TCP flow beside them."""

    def __init__(self, stack: ExitStack, src: WgPeer, dst: WgPeer) -> None:
        address = inner_address(dst, 4)
        self.src = src
        self.listener = dst.machine.spawn(
            ["socat", "-u", f"TCP4-LISTEN:7001,reuseaddr,bind={address}", "OPEN:/dev/null"])
        stack.callback(self.listener.stop)
        wait_for(lambda: dst.machine.run(["ss", "-Hltn", "sport = :7001"], quiet=True).out, 5,
                 "the listener")
        # Some megabytes a second, at an even pace.
        pace = "while head -c 50000 /dev/zero; do sleep 0.02; done"
        self.sender = src.machine.spawn(
            ["sh", "-c", f"{{ {pace}; }} | socat -u - TCP4:{address}:7001"])
        stack.callback(self.sender.stop)
        self.pings = Pings(stack, src, dst)
        self.go_on()

    def sent(self) -> int:
        """Bytes of the TCP flow that were acknowledged."""
        text = self.src.machine.run(["ss", "-Htin", "dport = :7001"], quiet=True).out
        found = re.search(r"bytes_acked:(\d+)", text)
        return int(found[1]) if found else 0

    def go_on(self) -> None:
        n_bytes = self.sent()
        self.pings.go_on()
        wait_for(lambda: self.sent() > n_bytes, 10, "bytes to go on")

    def lost(self) -> set[int]:
        """Pings without an answer. The flow has never been reset."""
        self.go_on()
        assert self.sender.running and self.listener.running, "the TCP connection has ended"
        return self.pings.lost()


@contextmanager
def two_ends(make_b: Callable[[Lab], WgPeer], weft: Path) -> Iterator[tuple[WgPeer, WgPeer]]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab, ExitStack() as stack:
        a, b = WgPeer.userspace(lab.host("a"), [weft, "wg"]), make_b(lab)
        for end, last in ((a, 1), (b, 2)):
            stack.callback(end.remove)
            end.configure([f"10.7.0.{last}/24", f"fd07::{last}/64"])
        b.add_peer(a, endpoint=True)
        a.add_peer(b, endpoint=True)
        a.ping(b)
        b.ping(a)
        yield a, b


@pytest.fixture
def pair(weft: Path) -> Iterator[tuple[WgPeer, WgPeer]]:
    with two_ends(lambda lab: WgPeer.userspace(lab.host("b"), [weft, "wg"]), weft) as ends:
        yield ends


@pytest.fixture
def with_go(weft: Path) -> Iterator[tuple[WgPeer, WgPeer]]:
    with two_ends(lambda lab: WgPeer.userspace(lab.host("b"), ["wireguard-go"]), weft) as ends:
        yield ends


def test_one_end(pair: tuple[WgPeer, WgPeer], tmp_path: Path) -> None:
    """The end that pings, then the one that answers, one after the other."""
    a, b = pair
    with ExitStack() as stack:
        flow = Flow(stack, a, b)
        for end, peer in ((a, b), (b, a)):
            key, old = NextKey(), to_hex(end.private_key)
            offer(end, key)
            flow.go_on()
            expect(peer, end, key)
            flow.go_on()
            assert not has_moved(end, peer)
            use(end)
            wait_for(lambda end=end, peer=peer: has_moved(end, peer), 10, "a session under it")
            flow.go_on()
            commit(end, peer, key)
            flow.go_on()
            socket = f"UNIX-CONNECT:/run/wireguard/{end.interface}.sock"
            said = end.machine.run(["socat", "-t5", "-", socket], stdin=GET, quiet=True).out
            assert old not in said and to_hex(key.private) in said
            # And it is good for whatever comes: another session, from either end.
            set_peer(end, peer, "handshake=now")
            flow.go_on()
            set_peer(peer, end, "handshake=now")
            assert flow.lost() == set()
    transfer(tmp_path, a, b)
    transfer(tmp_path, b, a, 6)


def test_both_ends_at_once(pair: tuple[WgPeer, WgPeer]) -> None:
    a, b = pair
    with ExitStack() as stack:
        flow = Flow(stack, a, b)
        for _ in range(2):
            keys = NextKey(), NextKey()
            for end, key in zip(pair, keys):
                offer(end, key)
            expect(b, a, keys[0])
            expect(a, b, keys[1])
            flow.go_on()
            use(a)
            use(b)
            # Nobody says when; each tells of the other's key in turn.
            wait_for(lambda: uapi(b, GET).get("heard_next") and uapi(a, GET).get("heard_next"), 20,
                     "each to be heard under its next key")
            flow.go_on()
            commit(a, b, keys[0])
            commit(b, a, keys[1])
            flow.go_on()
        assert flow.lost() == set()


def test_each_pair_of_keys(pair: tuple[WgPeer, WgPeer]) -> None:
    """A handshake from either end under each of the four pairs, and packets under each session."""
    a, b = pair
    keys = NextKey(), NextKey()
    offer(a, keys[0])
    offer(b, keys[1])
    expect(b, a, keys[0])
    expect(a, b, keys[1])
    with ExitStack() as stack:
        flow = Flow(stack, a, b)
        for own, other in (("false", "false"), ("true", "false"), ("true", "true"),
                           ("false", "true")):
            set_own(a, f"initiate_with_next={own}")
            set_own(b, f"initiate_with_next={other}")
            for end, peer, word in ((a, b, own), (b, a, other)):
                before = uapi(peer, GET)["last_handshake_time_nsec"]
                set_peer(end, peer, "handshake=now")
                wait_for(lambda peer=peer, before=before:
                         uapi(peer, GET)["last_handshake_time_nsec"] != before, 10, "a session")
                assert uapi(end, GET).get("session_next", "false") == word
                flow.go_on()
        assert flow.lost() == set()


@pytest.mark.parametrize("who", ["who changes", "the other one"])
def test_restart_in_the_middle(pair: tuple[WgPeer, WgPeer], weft: Path, who: str) -> None:
    """A process that is lost in the middle is given what it had, and the change goes on."""
    a, b = pair
    key = NextKey()
    offer(a, key)
    expect(b, a, key)
    use(a)
    wait_for(lambda: has_moved(a, b), 10, "a session under the next key")
    lost, peer = (a, b) if who == "who changes" else (b, a)
    lost.remove()
    again = WgPeer.userspace(lost.machine, [weft, "wg"])
    again.private_key, again.public_key = lost.private_key, lost.public_key
    again.configure([str(address) for address in lost.addresses])
    again.add_peer(peer, endpoint=True)
    if who == "who changes":
        offer(again, key)
        use(again)
        a = again
    else:
        expect(again, a, key)
        b = again
    # Whoever has lost nothing begins only when it is not answered.
    again.ping(peer, deadline_s=5)
    peer.ping(again, deadline_s=5)
    wait_for(lambda: has_moved(a, b), 15, "a session under the next key")
    commit(a, b, key)
    with ExitStack() as stack:
        flow = Flow(stack, a, b)
        set_peer(b, a, "handshake=now")
        assert flow.lost() == set()
    again.remove()


def test_wireguard_go_that_knows_one_key(with_go: tuple[WgPeer, WgPeer]) -> None:
    """Our key changes, and its file does later: it is answered under both until then."""
    a, go = with_go
    key = NextKey()
    with ExitStack() as stack:
        flow = Flow(stack, a, go)
        offer(a, key)
        use(a)
        set_peer(a, go, "initiate_with_current=true")
        set_peer(a, go, "handshake=now")
        flow.go_on()
        assert "session_next" not in uapi(a, GET)
        assert flow.lost() == set()
    # Its file is made anew.
    go.set("peer", a.public_key, "remove")
    old, a.public_key = a.public_key, key.public
    go.add_peer(a, endpoint=True)
    go.ping(a)
    assert uapi(a, GET)["session_next"] == "true"
    a.ping(go)
    set_own(a, f"private_key={to_hex(key.private)}")
    with ExitStack() as stack:
        assert Flow(stack, a, go).lost() == set()
    assert old != a.public_key


def change_own_key(end: WgPeer, key: NextKey) -> None:
    """As wg(8) does it: there is one key, and from now on it is this one."""
    end.set("private-key", "/dev/stdin", stdin=key.private)


def change_under_pings(a: WgPeer, stock: WgPeer, name: str) -> None:
    """It has one key at a time. We know the next one before, and it is the same peer."""
    key = NextKey()
    expect(a, stock, key)
    with ExitStack() as stack:
        pings = Pings(stack, a, stock)
        # Its sessions end with its key; what is on its way then is lost, or waits.
        stock.set("private-key", "/dev/stdin", stdin=key.private)
        wait_for(lambda: uapi(a, GET).get("heard_next") == "true", 15, "its next key to be heard")
        lost = len(pings.lost())
    print(f"FIGURE {name} has changed its key: {lost} of {PINGS_PER_S} pings a second were lost")
    assert lost < PINGS_PER_S
    set_own(a, f"public_key={to_hex(key.public)}", f"replaces={to_hex(stock.public_key)}")
    key.become_of(stock)
    with ExitStack() as stack:
        assert Pings(stack, a, stock).lost() == set()


def test_wireguard_go_changes_its_key(with_go: tuple[WgPeer, WgPeer]) -> None:
    change_under_pings(*with_go, "wireguard-go")


def test_the_kernel_changes_its_key(kernel_vm: KernelVm, weft: Path) -> None:
    with ExitStack() as stack:
        kernel = WgPeer.kernel(kernel_vm)
        stack.callback(kernel.remove)
        ours = WgPeer.userspace(kernel_vm.host.lab.host("u"), [weft, "wg"])
        stack.callback(ours.remove)
        kernel.configure(["10.7.0.1/24"])
        ours.configure(["10.7.0.2/24"])
        kernel.add_peer(ours, endpoint=True)
        ours.add_peer(kernel, endpoint=True)
        ours.ping(kernel)
        change_under_pings(ours, kernel, "the kernel's WireGuard")
