"""Who holds up a real torchrun job, and why, as `weft jobs` says it.

    hub 203.0.113.10, and n1 to n4 on .11 to .14; the line of n2 is emulated.

What n2 sends is limited to 200 kB/s; a rank computes for long; one is stopped. Each is named with
its direction and with what was before, and gone when it is mended; and nothing is named while all
is well.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import ROOT
from lab.support.agents import Site
from lab.support.held_up import HeldUp, descendants, words_of

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

NODES = ("n1", "n2", "n3", "n4")
TOPOLOGY = "switch wan 203.0.113.0/24\nhost hub\nlink hub wan 203.0.113.10\n" + "".join(
    f"host {name}\nlink {name} wan 203.0.113.{11 + i}{' emulated' if name == 'n2' else ''}\n"
    for i, name in enumerate(NODES))
# It moves 1.5 MB to the next rank in each step; a node whose file is there computes for long.
SCRIPT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import task, torch, weft
import torch.distributed as dist

rank, world, device = task.begin()
slow = f"{sys.argv[2]}/{os.environ['WEFT_NODE']}"
gradients = torch.zeros(250000)
step = 0
while True:
    until = time.monotonic() + (1.5 if os.path.exists(slow) else 0)
    while time.monotonic() < until:
        pass
    dist.all_reduce(gradients)
    step += 1
    weft.report(step=step)
    if step == 1:
        print("it trains", flush=True)
    time.sleep(0.2)
"""
# What a line carries is known after five samples; and so long it is looked that nothing is named.
WELL_S = 30


class Job(HeldUp):
    def __init__(self, site: Site, weft: Path, folder: Path) -> None:
        self.weft, self.folder = weft, folder
        script = folder / "held_up.py"
        script.write_text(SCRIPT)
        argv = [weft, "run", "--nnodes", len(NODES), "--job", "train", "torchrun", script,
                ROOT / "examples", folder]
        super().__init__(site, "train", {
            name: site.nodes[name].host.spawn(argv, name="train", env={"OMP_NUM_THREADS": "1"},
                                              allow=[""]) for name in NODES})

    def rank(self, node: str) -> int:
        """The process that trains there."""
        [pid] = [pid for pid in descendants(self.commands[node].pid)
                 if "held_up.py" in (words := words_of(pid)) and "torchrun" not in words]
        return pid


@pytest.fixture(scope="module")
def job(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft)
        site.join(*NODES)
        job = Job(site, weft, tmp_path_factory.mktemp("job"))
        for command in job.commands.values():
            command.wait_line("it trains", 120)
        job.wait_well(WELL_S)
        yield job
        job.end()


def test_its_steps(job: Job) -> None:
    """By weft.report() of the script."""
    first = wait_for(lambda: job.look().get("step"), 20, "a step to be known")
    wait_for(lambda: job.look()["step"] > first + 3, 30, "more of them")
    text = job.site.hub.run([job.weft, "jobs"]).out
    assert re.search(r"^    step \d+, \d+\.\d\d steps/s$", text, re.M), text


def test_a_slow_line(job: Job) -> None:
    job.site.lab.link("n2").set(out_rate="1.6mbit", out_queue="64k")
    job.wait_named("a line of 200 kB/s", "WEFT-RANK-001", "train/n2")
    said = r"n2 > (n[134]): ([\d.]+) MB/s while it sends, was ([\d.]+) MB/s; "

    def at_last() -> dict | None:
        """Once no second of before is in its samples any more."""
        [found] = job.held_up_by()
        match = re.match(said, found["text"])
        assert match, found["text"]
        return found if float(match[2]) < 0.3 else None

    found = wait_for(at_last, 20, "the rate to be that of now")
    match = re.match(said, found["text"])
    assert float(match[2]) > 0.05
    assert float(match[3]) > 3 * float(match[2])
    assert f"weft paths {match[1]}" in found["fix"]
    text = job.site.hub.run([job.weft, "jobs"]).out
    assert re.search(rf"^    HELD UP BY n2 > {match[1]}: .* was .*, for \d+ s$", text, re.M), text
    assert re.search(r"^        WEFT-RANK-001: On n2: ", text, re.M), text
    job.site.lab.link("n2").set(out_rate="0kbit")
    job.wait_mended("a line of 200 kB/s")
    job.wait_well(10)


def test_a_rank_that_computes(job: Job) -> None:
    slow = job.folder / "n4"
    slow.touch()
    found = job.wait_named("a rank that computes", "WEFT-RANK-003", "train/n4")
    # Where other programs have the cores, it is that it does not get one.
    assert re.match(r"n4 (computes|wants a core, and does not get it, for) \d+ % of the time while "
                    r"the others wait; the job moves [\d.]+ MB/s, was [\d.]+ MB/s$",
                    found["text"]), found["text"]
    slow.unlink()
    job.wait_mended("a rank that computes")


def test_a_rank_that_is_stopped(job: Job) -> None:
    pid = job.rank("n3")
    os.kill(pid, signal.SIGSTOP)
    found = job.wait_named("a stopped rank", "WEFT-RANK-004", "train/n3")
    assert re.match(r"n3: 1 of the job's \d+ processes there is stopped", found["text"])
    assert found["severity"] == "critical"
    os.kill(pid, signal.SIGCONT)
    job.wait_mended("a stopped rank")
    job.wait_well(10)
