"""Keys that change while everybody goes on talking to everybody.

      hub
       |
     [ wan ]
      | | |
     n1 n2 n3     their packets to each other need not go through the hub
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY, STATE, AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NAMES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13}, v6=True)
PINGS_PER_S = 20
# What an agent says whose machine hears nobody.
AWAY = "|".join((HUB_AWAY, "UDP to the hub fails", "similar lines suppressed", "the hub's stream",
                 "report", "says of its keys"))


class Pings:
    """Twenty a second from each node to each other one, of which none may be lost."""

    def __init__(self, stack: ExitStack, nodes: dict[str, AgentNode]) -> None:
        addresses = {name: node.address() for name, node in nodes.items()}
        self.pingers = {}
        for a, b in permutations(nodes, 2):
            pinger = nodes[a].host.spawn(["ping", f"-i{1 / PINGS_PER_S}", addresses[b]],
                                         name=f"ping-{b}")
            stack.callback(pinger.stop)
            self.pingers[a, b] = pinger
        self.go_on()

    def answered(self, pair: tuple[str, str]) -> set[int]:
        return {int(n) for n in
                re.findall(r"icmp_seq=(\d+) ttl", "\n".join(self.pingers[pair].lines()))}

    def go_on(self, n: int = PINGS_PER_S) -> None:
        """So many more are answered, of each pair."""
        before = {pair: len(self.answered(pair)) for pair in self.pingers}
        wait_for(lambda: all(len(self.answered(pair)) >= before[pair] + n for pair in before), 20,
                 "pings to go on")

    def lost(self) -> dict[tuple[str, str], list[int]]:
        self.go_on()
        lost = {}
        for pair in self.pingers:
            answered = self.answered(pair)
            # The last ones may be under way.
            missing = set(range(1, max(answered) - 2)) - answered
            if missing:
                lost[pair] = sorted(missing)
        return lost


class Flow:
    """A TCP connection with some bytes each moment, which may not end."""

    def __init__(self, stack: ExitStack, src: AgentNode, dst: AgentNode) -> None:
        address = dst.address()
        self.src = src
        self.listener = dst.host.spawn(
            ["socat", "-u", f"TCP4-LISTEN:7001,reuseaddr,bind={address}", "OPEN:/dev/null"])
        stack.callback(self.listener.stop)
        wait_for(lambda: dst.host.run(["ss", "-Hltn", "sport = :7001"], quiet=True).out, 5,
                 "the listener")
        pace = "while head -c 20000 /dev/zero; do sleep 0.02; done"
        self.sender = src.host.spawn(
            ["sh", "-c", f"{{ {pace}; }} | socat -u - TCP4:{address}:7001"])
        stack.callback(self.sender.stop)
        self.go_on()

    def sent(self) -> int:
        text = self.src.host.run(["ss", "-Htin", "dport = :7001"], quiet=True).out
        found = re.search(r"bytes_acked:(\d+)", text)
        return int(found[1]) if found else 0

    def go_on(self) -> None:
        before = self.sent()
        wait_for(lambda: self.sent() > before, 10, "bytes to go on")
        assert self.sender.running and self.listener.running, "the TCP connection has ended"


class Mesh(Site):
    """Three nodes that reach each other directly."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        self.join(*NAMES)
        self.wait_paths({("n1", "n2"): {"direct", "lan"}, ("n1", "n3"): {"direct", "lan"},
                         ("n2", "n3"): {"direct", "lan"}}, 30)
        self.all_reach([("n1", "n2"), ("n1", "n3"), ("n2", "n3")])

    def keys(self) -> dict[str, str]:
        return {name: self.hub_nodes()[name]["spec"]["publicKey"] for name in NAMES}

    def rotate(self, *words: str) -> None:
        self.hub.run([self.weft, "key", "rotate", *words])

    def changing(self) -> dict[str, object]:
        """Who changes his key, as the hub has it, and how far he is."""
        answer = json.loads(self.hub.run([self.weft, "key", "ls", "--json"], quiet=True).out)
        return {one["metadata"]["name"]: one["status"].get("keyChange")
                for one in answer["items"] if "next" in one["spec"].get("keys", {})}

    def wait_changed(self, before: dict[str, str], names: tuple[str, ...] = NAMES,
                     within_s: float = 60) -> None:
        """They have another key each, and have erased the one before."""
        def is_over() -> bool:
            now = self.keys()
            return all(now[name] != before[name] for name in names) and not self.changing()

        wait_for(is_over, within_s, f"keys to change, and not {self.changing()}")


def secret_of(node: AgentNode) -> str:
    return json.loads(node.host.run(["cat", f"{STATE}/node.json"], quiet=True).out)["privateKey"]


def in_use(node: AgentNode) -> str:
    """What the node's engine and its files have of keys."""
    engine = node.host.run(["sh", "-c", "printf 'get=1\\n\\n' | "
                            "socat -t2 - UNIX-CONNECT:/run/wireguard/weft0.sock"], quiet=True).out
    files = node.host.run(["sh", "-c", f"cat {STATE}/*"], quiet=True).out
    return engine + files


