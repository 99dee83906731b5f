#!/usr/bin/python3
"""run.py - a hub that relays, against a hub that decrypts and forwards, in one run.

Two nodes reach each other by all of these at once, and the measurements take turns:

    relay             weft's hub: the nodes' own session passes, unread
    forwarder         the floor: the same system calls between two fixed endpoints (bench-relay.c)
    wireguard-go hub  wireguard-go on the hub's machine, to which both nodes have a session, and the
                      kernel's IP forwarding between them: what a hub without a relay does
    weft wg hub       the same with `weft wg`

    test/bench/relay/run.py [--rounds 3] [--seconds 4] > result.json

The nodes' ends are `weft wg` always. cpuSecondsPerGB is of the hub's process alone, for what the
receiver got; only the ratios of one run mean anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test"))

from interop.wgpeer import WgPeer  # noqa: E402 - the path is set above
from lab import Daemon, Host, Lab, unavailable, wait_for  # noqa: E402
from lab.support.stock_mesh import Hub  # noqa: E402

TOPOLOGY = """
# a ---- wire ---- hub, and b
switch wire 10.9.0.0/24
host hub
host a
host b
link hub wire 10.9.0.1
link a   wire 10.9.0.2
link b   wire 10.9.0.3
"""
WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
WIREGUARD_GO = os.environ.get("WIREGUARD_GO", "wireguard-go")
BENCH_RELAY = ROOT / "build/test/bench/relay/bench-relay"
REFERENCE = "wireguard-go hub"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Way:
    """How a and b reach each other, and the process on the hub that serves it."""

    def __init__(self, name: str, process: Daemon, a: Host, b: Host, address: str) -> None:
        self.name = name
        self._process = process
        self._a = a
        self._address = address
        b.spawn(["iperf3", "--server", "--bind", address], name=f"iperf3-{name}")
        wait_for(lambda: self._iperf(1) is not None, 10, f"iperf3 behind {name}")

    def _iperf(self, seconds: int) -> dict | None:
        done = self._a.run(
            ["iperf3", "--client", self._address, "--json", "--time", seconds], check=False,
            timeout_s=60, quiet=True)
        return json.loads(done.out)["end"].get("sum_received") if done.rc == 0 else None

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def measure(self, seconds: int) -> dict[str, float]:
        before = self._cpu_s()
        received = self._iperf(seconds)
        return {"tcpGbps": received["bits_per_second"] / 1e9,
                "cpuSecondsPerGB": (self._cpu_s() - before) / (received["bytes"] / 1e9)}


def relay(lab: Lab) -> Way:
    hub = Hub(lab.host("hub"), WEFT)
    a, b = (hub.add_node(lab.host(name), [WEFT, "wg"]) for name in ("a", "b"))
    a.meet(b)
    a.wg.ping(b.wg)
    return Way("relay", hub.daemon, a.host, b.host, b.address4)


def forwarder(lab: Lab, number: int) -> Way:
    hub = lab.host("hub")
    a, b = (WgPeer.userspace(lab.host(name), [WEFT, "wg"], f"wg{number}") for name in ("a", "b"))
    port = 51900 + number
    daemon = hub.spawn([BENCH_RELAY, "forward", port,
                        *(f"{end.machine.address()}:{port}" for end in (a, b))])
    for last, peer in enumerate((a, b), 2):
        peer.configure([f"10.{90 + number}.0.{last}/24"], port=port)
    for one, other in ((a, b), (b, a)):
        one.add_peer(other, endpoint=f"{hub.address()}:{port}")
    a.ping(b)
    return Way("forwarder", daemon, a.machine, b.machine, str(b.addresses[0].ip))


def decrypt(lab: Lab, name: str, program: list[str | Path], number: int) -> Way:
    port, net = 51900 + number, f"10.{90 + number}.0"
    hub = WgPeer.userspace(lab.host("hub"), program, f"wg{number}", allow=[".*"])
    a, b = (WgPeer.userspace(lab.host(host), [WEFT, "wg"], f"wg{number}") for host in ("a", "b"))
    for last, peer in enumerate((hub, a, b), 1):
        peer.configure([f"{net}.{last}/24"], port=port)
    for node in (a, b):
        hub.add_peer(node)
        node.set("peer", hub.public_key, "endpoint", f"{lab.host('hub').address()}:{port}",
                 "persistent-keepalive", 5, "allowed-ips", f"{net}.0/24")
    lab.host("hub").run(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    a.ping(b)
    return Way(name, hub.daemon, lab.host("a"), lab.host("b"), f"{net}.3")


def run(rounds: int, seconds: int) -> dict[str, dict[str, float]]:
    """The figures of each way; they are divided by those of REFERENCE."""
    samples: dict[str, list[dict[str, float]]] = {}
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        ways = [relay(lab), forwarder(lab, 1), decrypt(lab, REFERENCE, [WIREGUARD_GO], 2),
                decrypt(lab, "weft wg hub", [WEFT, "wg"], 3)]
        for _ in range(rounds):
            for way in ways:
                samples.setdefault(way.name, []).append(way.measure(seconds))
    return {name: {figure: statistics.median(sample[figure] for sample in taken)
                   for figure in taken[0]} for name, taken in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    args = parser.parse_args()
    if unavailable():
        sys.exit(unavailable())
    with contextlib.redirect_stdout(sys.stderr):
        figures = run(args.rounds, args.seconds)
    json.dump({"rounds": args.rounds, "seconds": args.seconds, "reference": REFERENCE,
               "figures": figures}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
