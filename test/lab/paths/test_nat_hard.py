"""Pairs that need more than a ping from both sides: NATs that make a mapping for each peer.

                         hub
                          |
                 [ wan 203.0.113.0/24 ]
      |         |         |         |         |
    nat-s1    nat-s2    nat-c1    nat-p1    nat-p2
  symmetric symmetric  counting  port-restricted
      |         |         |         |         |
     s1        s2        c1        p1        p2

The network is a mesh. The pairs are s1 with p1 and s2 with p2 (ports at random), c1 with p1 (ports
in sequence), and s1 with s2, which cannot become direct; all other edges are told to stay on the
relay.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.pinging import LONGEST_GAP_S, Pings

pytestmark = pytest.mark.namespaces

KINDS = {"s1": "symmetric", "s2": "symmetric", "c1": "counting", "p1": "port-restricted",
         "p2": "port-restricted"}
HARD = [("s1", "p1"), ("s2", "p2")]
COUNTING = ("c1", "p1")
HOPELESS = ("s1", "s2")
ALARM = "no direct path, though only direct paths are wanted"

# A mapping for each of 200 destinations.
BURN = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(20000, 20200):
    s.sendto(b"x", (sys.argv[1], port))
"""

# path/path_checks.c: what one guess costs, and what a round's pings may add.
GUESSES = 1024
SOCKETS = 256
PINGS = 2 * SOCKETS
ROUNDS = 400


def topology() -> str:
    lines = ["switch wan 203.0.113.0/24", "host hub", "link hub wan 203.0.113.10"]
    for number, (name, kind) in enumerate(KINDS.items(), 21):
        lines += [f"switch lan-{name} 192.168.{number}.0/24 gateway=nat-{name}",
                  f"nat nat-{name} {kind} out=wan",
                  f"link nat-{name} wan 203.0.113.{number} delay=5ms",
                  f"link nat-{name} lan-{name} 192.168.{number}.1",
                  f"host {name} no-v6", f"link {name} lan-{name} 192.168.{number}.11"]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(topology(), capture=False) as lab:
        site = Site(lab, weft)
        site.join(*KINDS)
        for pair in itertools.combinations(KINDS, 2):
            if pair not in [*HARD, COUNTING, HOPELESS]:
                site.hub.run([weft, "edge", "set", *sorted(pair), "--path", "relay"], quiet=True)
        site.set_topology("mesh")
        for node in site.nodes.values():
            node.agent.allow(ALARM)
        yield site


def restart(site: Site, *names: str) -> None:
    """Nothing is known any more of the paths."""
    nodes = [site.nodes[name] for name in names]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda node: node.agent.stop(), nodes))
        list(pool.map(lambda node: node.start(allow=[ALARM]), nodes))


def is_direct(a: AgentNode, b: AgentNode) -> bool:
    return a.peers()[b.name]["path"] == "direct" and b.peers()[a.name]["path"] == "direct"


def cost(a: AgentNode, b: AgentNode) -> tuple[int, int]:
    """Path frames that one end has sent for the edge, and how many of them were guesses."""
    paths = a.paths(b.name)
    return paths["framesSent"], paths["guessesSent"]


def longest_gap_s(pings: Pings) -> float:
    """How long they were not answered, once they are again; ends them."""
    pings.wait_more()
    pings.stop()
    return pings.longest_gap_s()


def wait_until_tried(pairs: list[tuple[AgentNode, AgentNode]], within_s: float) -> list[bool]:
    """Which of them are direct, when they are or that time is over."""
    end = time.monotonic() + within_s
    while time.monotonic() < end and not all(is_direct(a, b) for a, b in pairs):
        time.sleep(0.3)
    return [is_direct(a, b) for a, b in pairs]


def become_direct(site: Site, names: tuple[str, str]) -> tuple[AgentNode, AgentNode]:
    """The nodes of that name, with a direct path between them. A guess may fail: then once more."""
    a, b = (site.nodes[name] for name in names)
    for _ in range(4):
        if wait_until_tried([(a, b)], 20) == [True]:
            return a, b
        restart(site, *names)
    raise AssertionError(f"{names} stay on the relay: {a.peers()[b.name]['why']}")


def test_symmetric_against_port_restricted(site: Site) -> None:
    """Most become direct, at a bounded cost, and nobody waits for it."""
    pairs = [(site.nodes[a], site.nodes[b]) for a, b in HARD]
    tries = []
    for _ in range(3):
        flows = [Pings(a.host, b.address()) for a, b in pairs]
        restart(site, *itertools.chain(*HARD))
        direct = wait_until_tried(pairs, 20)
        for (hard, easy), is_found, flow in zip(pairs, direct, flows):
            frames, pings = cost(hard, easy)
            frames_easy, guesses = cost(easy, hard)
            gap = longest_gap_s(flow)
            tries.append(is_found)
            print(f"FIGURE {hard.name} with {easy.name}: {'direct' if is_found else 'relay'}; "
                  f"{frames} frames of the symmetric side, {pings} of them from punch sockets; "
                  f"{frames_easy} of the other, {guesses} of them guesses; "
                  f"longest silence {gap:.2f} s (to be below 3)")
            assert pings <= PINGS and guesses <= GUESSES
            assert frames <= PINGS + ROUNDS and frames_easy <= GUESSES + ROUNDS
            assert gap < LONGEST_GAP_S
    print(f"FIGURE symmetric against port-restricted: {sum(tries)} of {len(tries)} direct")
    assert sum(tries) >= len(tries) // 2