@pytest.fixture
def mesh(weft: Path) -> Iterator[Mesh]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Mesh(lab, weft)


def test_all_change_their_keys(mesh: Mesh) -> None:
    """At the same time, twice; no ping is lost, and no connection is reset."""
    with ExitStack() as stack:
        pings = Pings(stack, mesh.nodes)
        flow = Flow(stack, mesh.nodes["n1"], mesh.nodes["n2"])
        for _ in range(2):
            before = mesh.keys()
            secrets = {name: secret_of(node) for name, node in mesh.nodes.items()}
            mesh.rotate("--all")
            mesh.wait_changed(before)
            pings.go_on()
            flow.go_on()
            for name, node in mesh.nodes.items():
                assert secrets[name] not in in_use(node), f"{name} still has its old key"
                assert node.host.run(["test", "-e", f"{STATE}/keys.json"], check=False).rc != 0
            assert mesh.kinds()["n1", "n2"] in ("direct", "lan")
        assert pings.lost() == {}
        flow.go_on()


def test_a_node_that_was_away(mesh: Mesh) -> None:
    """The others change their keys twice, and its own changes once, while nobody hears it."""
    n1, n3 = mesh.nodes["n1"], mesh.nodes["n3"]
    n3.agent.allow(AWAY)
    for _ in range(2):
        before = mesh.keys()
        mesh.lab.link("n3").down()
        with ExitStack() as stack:
            others = {name: mesh.nodes[name] for name in ("n1", "n2")}
            pings = Pings(stack, others)
            # Whoever has heard it may have a session for three minutes: a person says not to wait.
            mesh.rotate("n1", "--force")
            mesh.rotate("n2", "--force")
            mesh.wait_changed(before, ("n1", "n2"))
            assert pings.lost() == {}
        mesh.lab.link("n3").up()
        # By what its own keys have signed: the others' are not those that it knows.
        n3.reaches(n1, within_s=30)
        mesh.nodes["n2"].reaches(n3, within_s=30)
        keys = mesh.keys()
        wait_for(lambda keys=keys: all(n3.peers()[name]["publicKey"] == keys[name]
                                       for name in ("n1", "n2")), 40, "n3 to have heard of it")
    before = mesh.keys()
    mesh.rotate("n3")
    mesh.wait_changed(before, ("n3",))
    n1.reaches(n3)


@pytest.mark.parametrize("stage", ["prepared", "moved", "erased"])
def test_an_agent_that_is_killed(mesh: Mesh, stage: str) -> None:
    """As soon as its files say that it has come so far; and the next one goes on."""
    n1 = mesh.nodes["n1"]
    before = mesh.keys()
    old = secret_of(n1)

    def has_come_so_far() -> bool:
        if stage == "erased":
            return secret_of(n1) != old
        text = n1.host.run(["cat", f"{STATE}/keys.json"], check=False, quiet=True).out
        return text != "" and json.loads(text)["stage"] == stage

    with ExitStack() as stack:
        pings = Pings(stack, mesh.nodes)
        flow = Flow(stack, n1, mesh.nodes["n2"])
        mesh.rotate("n1")
        wait_for(has_come_so_far, 30, f"n1 to have {stage}")
        n1.agent.kill9()
        pings.go_on()
        n1.start()
        mesh.wait_changed(before, ("n1",))
        assert old not in in_use(n1)
        pings.go_on()
        flow.go_on()
        assert pings.lost() == {}


def test_both_ends_are_killed_again_and_again(mesh: Mesh) -> None:
    """At any moment, while all change their keys."""
    rng = random.Random(7)
    with ExitStack() as stack:
        pings = Pings(stack, mesh.nodes)
        before = mesh.keys()
        mesh.rotate("--all")
        for _ in range(6):
            node = mesh.nodes[rng.choice(NAMES)]
            time.sleep(rng.uniform(0, 1))  # the moment of the end is the point
            node.agent.kill9()
            node.start()
        mesh.wait_changed(before, within_s=120)
        pings.go_on()
        assert pings.lost() == {}


def test_a_hub_that_is_killed(mesh: Mesh) -> None:
    """What it has taken is on its disk; what it has carried is given to it again."""
    for node in mesh.nodes.values():
        node.agent.allow(AWAY)
    with ExitStack() as stack:
        pings = Pings(stack, mesh.nodes)
        before = mesh.keys()
        mesh.rotate("--all")
        for _ in range(2):
            wait_for(mesh.changing, 20, "a key to change")
            mesh.daemon.kill9()
            mesh.start_hub()
        # One that was just started does not know who is there.
        mesh.wait_changed(before, within_s=150)
        assert pings.lost() == {}


def test_by_the_clock(mesh: Mesh) -> None:
    before = mesh.keys()
    mesh.hub.run([mesh.weft, "network", "set", "default", "--key-rotation", "60s"])
    # An agent begins none in its first two minutes.
    wait_for(lambda: all(key != before[name] for name, key in mesh.keys().items()), 200,
             "all keys to be others")
