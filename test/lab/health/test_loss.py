"""What is lost on a line is told by WireGuard's own counters: how much, and in which direction.

    hub        203.0.113.10
     |
   [ wan ]
    |   |
    a   b      203.0.113.11, .12; what leaves a is lost, at times

Both send some 1,800 datagrams a second. What a stock WireGuard sends is in test_loss_of_stock.py.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.stock_mesh import ask

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
host a
host b
link hub wan 203.0.113.10
link a wan 203.0.113.11 emulated
link b wan 203.0.113.12
"""
# With so small a window no queue of the lab overflows, also where the processors are taken away.
FLOW = ["-b", "20M", "-w", "128K", "-t", "0", "--forceflush"]
AGENT_SOCKET = "/run/weft/agent.sock"
# So many datagrams are to be lost before a share is compared: at random they tell it to a third.
LOST_ENOUGH = 25


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        a, b = site.join("a", "b")
        a.reaches(b)
        wait_for(lambda: {a.peers()["b"]["path"], b.peers()["a"]["path"]} <= {"lan", "direct"}, 20,
                 "a path without the hub")
        flows = [start_flow(a, b, 5201), start_flow(b, a, 5202)]
        yield site
        assert all(flow.running for flow in flows)


def start_flow(src: AgentNode, dst: AgentNode, port: int) -> Daemon:
    """Load from src to dst, as long as the lab is there."""
    server = dst.host.spawn(["iperf3", "-s", "-1", "--forceflush", "-p", port],
                            name=f"sink-{dst.name}")
    server.wait_line("listening")
    return src.host.spawn(["iperf3", "-c", dst.address(), "-p", port, *FLOW],
                          name=f"load-{src.name}")


def loss_in(node: AgentNode, peer: str) -> dict:
    """What node says of the packets that peer sends; zeroes: it does not know."""
    return node.peers()[peer]["lossIn"] or {"lost": 0, "packets": 0, "share": 0.0}


def reported(site: Site) -> dict[str, dict]:
    """What the hub knows of the edge: by the node that has counted."""
    rows = json.loads(site.hub.run([site.weft, "get", "edges", "--json"], quiet=True).out)["edges"]
    status = next((row["status"] for row in rows if row["name"] == "a--b"), {})
    return {name: status.get(f"agent/{name}", {}).get("lossIn") or {"lost": 0, "packets": 0}
            for name in ("a", "b")}


def lossy(counted: dict) -> bool:
    """As the finding has it: 0.1 % or more."""
    return counted["lost"] >= 10 and counted["lost"] * 1000 >= counted["packets"]


def seen_from(node: AgentNode, peer: str, since: dict) -> float:
    """The share that was lost since then, by the counters, in what the agent's metrics have."""
    now = counters(node, peer)
    lost = now["lost"] - since["lost"]
    received = now["received"] - since["received"]
    return lost / max(lost + received, 1)


def counters(node: AgentNode, peer: str) -> dict[str, int]:
    text = ask(node.host, "GET", "http://agent/v1/metrics", socket=AGENT_SOCKET)
    found = dict(re.findall(rf'^weft_peer_(\w+)_total{{peer="{peer}"}} (\d+)', text, re.MULTILINE))
    return {name: int(value) for name, value in found.items()}


def test_a_clean_line_loses_nothing(site: Site):
    a, b = site.nodes["a"], site.nodes["b"]
    wait_for(lambda: min(loss_in(a, "b")["packets"], loss_in(b, "a")["packets"]) > 20_000, 60,
             "both ends to know what is lost")
    assert loss_in(a, "b")["lost"] == loss_in(b, "a")["lost"] == 0
    assert re.search(r"^b .* 0\.00 % ", a.run("status").out, re.MULTILINE)
    assert set(counters(a, "b")) == {"received", "lost", "reordered"}
    assert counters(b, "a")["lost"] == 0


@pytest.mark.parametrize("percent", [0.1, 1.0])
def test_the_share_and_the_direction(site: Site, percent: float):
    """Told by the node that has counted and by the hub; right to a factor of two."""
    a, b = site.nodes["a"], site.nodes["b"]
    since = counters(b, "a")
    began_at = time.monotonic()
    site.lab.link("a").set(out_loss=f"{percent}%")
    try:
        # A minute from now the last minute is of this line alone.
        wait_for(lambda: time.monotonic() > began_at + 62
                 and loss_in(b, "a")["lost"] >= LOST_ENOUGH, 120, "enough to be lost")
        share = loss_in(b, "a")["share"]
        print(f"FIGURE of {percent} % are found: {share * 100:.3f} %")
        assert percent / 200 <= share <= percent / 50
        assert percent / 200 <= seen_from(b, "a", since) <= percent / 50

        wait_for(lambda: lossy(reported(site)["b"]), 30, "the hub to know")
        said = reported(site)["b"]
        print(f"FIGURE told to the hub: {said['lost']} of {said['packets']}, after "
              f"{time.monotonic() - began_at:.0f} s (to be below 120)")
        # It was told when there was just enough of it.
        assert percent / 400 <= said["lost"] / said["packets"] <= percent / 50
        assert said["periods"] >= 3
        # And the other way is well.
        assert loss_in(a, "b")["lost"] == reported(site)["a"]["lost"] == 0
    finally:
        site.lab.link("a").set(out_loss="0%")


def test_it_is_over(site: Site):
    b = site.nodes["b"]
    site.lab.link("a").set(out_loss="0%")
    wait_for(lambda: not lossy(reported(site)["b"]), 100, "the hub to know that it is over")
    assert loss_in(b, "a")["lost"] < 10
    since = counters(b, "a")
    wait_for(lambda: counters(b, "a")["received"] > since["received"] + 10_000, 30, "more to come")
    assert counters(b, "a")["lost"] == since["lost"]


def test_a_ten_thousandth(site: Site):
    """No finding yet, but told by the counters, right to a factor of two."""
    a, b = site.nodes["a"], site.nodes["b"]
    since = counters(b, "a")
    began_at = time.monotonic()
    site.lab.link("a").set(out_loss="0.01%")
    try:
        wait_for(lambda: counters(b, "a")["lost"] >= since["lost"] + LOST_ENOUGH, 1200,
                 "enough to be lost")
        share = seen_from(b, "a", since)
        print(f"FIGURE of 0.01 % are found: {share * 100:.4f} %, after "
              f"{time.monotonic() - began_at:.0f} s (to be below 1200)")
        assert 0.5e-4 <= share <= 2e-4
        assert loss_in(a, "b")["lost"] == 0
        assert not lossy(reported(site)["b"])
    finally:
        site.lab.link("a").set(out_loss="0%")
