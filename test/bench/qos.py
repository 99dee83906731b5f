"""A heartbeat beside bulk, on a line of 100 Mbit/s whose router keeps a long queue.

One tunnel sends as fast as it may, and the queue is the router's; the other has a rate a little
below the line's, so that the queue is its own, and short messages go before bulk. The bare wire
and wireguard-go are beside them.

Then the line is full of bulk (CS1, eight streams), and a job's collectives (AF21, two streams) come
beside it, with heartbeats (CS6): what each gets, and the part that the collectives have kept of
what they have alone.
"""

from __future__ import annotations

import json

from lab import Daemon, Lab, wait_for
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


# Of what servers beside the first one of each way listen on.
BULK_PORT = 6201


def stream(way: Way, port: int, seconds: int, *options: str) -> Daemon:
    return way.a.spawn(["iperf3", "--client", way.address, "--port", port, "--json", "--time",
                        seconds, *options], name=f"stream-{port}-{way.name}")


def gbps(ended: Daemon) -> float:
    ended.wait(60)
    return json.loads("\n".join(ended.lines()))["end"]["sum_received"]["bits_per_second"] / 1e9


def collectives_beside_bulk(way: Way, seconds: int) -> dict[str, float]:
    """Two streams of AF21 alone, then beside eight of CS1 that have filled the line, with pings of
    CS6."""
    marked = ("--parallel", "2", "--dscp", "af21")
    alone = gbps(stream(way, way.port, seconds, *marked))
    way.b.spawn(["iperf3", "--server", "--one-off", "--bind", way.address, "--port", BULK_PORT],
                name=f"bulk-{way.name}")
    wait_for(lambda: way.b.run(["ss", "-Hltn", f"sport = :{BULK_PORT}"], quiet=True).out, 10,
             "iperf3 to listen")
    bulk = stream(way, BULK_PORT, seconds + 2, "--parallel", "8", "--dscp", "cs1")
    way.round_trip("unused", count=50)  # Half a second, in which the queues fill.
    collectives = stream(way, way.port, seconds, *marked)
    pings = way.round_trip("rttBesideBoth", seconds * 50, "-Q", "0xc0")
    kept = gbps(collectives)
    return {"collectivesAloneGbps": alone, "collectivesBesideBulkGbps": kept,
            "collectivesKept": kept / alone, "bulkBesideCollectivesGbps": gbps(bulk), **pings}


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
                                                           "--parallel", "8"),
                     lambda way: collectives_beside_bulk(way, seconds)):
            for name, found in in_turns(ways, rounds, step).items():
                figures[name].update(found)
        return figures
