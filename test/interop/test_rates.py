"""An interface with a rate: it is kept, classes and peers get theirs, and DSCP is shown if asked.

    u (weft) ── [ s ] ── v (weft)
                  └───── w (weft)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.topologies import one_switch

from .own_keys import set_peer, uapi
from .traffic import inner_address, transfer
from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

STAR = one_switch("s", "192.0.2", {"u": 1, "v": 2, "w": 3})
SECONDS = 1


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(STAR, capture=False) as lab:
        yield lab


@pytest.fixture
def ends(lab: Lab, weft: Path) -> tuple[WgPeer, WgPeer, WgPeer]:
    """u, with v and w as its peers."""
    u, v, w = (WgPeer.userspace(lab.host(name), [weft, "wg"]) for name in ("u", "v", "w"))
    u.configure(["10.7.0.1/24"])
    for last, end in ((2, v), (3, w)):
        end.configure([f"10.7.0.{last}/24"])
        u.add_peer(end, endpoint=True)
        end.add_peer(u, endpoint=True)
        u.ping(end)
    return u, v, w


def _set(end: WgPeer, line: str) -> None:
    assert uapi(end, f"set=1\n{line}\n\n") == {"errno": "0"}


class Stream:
    """iperf3 from one end to another; how fast it was is known when it has ended."""

    def __init__(self, src: WgPeer, dst: WgPeer, port: int, *options: str) -> None:
        address = inner_address(dst, 4)
        dst.machine.spawn(["iperf3", "--server", "--one-off", "--port", port])
        wait_for(lambda: dst.machine.run(["ss", "-Hltn", f"sport = :{port}"], quiet=True).out, 10,
                 "iperf3 to listen")
        self._daemon = src.machine.spawn(["iperf3", "--client", address, "--port", port, "--json",
                                          "--time", SECONDS, *options])

    def mbit_per_s(self) -> float:
        self._daemon.wait(30)
        end = json.loads("\n".join(self._daemon.lines()))["end"]
        return end["sum_received"]["bits_per_second"] / 1e6


def test_rate_of_the_interface(ends: tuple[WgPeer, WgPeer, WgPeer], tmp_path: Path):
    u, v, _ = ends
    without = Stream(u, v, 5201).mbit_per_s()
    _set(u, "rate=20000000")
    assert uapi(u, "get=1\n\n")["rate"] == "20000000"
    limited = Stream(u, v, 5202).mbit_per_s()
    print(f"FIGURE {limited:.1f} Mbit/s with a rate of 20, {without:.0f} without")
    assert limited < 20 < without
    transfer(tmp_path, u, v, n_bytes=1 << 20)  # Superpackets are cut shorter, and nothing is lost.
    _set(u, "rate=0")
    assert "rate" not in uapi(u, "get=1\n\n")
    assert Stream(u, v, 5203).mbit_per_s() > 20


def test_bulk_leaves_room(ends: tuple[WgPeer, WgPeer, WgPeer]):
    u, v, _ = ends
    _set(u, "rate=20000000")
    # Bulk has four flows, and without its mark it would have four parts of five.
    bulk = Stream(u, v, 5201, "--parallel", "4", "--dscp", "cs1")
    normal = Stream(u, v, 5202)
    assert normal.mbit_per_s() > bulk.mbit_per_s()


FULL_LINE = """
switch s 192.0.2.0/24
host u
link u s 192.0.2.1 rate=100mbit queue=1m delay=2ms
host v
link v s 192.0.2.2
"""


def test_collectives_on_a_full_line(weft: Path):
    """Bulk has filled a line of 100 Mbit/s; collectives get most of it all the same, neither bulk
    nor what is unmarked is kept out, and heartbeats pass. The order is that of the node, whose rate
    is below the line's."""
    with Lab.from_text(FULL_LINE, capture=False) as lab:
        u, v = (WgPeer.userspace(lab.host(name), [weft, "wg"]) for name in ("u", "v"))
        for last, end in ((1, u), (2, v)):
            end.configure([f"10.7.0.{last}/24"])
        u.add_peer(v, endpoint=True)
        v.add_peer(u)
        u.ping(v)
        _set(u, "rate=95000000")
        bulk = Stream(u, v, 5201, "--parallel", "8", "--dscp", "cs1", "--time", "5")
        plain = Stream(u, v, 5202, "--time", "4")
        collectives = Stream(u, v, 5203, "--parallel", "2", "--dscp", "af21", "--time", "3")
        beats = u.machine.run(["ping", "-q", "-c", "100", "-i", "0.02", "-W", "1", "-Q", "0xc0",
                               inner_address(v, 4)], quiet=True).out
        got = {"collectives": collectives.mbit_per_s(), "unmarked": plain.mbit_per_s(),
               "bulk": bulk.mbit_per_s()}
        print("FIGURE on a full line of 100 Mbit/s:",
              ", ".join(f"{name} {rate:.1f}" for name, rate in got.items()))
        assert ", 0% packet loss" in beats
        assert got["collectives"] > 2 * max(got["unmarked"], got["bulk"])
        assert min(got.values()) > 0


