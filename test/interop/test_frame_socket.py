"""The frame socket: frames through WireGuard's own port, pinned endpoints, handshakes on demand.

    a (weft) ── [ s ] ── b (weft)
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.topologies import one_switch

from .frame_client import CLIENT, FrameClient
from .own_keys import drops, set_peer, uapi
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("s", "192.0.2", {"a": 1, "b": 2}, v6=True)
STUN_ANSWER = "010100002112a442" + "00" * 12


@pytest.fixture
def ends(weft: Path) -> Iterator[tuple[WgPeer, WgPeer]]:
    with Lab.from_text(TOPOLOGY) as lab, ExitStack() as stack:
        made = []
        for name, last in (("a", 1), ("b", 2)):
            end = WgPeer.userspace(lab.host(name), [weft, "wg"])
            stack.callback(end.remove)
            end.configure([f"10.7.0.{last}/24"])
            made.append(end)
        made[0].add_peer(made[1], endpoint=True)
        made[1].add_peer(made[0], endpoint=True)
        yield made[0], made[1]


def test_frames_go_both_ways(ends):
    a, b = ends
    at_a, at_b = FrameClient(a), FrameClient(b)
    at_a.send("192.0.2.2", "80aa")
    got = at_b.wait_frame("80aa")
    assert (got["remote"], got["local"], got["port"]) == ("192.0.2.1", "192.0.2.2", 51820)
    assert got["at"] > 0
    at_b.send("2001:db8::1", "ff00", "df")
    assert at_a.wait_frame("ff00")["remote"] == "2001:db8::2"
    # With DF and longer than the link takes, a frame is not sent; the next one is, as usual.
    at_b.send("192.0.2.1", "80" + "00" * 1500, "df")
    at_b.send("192.0.2.1", "80bb" + "00" * 1500)
    assert at_a.wait_frame("80bb(00)+")["remote"] == "192.0.2.2"
    assert drops(b, "udp-send") == 1
    # Nothing that WireGuard could mistake for a message of its own goes out, nor any STUN answer.
    for frame in ("04" + "00" * 40, STUN_ANSWER):
        at_a.send("192.0.2.2", frame)
    at_a.send("192.0.2.2", "80cc")
    at_b.wait_frame("80cc")
    assert drops(b, "unknown-index") == 0
    assert len([line for line in at_b.daemon.lines() if "frame" in line]) == 2
    # A second client is hung up on; when the first is gone, another may come.
    second = a.machine.spawn([sys.executable, CLIENT, a.interface, "/run/second"])
    second.wait_line("^closed$")
    at_a.close()
    FrameClient(a).send("192.0.2.2", "80dd")
    at_b.wait_frame("80dd")


def test_commands_of_the_client_that_come_together(ends):
    """It sends each of them, which the other tests rely upon."""
    a, b = ends
    at_a, at_b = FrameClient(a), FrameClient(b)
    os.kill(at_a.daemon.pid, signal.SIGSTOP)
    for frame in ("80aa", "80bb"):
        at_a.send("192.0.2.2", frame)
    os.kill(at_a.daemon.pid, signal.SIGCONT)
    at_b.wait_frame("80aa")
    at_b.wait_frame("80bb")


def test_too_many_frames_are_dropped_and_counted(ends):
    a, b = ends
    FrameClient(b)
    script = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "for i in range(8000): s.sendto(b'\\x80', ('192.0.2.2', 51820))")
    a.machine.run([sys.executable, "-c", script])
    wait_for(lambda: drops(b, "path-quota") > 0, 5, "the quota to be used up")
    a.ping(b)


def test_frames_wait_for_a_client_that_is_busy(ends):
    """The MTU probes of many paths come at once, and the agent may be doing something else."""
    a, b = ends
    frames = FrameClient(b)
    os.kill(frames.daemon.pid, signal.SIGSTOP)
    script = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "for i in range(400): s.sendto(b'\\x80' + bytes(1399), ('192.0.2.2', 51820))\n"
              "s.sendto(b'\\x80\\xee', ('192.0.2.2', 51820))")
    a.machine.run([sys.executable, "-c", script])
    os.kill(frames.daemon.pid, signal.SIGCONT)
    frames.wait_frame("80ee")
    assert drops(b, "path-queue-full") == 0
    assert len([line for line in frames.daemon.lines() if "frame" in line]) == 401


def test_a_pinned_peer_stays_where_it_is(ends):
    """Without somebody at the frames it roams as ever, pinned or not."""
    a, b = ends
    a.ping(b)
    set_peer(a, b, "pinned_endpoint=true")
    assert uapi(a, "get=1\n\n")["pinned_endpoint"] == "true"
    frames = FrameClient(a)
    b.set("listen-port", 51999)
    before = a.state(b).rx_bytes
    # What it sends is taken from wherever it comes; the answers go where it was.
    argv = ["ping", "-c", 1, "-W", 1, "10.7.0.1"]
    assert b.machine.run(argv, check=False).rc == 1
    assert a.state(b).rx_bytes > before
    assert a.state(b).endpoint == "192.0.2.2:51820"
    frames.close()
    b.ping(a)
    wait_for(lambda: a.state(b).endpoint == "192.0.2.2:51999", 5, "the endpoint to follow")
    # wg(8) reads and writes configurations as if there were no such key.
    conf = a.machine.run(["wg", "showconf", a.interface], quiet=True).out
    assert "inned" not in conf
    a.machine.run(["wg", "setconf", a.interface, "/dev/stdin"], stdin=conf)
    a.ping(b)


def test_a_handshake_on_demand(ends):
    a, b = ends
    a.ping(b)
    before = uapi(a, "get=1\n\n")["last_handshake_time_nsec"]

    def began_again() -> bool:
        """Two in a 50th of a second would be refused, as a replay."""
        set_peer(a, b, "handshake=now")
        return uapi(a, "get=1\n\n")["last_handshake_time_nsec"] != before

    wait_for(began_again, 3, "the new session")
    a.ping(b)
