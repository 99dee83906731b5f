"""Many peers: how an implementation bears 1, 10, 1,000 and 60,000 of them (bench-swarm.c).

The implementations are loaded one after the other on the same two hosts; each figure is of the end
that has all the peers.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Daemon, Host, Lab, wait_for
from tunnel import PROGRAMS, ROOT, TOPOLOGY, cpu_s, rss_mib

SWARM = ROOT / "build/test/bench/swarm/bench-swarm"
PORT = 51999
INTERFACE = "wg9"
SECONDS = 3


class Loaded:
    """An implementation on b with @n peers, all of which live on a."""

    def __init__(self, name: str, n: int, lab: Lab, scratch: Path) -> None:
        self.name, self.n = name, n
        self.a, self.b = lab.host("a"), lab.host("b")
        self.daemon = self.b.spawn([*PROGRAMS[name], "-f", INTERFACE], name=f"{name}-{n}",
                                   allow=[".*"])
        wait_for(lambda: self._wg("show", INTERFACE).rc == 0, 10, f"{name} to answer wg(8)")
        config = scratch / f"{name}-{n}.conf"
        key = self.b.run(["wg", "genkey"], quiet=True).out.strip()
        self.public = self.b.run(["wg", "pubkey"], stdin=key, quiet=True).out.strip()
        peers = self.a.run([SWARM, "config", n], quiet=True).out
        config.write_text(f"[Interface]\nPrivateKey = {key}\nListenPort = {PORT}\n{peers}")
        self._wg("setconf", INTERFACE, config).check()
        self.b.run(["ip", "link", "set", INTERFACE, "up"])

    def _wg(self, *words: object):
        return self.b.run(["wg", *words], check=False, quiet=True, timeout_s=120)

    def received_packets(self) -> int:
        path = f"/sys/class/net/{INTERFACE}/statistics/rx_packets"
        return int(self.b.run(["cat", path], quiet=True).out)

    def run(self, active: list[int]) -> Iterator[dict]:
        """The steps of bench-swarm, each with what the loaded end received and used in it."""
        swarm = self.a.spawn([SWARM, "run", self.n, self.public, f"{self.b.address()}:{PORT}",
                              SECONDS, *active], name=f"swarm-{self.name}-{self.n}")
        seen = 0
        for _ in range(1 + len(active)):
            seen = self._next_line(swarm, seen)
            before = (self.received_packets(), cpu_s([self.daemon]))
            seen = self._next_line(swarm, seen)
            step = json.loads(swarm.lines()[seen - 1])
            step["received"] = self.received_packets() - before[0]
            step["cpuSeconds"] = cpu_s([self.daemon]) - before[1]
            step["rssMiB"] = rss_mib(self.daemon)
            yield step
        swarm.wait(60)

    @staticmethod
    def _next_line(swarm: Daemon, seen: int) -> int:
        wait_for(lambda: len(swarm.lines()) > seen or not swarm.running, 200, "the swarm")
        if len(swarm.lines()) <= seen:
            raise SystemExit(f"{swarm.name} ended with {swarm.rc}")
        return seen + 1

    def stop(self) -> None:
        self.daemon.stop()


def route_swarm(a: Host, b: Host) -> None:
    """Let a speak from 10.64.0.0/16, and b answer there."""
    a.run(["ip", "route", "add", "local", "10.64.0.0/16", "dev", "lo"])
    b.run(["ip", "route", "add", "10.64.0.0/16", "via", a.address()])


@contextmanager
def swarm_lab() -> Iterator[tuple[Lab, Path]]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab, tempfile.TemporaryDirectory() as scratch:
        route_swarm(lab.host("a"), lab.host("b"))
        yield lab, Path(scratch)


def data_figures(step: dict, n: int) -> dict[str, float]:
    """Of a "data" step: what was delivered for each second, and the CPU time that it took."""
    gigabytes = step["received"] * step["bytes"] / 1e9
    label = f"active{step['active']}of{n}"
    return {f"{label}Gbps": gigabytes * 8 / step["seconds"],
            f"{label}CpuSecondsPerGB": step["cpuSeconds"] / gigabytes}


def measure(counts: list[int]) -> dict[str, dict[str, float]]:
    """By implementation: handshakes answered, memory with all sessions up, delivered data."""
    figures: dict[str, dict[str, float]] = {"wireguard-go": {}, "weft": {}}
    with swarm_lab() as (lab, scratch):
        for n in counts:
            active = [k for k in (1, 1000) if k <= n]
            for name, found in figures.items():
                loaded = Loaded(name, n, lab, scratch)
                for step in loaded.run(active):
                    if step["step"] == "data":
                        found.update(data_figures(step, n))
                    elif n >= 1000:
                        found[f"handshakesPerSecond{n}"] = step["answered"] / step["seconds"]
                    if step["step"] == "greet" and step["answered"] < n:
                        found[f"unanswered{n}"] = n - step["answered"]
                    found[f"rssMiB{n}"] = step["rssMiB"]
                loaded.stop()
    return figures