def test_rate_of_a_peer(ends: tuple[WgPeer, WgPeer, WgPeer]):
    u, v, w = ends
    set_peer(u, v, "peer_rate=20000000")
    assert uapi(u, "get=1\n\n")["peer_rate"] == "20000000"
    slow, other = Stream(u, v, 5201), Stream(u, w, 5202)
    assert slow.mbit_per_s() < 20 < other.mbit_per_s()


def test_rate_of_a_class(ends: tuple[WgPeer, WgPeer, WgPeer]):
    u, v, _ = ends
    _set(u, "class_rate=bulk:20000000")
    assert uapi(u, "get=1\n\n")["class_rate"] == "bulk:20000000"
    bulk, normal = Stream(u, v, 5201, "--tos", "4"), Stream(u, v, 5202)
    assert bulk.mbit_per_s() < 20 < normal.mbit_per_s()


def _outer_dscp(lab: Lab, u: WgPeer, v: WgPeer) -> set[str]:
    """Of the datagrams to v while u pings it with EF."""
    capture = lab.host("v").spawn(["tcpdump", "-lvnc", "3", "-i", "s", "udp and greater 150"])
    capture.wait_line("listening on")

    def pinged() -> bool:
        u.machine.run(["ping", "-c1", "-W1", "-Q", "0xb8", inner_address(v, 4)], check=False,
                      quiet=True)
        return not capture.running
    wait_for(pinged, 20, "tcpdump to have seen three datagrams")
    return {line.split("tos ")[1].split(",")[0] for line in capture.lines() if "tos " in line}


def test_dscp_is_hidden_unless_asked(lab: Lab, ends: tuple[WgPeer, WgPeer, WgPeer]):
    u, v, _ = ends
    assert "0xb8" not in _outer_dscp(lab, u, v)
    _set(u, "show_dscp=true")
    assert "0xb8" in _outer_dscp(lab, u, v)


@pytest.mark.parametrize(("options", "said"), [
    (["--rate", "1kbit"], '--rate "1kbit" is not from 100kbit to 1000Gbit'),
    (["--rate", "fast"], "fast"),
    (["--class-rate", "bulk"], '--class-rate "bulk" is not CLASS=RATE'),
    (["--class-rate", "bulk=5Mbit,slow=1Mbit"], '--class-rate "slow=1Mbit" is not CLASS=RATE'),
    (["--class-rate", "normal="], "--class-rate"),
])
def test_a_wrong_rate_is_refused(lab: Lab, weft: Path, options: list[str], said: str):
    host: Host = lab.host("u")
    result = host.run([weft, "wg", *options, "-f", "wg0"], check=False)
    assert result.rc != 0
    assert said in result.err
