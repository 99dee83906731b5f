"""A job of fixed size without one of its nodes: how its other nodes wait, and end.

    hub 203.0.113.10, and n1, n2, n3 on .11 to .13.

torchrun is a program of this test that waits: what is tested is what `weft run` does around it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.agents import HUB_AWAY, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
# The first one that misses the node begins the job's next run, which the other one may see first.
WAITS = "until all nodes of the job are there, to start|meets at another hub or in a new run now"
# The hub misses a command after 15 s, and each node looks every three.
LOST_S = 60


# It waits, without a process of its own, until SIGUSR1 says that its work is done.
TORCHRUN = """#!/bin/sh
exec /usr/bin/python3 -c '
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
print("torchrun is there", flush=True)
while True:
    signal.pause()
'
"""


class Jobs:
    def __init__(self, site: Site, weft: Path, torchrun: Path) -> None:
        self.site, self.weft, self.torchrun = site, weft, torchrun

    def start_on(self, node: str, job: str, *words: str, nnodes: int = len(NODES)) -> Daemon:
        return self.site.nodes[node].host.spawn(
            [self.weft, "run", "--nnodes", nnodes, "--job", job, *words, self.torchrun,
             "train.py"], name=job, allow=[""])

    def end_hub(self) -> None:
        for node in self.site.nodes.values():
            node.agent.allow(HUB_AWAY)
            node.agent.allow("UDP to the hub fails, and so does TLS")
        self.site.daemon.kill9()

    def start(self, job: str, *words: str) -> dict[str, Daemon]:
        jobs = {node: self.start_on(node, job, *words) for node in NODES}
        for each in jobs.values():
            each.wait_line("torchrun is there", 20)
        return jobs


@pytest.fixture(scope="module")
def jobs(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    torchrun = tmp_path_factory.mktemp("bin") / "torchrun"
    torchrun.write_text(TORCHRUN)
    torchrun.chmod(0o755)
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft)
        site.join(*NODES)
        yield Jobs(site, weft, torchrun)


def count(job: Daemon, text: str) -> int:
    return sum(text in line for line in job.lines())


def lose(running: dict[str, Daemon], node: str) -> None:
    """Its weft run is killed, and torchrun with it."""
    running[node].kill9()


def wait_ends(job: Daemon, text: str, rc: int, within_s: float) -> None:
    job.wait_line(text, within_s)
    wait_for(lambda: not job.running, 20, f"{job.name} to end")
    assert job.rc == rc


def test_a_person_ends_the_wait(jobs: Jobs) -> None:
    """On one of two nodes that wait for the third: the other one is told."""
    running = jobs.start("person")
    lose(running, "n3")
    for node in ("n1", "n2"):
        running[node].wait_line(WAITS, LOST_S)
    running["n1"].interrupt()
    wait_ends(running["n1"], "interrupted while it waited: the job's other nodes are told",
              -signal.SIGINT, 20)
    wait_ends(running["n2"], r"the command of the job person\.2 has ended on n1: not started again",
              1, 20)


def test_it_is_begun_again_so_often(jobs: Jobs) -> None:
    """A script that always takes its machine down is not begun again for ever."""
    running = jobs.start("often", "--max-restarts", "1")
    lose(running, "n3")
    for node in ("n1", "n2"):
        running[node].wait_line(WAITS, LOST_S)
    running["n3"] = jobs.start_on("n3", "often", "--max-restarts", "1")
    for node, times in (("n1", 2), ("n2", 2), ("n3", 1)):
        wait_for(lambda n=node, t=times: count(running[n], "torchrun is there") == t, LOST_S,
                 f"torchrun of {node} to begin again")
    lose(running, "n3")
    for node in ("n1", "n2"):
        wait_ends(running[node], "was started again 1 time, as often as --max-restarts allows: "
                  "not started again", 1, LOST_S)
    # The one that was lost comes back, and hears that nobody waits for it.
    running["n3"] = jobs.start_on("n3", "often", "--max-restarts", "1")
    running["n3"].wait_line(r"this node was lost, and the run often\.3 of the job has ended "
                            "without it, on n1, n2: the job begins when the same command", 20)
    running["n3"].wait_line("torchrun is there", 20)
    # It still waits, and so the job can begin.
    for node in ("n1", "n2"):
        running[node] = jobs.start_on(node, "often", "--max-restarts", "1")
        running[node].wait_line("torchrun is there", 20)
    assert not any(count(running[node], "this node was lost") for node in ("n1", "n2"))
    for each in running.values():
        each.interrupt()


def test_a_job_that_has_its_nodes(jobs: Jobs) -> None:
    """A third one is refused at its start, also after the hub was started anew, and takes no place
    of a node that is to come back; it takes that of one that was lost."""
    def start_two(*nodes: str) -> dict[str, Daemon]:
        running = {node: jobs.start_on(node, "two", nnodes=2) for node in nodes}
        for each in running.values():
            each.wait_line("torchrun is there", 30)
        return running

    def check_refused() -> None:
        third = jobs.start_on("n3", "two", nnodes=2)
        wait_ends(third, r'weft run: the job "two" has its 2 nodes, n1( \(.*\))?, n2( \(.*\))?, '
                  "and this would be one more: give it another --job, or --nnodes 2:3", 1, 60)
        assert count(third, "torchrun is there") == 0

    running = start_two("n1", "n2")
    check_refused()
    # Both are begun again, and the third one is there before them.
    jobs.end_hub()
    jobs.site.start_hub()
    check_refused()
    for each in running.values():
        wait_for(lambda j=each: count(j, "torchrun is there") == 2, 120,
                 f"torchrun of {each.name} to begin again")
    check_refused()
    lose(running, "n2")
    running["n1"].wait_line("until all nodes of the job are there, to start", LOST_S)
    running["n3"] = jobs.start_on("n3", "two", nnodes=2)
    running["n3"].wait_line("torchrun is there", 60)
    wait_for(lambda: count(running["n1"], "torchrun is there") == 3, 60, "n1 to go on with n3")
    for node in ("n1", "n3"):
        running[node].interrupt()


def finish(job: Daemon) -> None:
    """The work is done here, and torchrun ends well."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGUSR1)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_job_whose_work_is_done(jobs: Jobs, when: str) -> None:
    """It has ended on one node before the hub is killed, or while it is away; the other one, which
    the loss of the hub has ended, does not begin again."""
    running = {node: jobs.start_on(node, f"done-{when}", nnodes=2) for node in ("n1", "n2")}
    for each in running.values():
        each.wait_line("torchrun is there", 30)
    if when == "before":
        finish(running["n1"])
        wait_for(lambda: not running["n1"].running, 30, "n1 to end")
    jobs.end_hub()
    if when == "meanwhile":
        finish(running["n1"])
        running["n1"].wait_line("the command has ended, and the hub does not answer", 30)
    jobs.site.start_hub()
    wait_ends(running["n2"], "the command of the job .*has ended on n1.*: not started again",
              1, 120)
    wait_for(lambda: not running["n1"].running, 60, "n1 to end")
    assert running["n1"].rc == 0
    assert [count(job, "torchrun is there") for job in running.values()] == [1, 1]
