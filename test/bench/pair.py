"""One peer: throughput, small packets, round trips, CPU, memory; implementations take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lab import Lab
from tunnel import PROGRAMS, TOPOLOGY, Tunnel, Way, in_turns, set_underlay

FOUR, BACK = ("--parallel", "4"), ("--reverse",)
# By name, what is measured of each way in @seconds.
STEPS: dict[str, Callable[[Way, int], dict[str, float]]] = {
    "rttIdle": lambda way, _: way.round_trip("rttIdle"),
    "tcp1": lambda way, seconds: way.tcp("tcp1", seconds),
    "tcp4": lambda way, seconds: way.tcp("tcp4", seconds, *FOUR),
    "tcp1Reverse": lambda way, seconds: way.tcp("tcp1Reverse", seconds, *BACK),
    "tcp4Reverse": lambda way, seconds: way.tcp("tcp4Reverse", seconds, *FOUR, *BACK),
    "rttLoaded": lambda way, seconds: way.round_trip_beside_tcp("rttLoaded", seconds),
    "rttLoaded4": lambda way, seconds: way.round_trip_beside_tcp("rttLoaded4", seconds, *FOUR),
    "small": lambda way, _: way.small_packets(1),
}


def measure(underlay: str, rounds: int, seconds: int,
            steps: Iterable[str]) -> dict[str, dict[str, float]]:
    """The figures of each implementation, and of the bare wire as "raw"."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        set_underlay(lab, underlay)
        raw = Way("raw", lab.host("a"), lab.host("b"), lab.host("b").address(), [])
        tunnels = [Tunnel(name, number, lab) for number, name in enumerate(PROGRAMS)]
        ways = [raw, *tunnels]
        figures: dict[str, dict[str, float]] = {way.name: {} for way in ways}
        for step in steps:
            for name, found in in_turns(
                    ways, rounds, lambda way, step=step: STEPS[step](way, seconds)).items():
                figures[name].update(found)
        for tunnel in tunnels:
            figures[tunnel.name].update(tunnel.memory())
        return figures
