"""weft plan on recorded measurements: two islands of two nodes, 50 ms and 100 Mbit/s between."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.support import schemas
from test_golden import HERE

MATRIX = HERE / "plan/two-islands.json"
FAR = HERE / "plan/far.json"
PRICES = HERE.parent.parent / "examples/prices.json"


def plan(weft: Path, *words: object, status: int = 0,
         matrices: tuple[Path, ...] = (MATRIX,)) -> str:
    argv = [weft, "plan", *(w for m in matrices for w in ("--matrix", m)), *words]
    done = subprocess.run([str(w) for w in argv], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def planned(weft: Path, *words: object, status: int = 0,
            matrices: tuple[Path, ...] = (MATRIX,)) -> dict:
    found = json.loads(plan(weft, *words, "--json", status=status, matrices=matrices))
    assert schemas.errors("plan", found) == []
    return found


def test_text(weft: Path) -> None:
    """The whole plan in words, with the user's prices; and a model that fits nowhere."""
    text = plan(weft, "--params", "7B", "--price-table", PRICES)
    for said in ("Island gpu-3: ", "It fits: ", "no: averaging gradients in each step",
                 "at 45 Mbit/s and 50.4 ms between gpu-3 and gpu-1", "<- advised",
                 "all in one region: ", "Direct Connect 10G: ", "yes: this plan can work"):
        assert said in text, said
    assert "table of examples" in plan(weft, "--params", "7B")
    text = plan(weft, "--params", "1T", "--gpus", 1, "--gpu", "rtx4090", status=3)
    assert "no: it does not fit" in text and "no: no plan was found" in text


def test_islands(weft: Path) -> None:
    """They are found by the round trip, and what is said on the command line counts."""
    found = planned(weft, "--params", "7B")
    assert [i["ring"] for i in found["islands"]] == [["gpu-1", "gpu-2"], ["gpu-3", "gpu-4"]]
    # The best ring goes over the far link twice.
    ring = found["ring"]
    far = sum((a[-1] in "12") != (b[-1] in "12") for a, b in zip(ring, ring[1:] + ring[:1]))
    assert far == 2
    assert not found["everyStep"]["advised"]
    assert found["exchange"]["forms"]["int8"]["interval"] < found["exchange"]["forms"]["fp32"][
        "interval"]
    one = planned(weft, "--params", "7B", "--islands", "gpu-1,gpu-2,gpu-3,gpu-4")
    assert one["exchange"] is None and len(one["islands"]) == 1
    # Within one island nobody forbids it, and the step is as slow as the link.
    step = one["inside"]["step"]
    assert step["seconds"] > 10 * step["workSeconds"]


def test_later_measurements_count(weft: Path) -> None:
    """A pair that was measured alone, after a survey in which two pairs shared the line."""
    before, after = (planned(weft, "--params", "7B", matrices=m)
                     for m in ((MATRIX,), (MATRIX, FAR)))
    slower, faster = (p["exchange"]["forms"]["fp32"]["seconds"] for p in (before, after))
    assert faster < slower * 0.6
    assert (after["islands"][0]["leader"], after["islands"][1]["leader"]) == ("gpu-1", "gpu-3")


def test_groups(weft: Path) -> None:
    """Each GPU is in one place, and the ones that share a matrix are in one machine."""
    found = planned(weft, "--params", "70B", "--fabric", "400Gbit", "--gpu", "h200")
    cut = found["inside"]["degrees"]
    for island in found["islands"]:
        assert len(island["groups"]) == island["replicas"]
        gpus = [g for replica in island["groups"] for stage in replica for g in stage]
        assert sorted(gpus) == sorted(f"{n}:{g}" for n in island["ring"] for g in range(8))
        for replica in island["groups"]:
            assert [len(s) for s in replica] == [cut["tensor"] * cut["sequence"]] * cut["pipeline"]
            for stage in replica:
                for first in range(0, len(stage), cut["tensor"]):
                    assert len({g.split(":")[0] for g in stage[first:first + cut["tensor"]]}) == 1
    # More islands than sequences in a step.
    text = plan(weft, "--params", "7B", "--batch", 1, status=3)
    assert "no: a batch of 1 is too small for 2 islands of 4 nodes together" in text
    assert [i["groups"] for i in planned(weft, "--params", "7B", "--batch", 1, status=3)[
        "islands"]] == [[], []]


def test_sizes(weft: Path) -> None:
    """Times of vectors that were asked for, of some of the nodes."""
    few = planned(weft, "--params", "7B", "--sync-bytes", "1M,2.5MB,1G", "--nodes", "gpu-1,gpu-3")
    assert few["ring"] == ["gpu-1", "gpu-3"]
    assert [s["bytes"] for s in few["syncs"]] == [1e6, 2.5e6, 1e9]
    ring = [s["averageSeconds"]["ring"] for s in few["syncs"]]
    assert ring == sorted(ring) and ring[2] > 8e9 / 45e6
    assert few["syncs"][2]["exchangeSeconds"]["int8"] < ring[2] / 2
    assert "A vector of so many bytes" in plan(weft, "--params", "7B", "--sync-bytes", "1M")


def test_experts_and_prices(weft: Path) -> None:
    found = planned(weft, "--params", "47B", "--active", "13B", "--experts", 8, "--gpu", "h200",
                    "--fabric", "400Gbit", "--price-table", PRICES)
    assert found["inside"]["memory"]["fits"] and found["money"]["tableGiven"]
    assert found["money"]["onePlacePerDay"] > 0
    edge = found["edges"][0]
    assert abs(edge["moneyPerDay"] / (edge["bytesPerDay"] / 1e9 * 0.135) - 1) < 1e-6
