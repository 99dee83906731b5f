"""The AES profile: two weft nodes carry their data in AES-256-GCM, and nobody else meets it.

    a (weft) ── [ s ] ── b (weft, or wireguard-go)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.topologies import one_switch

from .own_keys import drops, set_peer, uapi
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("s", "192.0.2", {"a": 1, "b": 2}, v6=True)
ROOT = Path(__file__).resolve().parents[2]
WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
PLAIN = [WEFT, "wg"]
AES = [WEFT, "wg", "--cipher", "aes256gcm"]
BOTH = [WEFT, "wg", "--cipher", "aes256gcm,chacha20poly1305"]
MISMATCH = r"wants a session in (\w+), and is configured here for"


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(TOPOLOGY) as made:
        yield made


@pytest.fixture
def pair(lab: Lab) -> Iterator[Callable[[list, list], tuple[WgPeer, WgPeer]]]:
    """Makes the two ends, which know each other; no packet has gone between them yet."""
    with ExitStack() as stack:

        def make(argv_a: list, argv_b: list) -> tuple[WgPeer, WgPeer]:
            ends = []
            for name, argv, last in (("a", argv_a, 1), ("b", argv_b, 2)):
                end = WgPeer.userspace(lab.host(name), argv, allow=[MISMATCH])
                stack.callback(end.remove)
                end.configure([f"10.7.0.{last}/24", f"fd07::{last}/64"])
                ends.append(end)
            ends[0].add_peer(ends[1], endpoint=True)
            ends[1].add_peer(ends[0], endpoint=True)
            return ends[0], ends[1]

        yield make


def session_cipher(end: WgPeer) -> str:
    return uapi(end, "get=1\n\n").get("session_cipher", "chacha20poly1305")


def try_ping(host: Host, address: str) -> bool:
    return host.run(["ping", "-c", 1, "-W", 1, address], check=False, quiet=True).rc == 0


def test_both_ends(pair):
    a, b = pair(AES, AES)
    a.ping(b)
    b.ping(a, version=6, size=1300)
    assert session_cipher(a) == session_cipher(b) == "aes256gcm"
    # wg(8) reads the answer with the keys that it does not know, and says the same as ever.
    assert a.state(b).handshake > 0
    assert sorted(a.state(b).allowed_ips) == ["10.7.0.2/32", "fd07::2/128"]
    # A configuration by wg(8) alone keeps the cipher of the command line.
    conf = a.machine.run(["wg", "showconf", a.interface], quiet=True).out
    assert "ipher" not in conf
    a.machine.run(["wg", "setconf", a.interface, "/dev/stdin"], stdin=conf)
    a.ping(b)
    assert session_cipher(a) == "aes256gcm"


@pytest.mark.parametrize(("argv_a", "argv_b", "wanted"), [
    (AES, PLAIN, "aes256gcm"), (PLAIN, AES, "chacha20poly1305")])
def test_a_mismatch_is_no_session_and_said(pair, argv_a, argv_b, wanted):
    a, b = pair(argv_a, argv_b)
    assert not try_ping(a.machine, "10.7.0.2")
    said = b.daemon.wait_line(MISMATCH)
    assert said.group(1) == wanted
    assert a.public_key in said.string and "192.0.2.1:51820" in said.string
    assert drops(b, "cipher-mismatch") > 0
    for end, peer in ((a, b), (b, a)):
        assert end.state(peer).handshake == 0
    # Nothing but initiations came, and none of them was answered.
    assert a.state(b).rx_bytes == 0
    # Told to agree, they do, without anything being restarted.
    set_peer(b, a, f"cipher={wanted}")
    a.ping(b)
    assert session_cipher(a) == session_cipher(b) == wanted


def test_an_open_choice_takes_what_the_initiator_wants(pair):
    a, b = pair(PLAIN, BOTH)
    a.ping(b)
    assert session_cipher(a) == session_cipher(b) == "chacha20poly1305"
    set_peer(a, b, "cipher=aes256gcm")
    wait_for(lambda: session_cipher(b) == "aes256gcm", 15, "the session in AES")
    b.ping(a)


def test_a_switch_loses_nothing(pair):
    """Both are told one after the other, with a stretch in which they disagree."""
    a, b = pair(PLAIN, PLAIN)
    a.ping(b)
    pinging = a.machine.spawn(["ping", "-i", "0.02", "10.7.0.2"])
    set_peer(a, b, "cipher=aes256gcm")
    b.daemon.wait_line(MISMATCH)
    # The old session goes on meanwhile.
    a.ping(b)
    assert session_cipher(a) == "chacha20poly1305"
    set_peer(b, a, "cipher=aes256gcm")
    wait_for(lambda: session_cipher(a) == session_cipher(b) == "aes256gcm", 20,
             "both sessions in AES")
    a.ping(b)
    n = len(pinging.lines())
    wait_for(lambda: len(pinging.lines()) > n + 20, 10, "the pings to go on")
    pinging.stop()
    answered = [int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", "\n".join(pinging.lines()))]
    assert answered == list(range(1, len(answered) + 1))


def test_stock_peers_never_meet_it(pair):
    a, b = pair(BOTH, ["wireguard-go"])
    set_peer(a, b, "cipher=chacha20poly1305,aes256gcm")
    b.ping(a)
    a.ping(b)
    assert session_cipher(a) == "chacha20poly1305"
