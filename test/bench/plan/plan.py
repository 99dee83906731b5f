"""Does a synchronisation take as long as weft plan says? Gloo's all-reduces over emulated lines.

   n1  n2            n3  n4
    |   |             |   |
   [lan-a]-- a --[wan]-- b --[lan-b]
                  |
                 hub

As a star, the lines of the nodes have the rate and the delay, and as two islands, those of the
routers a and b. The prediction is made by `weft plan` from what `weft bench` has measured over the
overlay, and from nothing else; what is measured is torch, over the same overlay, from when all
begin to when the last has ended. Congestion control is the machine's, or what a set-up names: Reno
for all of a host, CUBIC by its routes, where a container may not choose it.
"""

from __future__ import annotations

import json
import socket
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab import Host, Lab, wait_for
from lab.support.agents import Site
from lab.support.topologies import two_islands
from tunnel import WEFT

WORKER = Path(__file__).resolve().with_name("worker.py")
CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
NODES = ("n1", "n2", "n3", "n4")
TOPOLOGY = two_islands("emulated", "emulated", ("203.0.113.0/25", "203.0.113.128/25"))
MB = 1000000
QUEUE_MIN = 128 << 10  # bytes before a line: a round trip's, and at least the lab's own default
CLOSE = 0.2
ALL = [0, 1, 2, 3]