def test_the_agent_dies_under_a_path_of_its_own(site: Site) -> None:
    """Such a path goes through the agent: without it the relay carries on, and it is found anew."""
    hard, easy = become_direct(site, HARD[0])
    assert hard.peers()[easy.name]["endpoint"].startswith("203.0.113.")
    flow = Pings(hard.host, easy.address())
    hard.agent.kill9()
    wait_for(lambda: easy.peers()[hard.name]["path"] == "relay", 10, "the relay to be used")
    gap = longest_gap_s(flow)
    hard.start(allow=[ALARM])
    print(f"FIGURE agent killed under its own path: no answer for {gap:.2f} s (to be below 3)")
    assert gap < LONGEST_GAP_S
    # The other side guesses again, unless it has done that too often of late.
    (is_found,) = wait_until_tried([(hard, easy)], 25)
    print(f"FIGURE and the path was {'found again' if is_found else 'not found again at once'}")


def guess_in_sequence(site: Site, hard: AgentNode, easy: AgentNode) -> tuple[int, bool, int]:
    """Ports burnt, agents begun again: the step that was seen, whether direct, frames sent."""
    # The ports that servers have seen, which may not follow each other, are not kept. Those of the
    # tunnel are given out again before.
    site.lab.nat(f"nat-{hard.name}").flush_mappings()
    hard.reaches(easy, 30)
    hard.host.run(["/usr/bin/python3", "-c", BURN, site.hub.address()])
    restart(site, *COUNTING)
    (is_found,) = wait_until_tried([(hard, easy)], 20)
    frames, _ = cost(hard, easy)
    frames_easy, guesses = cost(easy, hard)
    step = hard.paths(easy.name)["self"]["portStep"]
    print(f"FIGURE ports in sequence, step {step}: {'direct' if is_found else 'relay'} with "
          f"{frames} and {frames_easy} frames, {guesses} of them guesses")
    return step, is_found, frames + frames_easy


def test_ports_in_sequence(site: Site) -> None:
    """A NAT that counts is guessed with a few packets.

    Another socket of the node that takes a port between two requests hides the step, and one that
    does so before the guess spoils that; then the ports are guessed as those of any other NAT.
    """
    hard, easy = (site.nodes[name] for name in COUNTING)
    tries = []
    while not any(step and found and n <= 400 for step, found, n in tries):
        assert len(tries) < 6, tries
        tries.append(guess_in_sequence(site, hard, easy))


def test_status_and_paths_say_one_thing(site: Site) -> None:
    """From the first round on, while the ways are tried and when they have failed."""
    a, b = (site.nodes[name] for name in HOPELESS)
    restart(site, *HOPELESS)
    compared = set()

    def is_explained() -> bool:
        before = a.peers()[b.name]["why"]
        said = a.paths(b.name)["why"]
        # What changes between two questions is no disagreement.
        if a.peers()[b.name]["why"] == before:
            assert said == before
            compared.add(said)
        return any("both NATs are symmetric" in why for why in compared)

    wait_for(is_explained, 30, "the ways to be tried in vain")
    assert any("being tried" in why for why in compared), compared


def test_a_mesh_complains(site: Site) -> None:
    """Seen at the node, at the hub and in its metrics; said once, and once when it is over."""
    for names in [*HARD, COUNTING]:
        become_direct(site, names)
    a, b = (site.nodes[name] for name in HOPELESS)
    wait_for(lambda: a.peers()[b.name]["alarm"] and b.peers()[a.name]["alarm"], 45, "the alarm")
    why = a.peers()[b.name]["why"]
    assert re.match(r"both NATs are symmetric: open UDP \d+ at s1, or UDP \d+ at s2, or give ", why)
    assert not a.peers()["p2"]["alarm"]  # it is told to be relayed
    text = a.host.run([a.weft, "status"], quiet=True).out
    assert re.search(rf"^warning +WEFT-PATH-004  {a.name}--{b.name}, for .*: no direct path to "
                     rf"{b.name}, though only direct paths are wanted: both NATs", text,
                     re.MULTILINE)

    def hub_says() -> bool:
        nodes = site.hub.run([site.weft, "nodes"], quiet=True).out
        return all(f"ALARM: {name} has no direct path to 1 node" in nodes for name in HOPELESS)

    wait_for(hub_says, 10, "the hub to show it")
    metrics = site.hub.run(["curl", "-s", "--unix-socket", "/run/weft/hub.sock",
                            "http://hub/v1/metrics"], quiet=True).out
    assert re.search(r'^weft_path_alarms\{network="default"\} 2$', metrics, re.MULTILINE)
    site.hub.run([site.weft, "edge", "set", *HOPELESS, "--path", "relay"])
    for node, other in ((a, b), (b, a)):
        wait_for(lambda: not node.peers()[other.name]["alarm"], 5, "the alarm to end")
        said = [line for line in node.agent.lines() if other.name in line]
        assert len([line for line in said if ALARM in line]) == 1
        assert len([line for line in said if "the alarm is over" in line]) == 1


def test_topology_hub(site: Site) -> None:
    """All goes through the hub, also what was direct, and the reason says what would change it."""
    site.set_topology("hub")
    for node in site.nodes.values():
        wait_for(lambda: {peer["path"] for peer in node.peers().values()} == {"relay"}, 10,
                 f"{node.name} to reach all by the hub")
    hard, easy = (site.nodes[name] for name in HARD[0])
    assert "topology is hub" in hard.peers()[easy.name]["why"]
    hard.reaches(easy, 5)
