"""The MTU of each path: found, used by TCP, told to whoever sends too much, and found again.

    hub, src ── [ wan: 9000 ] ── p1280, p1400, p1460, p1500, p9000: links of so much
                     │
                     ├── hole: an emulated link, which becomes narrow without a word to anybody
                     └── door ── [ lan ] ── behind: reaches the overlay through door, which forwards

src's own link is large, so that only probes can tell it what each of the others takes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site
from lab.support.waiting import wait_for
from lab.support.wire import DONT_FRAGMENT, MORE_FRAGMENTS, Datagram, capture

pytestmark = pytest.mark.namespaces

SIZES = (1280, 1400, 1460, 1500, 9000)

TOPOLOGY = "\n".join([
    "switch wan 203.0.113.0/24 mtu=9000",
    "switch lan 192.168.9.0/24 gateway=door",
    "host hub", "link hub wan 203.0.113.10",
    "host src", "link src wan 203.0.113.11",
    "host hole", "link hole wan 203.0.113.12 mtu=1500 emulated",
    "host door", "link door wan 203.0.113.13", "link door lan 192.168.9.1",
    "host behind", "link behind lan 192.168.9.11",
    *(line for i, size in enumerate(SIZES)
      for line in (f"host p{size}", f"link p{size} wan 203.0.113.{20 + i} mtu={size}")),
])

# What each of the transfers carries; `make lab` wants a gibibyte.
TRANSFER = int(os.environ.get("WEFT_LAB_TRANSFER", 64 << 20))

# Around an inner packet over IPv4; an MTU is a multiple of 16.
OVERHEAD = 60


def inner(size: int) -> int:
    return (size - OVERHEAD) // 16 * 16


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        site.join("src", "hole", "door", *(f"p{size}" for size in SIZES))
        site.wait_paths({("src", f"p{size}"): {"lan", "direct"} for size in SIZES}, 30)
        yield site


def wait_mtu(node: AgentNode, peer: str, mtu: int, within_s: float) -> float:
    """Wait until the status says so; gives how long it took."""
    began = time.monotonic()
    wait_for(lambda: node.peers()[peer]["mtu"] == mtu, within_s,
             f"{mtu} as the MTU of {node.name} to {peer}")
    return time.monotonic() - began


def route_mtu(node: AgentNode, address: str) -> int:
    said = node.host.run(["ip", "route", "get", address], quiet=True).out
    return int(re.search(r"mtu (\d+)", said)[1])


def send(site: Site, to: str, n_bytes: int) -> float:
    """One TCP connection from src; gives its MB/s."""
    server = site.nodes[to].host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf3")
    server.wait_line("Server listening", 10)
    began = time.monotonic()
    site.nodes["src"].host.run(
        ["iperf3", "-c", site.nodes[to].address(), "-n", n_bytes], quiet=True, timeout_s=240)
    return n_bytes / (time.monotonic() - began) / 1e6


def test_every_size_is_found_and_used(site: Site) -> None:
    src = site.nodes["src"]
    for size in SIZES:
        node = site.nodes[f"p{size}"]
        wait_mtu(src, node.name, inner(size), 10)
        assert route_mtu(src, node.address(4)) == inner(size)
        assert route_mtu(src, node.address(6)) == max(inner(size), 1280)
        # As much as fits is taken whole, and not a byte more.
        src.insist_ping(node.address(4), "-M", "do", "-s", inner(size) - 28)
        assert not src.can_ping(node.address(4), "-M", "do", "-s", inner(size) - 27)
        if inner(size) >= 1280:
            src.insist_ping(node.address(6), "-M", "do", "-s", inner(size) - 48)
        else:  # The least IPv6 packet goes in two pieces.
            src.insist_ping(node.address(6), "-M", "do", "-s", 1280 - 48)


def test_a_path_that_is_too_short_for_ipv6_is_said(site: Site) -> None:
    """By the node, of the one peer at which it ends, and of no other."""
    def short() -> set[str]:
        return {pair for code, pair in site.nodes["src"].found("note") if code == "WEFT-MTU-001"}

    wait_for(short, 60, "the short path to be found")
    assert short() == {"p1280--src"}
    wait_for(lambda: ("WEFT-MTU-001", "p1280--src") in site.found("note"), 60, "the hub to know")


# ---- DF on the wire ------------------------------------------------------------------------------

# The length of a path frame that is no probe; docs/wire/path.md.
PATH_FRAME = 120


def kind(seen: Datagram) -> str:
    """What a datagram is, by what it shows in the clear: its type, and how long it is."""
    if seen.payload[0] == 0x80:
        return "probe" if len(seen.payload) > PATH_FRAME else "path frame"
    return {1: "handshake", 2: "handshake", 4: "data"}.get(seen.payload[0], "STUN")


DF_TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host src
link src wan 203.0.113.11
host slim
link slim wan 203.0.113.12 mtu=1280
"""


