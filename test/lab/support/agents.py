"""A hub in a lab, and nodes with our agent on them: weft join, weft status, weft paths.

    site = Site(lab, weft)
    a, b = site.join("a", "b")
    site.wait_paths({("a", "b"): {"direct"}}, 10)
    a.ping(b)
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .network.laboratory import Host, Lab
from .network.process import Daemon, Result, quoted
from .pinging import can_ping
from .waiting import wait_for

CIDR4 = "10.42.0.0/16"
# The folder in which a node keeps its key and what it knows.
STATE = "/var/lib/weft/node"
# What an agent says, which a test that takes the hub away allows.
HUB_AWAY = "the hub does not answer"
# What it may say that looks while its interface, and the data plane with it, goes.
ENGINE_AWAY = "weft0 is not as the hub wants it, trying again"
# Who joins anew under its old name need not wait for ten minutes.
TRUST_SOON = ("--trust-after", "1s")
SEVERITIES = ("note", "warning", "critical")


def codes_of(findings: Iterable[Mapping], least: str) -> set[tuple[str, str]]:
    """Codes and subjects of those that are as grave, or graver."""
    return {(one["code"], one["subject"]) for one in findings
            if SEVERITIES.index(one["severity"]) >= SEVERITIES.index(least)}


class AgentNode:
    """A host that joins; its agent is ours, so that its log is looked at."""

    def __init__(self, host: Host, weft: Path) -> None:
        self.host = host
        self.name = host.name
        self.weft = weft
        self.agent: Daemon | None = None
        self.options: list[str] = []  # of its agent
        self.wrap: list[object] = []  # what is put before its command
        self.joined_at = 0.0
        self.has_v6 = host.lab.topology.nodes[host.name].has_v6

    def join(self, token: str, *words: str, allow: Iterable[str] = ()) -> None:
        self.host.run([self.weft, "join", token, "--name", self.name, "--no-start", *words],
                      quiet=True)
        self.start(allow)

    def start(self, allow: Iterable[str] = ()) -> None:
        trust = () if TRUST_SOON[0] in self.options else TRUST_SOON
        self.agent = self.host.spawn(
            [*self.wrap, self.weft, "agent", *trust, *self.options], name="agent", allow=allow)
        self.agent.wait_line("the hub answers", 20)
        self.joined_at = time.monotonic()

    def run(self, *words: str, check: bool = True) -> Result:
        """Run a command of weft."""
        return self.host.run([self.weft, *words], check=check)

    def status(self) -> dict:
        return json.loads(self.host.run([self.weft, "status", "--json"], quiet=True).out)

    def found(self, least: str = "warning") -> set[tuple[str, str]]:
        """What this node finds, by code and subject."""
        return codes_of(self.status()["findings"], least)

    def address(self, version: int = 4) -> str:
        return self.status()["self"][f"address{version}"]

    def peers(self) -> dict[str, dict]:
        return {peer["name"]: peer for peer in self.status()["peers"]}

    def peer_names(self) -> set[str]:
        return set(self.peers())

    def pids(self, program: str) -> list[int]:
        return self.host.pids(program)

    def link_text(self, name: str = "weft0") -> str:
        """What ip(8) says of the interface; nothing when there is none."""
        return self.host.run(["ip", "link", "show", name], check=False, quiet=True).out

    def has_interface(self, name: str = "weft0") -> bool:
        return self.link_text(name) != ""

    def paths(self, name: str) -> dict:
        return json.loads(self.host.run([self.weft, "paths", name, "--json"], quiet=True).out)

    def can_ping(self, address: str, *words: object) -> bool:
        """One try, one second: to see that something does not get through."""
        return can_ping(self.host, address, *words)

    def insist_ping(self, address: str, *words: object, within_s: float = 10) -> None:
        wait_for(lambda: self.can_ping(address, *words), within_s,
                 f"{address} to answer {self.name} (ping {quoted(words)})")

    def reaches(self, other: AgentNode, within_s: float = 10, version: int = 4) -> None:
        self.insist_ping(other.address(version), within_s=within_s)


class Site:
    """A hub that runs, and the machines that may join it.

    The hub tells nodes its addresses of the families in `versions`. `wrap` is put before the
    commands of the hub and of all agents.
    """

    def __init__(self, lab: Lab, weft: Path, *words: str, versions: tuple[int, ...] = (4, 6),
                 wrap: Iterable[object] = ()) -> None:
        self.lab = lab
        self.weft = weft
        self.hub = lab.host("hub")
        self.words = words
        self.versions = versions
        self.wrap = list(wrap)
        self.nodes: dict[str, AgentNode] = {}
        self.start_hub()

    def start_hub(self) -> None:
        publics = []
        for version in self.versions:
            try:
                publics += ["--public", self.hub.address(version)]
            except StopIteration:
                continue
        self.daemon = self.hub.spawn(
            [*self.wrap, self.weft, "hub", "up", *publics, "--cidr4", CIDR4, *self.words],
            name="hub")
        wait_for(lambda: self.hub.run([self.weft, "nodes"], check=False, quiet=True).rc == 0, 20,
                 "the hub to answer")

    def token(self, *words: str) -> str:
        return self.hub.run([self.weft, "token", "new", *words], quiet=True).out.strip()

    def join(self, *names: str, words: Mapping[str, list[str]] | None = None,
             allow: Mapping[str, list[str]] | None = None,
             options: Iterable[str] = ()) -> list[AgentNode]:
        """All at the same time, each with words and allowed complaints; gives them in that order.

        `options` are those of all their agents.
        """
        token = self.token("--uses", str(len(names)))

        def join(name: str) -> AgentNode:
            node = AgentNode(self.lab.host(name), self.weft)
            node.options = list(options)
            node.wrap = self.wrap
            node.join(token, *(words or {}).get(name, []), allow=(allow or {}).get(name, []))
            return node

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(join, names))
        self.nodes.update({node.name: node for node in made})
        return made

    def set_topology(self, topology: str) -> None:
        """auto, hub or mesh, of the network."""
        network = json.loads(self.hub.run([self.weft, "get", "Network", "default"], quiet=True).out)
        network["spec"]["topology"] = topology
        self.hub.run([self.weft, "apply", "-f", "-"], stdin=json.dumps(network))

    def hub_nodes(self) -> dict[str, dict]:
        """All members as the hub knows them, by name."""
        answer = json.loads(self.hub.run([self.weft, "nodes", "--json"], quiet=True).out)
        return {node["metadata"]["name"]: node for node in answer["nodes"]}

    def node_names(self) -> set[str]:
        return set(self.hub_nodes())

    def found(self, least: str = "warning") -> set[tuple[str, str]]:
        """What the hub finds, by code and subject."""
        answer = self.hub.run([self.weft, "get", "findings", "--json"], quiet=True).out
        return codes_of(json.loads(answer)["findings"], least)

    def kinds(self) -> dict[tuple[str, str], str]:
        """How each end says it reaches the other."""
        with ThreadPoolExecutor(4) as pool:
            looks = list(pool.map(lambda node: node.peers(), self.nodes.values()))
        return {(node.name, name): peer["path"]
                for node, peers in zip(self.nodes.values(), looks) for name, peer in peers.items()}

    def wait_paths(self, wanted: Mapping[tuple[str, str], set[str]], within_s: float) -> None:
        """Wait until both ends of each pair are reached in one of these ways."""
        both = {**wanted, **{(b, a): kinds for (a, b), kinds in wanted.items()}}

        def missing() -> dict[tuple[str, str], str]:
            found = self.kinds()
            return {pair: f"{found.get(pair)}, not {kinds}"
                    for pair, kinds in both.items() if found.get(pair) not in kinds}

        last: dict[tuple[str, str], str] = {}

        def are_there() -> bool:
            last.clear()
            last.update(missing())
            return not last

        try:
            wait_for(are_there, within_s, "the paths")
        except AssertionError:
            self.show(last)
            raise

    def all_reach(self, pairs: Iterable[tuple[str, str]], within_s: float = 10) -> None:
        """The first of each pair pings the other, v4 and v6, all at the same time."""
        addresses = {node.name: (node.address(4), node.address(6)) for node in self.nodes.values()}
        tries = [(a, address) for a, b in pairs for address in addresses[b]
                 if (self.nodes[a].has_v6 and self.nodes[b].has_v6) or ":" not in address]

        def reach(one: tuple[str, str]) -> None:
            name, address = one
            wait_for(lambda: self.nodes[name].can_ping(address), within_s,
                     f"{name} to reach {address}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(reach, tries))

    def show(self, last: Mapping[tuple[str, str], str]) -> None:
        """For whoever reads why it failed."""
        for pair, what in last.items():
            print(f"{pair}: {what}")
        for a, b in list(last)[:6]:
            node = self.nodes[a]
            print(f"--- {a} to {b}")
            print(node.host.run([self.weft, "paths", b], check=False, quiet=True).out, flush=True)
