"""Relays other than the hub: which is chosen for a pair, and what happens when one dies or goes.

    hub, r1, r2 ── [ wan ] ── nat-K ── [ lan-K ] ── K     for a, b: both NATs symmetric

r1 is a node that joined with --relay, r2 is `weft hub up --relay-only`. r1 is the nearest of the
three, then the hub, then r2.

    hub, r1, a, b ── [ wan ] ── core ── [ east ] ── r2, c, d

With two coasts r1 is the nearest for a and b, r2 for c and d, and the hub for nobody.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.pinging import LONGEST_GAP_S, Pings
from lab.support.wire import exchange

pytestmark = pytest.mark.namespaces

# What a node may say of a hub or a relay that was killed.
COMPLAINTS = ["the hub does not answer|UDP to the hub"]
PORT = 51820
# Answers to pings: data that goes on is watched more closely.
FLOW = 400

R1_DELAY, HUB_DELAY, R2_DELAY = "4ms", "9ms", "15ms"


def behind_nat(name: str, wan: str, address: str, number: int) -> list[str]:
    return [f"switch lan-{name} 192.168.{number}.0/24 gateway=nat-{name}",
            f"nat nat-{name} symmetric out={wan}", f"link nat-{name} {wan} {address}",
            f"link nat-{name} lan-{name} 192.168.{number}.1",
            f"host {name} no-v6", f"link {name} lan-{name} 192.168.{number}.11"]


def one_wan() -> str:
    lines = ["switch wan 203.0.113.0/24", "host hub no-v6",
             f"link hub wan 203.0.113.10 delay={HUB_DELAY}",
             "host r1 no-v6", f"link r1 wan 203.0.113.11 delay={R1_DELAY}",
             "host r2 no-v6", f"link r2 wan 203.0.113.12 delay={R2_DELAY}"]
    for number, name in enumerate("ab", 21):
        lines += behind_nat(name, "wan", f"203.0.113.{number}", number)
    return "\n".join(lines)


def two_coasts() -> str:
    lines = ["switch wan 203.0.113.0/24 gateway=core", "switch east 198.51.100.0/24 gateway=core",
             "router core", "link core wan 203.0.113.1", "link core east 198.51.100.1 delay=10ms",
             "host hub no-v6", "link hub wan 203.0.113.10 delay=25ms",
             "host r1 no-v6", "link r1 wan 203.0.113.11 delay=4ms",
             "host r2 no-v6", "link r2 east 198.51.100.12 delay=4ms"]
    for number, name in enumerate("ab", 21):
        lines += behind_nat(name, "wan", f"203.0.113.{number}", number)
    for number, name in enumerate("cd", 23):
        lines += behind_nat(name, "east", f"198.51.100.{number}", number)
    return "\n".join(lines)


class RelaySite(Site):
    """A hub, two relays, and nodes that reach each other through one of the three only."""

    def relay_token(self) -> str:
        return self.hub.run([self.weft, "token", "new", "--relay"], quiet=True).out.strip()

    def start_relays(self) -> None:
        r1 = AgentNode(self.lab.host("r1"), self.weft)
        r1.join(self.relay_token(), "--relay", "--endpoint", f"{r1.host.address()}:{PORT}")
        r2 = AgentNode(self.lab.host("r2"), self.weft)
        r2.agent = r2.host.spawn(
            [self.weft, "hub", "up", "--relay-only", "--name", "r2",
             "--public", r2.host.address(), "--token", self.relay_token()], name="relay-only")
        r2.agent.wait_line("this node relays for others", 20)
        r1.agent.wait_line("this node relays for others", 10)
        self.nodes.update({"r1": r1, "r2": r2})

    def relay_of(self, a: str, b: str) -> str | None:
        """Through which relay a says that it reaches b."""
        peer = self.nodes[a].peers()[b]
        return peer["relay"] if peer["path"] == "relay" else None

    def wait_relay(self, relay: str, within_s: float, a: str = "a", b: str = "b") -> None:
        def both() -> bool:
            return self.relay_of(a, b) == self.relay_of(b, a) == relay

        try:
            wait_for(both, within_s, f"{a} and {b} to go through {relay}")
        except AssertionError:
            self.show({(a, b): f"{self.relay_of(a, b)}", (b, a): f"{self.relay_of(b, a)}"})
            raise

    def cut_power(self, name: str) -> None:
        """The whole relay dies at once: its agent, and its data plane, which outlives that."""
        node = self.nodes.pop(name)
        engine = data_plane_of(node)
        node.agent.kill9()
        os.kill(engine, signal.SIGKILL)


def relays_to(node: AgentNode, peer: str) -> dict[str, dict]:
    """What `weft paths` says of each relay to that peer, by its name."""
    return {relay["name"]: relay for relay in node.paths(peer)["relays"]}


def data_plane_of(node: AgentNode) -> int:
    """The process of `weft wg` in the node's network namespace."""
    namespace = node.host.run(["readlink", "/proc/self/ns/net"], quiet=True).out.strip()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"weft0" in words and os.readlink(process / "ns/net") == namespace:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("there is no data plane")


