"""The data plane beside that of another program, $WEFT_BEFORE, in pairs: is it as cheap as it was?

Both are up at once on the same wire. A pair is a measurement of each, one directly after the other,
and every other pair begins with the other one: so both share what else the machine does. Of each
figure there is the median of the pairs' ratios (...OfBefore), and between which bounds the median
of very many pairs would be, with a probability of 95 % (...Least, ...Most). A difference of one per
cent is seen when these bounds are closer than that, which takes some twenty pairs on a machine that
does nothing else.

Throughput of two ends that share the cores says how much processor time they need, so the CPU
figures are the ones to look at: they are less disturbed than rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from lab import Lab
from tunnel import BEFORE, PROGRAMS, SMALL_BYTES, TOPOLOGY, Tunnel, Way, cpu_s, set_underlay

PAIRS_LEAST = 20
PACE = 20_000  # small packets a second, far below what gets lost
OUTSIDE = 0.025  # probability of each side beyond the bounds


def paced(way: Way, seconds: int) -> dict[str, float]:
    """Processor time of a small packet, at a rate at which neither end is ever behind."""
    before = cpu_s(way.processes)
    end = way.iperf("--time", str(seconds), "--udp", "--length", str(SMALL_BYTES),
                    "--bitrate", str(PACE * SMALL_BYTES * 8))
    if end is None:
        raise SystemExit(f"{way.name}: iperf3 failed")
    return {"smallCpuMicroseconds": (cpu_s(way.processes) - before) / end["sum"]["packets"] * 1e6}


STEPS: dict[str, Callable[[Way, int], dict[str, float]]] = {
    "tcp1": lambda way, seconds: way.tcp("tcp1", seconds),
    "tcp4": lambda way, seconds: way.tcp("tcp4", seconds, "--parallel", "4"),
    "small": paced,
}


def bounds(values: list[float]) -> tuple[float, float]:
    """Of the median, by how many of the values are on which side of it; all of few values."""
    ordered, outside, rank = sorted(values), 0.0, 0
    while rank <= len(ordered) // 2:
        outside += math.comb(len(ordered), rank) / 2 ** len(ordered)
        if outside > OUTSIDE:
            break
        rank += 1
    least = max(rank - 1, 0)
    return ordered[least], ordered[len(ordered) - 1 - least]


def compare(now: list[dict[str, float]], before: list[dict[str, float]],
            of: str = "OfBefore") -> dict[str, float]:
    """Medians, and the ratios of the pairs, by figure; `of` is what these are called."""
    found: dict[str, float] = {}
    for figure in now[0]:
        ratios = [a[figure] / b[figure] for a, b in zip(now, before) if b[figure]]
        found[figure] = statistics.median(one[figure] for one in now)
        found[f"{figure}{of}"] = statistics.median(ratios)
        found[f"{figure}{of}Least"], found[f"{figure}{of}Most"] = bounds(ratios)
    return found


def in_pairs(tunnels: list[Tunnel], pairs: int, seconds: int,
             of: str = "OfBefore") -> dict[str, dict[str, float]]:
    """All steps of two tunnels, by their names; the first one's with ratios to the second one's."""
    one, other = (tunnel.name for tunnel in tunnels)
    figures: dict[str, dict[str, float]] = {one: {}, other: {}}
    for step in STEPS.values():
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in figures}
        for number in range(max(pairs, PAIRS_LEAST)):
            for tunnel in tunnels if number % 2 == 0 else reversed(tunnels):
                samples[tunnel.name].append(step(tunnel, seconds))
        figures[one].update(compare(samples[one], samples[other], of))
        figures[other].update({figure: statistics.median(each[figure] for each in samples[other])
                               for figure in samples[other][0]})
    for tunnel in tunnels:
        figures[tunnel.name].update(tunnel.memory())
    return figures


def measure(underlay: str, pairs: int, seconds: int) -> dict[str, dict[str, float]]:
    if BEFORE not in PROGRAMS:
        raise SystemExit("name a program to compare with in WEFT_BEFORE")
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        set_underlay(lab, underlay)
        return in_pairs([Tunnel(name, number, lab) for number, name in enumerate(("weft", BEFORE))],
                        pairs, seconds)