@dataclass
class Sync:
    """What is synchronised: "ring", "hierarchical", or the form in which islands exchange it."""
    kind: str
    ranks: list[int]
    size: int  # bytes, in fp32
    pause: float = 0  # seconds before each

    def __str__(self) -> str:
        after = " after a pause" if self.pause else ""
        return f"{self.kind}, {len(self.ranks)} nodes, {self.size / MB:g} MB{after}"

    def steps(self) -> list[list]:
        """For worker.py."""
        both = [["ring", "a", self.size], ["ring", "b", self.size]]
        back = [["broadcast", "a", self.size], ["broadcast", "b", self.size]]
        if self.kind == "ring":
            return [["ring", "all", self.size]]
        if self.kind == "hierarchical":
            return [*both, ["ring", "leaders", self.size], *back]
        if self.kind == "fp32":
            return [["ring", "leaders", self.size], *back]
        share = {"bf16": 2, "int8": 4}[self.kind]
        return [["gather", "leaders", self.size // share], *back]


@dataclass
class Network:
    """One setting of the lines, and what is measured on it."""
    rtt_ms: float
    mbit: int
    syncs: list[Sync]
    islands: bool = False
    congestion: str = ""

    def __str__(self) -> str:
        shape = "2 islands" if self.islands else "star"
        return f"{shape}, {self.rtt_ms:g} ms, {self.mbit} Mbit/s{self.congestion and ', '}" + (
            self.congestion)


NETWORKS = [
    Network(2, 200, [Sync("ring", [0, 1], 32 * MB), Sync("ring", [0, 1], MB)]),
    Network(5, 100, [Sync("ring", [0, 1, 2], 8 * MB), Sync("ring", ALL, 4 * MB)]),
    Network(20, 100, [Sync("ring", [0, 1], 8 * MB), Sync("ring", [0, 1, 2], MB),
                      Sync("ring", ALL, MB // 10)]),
    Network(50, 50, [Sync("ring", [0, 1], 4 * MB), Sync("ring", ALL, 4 * MB),
                     Sync("ring", [0, 1], 2 * MB, pause=2)]),
    Network(100, 20, [Sync("ring", [0, 1, 2], 2 * MB), Sync("ring", [0, 1], MB // 10),
                      Sync("ring", [0, 1, 2], MB, pause=2)]),
    Network(50, 50, [Sync("ring", ALL, 4 * MB), Sync("hierarchical", ALL, 4 * MB),
                     Sync("int8", ALL, 8 * MB, pause=2), Sync("bf16", ALL, 8 * MB, pause=3),
                     Sync("fp32", ALL, 2 * MB, pause=2)], islands=True),
    Network(50, 50, [Sync("ring", [0, 1], 4 * MB), Sync("ring", [0, 1, 2], 2 * MB)],
            congestion="cubic"),
    Network(50, 50, [Sync("ring", [0, 1], 4 * MB), Sync("ring", [0, 1], 2 * MB, pause=2)],
            congestion="reno"),
]


def set_lines(lab: Lab, network: Network) -> None:
    queue = f"{max(QUEUE_MIN, int(network.mbit * 125 * network.rtt_ms))}"
    line = {"delay": f"{network.rtt_ms / 4:g}ms", "rate": f"{network.mbit}mbit", "queue": queue}
    plain = {"delay": "0ms", "rate": "0kbit"}
    for name in NODES:
        lab.link(name).set(**(plain if network.islands else line))
    for router in "ab":
        lab.link(router, "wan").set(**(line if network.islands else plain))


class Bench:
    """The nodes and, on each, a worker."""

    def __init__(self, lab: Lab, folder: Path, repeats: int) -> None:
        self.lab, self.folder, self.repeats = lab, folder, repeats
        self.site = Site(lab, WEFT)
        self.site.join(*NODES)
        self.nodes = [self.site.nodes[name] for name in NODES]
        for node in self.nodes[1:]:
            self.nodes[0].reaches(node, within_s=30)
        self.matrix = folder / "matrix.json"
        self.own = self.nodes[0].host.run(["cat", CONGESTION], quiet=True).out.strip()
        self.streams = self._start_workers()

    def _start_workers(self) -> list:
        master = self.nodes[0].address()
        streams = []
        for rank, node in enumerate(self.nodes):
            path = self.folder / f"{node.name}.sock"
            node.host.spawn(["/usr/bin/python3", WORKER, path, rank, len(NODES), master],
                            name="worker", allow=[".*"], env={"GLOO_SOCKET_IFNAME": "weft0"})
        for node in self.nodes:
            path = str(self.folder / f"{node.name}.sock")
            peer = socket.socket(socket.AF_UNIX)
            wait_for(lambda p=peer, q=path: p.connect_ex(q) == 0, 60, f"{node.name}'s worker")
            streams.append(peer.makefile("rw"))
        return streams

    def _ask(self, **order) -> list[dict]:
        for stream in self.streams:
            stream.write(json.dumps(order) + "\n")
            stream.flush()
        answers = [stream.readline() for stream in self.streams]
        if not all(answers):
            raise SystemExit(f"a worker ended; its log says why (order {order})")
        return [json.loads(answer) for answer in answers]

    def set_network(self, network: Network) -> None:
        """For connections that are made from now on."""
        set_lines(self.lab, network)
        for node in self.nodes:
            self._set_congestion(node.host, network.congestion)

    def _set_congestion(self, host: Host, name: str) -> None:
        host.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control="
                  + (name if name == "reno" else self.own)], quiet=True)
        for route in host.run(["ip", "-4", "route", "show", "dev", "weft0"],
                              quiet=True).out.splitlines():
            words = route.partition(" congctl ")[0].split()
            host.run(["ip", "route", "change", *words, "dev", "weft0",
                      *(["congctl", name] if name == "cubic" else [])], quiet=True)

    def survey(self, network: Network) -> None:
        """Islands share a line, so their pairs are measured one at a time."""
        words = ["--one-by-one"] if network.islands else []
        self.matrix.write_text(self.nodes[0].run(
            "bench", "--json", "--no-underlay", "--allreduce", "0", "--force", *words).out)

    def plan(self, network: Network, sync: Sync) -> tuple[float, list[list[int]]]:
        """Seconds, and the ranks of each island, the leader first; the model has no part in it."""
        names = [NODES[rank] for rank in sync.ranks]
        # A pause is what lies between exchanges of islands; in a star each node is one.
        alone = bool(sync.pause) and not network.islands
        islands = "n1,n2/n3,n4" if network.islands else ("/" if alone else ",").join(names)
        done = self.nodes[0].run(
            "plan", "--params", "1B", "--transport", "gloo", "--matrix", str(self.matrix), "--json",
            "--nodes", ",".join(names), "--islands", islands, "--sync-bytes", str(sync.size),
            check=False)
        found = json.loads(done.out)
        [times] = found["syncs"]
        seconds = {**times["averageSeconds"], **times["exchangeSeconds"]}
        groups = [[NODES.index(n) for n in dict.fromkeys([island["leader"], *island["ring"]])]
                  for island in found["islands"]]
        return seconds["fp32" if alone else sync.kind], groups

    def measure(self, sync: Sync, islands: list[list[int]]) -> list[float]:
        """Seconds of each."""
        ranks = sync.ranks
        groups = {"all": ranks, "leaders": [island[0] for island in islands]}
        self._ask(do="group", groups={**groups, **dict(zip("ab", islands))})
        spans = [a["spans"] for a in self._ask(do="time", steps=sync.steps(), pause=sync.pause,
                                               repeats=self.repeats)]
        return [max(spans[r][i][1] for r in ranks) - min(spans[r][i][0] for r in ranks)
                for i in range(self.repeats)]


def measure(repeats: int) -> tuple[str, dict[str, dict[str, float]]]:
    """How many are close; and by set-up the seconds, measured and predicted."""
    figures: dict[str, dict[str, float]] = {
        name: {} for name in ("measured", "predicted", "least", "most")}
    with tempfile.TemporaryDirectory() as name, Lab.from_text(TOPOLOGY, capture=False) as lab:
        bench = Bench(lab, Path(name), repeats)
        for network in NETWORKS:
            bench.set_network(network)
            bench.survey(network)
            for sync in network.syncs:
                predicted, islands = bench.plan(network, sync)
                times = bench.measure(sync, islands)
                for column, value in (("measured", statistics.median(times)),
                                      ("predicted", predicted),
                                      ("least", min(times)), ("most", max(times))):
                    figures[column][f"{network}: {sync}"] = value
                print({column: rows[f"{network}: {sync}"] for column, rows in figures.items()})
    ratios = [figures["predicted"][row] / figures["measured"][row] for row in figures["measured"]]
    close = sum(1 - CLOSE <= ratio <= 1 + CLOSE for ratio in ratios)
    return f"seconds, {bench.own}; {close} of {len(ratios)} within 20 %", figures
