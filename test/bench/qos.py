"""A heartbeat beside bulk, on a line of 100 Mbit/s whose router keeps a long queue.

One tunnel sends as fast as it may, and the queue is the router's; the other has a rate a little
below the line's, so that the queue is its own, and short messages go before bulk. The bare wire
and wireguard-go are beside them.
"""

from __future__ import annotations

from lab import Lab
from tunnel import Tunnel, Way, in_turns

TOPOLOGY = """
switch wire 10.9.0.0/24
host a
host b
link a wire 10.9.0.1 rate=100mbit queue=1m delay=2ms
link b wire 10.9.0.2
"""
REFERENCE = "weft"
RATE = "95Mbit"


def measure(rounds: int, seconds: int) -> dict[str, dict[str, float]]:
    """The figures of each way; they are divided by those of REFERENCE."""
    programs = {"wireguard-go": ("wireguard-go", []), "weft": ("weft", []),
                "weft, with a rate": ("weft", ["--rate", RATE])}
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        ways = [Way("bare", lab.host("a"), lab.host("b"), lab.host("b").address(), []),
                *(Tunnel(program, number, lab, options, label=name)
                  for number, (name, (program, options)) in enumerate(programs.items()))]
        figures: dict[str, dict[str, float]] = {way.name: {} for way in ways}
        for step in (lambda way: way.round_trip("rttIdle"),
                     lambda way: way.tcp("tcp4", seconds, "--parallel", "4"),
                     lambda way: way.round_trip_beside_tcp("rttLoaded", seconds),
                     lambda way: way.round_trip_beside_tcp("rttLoaded8", seconds,
                                                           "--parallel", "8")):
            for name, found in in_turns(ways, rounds, step).items():
                figures[name].update(found)
        return figures
