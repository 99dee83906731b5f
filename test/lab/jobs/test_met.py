"""A job whose nodes never meet does not end as if all were well.

    hub 203.0.113.10, and n1, n2 on .11 and .12

What a command has met is seen from its connections on the overlay, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.agents import Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

PYTHON = "/usr/bin/python3"
NODES = ("n1", "n2")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
STRAYED = 3
WAIT = ("sh", "-c", "echo started; exec sleep 600")
needs_torch = pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                                 reason="python3-torch is not installed")

# A process group of one, in a store of its own, as of a script to which no variable came.
ALONE = """
import torch
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 1, True)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
ones = torch.ones(1)
dist.all_reduce(ones)
dist.destroy_process_group()
print("has trained")
"""
# Rank 1 says a word to rank 0, and both end.
TALK = """
import os, socket, time
at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    with socket.create_server(at) as server:
        connection, _ = server.accept()
        print(connection.recv(5))
else:
    while True:
        try:
            connection = socket.create_connection(at)
        except ConnectionRefusedError:
            time.sleep(0.1)
            continue
        connection.sendall(b"hello")
        break
connection.close()
"""


class Jobs:
    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.site = Site(lab, weft)
        self.site.join(*NODES)
        self.started: list[Daemon] = []
        self.alone = folder / "alone.py"
        self.alone.write_text(ALONE)
        self.talk = folder / "talk.py"
        self.talk.write_text(TALK)

    def start(self, name: str, job: str, words: Sequence[object], *options: object) -> Daemon:
        argv = [self.weft, "run", "--nnodes", 2, "--job", job, *options, "--", *words]
        started = self.lab.host(name).spawn(argv, name=f"job-{job}", env={"OMP_NUM_THREADS": "1"},
                                            allow=[""])
        self.started.append(started)
        return started

    def ended(self, *jobs: Daemon) -> list[tuple[int | None, str]]:
        """How they have ended, and what was said."""
        wait_for(lambda: not any(job.running for job in jobs), 300, "the commands to end")
        return [(job.rc, "\n".join(job.lines())) for job in jobs]

    def stop(self) -> None:
        """What is left of a test that failed would be what a node of the next test is in."""
        for job in self.started:
            if job.running:
                job.stop()
        self.started.clear()


@pytest.fixture(scope="module")
def module_jobs(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Jobs(lab, weft, tmp_path_factory.mktemp("met"))


@pytest.fixture
def jobs(module_jobs: Jobs) -> Iterator[Jobs]:
    yield module_jobs
    module_jobs.stop()


def is_silent(text: str) -> bool:
    return "another node of the job" not in text


def is_told(text: str, job: str) -> bool:
    """That it met nobody. A command of n2 that was just told to end may still count as there."""
    return re.search(rf"note: sh has ended, and has exchanged nothing with another node of the job "
                     rf"{job}\.1 \(n2 (has not started it|is in the job \S+)\)", text) is not None


@needs_torch
@pytest.mark.parametrize("words", [
    (PYTHON, "{}"), ("sh", "-c", PYTHON + " {}"), ("env", "-i", PYTHON, "{}"),
], ids=["plain", "sh", "env"])
def test_torch_alone(jobs: Jobs, words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """It has trained well, but with nobody: that is no success."""
    job = request.node.callspec.id
    words = [word.format(jobs.alone) for word in words]
    other = jobs.start("n2", job, WAIT)
    other.wait_line("started")
    [(rc, text)] = jobs.ended(jobs.start("n1", job, words))
    assert "has trained" in text
    assert rc == STRAYED, text
    assert f"{words[0]} has used torch and has ended alone: it has exchanged nothing with " \
           f"another node of the job {job}.1 (n2 has started it, too, and was not met), so the " \
           f"exit status is {STRAYED}" in text


@needs_torch
def test_torch_that_failed_by_itself(jobs: Jobs) -> None:
    """Its own failure is what counts."""
    [(rc, text)] = jobs.ended(
        jobs.start("n1", "failed", ["sh", "-c", f"{PYTHON} {jobs.alone}; exit 7"]))
    assert rc == 7, text
    assert is_told(text, "failed"), text


@needs_torch
def test_no_rendezvous_no_word(jobs: Jobs) -> None:
    [(rc, text)] = jobs.ended(
        jobs.start("n1", "none", [PYTHON, jobs.alone], "--rendezvous", "none"))
    assert rc == 0 and is_silent(text), text


@pytest.mark.parametrize("status", [0, 5])
def test_another_command_keeps_its_status(jobs: Jobs, status: int) -> None:
    [(rc, text)] = jobs.ended(jobs.start("n1", f"plain-{status}", ["sh", "-c", f"exit {status}"]))
    assert rc == status, text
    assert is_told(text, f"plain-{status}"), text


def test_who_has_met_hears_nothing(jobs: Jobs) -> None:
    """A word, on a connection that is gone before anybody has looked."""
    talk = [jobs.start(name, "talk", [PYTHON, jobs.talk]) for name in NODES]
    for rc, text in jobs.ended(*talk):
        assert rc == 0 and is_silent(text), text


def test_another_job(jobs: Jobs) -> None:
    """The nodes run the same script under two names."""
    other = jobs.start("n2", "theirs", WAIT)
    other.wait_line("started")
    mine = jobs.start("n1", "ours", WAIT)
    mine.wait_line("still waiting: .* not yet: n2 is in the job theirs: give all the same --job",
                   60)
    mine.stop()
    [(rc, text)] = jobs.ended(jobs.start("n1", "ours", ["true"]))
    assert rc == 0 and "(n2 is in the job theirs)" in text, text


def test_both_run_and_have_not_met(jobs: Jobs) -> None:
    """Said once, after a minute, while they run."""
    apart = [jobs.start(name, "apart", WAIT) for name in NODES]
    for job, other in zip(apart, reversed(NODES), strict=True):
        job.wait_line(rf"sh runs for \d+ s now, and has exchanged nothing with another node of "
                      rf"the job apart\.1: {other} has started it, too, and was not met", 150)
    for job in apart:
        job.stop()
        assert "has ended, and" not in "\n".join(job.lines())
