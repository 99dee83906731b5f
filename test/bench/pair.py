"""One peer: throughput, small packets, round trips, CPU, memory; implementations take turns."""

from __future__ import annotations

from lab import Lab
from tunnel import PROGRAMS, TOPOLOGY, Tunnel, Way, in_turns, set_underlay


def measure(underlay: str, rounds: int, seconds: int) -> dict[str, dict[str, float]]:
    """The figures of each implementation, and of the bare wire as "raw"."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        set_underlay(lab, underlay)
        raw = Way("raw", lab.host("a"), lab.host("b"), lab.host("b").address(), [])
        tunnels = [Tunnel(name, number, lab) for number, name in enumerate(PROGRAMS)]
        ways = [raw, *tunnels]
        four, back = ("--parallel", "4"), ("--reverse",)
        steps = [
            lambda way: way.round_trip("rttIdle"),
            lambda way: way.tcp("tcp1", seconds),
            lambda way: way.tcp("tcp4", seconds, *four),
            lambda way: way.tcp("tcp1Reverse", seconds, *back),
            lambda way: way.tcp("tcp4Reverse", seconds, *four, *back),
            lambda way: way.round_trip_beside_tcp(seconds),
            lambda way: way.small_packets(1),
        ]
        figures: dict[str, dict[str, float]] = {way.name: {} for way in ways}
        for step in steps:
            for name, found in in_turns(ways, rounds, step).items():
                figures[name].update(found)
        for tunnel in tunnels:
            figures[tunnel.name].update(tunnel.memory())
        return figures