@pytest.fixture
def site(weft: Path) -> Iterator[RelaySite]:
    with Lab.from_text(one_wan(), capture=False) as lab:
        yield RelaySite(lab, weft)


@pytest.fixture
def coasts(weft: Path) -> Iterator[RelaySite]:
    with Lab.from_text(two_coasts(), capture=False) as lab:
        yield RelaySite(lab, weft)


def test_two_relays_and_a_hub(site: RelaySite) -> None:
    """The nearest carries the pair; each death under way is survived, down to the last relay."""
    site.start_relays()
    a, b = site.join("a", "b", allow={"a": COMPLAINTS, "b": COMPLAINTS})
    a.reaches(b)
    site.wait_relay("r1", 30)
    relays = relays_to(a, "b")
    assert relays["r1"]["verdict"] == "chosen"
    assert {relays[name]["verdict"] for name in ("hub", "r2")} == {"works"}
    # A busy machine may answer one measurement late.
    wait_for(lambda: sorted(relays, key=lambda name: relays_to(a, "b")[name]["rttMs"])
             == ["r1", "hub", "r2"], 30, "the relays to be measured as far as they are")
    b.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf-server").wait_line("listening")
    flow = a.host.spawn(["iperf3", "-c", b.address(), "-t", "14", "-b", "5M"], name="iperf")
    pings = Pings(a.host, b.address())
    pings.wait_more(FLOW)
    site.cut_power("r1")
    pings.wait_more(FLOW)
    relay_gap = pings.longest_gap_s()
    print(f"FIGURE path dies, relay to relay: no answer for {relay_gap:.2f} s (to be below 2)")
    site.wait_relay("hub", 10)
    site.daemon.kill9()
    pings.wait_more(FLOW)
    hub_gap = pings.longest_gap_s()
    print(f"FIGURE the hub dies under what it relays: no answer for {hub_gap:.2f} s at most "
          "(to be below 2)")
    assert max(relay_gap, hub_gap) < LONGEST_GAP_S
    site.wait_relay("r2", 10)
    assert flow.wait(30) == 0
    pings.stop()


# ---- taken away by the administrator ----


def garbage(n: int) -> list[bytes]:
    """Datagrams of no sense, most with the type and nearly the length of a real message."""
    rng = random.Random(11)
    lengths = {1: 148, 2: 92, 3: 64, 4: 1452}
    made = []
    for _ in range(n):
        kind = rng.choice([0, 1, 2, 3, 4, 0x80, 0x81, 0xff])
        length = lengths.get(kind, rng.randrange(1500)) + rng.choice([0, 0, -1])
        made.append((bytes([kind, 0, 0, 0]) + rng.randbytes(1500))[:max(length, 0)])
    return made


def dropped(node: AgentNode) -> int:
    """How many packets the node's data plane has thrown away, for any reason."""
    lines = node.host.run([node.weft, "wg", "--stats", "weft0"], quiet=True).out.splitlines()
    return sum(int(line.split("=")[1]) for line in lines if line.startswith("drop_"))


def test_a_relay_is_withdrawn_and_one_is_removed(coasts: RelaySite) -> None:
    """Each pair has the relay that is near it, garbage there harms nobody, and both are left."""
    site = coasts
    site.start_relays()
    a, b, c, d = site.join("a", "b", "c", "d")
    a.reaches(b)
    c.reaches(d)
    site.wait_relay("r1", 30)
    site.wait_relay("r2", 30, "c", "d")
    west, east = Pings(a.host, b.address()), Pings(c.host, d.address())
    r1 = site.nodes["r1"]
    before, began = dropped(r1), time.time()
    assert exchange(site.hub, r1.host.address(), PORT, garbage(1000), 0.3) == []
    wait_for(lambda: dropped(r1) > before + 500, 10, "the relay to drop garbage")
    west.wait_more(FLOW)
    gap = west.longest_gap_s(began)
    print(f"FIGURE garbage at a relay: no answer for {gap:.2f} s at most (to be below 1)")
    assert gap < LONGEST_GAP_S
    assert site.relay_of("a", "b") == site.relay_of("b", "a") == "r1"
    began = time.time()
    site.hub.run([site.weft, "node", "set", "r1", "--relay", "no"])
    r1.agent.wait_line("this node does not relay any more")
    west.wait_more(FLOW)
    site.wait_relay("r2", 10)
    gap = west.longest_gap_s(began)
    print(f"FIGURE a relay is withdrawn: no answer for {gap:.2f} s at most (to be below 4)")
    assert gap < LONGEST_GAP_S
    assert "r1" not in relays_to(a, "b")
    began = time.time()
    site.hub.run([site.weft, "node", "rm", "r2"])
    del site.nodes["r2"]
    west.wait_more(FLOW)
    east.wait_more(FLOW)
    site.wait_relay("hub", 10)
    site.wait_relay("hub", 10, "c", "d")
    gap = max(west.longest_gap_s(began), east.longest_gap_s(began))
    print(f"FIGURE a relay is removed: no answer for {gap:.2f} s at most (to be below 4)")
    assert gap < LONGEST_GAP_S
    assert "r2" not in a.peers()
    west.stop()
    east.stop()
