"""Relays other than the hub: which is chosen for a pair, and what happens when one dies.

    hub, r1, r2 ── [ wan ] ── nat-K ── [ lan-K ] ── K     for a, b, c: all NATs symmetric

r1 is a node that joined with --relay, r2 is `weft hub up --relay-only`. The links of the NATs have
no delay; those of hub, r1 and r2 have one for each pair's best relay to be another: see topology().
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

HUB_DELAY, R1_DELAY, R2_DELAY = "15ms", "4ms", "9ms"


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
        agent = self.nodes.pop(name).agent
        engine = data_plane_of(agent.pid)
        agent.kill9()
        os.kill(engine, signal.SIGKILL)


def data_plane_of(agent: int) -> int:
    """The process of `weft wg` in the same network namespace."""
    namespace = os.readlink(f"/proc/{agent}/ns/net")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[1:2] == [b"wg"] and os.readlink(process / "ns/net") == namespace:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("there is no data plane")


@pytest.fixture
def site(weft: Path) -> Iterator[RelaySite]:
    with Lab.from_text(topology(), capture=False) as lab:
        yield RelaySite(lab, weft)


def test_smoke(site: RelaySite) -> None:
    site.start_relays()
    a, b = site.join("a", "b")
    a.reaches(b)
    site.wait_relay("r1", 30)
