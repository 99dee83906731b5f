"""`weft preflight` over sixteen nodes, beside two of them: how long it takes, and what it says.

All nodes and the hub share the cores. With $WEFT_BEFORE the same nodes by that program, after.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path

from lab import Lab
from lab.support.agents import Site
from tunnel import BEFORE, WEFT

NAMES = [f"n{i}" for i in range(1, 17)]
FEW, ALL = "2 nodes", f"{len(NAMES)} nodes"
REFERENCE = FEW
ANSWERS = (0, 3)  # a job would run, and it would not
TOPOLOGY = "\n".join([
    "switch wan 203.0.113.0/24", "host hub", "link hub wan 203.0.113.10",
    *(line for i, name in enumerate(NAMES, start=11)
      for line in (f"host {name} no-v6", f"link {name} wan 203.0.113.{i}"))])


def preflight(site: Site, *words: str) -> dict[str, float]:
    began = time.monotonic()
    done = site.nodes["n1"].host.run([site.weft, "preflight", "--json", *words], check=False,
                                     quiet=True, timeout_s=300)
    took = time.monotonic() - began
    if done.rc not in ANSWERS:
        raise SystemExit(f"weft preflight ended with {done.rc}: {done.err}")
    report = json.loads(done.out)
    grave = [finding for finding in report["findings"] if finding["level"] in ("warn", "no")]
    return {"seconds": took, "pairs": len(report["pairs"]), "warningsAndNos": len(grave)}


def one(weft: Path, rounds: int) -> dict[str, dict[str, float]]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        site.daemon.allow(".*")
        site.join(*NAMES, allow={name: [".*"] for name in NAMES})
        site.wait_paths({("n1", name): {"lan", "direct"} for name in NAMES[1:]}, 60)
        samples: dict[str, list[dict[str, float]]] = {FEW: [], ALL: []}
        for _ in range(rounds):
            samples[FEW].append(preflight(site, "--nodes", "n2"))
            samples[ALL].append(preflight(site))
    return {name: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
            for name, runs in samples.items()}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    figures = one(WEFT, rounds)
    if "WEFT_BEFORE" in os.environ:
        before = one(Path(os.environ["WEFT_BEFORE"]).resolve(), rounds)
        figures[f"{ALL}, {BEFORE}"] = before[ALL]
    return figures
