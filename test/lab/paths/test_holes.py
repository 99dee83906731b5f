"""Lines on which longer packets vanish without a word: whatever way it goes, all arrives.

    hub ── [ wan ] ── a: through an emulated link with the hole
                 ├─── b: reached directly
                 ├─── c: reached through the hub
                 ├─── s: a stock WireGuard, through the hub, which measures nothing itself
                 └─── d: joins last, through an emulated link with a hole of its own

A hole comes in the very moment in which all begin to send, a narrower one each time, so that each
way has to be found out anew. The underlay has IPv4, or IPv6 alone.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site
from lab.support.network.laboratory import Host
from lab.support.waiting import wait_for

pytestmark = pytest.mark.namespaces

SIZES = (1450, 1420, 1300)
DIRECTIONS = {"both": "", "out": "out_", "in": "in_"}
AMOUNT = 8 << 20
# Of a stock WireGuard's interface, as its file says, in steps of 16.
FULL = 1420 // 16 * 16
OVERHEAD = {4: 60, 6: 80}

# Each size in one direction for each underlay, and each direction once; or, with
# WEFT_LAB_HOLES=all, all there are.
TURNS = {4: ("both", "out", "in"), 6: ("in", "both", "out")}
ALL = os.environ.get("WEFT_LAB_HOLES") == "all"

PREFIXES = {4: ("203.0.113.0/24", "203.0.113."), 6: ("2001:db8::/64", "2001:db8::")}


def topology(version: int) -> str:
    block, prefix = PREFIXES[version]
    hosts = {"hub": "10", "a": "11 emulated", "b": "12", "c": "13", "s": "14",
             "d": "15 emulated"}
    return "\n".join([f"switch wan {block}", *(
        line for name, rest in hosts.items()
        for line in (f"host {name}", f"link {name} wan {prefix}{rest}"))])


SERVE = """
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET

def serve(c):
    c.settimeout(300)
    n = int(c.recv(16, socket.MSG_WAITALL))
    if n > 0:
        c.sendall(bytes(n))
    else:
        got = 0
        while got < -n:
            got += len(c.recv(1 << 16)) or sys.exit("cut off")
        c.sendall(b"!")
    c.recv(1)

s = socket.create_server((sys.argv[1], 5001), family=family)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""

MOVE = """
import socket, sys, time
began = time.monotonic()
c = socket.create_connection((sys.argv[1], 5001), 120)
c.settimeout(300)
n = int(sys.argv[2])
c.sendall(b"%16d" % n)
if n > 0:
    got = 0
    while got < n:
        got += len(c.recv(1 << 16)) or sys.exit("cut off")
else:
    c.sendall(bytes(-n))
    assert c.recv(1) == b"!"
print(time.monotonic() - began)
"""


class Stock:
    """The member without an agent: wg-quick and wireguard-go, with the file that the hub gave."""

    name = "stock"

    def __init__(self, site: Site, host: Host) -> None:
        self.host = host
        key = host.run(["sh", "-c", "umask 077; mkdir -p /etc/wireguard; "
                        "wg genkey | tee /etc/wireguard/wg0.key | wg pubkey"]).out.strip()
        conf = site.hub.run([site.weft, "node", "add", self.name, "--public-key", key]).out
        host.run(["sh", "-c", "umask 077; cat > /etc/wireguard/wg0.conf"], stdin=conf, quiet=True)
        host.run(["wg-quick", "up", "wg0"],
                 env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})
        self.spec = site.hub_nodes()[self.name]["spec"]

    def address(self, version: int = 4) -> str:
        return self.spec[f"address{version}"]


