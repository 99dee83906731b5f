"""What a node's uplink carries is found, and the classes are there without a rate that was typed.

     hub, b, c ──┐
     a ──────────┤ wan         a's line takes 20 Mbit/s, with a long queue; it has public addresses
     f ──────────┤             f's line takes all that the machine manages
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

RATE = 20e6
DELAY_MS = 5
TOPOLOGY = f"""
switch wan 203.0.113.0/24
host hub no-v6
host a no-v6
host b no-v6
host c no-v6
host f no-v6
link hub wan 203.0.113.10
link a wan 203.0.113.21 rate={RATE / 1e6:.0f}mbit queue=512k delay={DELAY_MS}ms
link b wan 203.0.113.22
link c wan 203.0.113.23
link f wan 203.0.113.24
"""
NAMES = "abcf"
# A packet waits so long in the queue of a's line when it is full.
QUEUE_MS = 512 * 1024 * 8 / RATE * 1e3
BULK_S = 12


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        site.join(*NAMES, words={name: ["--engine", "userspace"] for name in NAMES})
        for name in "af":
            for peer in "bc":
                site.nodes[name].reaches(site.nodes[peer])
        site.wait_paths({pair: {"direct"} for pair in (("a", "b"), ("a", "c"), ("f", "b"),
                                                      ("f", "c"))}, 30)
        yield site


def trains(node: AgentNode, peer: str) -> dict:
    """As its agent has them sent by itself, some minutes after its start. A machine that is busy
    has trains come unevenly."""
    def sent() -> dict | None:
        done = node.host.run([node.weft, "bench", peer, "--uplink", "--json"], check=False,
                             timeout_s=120)
        return json.loads(done.out) if done.rc == 0 else None
    return wait_for(sent, 120, f"trains of {node.name} to say what the line to {peer} carries")


def uplink(node: AgentNode) -> dict:
    return node.status()["self"]["uplink"]


def rate(node: AgentNode) -> int | None:
    return node.status()["self"]["rates"]["bitsPerSecond"]


def find(node: AgentNode, least: float, most: float) -> dict:
    """Trains to both peers in turn, until they agree."""
    def agree() -> dict | None:
        for peer in "bc":
            train = trains(node, peer)
            assert train["bitsPerSecond"] < most
        found = uplink(node)
        return found if found["state"] == "found" and found["bitsPerSecond"] > least else None
    return wait_for(agree, 300, f"{node.name} to find what its uplink carries")


def set_rate(site: Site, name: str, word: str) -> str:
    return site.hub.run([site.weft, "node", "set", name, "--rate", word]).out


def beats_beside_bulk(a: AgentNode, b: AgentNode, port: int) -> float:
    """Median round trip, ms, of pings of the first class, while bulk fills the line."""
    b.host.spawn(["iperf3", "--server", "--one-off", "--port", port], name=f"server-{port}")
    wait_for(lambda: b.host.run(["ss", "-Hltn", f"sport = :{port}"], quiet=True).out, 10,
             "iperf3 to listen")
    bulk = a.host.spawn(["iperf3", "--client", b.address(), "--port", port, "--parallel", "4",
                         "--dscp", "cs1", "--time", BULK_S, "--json"], name=f"bulk-{port}")
    # The first pings are those of queues that fill.
    said = a.host.run(["ping", "-c", "80", "-i", "0.1", "-W", "2", "-Q", "0xc0", b.address()],
                      check=False, quiet=True, timeout_s=60).out
    times = [float(line.split("time=")[1].split()[0]) for line in said.splitlines()
             if "time=" in line]
    assert len(times) > 40, said
    bulk.wait(60)
    sums = json.loads("\n".join(bulk.lines()))["end"]["sum_received"]
    print(f"FIGURE beside {sums['bits_per_second'] / 1e6:.1f} Mbit/s of bulk: "
          f"{median(times[20:]):.1f} ms")
    return median(times[20:])


def test_a_rate_is_found_and_kept(site: Site) -> None:
    a, b = site.nodes["a"], site.nodes["b"]
    assert rate(a) is None
    without = beats_beside_bulk(a, b, 5301)
    found = find(a, RATE * 0.85, RATE * 1.15)
    print(f"FIGURE a line of {RATE / 1e6:.0f} Mbit/s is found to carry "
          f"{found['bitsPerSecond'] / 1e6:.2f} (to be within 15 %), by {found['trains']} trains")
    assert RATE * 0.85 < found["bitsPerSecond"] < RATE * 1.15
    assert (found["from"], found["why"]) == ("found", "")
    assert found["peers"] == 2 and found["trains"] >= 3
    kept = wait_for(lambda: rate(a), 20, "the rate to be kept")
    assert RATE * 0.8 < kept < RATE * 1.1
    assert "the uplink is found to carry " in a.run("status").out
    node = wait_for(lambda: json.loads(site.hub.run(
        [site.weft, "get", "Node", "a"], quiet=True).out)["status"].get("uplink", {}).get(
            "rateBitsPerSecond") and json.loads(site.hub.run(
                [site.weft, "get", "Node", "a"], quiet=True).out), 90, "the hub to know")
    assert (node["status"]["uplink"]["state"], node["status"]["uplink"]["from"]) == ("found",
                                                                                      "found")
    # What is urgent does not wait behind bulk.
    beside = beats_beside_bulk(a, b, 5302)
    print(f"FIGURE a heartbeat beside bulk on {RATE / 1e6:.0f} Mbit/s: {beside:.1f} ms with the "
          f"rate that was found, {without:.1f} without (a full queue: {QUEUE_MS:.0f})")
    assert beside < without / 2


def test_an_agent_that_begins_anew_keeps_it(site: Site) -> None:
    a = site.nodes["a"]
    before = uplink(a)
    assert before["state"] == "found"
    a.agent.stop()
    a.start()
    assert uplink(a)["bitsPerSecond"] == before["bitsPerSecond"]
    assert rate(a) is not None


def test_a_typed_rate_wins(site: Site) -> None:
    a = site.nodes["a"]
    assert set_rate(site, "a", "9Mbit") == "node a of network default sends at most 9Mbit\n"
    wait_for(lambda: rate(a) == 9_000_000, 20, "a to keep the rate that was typed")
    assert (uplink(a)["from"], uplink(a)["why"]) == ("typed", "it was told a rate")
    assert "and is not kept to it: it was told a rate\n" in a.run("status").out
    assert set_rate(site, "a", "none") == "node a of network default sends as fast as it can\n"
    wait_for(lambda: rate(a) is None, 20, "a to keep none")
    assert uplink(a)["from"] == "nobody"
    said = set_rate(site, "a", "found")
    assert said == ("node a of network default sends as fast as its uplink is found to carry\n")
    wait_for(lambda: rate(a), 20, "a to keep what was found")
    assert uplink(a)["from"] == "found"


def test_a_line_that_becomes_slower_is_followed(site: Site) -> None:
    """Round trips become longer while it is full, and the rate is lowered until they do not."""
    a, b = site.nodes["a"], site.nodes["b"]
    before = wait_for(lambda: rate(a), 20, "a to keep what was found")
    site.lab.link("a", "wan").set(rate="16mbit")
    b.host.spawn(["iperf3", "--server", "--one-off", "--port", "5303"], name="server-5303")
    wait_for(lambda: b.host.run(["ss", "-Hltn", "sport = :5303"], quiet=True).out, 10,
             "iperf3 to listen")
    bulk = a.host.spawn(["iperf3", "--client", b.address(), "--port", "5303", "--parallel", "4",
                         "--time", "300"], name="bulk-5303")
    wait_for(lambda: (rate(a) or before) < 16.2e6, 240, "the rate to be lowered")
    print(f"FIGURE on a line of 16 Mbit/s the rate has become {rate(a) / 1e6:.2f} Mbit/s")
    bulk.stop()
    site.lab.link("a", "wan").set(rate="20mbit")


def test_a_fast_line_has_no_rate(site: Site) -> None:
    """However fast this machine is: either that is enough, or it is the processor that was
    measured."""
    f = site.nodes["f"]
    for peer in "bcb":
        f.host.run([f.weft, "bench", peer, "--uplink"], check=False, timeout_s=120)
    found = uplink(f)
    print(f"FIGURE a line without a limit is {found['state']}: "
          f"{found.get('bitsPerSecond', 0) / 1e6:.0f} Mbit/s")
    assert found["state"] in ("fast", "unknown")
    assert (found["from"], rate(f)) == ("nobody", None)


def test_what_goes_with_it(site: Site) -> None:
    a = site.nodes["a"]
    done = a.run("bench", "--uplink", check=False)
    assert done.rc == 2
    assert "--uplink goes with PEER" in done.err
