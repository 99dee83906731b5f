"""What is measured: two hosts joined by a program's tunnel, or by the bare wire, and its figures.

A figure is a number with a name that says its unit. Each measurement returns a few of them, and
in_turns() makes medians of many rounds, in which all tunnels take turns.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from interop.wgpeer import WgPeer
from lab import Daemon, Host, Lab, wait_for

ROOT = Path(__file__).resolve().parents[2]
WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
REFERENCE = "wireguard-go"
# The program of each implementation, started as wireguard-go is. $WEFT_BEFORE is another build of
# weft to compare with.
PROGRAMS = {
    REFERENCE: [os.environ.get("WIREGUARD_GO", "wireguard-go")],
    "weft": [WEFT, "wg"],
    "weft-aes": [WEFT, "wg", "--cipher", "aes256gcm"],
}
BEFORE = "before"
if "WEFT_BEFORE" in os.environ:
    PROGRAMS[BEFORE] = [Path(os.environ["WEFT_BEFORE"]).resolve(), "wg"]
TOPOLOGY = """
# a ---- wire ---- b
switch wire 10.9.0.0/24
host a
host b
link a wire 10.9.0.1
link b wire 10.9.0.2
"""
# How the wire treats what the two hosts' kernels would rather not cut up: ethtool -K words.
UNDERLAYS = {
    "veth": [],  # whole super-packets cross, which no wire allows: an upper bound
    "nic": ["tx-udp-segmentation", "off", "gro", "on", "rx-udp-gro-forwarding", "on"],
    "plain": ["tx-udp-segmentation", "off", "tso", "off", "gso", "off", "gro", "off"],
}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SMALL_BYTES = 128
PINGS = 100


def set_underlay(lab: Lab, name: str) -> None:
    """Make the wire between a and b one of UNDERLAYS."""
    if UNDERLAYS[name]:
        for host in ("a", "b"):
            lab.host(host).run(["ethtool", "-K", "wire", *UNDERLAYS[name]])


def cpu_s(processes: Iterable[Daemon]) -> float:
    """Seconds of CPU that they have used so far."""
    def of(pid: int) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    return sum(of(process.pid) for process in processes) / TICKS_PER_S


def rss_mib(process: Daemon) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Way:
    """From a to an address of b; `processes` are those whose CPU counts."""

    def __init__(self, name: str, a: Host, b: Host, address: str, processes: list[Daemon],
                 port: int = 5201) -> None:
        self.name = name
        self.a, self.b = a, b
        self.address = address
        self.port = port
        self.processes = processes
        b.spawn(["iperf3", "--server", "--bind", address, "--port", port], name=f"iperf3-{name}")
        wait_for(lambda: self.iperf("--time", "1") is not None, 10, f"iperf3 behind {name}")

    def iperf(self, *options: str) -> dict | None:
        done = self.a.run(["iperf3", "--client", self.address, "--port", self.port, "--json",
                           *options], check=False, timeout_s=60, quiet=True)
        end = json.loads(done.out)["end"] if done.rc == 0 else None
        # It may end well and have measured nothing.
        return end if end and {"sum", "sum_received"} & set(end) else None

    def tcp(self, label: str, seconds: int, *options: str) -> dict[str, float]:
        """Throughput, and the CPU time of the processes for each gigabyte."""
        before = cpu_s(self.processes)
        end = self.iperf("--time", str(seconds), *options)
        if end is None:
            raise SystemExit(f"{self.name}: iperf3 failed")
        received = end["sum_received"]
        figures = {f"{label}Gbps": received["bits_per_second"] / 1e9}
        if self.processes:
            used = cpu_s(self.processes) - before
            figures[f"{label}CpuSecondsPerGB"] = used / (received["bytes"] / 1e9)
        return figures

    def small_packets(self, seconds: int) -> dict[str, float]:
        """The highest paced rate of small UDP packets of which at most 1 % is lost."""
        low, high, best = 5e3, 6e5, 0.0
        for _ in range(7):
            pace = math.sqrt(low * high)
            end = self.iperf("--time", str(seconds), "--udp", "--length", str(SMALL_BYTES),
                             "--bitrate", str(int(pace * SMALL_BYTES * 8)))
            total = end["sum"] if end else {"packets": 0}
            rate = total["packets"] / total["seconds"] if total["packets"] else 0
            # The sender must have kept the pace too, or the result says nothing.
            if rate > 0.9 * pace and total["lost_packets"] <= 0.01 * total["packets"]:
                low, best = pace, rate * (1 - total["lost_packets"] / total["packets"])
            else:
                high = pace
        if best == 0:
            raise SystemExit(f"{self.name}: more than 1 % is lost at any rate of small packets")
        return {"smallKpps": best / 1e3}

    def round_trip(self, label: str, count: int = PINGS, *options: str) -> dict[str, float]:
        said = self.a.run(["ping", "-n", "-c", count, "-i", "0.01", *options, self.address],
                          quiet=True).out
        times = sorted(float(t) for t in re.findall(r"time=([\d.]+)", said))
        return {f"{label}MedianMs": statistics.median(times),
                f"{label}P99Ms": times[math.ceil(len(times) * 0.99) - 1]}

    def round_trip_beside_tcp(self, label: str, seconds: int, *options: str) -> dict[str, float]:
        """Pings while TCP sends the same way, and how often TCP had to repeat itself."""
        stream = self.a.spawn(["iperf3", "--client", self.address, "--port", self.port, "--json",
                               "--time", seconds + 1, *options], name=f"stream-{self.name}")
        try:
            figures = self.round_trip(label, count=seconds * 50)
        finally:
            stream.wait(30)
        sent = json.loads("\n".join(stream.lines()))["end"]["sum_sent"]
        figures[f"{label}RetransmitsPerGB"] = sent["retransmits"] / (sent["bytes"] / 1e9)
        return figures


class Tunnel(Way):
    """A program's two ends, with a number that keeps names and addresses apart."""

    def __init__(self, name: str, number: int, lab: Lab, options: Iterable[str] = (),
                 label: str | None = None) -> None:
        """`label` is what it is called where one program is there several times."""
        interface = f"wg{number}"
        self.near, self.far = (
            WgPeer.userspace(lab.host(host), [*PROGRAMS[name], *options], interface, allow=[".*"])
            for host in ("a", "b"))
        for end, last in ((self.near, 1), (self.far, 2)):
            end.configure([f"10.{20 + number}.0.{last}/24"], port=51820 + number)
        self.near.add_peer(self.far, endpoint=True)
        self.far.add_peer(self.near)
        self.near.ping(self.far)
        super().__init__(label or name, lab.host("a"), lab.host("b"), str(self.far.addresses[0].ip),
                         [self.near.daemon, self.far.daemon])

    def memory(self) -> dict[str, float]:
        return {"rssMiB": max(rss_mib(process) for process in self.processes)}


def in_turns(ways: list[Way], rounds: int,
             measure: Callable[[Way], dict[str, float]]) -> dict[str, dict[str, float]]:
    """The median of each figure, by name; every round measures each of them once."""
    samples: dict[str, dict[str, list[float]]] = {way.name: {} for way in ways}
    for _ in range(rounds):
        for way in ways:
            for figure, value in measure(way).items():
                samples[way.name].setdefault(figure, []).append(value)
    return {name: {figure: statistics.median(values) for figure, values in figures.items()}
            for name, figures in samples.items()}
