"""Training in islands beside averaging every gradient everywhere, by train_hierarchical.py.

   n1  n2            n3  n4
    |   |             |   |
   [lan-a]-- a --[wan]-- b --[lan-b]      50 ms and 100 Mbit/s between a and b
                  |
                 hub

All train the same model from the same weights on the same batches, through `weft run`. Who is in
which island is from weft plan, of what weft bench has measured.

The reference averages all gradients in each step as one vector, by Gloo's ring in the order of the
plan, which crosses the line once in each direction. That is what these lines let it do: more than
nine parts of ten of its time are the line's. The model has 4.3 MB of gradients and computes a step
in some ten milliseconds; a language model of 7B weights has 14 GB of them and computes for minutes,
so that there the line's share is larger.

Steps a second are those of a few steps over these lines. Losses are after as many steps, that is as
many tokens, of the same job with a smaller model over lines without delay: what is computed does
not depend on the lines. They are of data that nobody has trained on. With --island-lan what an
island does inside leaves the overlay, which is the way "in the clear" below.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.topologies import two_islands
from tunnel import ROOT, WEFT

REFERENCE = "flat"
NODES = ("n1", "n2", "n3", "n4")
TOPOLOGY = two_islands("emulated")
# Half of the delay lies on each of the two links, and the queue holds a round trip.
LINE = {"delay": "12.5ms", "rate": "100mbit", "queue": "1250000"}
NO_LINE = {"delay": "0ms", "rate": "0kbit"}
BAR, LOSS_BAR = 5, 0.02
MODEL = ["--hidden", 1024, "--batch", 4]  # 1.08 million weights
# The losses are of one that these processors can train in time.
LOSS_MODEL = ["--hidden", 256, "--batch", 16, "--held-out", 2048]
SAMPLES = 16384  # of each rank: in these steps it looks at each at most once
INTERVAL = 20
FEW_STEPS = {REFERENCE: 15}
STEPS = 600
TIME_MAX_S = 300
ISLANDS = ["--interval", INTERVAL]
WAYS = {
    REFERENCE: ["--mode", "ddp", *ISLANDS],
    "int8": ["--form", "int8", *ISLANDS],
    "int8, in the clear": ["--form", "int8", *ISLANDS],
    "topk": ["--form", "topk", *ISLANDS],
}


def _set_line(lab: Lab, parameters: dict[str, str]) -> None:
    for router in "ab":
        lab.link(router, "wan").set(**parameters)


def _plan(site: Site, folder: Path) -> Path:
    n1 = site.nodes["n1"]
    matrix, plan = folder / "matrix.json", folder / "plan.json"
    matrix.write_text(n1.run("bench", "--json", "--no-underlay", "--allreduce", "0", "--one-by-one",
                             "--force").out)
    # A real job's size; the interval is given, as the example's model is small.
    plan.write_text(n1.run("plan", "--params", "7B", "--transport", "gloo", "--matrix",
                           str(matrix), "--json").out)
    if len(json.loads(plan.read_text())["islands"]) != 2:
        raise RuntimeError("weft plan did not find the two islands")
    return plan


def _train(site: Site, plan: Path, name: str, way: str, words: list) -> dict:
    """What rank 0 says at the end."""
    own = ["--island-lan"] if "clear" in way else []
    jobs = [node.host.spawn(
        [WEFT, "run", "--nnodes", len(NODES), "--job", name, "--wan", "allow", "--plan", plan, *own,
         "torchrun", ROOT / "examples/train_hierarchical.py", "--samples", SAMPLES, *words,
         *WAYS[way]],
        name=name, allow=[".*"], env={"OMP_NUM_THREADS": "1"}) for node in site.nodes.values()]
    wait_for(lambda: not any(job.running for job in jobs), TIME_MAX_S, f"{name} to end")
    said = [json.loads(line) for job in jobs for line in job.lines()
            if line.startswith('{"world"')]
    ranks = [0, 1, 2, 3] if way == REFERENCE else [0, 1]  # n1 to n4, by their names
    if len(said) != 1 or sorted(said[0]["ring"]) != ranks:
        raise RuntimeError(f"{name}: {said}\n" + "\n".join(jobs[0].lines()[-20:]))
    print(name, said[0], f"load {os.getloadavg()[0]:.1f}", flush=True)
    return said[0]


def _verdict(figures: dict[str, dict[str, float]]) -> str:
    """The bar, and which of the ways reach it."""
    flat = figures[REFERENCE]
    parts = []
    for way, found in figures.items():
        if way == REFERENCE:
            continue
        faster = found["stepsPerSecond"] / flat["stepsPerSecond"]
        off = found["loss"] / flat["loss"] - 1
        good = faster >= BAR and abs(off) <= LOSS_BAR
        parts.append(f"{way}: {faster:.1f} times the steps, loss {off:+.1%}: "
                     f"{'reached' if good else 'not reached'}")
    return f"at least {BAR} times the steps, loss within {LOSS_BAR:.0%}; " + "; ".join(parts)


def measure() -> tuple[str, dict[str, dict[str, float]]]:
    """The bar in words; and by way of averaging steps a second, what each leader sends a step, and
    the loss."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, WEFT)
        site.join(*NODES)
        _set_line(lab, LINE)
        for other in NODES[1:]:
            site.nodes["n1"].reaches(site.nodes[other], within_s=30)
        plan = _plan(site, Path(name))
        for i, way in enumerate(WAYS):
            steps = FEW_STEPS.get(way, 5 * INTERVAL)
            found = _train(site, plan, f"few-{i}", way,
                           [*MODEL, "--steps", steps, "--held-out", 64])
            figures[way] = {"stepsPerSecond": found["stepsPerSecond"],
                            "exchangesShare": found["exchangesShare"],
                            "exchangedKBPerStep": found["exchangedBytes"] / 1e3 / steps}
        _set_line(lab, NO_LINE)
        for i, way in enumerate(WAYS):
            if "clear" in way:  # computes the same
                figures[way]["loss"] = figures["int8"]["loss"]
                continue
            found = _train(site, plan, f"loss-{i}", way, [*LOSS_MODEL, "--steps", STEPS])
            figures[way]["loss"] = found["last_loss"]
    return _verdict(figures), figures