def test_df_is_set_on_probes_alone(weft: Path) -> None:
    """All that two nodes say to each other, from the beginning."""
    with (Lab.from_text(DF_TOPOLOGY, capture=False) as lab,
          capture(lab.host("src"), "wan") as seen):
        site = Site(lab, weft)
        src, slim = site.join("src", "slim")
        slim.reaches(src, 10)
        site.wait_paths({("src", "slim"): {"lan", "direct"}}, 30)
        wait_mtu(slim, "src", inner(1280), 20)
        # The least IPv6 packet is too much for the node's link: it is cut inside the tunnel.
        slim.insist_ping(src.address(6), "-M", "do", "-s", 1280 - 48)
        # The capture may be behind what was answered.
        needed = set(product(("203.0.113.11", "203.0.113.12"), ("data", "probe", "path frame")))
        wait_for(lambda: needed <= {(d.source[0], kind(d)) for d in seen.datagrams()}, 10,
                 "all that both send to be seen")
        ours = [d for d in seen.datagrams() if kind(d) != "STUN"]
    # What is sent from the narrow link is cut inside, so no datagram of it is fragmented.
    assert not [d for d in ours if d.flags & MORE_FRAGMENTS and d.source[0] == "203.0.113.12"]
    assert "handshake" in map(kind, ours)
    wrong = [d for d in ours if bool(d.flags & DONT_FRAGMENT) != (kind(d) == "probe")]
    assert not wrong, [(kind(d), d.source, len(d.payload)) for d in wrong]


def test_large_transfers_at_once(site: Site) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(len(SIZES)) as pool:
        rates = list(pool.map(lambda size: send(site, f"p{size}", TRANSFER), SIZES))
    took = time.monotonic() - began
    for size, rate in zip(SIZES, rates):
        print(f"FIGURE path of {size}: {TRANSFER >> 20} MiB at {rate:.0f} MB/s")
    print(f"FIGURE all of them at once in {took:.1f} s", flush=True)


def test_packet_too_big_from_inside(site: Site) -> None:
    """A route of somebody's own that knows no MTU: the data plane answers by itself."""
    src, peer = site.nodes["src"], site.nodes["p1400"]
    for version, flag in ((4, "10.42.0.0/16"), (6, None)):
        address = peer.address(version)
        family = f"-{version}"
        length = 32 if version == 4 else 128
        of_the_path = ["ip", family, "route", "del", f"{address}/{length}", "dev", "weft0"]
        # It goes with a path that is lost on a busy machine, and comes again with the next.
        wait_for(lambda argv=of_the_path: src.host.run(argv, check=False, quiet=True).rc == 0, 15,
                 "the route with the path's MTU")
        src.host.run(["ip", family, "route", "add", f"{address}/{length}", "dev", "weft0",
                      "proto", "static", "metric", "1"])
        said = src.host.run(["ping", "-c", 1, "-W", 10, "-M", "do", "-s", 1400, address],
                            check=False).out
        assert re.search(rf"(mtu ?= ?|MTU ?[:=] ?){inner(1400)}", said), said
        src.host.run(["ip", family, "route", "del", f"{address}/{length}", "dev", "weft0",
                      "metric", "1"])
        src.host.run(["ip", family, "route", "flush", "cache"])
    wait_for(lambda: route_mtu(src, peer.address()) == inner(1400), 15, "the route again")


CONNECT = """
import socket, sys
s = socket.create_connection((sys.argv[1], 5001), 20)
print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
"""

LISTEN = """
import socket
s = socket.create_server(("", 5001))
print("ready", flush=True)
while True:
    s.accept()
"""


def test_forwarded_connections_are_clamped(site: Site) -> None:
    door, far = site.nodes["door"], site.nodes["p1280"]
    wait_mtu(door, "p1280", inner(1280), 15)
    door.host.run(["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"])
    door.host.run(["nft", "add table ip masq; add chain ip masq post { type nat hook postrouting "
                   "priority srcnat; }; add rule ip masq post oifname weft0 masquerade"])
    site.lab.host("behind").run(["ip", "route", "replace", "10.42.0.0/16", "via", "192.168.9.1"])
    listener = far.host.spawn(["python3", "-c", LISTEN], name="listen")
    listener.wait_line("ready", 10)
    mss = int(site.lab.host("behind").run(["python3", "-c", CONNECT, far.address()]).out)
    print(f"behind sends segments of {mss}", flush=True)
    assert mss <= inner(1280) - 40
    listener.stop()
    assert "weft_mss_weft0" in door.host.run(["nft", "list", "tables"], quiet=True).out


def test_black_hole_is_left(site: Site) -> None:
    """Longer packets vanish from one moment to the next, under traffic, and nobody is told."""
    src, hole = site.nodes["src"], site.nodes["hole"]
    wait_mtu(src, "hole", inner(1500), 15)
    ping = src.host.spawn(["ping", "-i", "0.2", hole.address()], name="ping")
    assert send(site, "hole", 4 << 20) > 0
    site.lab.link("hole").set(path_mtu="1400")
    took = wait_mtu(src, "hole", inner(1400), 10)
    print(f"FIGURE a black hole was left after {took:.1f} s", flush=True)
    print(f"FIGURE then {send(site, 'hole', 4 << 20):.0f} MB/s", flush=True)
    ping.stop()


def test_nothing_is_left(site: Site) -> None:
    """The last of this file: the node goes, and its rules and routes with it."""
    node = site.nodes["p9000"]
    node.host.run([node.weft, "leave"], quiet=True)
    assert node.agent and node.agent.wait() == 0
    assert "weft" not in node.host.run(["nft", "list", "tables"], quiet=True).out
    assert "87" not in node.host.run(["ip", "route", "show", "proto", "87"], quiet=True).out
