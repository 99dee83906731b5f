#!/usr/bin/python3
"""run.py - userspace WireGuards side by side: throughput, round trip and memory as ratios.

Two hosts on one switch hold a tunnel of each implementation at the same time; the measurements
take turns, round by round, so that noise is shared. Only the ratios of one run mean anything:
another machine, or the next minute on this one, has other absolute figures.

    test/bench/run.py [--rounds 3] [--seconds 3] > result.json

What is measured is printed to standard error on the way. tcpGbps is the receiver's figure; cpu is
the seconds that both ends' processes spent for a gigabyte; rss is of the receiving end at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

from interop.wgpeer import WgPeer  # noqa: E402 - the path is set above
from lab import Host, Lab, unavailable, wait_for  # noqa: E402

TOPOLOGY = """
# a ---- wire ---- b
switch wire 10.9.0.0/24
host a
host b
link a wire 10.9.0.1
link b wire 10.9.0.2
"""
WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
# The first is what the others are divided by.
IMPLEMENTATIONS = {
    "wireguard-go": ["wireguard-go"],
    "weft": [WEFT, "wg"],
    "weft-aes": [WEFT, "wg", "--cipher", "aes256gcm"],
}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Tunnel:
    """One implementation's two ends, with a number that keeps names and addresses apart."""

    def __init__(self, name: str, argv: list, number: int, a: Host, b: Host) -> None:
        self.name = name
        interface = f"wg{number}"
        self.near, self.far = (
            WgPeer.userspace(host, argv, interface, allow=[".*"]) for host in (a, b))
        for end, last in ((self.near, 1), (self.far, 2)):
            end.configure([f"10.{20 + number}.0.{last}/24"], port=51820 + number)
        self.near.add_peer(self.far, endpoint=True)
        self.far.add_peer(self.near)
        self.near.ping(self.far)
        self.rss_idle_mib = self.rss_mib()
        self.address = str(self.far.addresses[0].ip)
        b.spawn(["iperf3", "--server", "--bind", self.address], name=f"iperf3-{name}")
        wait_for(lambda: self._iperf("--time", "1") is not None, 10, f"iperf3 behind {name}")

    def _iperf(self, *options: str) -> dict | None:
        done = self.near.machine.run(
            ["iperf3", "--client", self.address, "--json", *options], check=False, timeout_s=60)
        return json.loads(done.out)["end"] if done.rc == 0 else None

    def _cpu_s(self) -> float:
        def of(pid: int) -> int:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])
        return sum(of(end.daemon.pid) for end in (self.near, self.far)) / TICKS_PER_S

    def measure_tcp(self, seconds: int) -> dict[str, float]:
        cpu_before = self._cpu_s()
        end = self._iperf("--time", str(seconds))
        if end is None:
            raise SystemExit(f"{self.name}: iperf3 failed")
        received = end["sum_received"]
        return {"tcpGbps": received["bits_per_second"] / 1e9,
                "cpuSecondsPerGB": (self._cpu_s() - cpu_before) / (received["bytes"] / 1e9)}

    def measure_idle_rtt(self) -> dict[str, float]:
        said = self.near.machine.run(
            ["ping", "-c", 50, "-i", "0.02", "-q", self.address], quiet=True).out
        return {"rttMs": float(re.search(r"= [\d.]+/([\d.]+)/", said)[1])}

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.far.daemon.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def in_turns(tunnels: list[Tunnel], rounds: int,
             measure: Callable[[Tunnel], dict[str, float]]) -> dict[str, dict[str, float]]:
    """The median of each figure, by tunnel; every round measures each tunnel once."""
    samples: dict[str, dict[str, list[float]]] = {t.name: {} for t in tunnels}
    for _ in range(rounds):
        for tunnel in tunnels:
            for figure, value in measure(tunnel).items():
                samples[tunnel.name].setdefault(figure, []).append(value)
    return {name: {figure: statistics.median(values) for figure, values in figures.items()}
            for name, figures in samples.items()}


def run(rounds: int, seconds: int) -> dict:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        tunnels = [Tunnel(name, argv, number, lab.host("a"), lab.host("b"))
                   for number, (name, argv) in enumerate(IMPLEMENTATIONS.items())]
        rtt = in_turns(tunnels, rounds, Tunnel.measure_idle_rtt)
        tcp = in_turns(tunnels, rounds, lambda t: t.measure_tcp(seconds))
        results = {t.name: {**tcp[t.name], **rtt[t.name], "rssIdleMiB": t.rss_idle_mib,
                             "rssMiB": t.rss_mib()} for t in tunnels}
    base = results[next(iter(IMPLEMENTATIONS))]
    ratios = {name: {figure: value / base[figure] for figure, value in figures.items()}
              for name, figures in results.items()}
    return {"rounds": rounds, "seconds": seconds, "figures": results, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    if unavailable():
        sys.exit(unavailable())
    with contextlib.redirect_stdout(sys.stderr):
        result = run(args.rounds, args.seconds)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