class Ways:
    """A site on one underlay, and those to whom a has another way each."""

    def __init__(self, lab: Lab, weft: Path, version: int) -> None:
        self.version = version
        self.site = Site(lab, weft)
        self.a, self.b, self.c = self.site.join("a", "b", "c")
        self.site.hub.run([weft, "edge", "set", "a", "c", "--path", "relay"])
        self.stock = Stock(self.site, lab.host("s"))
        hub = next(n["spec"] for n in self.site.hub_nodes().values() if "hub" in n["spec"])
        self.ends: dict[str, tuple[Host, dict[int, str]]] = {
            "hub": (self.site.hub, {4: hub["address4"], 6: hub["address6"]})}
        for what, end in (("direct", self.b), ("relayed", self.c), ("stock", self.stock)):
            self.ends[what] = (end.host, {4: end.address(4), 6: end.address(6)})
        self.site.wait_paths({("a", "b"): {"lan", "direct"}, ("a", "c"): {"relay"}}, 60)
        for host, addresses in self.ends.values():
            for address in addresses.values():
                host.spawn([sys.executable, "-c", SERVE, address], name="serve").wait_line(
                    "ready", 10)

    def mtu(self, what: str) -> int:
        """Of a's route to that end."""
        said = self.a.host.run(["ip", "route", "get", self.ends[what][1][4]], quiet=True).out
        return int(re.search(r"mtu (?:lock )?(\d+)", said)[1])

    def wait_mtu(self, is_it: Callable[[int], bool], what: str, within_s: float) -> None:
        wait_for(lambda: is_it(self.mtu(what)), within_s, f"the MTU of a's way: {what}")

    def move_all(self, version: int) -> dict[str, float]:
        """All at the same time: to each end, and from it. Gives how long each took."""
        todo = list(itertools.product(self.ends, (AMOUNT, -AMOUNT)))

        def move(one: tuple[str, int]) -> float:
            what, n = one
            address = self.ends[what][1][version]
            said = self.a.host.run([sys.executable, "-c", MOVE, address, n], quiet=True,
                                   timeout_s=400)
            return float(said.out)

        with ThreadPoolExecutor(len(todo)) as pool:
            took = list(pool.map(move, todo))
        return {f"{what}, {'in' if n > 0 else 'out'}": s for (what, n), s in zip(todo, took)}


@pytest.fixture(scope="module", params=(4, 6), ids=("v4", "v6"))
def ways(weft: Path, request: pytest.FixtureRequest) -> Iterator[Ways]:
    with Lab.from_text(topology(request.param), capture=False) as lab:
        yield Ways(lab, weft, request.param)


def set_hole(ways: Ways, size: int, direction: str) -> None:
    """In place of the one that is there."""
    whole = {f"{name}path_mtu": "0" for name in ("out_", "in_")}
    ways.site.lab.link("a").set(**{**whole, f"{DIRECTIONS[direction]}path_mtu": str(size)})


def mend_line(ways: Ways) -> None:
    """No hole is there any more. What was found of it is forgotten, which takes two minutes while
    something is sent: what nobody uses is not measured."""
    set_hole(ways, 0, "both")
    pings = [ways.a.host.spawn(["ping", "-q", addresses[4]], name="ping")
             for _, addresses in ways.ends.values()]
    for what in ways.ends:
        ways.wait_mtu(lambda mtu: mtu == FULL, what, 300)
    for ping in pings:
        ping.stop()


def test_all_ways_grow(ways: Ways) -> None:
    """The stock peer's, too, although nothing was sent to it but one ping."""
    began = time.monotonic()
    for version in (4, 6):
        ways.a.insist_ping(ways.stock.address(version))
    for what in ways.ends:
        ways.wait_mtu(lambda mtu: mtu == FULL, what, 60)
    print(f"FIGURE all ways have {FULL} after {time.monotonic() - began:.1f} s", flush=True)
    ways.a.insist_ping(ways.stock.address(), "-M", "do", "-s", FULL - 28)


@pytest.mark.parametrize("size", SIZES)
def test_all_arrives(ways: Ways, size: int) -> None:
    turn = TURNS[ways.version][SIZES.index(size)]
    first = 4 + 2 * (SIZES.index(size) % 2)  # which of the two meets the hole
    for direction in DIRECTIONS if ALL else (turn,):
        if ALL:
            mend_line(ways)
        set_hole(ways, size, direction)
        for version in (first, 10 - first):
            for what, took in ways.move_all(version).items():
                print(f"FIGURE underlay IPv{ways.version}, hole of {size} {direction}: 8 MiB by "
                      f"IPv{version}, {what}: {took:.1f} s (to be below 20)", flush=True)
        # What passed in both families was no luck: each way is as narrow as its line.
        fits = (size - OVERHEAD[ways.version]) // 16 * 16
        for what in ways.ends:
            if what != "direct" or direction != "in":  # There only what a sends counts.
                ways.wait_mtu(lambda mtu: mtu <= fits, what, 60)


