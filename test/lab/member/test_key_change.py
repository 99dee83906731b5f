"""Keys that change while everybody goes on talking to everybody.

      hub
       |
     [ wan ]
      | | |
     n1 n2 n3     their packets to each other need not go through the hub
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import STATE, AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NAMES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13}, v6=True)
PINGS_PER_S = 20


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
        self.sender = src.host.spawn(["sh", "-c", f"{{ {pace}; }} | socat -u - TCP4:{address}:7001"])
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
