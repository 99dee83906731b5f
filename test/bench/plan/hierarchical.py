"""Training in islands beside averaging every gradient everywhere, by train_hierarchical.py.

Two islands of two nodes, 50 ms and 100 Mbit/s between them, the topology of plan.py. All train the
same model from the same weights on the same batches. Who is in which island is from weft plan, of
what weft bench has measured. Steps a second are those of a few steps over these lines. Losses are
after as many steps, that is as many tokens, of the same job over lines without delay: what is
computed does not depend on the lines. They are of data that nobody has trained on.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from lab import Lab, wait_for
from lab.support.agents import Site
from plan import NODES, TOPOLOGY, Network, set_lines
from tunnel import ROOT, WEFT

REFERENCE = "flat"
NETWORK = Network(50, 100, [], islands=True)
HIDDEN = 512  # 280,000 weights: 1.1 MB of gradients a step
FEW_STEPS, STEPS = 60, 800
SAMPLES = 16384  # of each rank: in these steps it looks at each about three times
TIME_MAX_S = 300
WAYS = {
    REFERENCE: ["--mode", "ddp"],
    "int8": ["--form", "int8", "--interval", 20],
    "topk": ["--form", "topk", "--interval", 20],
}


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


def _train(site: Site, plan: Path, name: str, words: list) -> dict:
    """What rank 0 says at the end."""
    jobs = [node.host.spawn(
        [WEFT, "run", "--nnodes", len(NODES), "--job", name, "torchrun",
         ROOT / "examples/train_hierarchical.py", "--hidden", HIDDEN, "--samples", SAMPLES,
         *words],
        name=name, allow=[".*"],
        env={"OMP_NUM_THREADS": "1", "WEFT_PLAN": str(plan)})
        for node in site.nodes.values()]
    wait_for(lambda: not any(job.running for job in jobs), TIME_MAX_S, f"{name} to end")
    said = [json.loads(line) for job in jobs for line in job.lines()
            if line.startswith('{"world"')]
    if len(said) != 1:
        raise RuntimeError(f"{name}: " + "\n".join(jobs[0].lines()[-20:]))
    return said[0]


def measure() -> dict[str, dict[str, float]]:
    """By way of averaging: steps a second, what each leader sends a step, and the loss."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, WEFT)
        site.join(*NODES)
        set_lines(lab, NETWORK)
        for other in NODES[1:]:
            site.nodes["n1"].reaches(site.nodes[other], within_s=30)
        plan = _plan(site, Path(name))
        for way, words in WAYS.items():
            found = _train(site, plan, f"few-{way}", ["--steps", FEW_STEPS, *words])
            figures[way] = {"stepsPerSecond": found["stepsPerSecond"],
                            "exchangedKBPerStep": found["exchangedBytes"] / 1e3 / FEW_STEPS}
        set_lines(lab, Network(0, 0, [], islands=True))
        for way, words in WAYS.items():
            found = _train(site, plan, f"loss-{way}", ["--steps", STEPS, *words])
            figures[way]["loss"] = found["last_loss"]
    return figures
