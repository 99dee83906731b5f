"""Relays other than the hub: which is chosen for a pair, and what happens when one dies.

    hub, r1, r2 ── [ wan ] ── nat-K ── [ lan-K ] ── K     for a, b: both NATs symmetric

r1 is a node that joined with --relay, r2 is `weft hub up --relay-only`. r1 is the nearest of the
three, then the hub, then r2.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

# What a node may say of a hub or a relay that was killed.
COMPLAINTS = ["the hub does not answer|UDP to the hub"]

R1_DELAY, HUB_DELAY, R2_DELAY = "4ms", "9ms", "15ms"


def topology() -> str:
    lines = ["switch wan 203.0.113.0/24", "host hub no-v6",
             f"link hub wan 203.0.113.10 delay={HUB_DELAY}",
             "host r1 no-v6", f"link r1 wan 203.0.113.11 delay={R1_DELAY}",
             "host r2 no-v6", f"link r2 wan 203.0.113.12 delay={R2_DELAY}"]
    for number, name in enumerate("ab", 21):
        lines += [f"switch lan-{name} 192.168.{number}.0/24 gateway=nat-{name}",
                  f"nat nat-{name} symmetric out=wan", f"link nat-{name} wan 203.0.113.{number}",
                  f"link nat-{name} lan-{name} 192.168.{number}.1",
                  f"host {name} no-v6", f"link {name} lan-{name} 192.168.{number}.11"]
    return "\n".join(lines)


class RelaySite(Site):
    """A hub, two relays, and nodes that reach each other through one of the three only."""

    def relay_token(self) -> str:
        return self.hub.run([self.weft, "token", "new", "--relay"], quiet=True).out.strip()

    def start_relays(self) -> None:
        r1 = AgentNode(self.lab.host("r1"), self.weft)
        r1.join(self.relay_token(), "--relay", "--endpoint", "203.0.113.11:51820")
        r2 = AgentNode(self.lab.host("r2"), self.weft)
        r2.agent = r2.host.spawn(
            [self.weft, "hub", "up", "--relay-only", "--name", "r2", "--public", "203.0.113.12",
             "--token", self.relay_token()], name="relay-only")
        r2.agent.wait_line("this node relays for others", 20)
        r1.agent.wait_line("this node relays for others", 10)
        self.nodes.update({"r1": r1, "r2": r2})

    def relay_of(self, a: str, b: str) -> str | None:
        """Through which relay a says that it reaches b."""
        peer = self.nodes[a].peers()[b]
        return peer["relay"] if peer["path"] == "relay" else None

    def wait_relay(self, relay: str, within_s: float) -> None:
        def both() -> bool:
            return self.relay_of("a", "b") == self.relay_of("b", "a") == relay

        try:
            wait_for(both, within_s, f"a and b to go through {relay}")
        except AssertionError:
            self.show({("a", "b"): f"{self.relay_of('a', 'b')}", ("b", "a"): relay})
            raise

    def cut_power(self, name: str) -> None:
        """The whole relay dies at once: its agent, and its data plane, which outlives that."""
        node = self.nodes.pop(name)
        engine = data_plane_of(node)
        node.agent.kill9()
        os.kill(engine, signal.SIGKILL)


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
    with Lab.from_text(topology(), capture=False) as lab:
        yield RelaySite(lab, weft)


def answers(log: list[str]) -> list[float]:
    """When each answer of `ping -D` came."""
    return [float(m[1]) for m in (re.match(r"\[(\d+\.\d+)\] .*bytes from", line) for line in log)
            if m]


class Pings:
    """100 a second from one node to another."""

    def __init__(self, a: AgentNode, b: AgentNode) -> None:
        self.daemon = a.host.spawn(["ping", "-D", "-i", "0.01", b.address()], name="ping")
        self.daemon.wait_line("bytes from", 10)

    def flow(self) -> None:
        """Until there are 400 answers more: data that goes on is watched more closely."""
        n = len(self.daemon.lines())
        wait_for(lambda: len(self.daemon.lines()) > n + 400, 30, "answers")

    def longest_gap_s(self) -> float:
        times = answers(self.daemon.lines())
        return max(after - before for before, after in zip(times, times[1:]))


def test_two_relays_and_a_hub(site: RelaySite) -> None:
    """The nearest carries the pair; each death under way is survived, down to the last relay."""
    site.start_relays()
    a, b = site.join("a", "b", allow={"a": COMPLAINTS, "b": COMPLAINTS})
    a.reaches(b)
    site.wait_relay("r1", 30)
    relays = {relay["name"]: relay for relay in a.paths("b")["relays"]}
    assert relays["r1"]["verdict"] == "chosen"
    assert {relays[name]["verdict"] for name in ("hub", "r2")} == {"works"}
    assert relays["r1"]["rttMs"] < relays["hub"]["rttMs"] < relays["r2"]["rttMs"]
    b.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf-server").wait_line("listening")
    flow = a.host.spawn(["iperf3", "-c", b.address(), "-t", "14", "-b", "5M"], name="iperf")
    pings = Pings(a, b)
    pings.flow()
    site.cut_power("r1")
    pings.flow()
    relay_gap = pings.longest_gap_s()
    print(f"FIGURE path dies, relay to relay: no answer for {relay_gap:.2f} s")
    site.wait_relay("hub", 10)
    site.daemon.kill9()
    pings.flow()
    hub_gap = pings.longest_gap_s()
    print(f"FIGURE the hub dies under what it relays: no answer for {hub_gap:.2f} s at most")
    assert relay_gap < 2 and hub_gap < 2
    site.wait_relay("r2", 10)
    assert flow.wait(30) == 0
    pings.daemon.stop()