# A network's worth of nodes, as an operator would add them.
ADD = """
import http.client, json, ssl, sys
context = ssl._create_unverified_context()
hub = http.client.HTTPSConnection("127.0.0.1", 8443, context=context)
token = open("/var/lib/weft/hub/admin.token").read().strip()
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
for n, key in enumerate(sys.stdin.read().split()):
    body = json.dumps({"name": f"x{n}", "publicKey": key})
    hub.request("POST", "/v1/networks/default/nodes", body, headers)
    answer = hub.getresponse()
    said = answer.read()
    assert answer.status == 201, said
"""


def test_what_the_hub_says_arrives(ways: Ways) -> None:
    """The last of each underlay: 500 nodes are told to one that joins behind a hole, and
    then that one of them is removed."""
    site, hub = ways.site, ways.site.hub
    set_hole(ways, 1300, "both")
    site.lab.link("d").set(path_mtu="1300")
    keys = hub.run(["sh", "-c", "for i in $(seq 500); do wg genkey | wg pubkey; done"], quiet=True)
    hub.run([sys.executable, "-c", ADD], stdin=keys.out, quiet=True, timeout_s=120)
    began = time.monotonic()
    [d] = site.join("d")
    for node in (d, ways.a):
        wait_for(lambda node=node: len(node.peer_names()) >= 504, 60,
                 f"{node.name} to know all others")
        print(f"FIGURE {node.name} behind a hole of 1300, IPv{ways.version}: knows 500 nodes "
              f"{time.monotonic() - began:.1f} s after d began to join (to be below 20)",
              flush=True)
    hub.run([site.weft, "node", "rm", "x7"])
    began = time.monotonic()
    for node in (d, ways.a):
        wait_for(lambda node=node: "x7" not in node.peer_names(), 60,
                 f"{node.name} to hear that x7 was removed")
        print(f"FIGURE {node.name} behind a hole of 1300, IPv{ways.version}: hears that a node was "
              f"removed after {time.monotonic() - began:.1f} s (to be below 20)", flush=True)


# ---- through a member that relays ----------------------------------------------------------------

RELAYED = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10 delay=15ms
host r
link r wan 203.0.113.11
host a
link a wan 203.0.113.12 emulated
host b
link b wan 203.0.113.13
"""


def test_all_arrives_through_a_member(weft: Path) -> None:
    """The relay is a node that joined as one, and is nearer than the hub."""
    with Lab.from_text(RELAYED, capture=False) as lab:
        site = Site(lab, weft)
        r = AgentNode(lab.host("r"), weft)
        r.join(site.token("--relay"), "--relay")
        site.nodes["r"] = r
        a, b = site.join("a", "b")
        site.hub.run([weft, "edge", "set", "a", "b", "--path", "relay"])

        def have(is_it: Callable[[int], bool]) -> bool:
            seen = a.peers()["b"], b.peers()["a"]
            return all(peer["relay"] == "r" and is_it(peer["mtu"]) for peer in seen)

        wait_for(lambda: have(lambda mtu: mtu == FULL), 60, f"{FULL} between a and b, through r")
        b.host.spawn([sys.executable, "-c", SERVE, b.address()], name="serve").wait_line(
            "ready", 10)
        lab.link("a").set(out_path_mtu="1400")
        for n in (AMOUNT, -AMOUNT):
            said = a.host.run([sys.executable, "-c", MOVE, b.address(), n], quiet=True,
                              timeout_s=400)
            print(f"FIGURE through a member, hole of 1400 out: 8 MiB {'in' if n > 0 else 'out'}: "
                  f"{float(said.out):.1f} s (to be below 20)", flush=True)
        wait_for(lambda: have(lambda mtu: mtu <= 1400 - OVERHEAD[4]), 60,
                 "a's and b's way through r to be as narrow")
