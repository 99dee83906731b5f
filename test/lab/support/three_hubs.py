"""Three hubs that share a store, two nodes, and real torchrun jobs on them.

    [store], hub, hub-b, hub-c ── [ wan ] ── a, b, late

A job is programs/counting_job.py, run by weft run on both nodes. What of it is lost is for the
tests; finish() holds that it has gone on.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path

from . import PROGRAMS
from .network.laboratory import Lab
from .network.process import Daemon
from .waiting import ConditionError, wait_for

ADDRESSES = {"store": 10, "hub": 11, "hub-b": 12, "hub-c": 13, "a": 14, "b": 15,
             "late": 16}
HUBS = ("hub", "hub-b", "hub-c")
NODES = ("a", "b")
# What a node may say of a hub that was killed.
COMPLAINTS = ["the hub does not answer|UDP to the hub|report"]
BEGUN = r"rank (\d) of 2 begins at step (\d+)"
STEP = r"step (\d+) total (\d+) at ([\d.]+)"


def topology() -> str:
    lines = ["switch wan 203.0.113.0/24"]
    for name, last in ADDRESSES.items():
        lines += [f"host {name} no-v6", f"link {name} wan 203.0.113.{last}"]
    return "\n".join(lines)


class ThreeHubs:
    """They run, on one store, and two nodes have joined."""

    def __init__(self, lab: Lab, weft: Path, store: str, allow: Iterable[str] = ()) -> None:
        self.lab = lab
        self.weft = weft
        self.store = store
        self.allow = list(allow)
        self.hubs = {name: self.start_hub(name) for name in HUBS}
        for name, hub in zip(NODES, HUBS):
            token = lab.host(hub).run([weft, "token", "new"], quiet=True).out.strip()
            host = lab.host(name)
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent", allow=[*COMPLAINTS, *allow]).wait_line(
                "the hub answers", 20)

    def start_hub(self, name: str) -> Daemon:
        host = self.lab.host(name)
        daemon = host.spawn([self.weft, "hub", "up", "--name", name, "--public", host.address(),
                             "--cidr4", "10.42.0.0/16", "--store", self.store], name=name,
                            allow=self.allow)
        daemon.wait_line("weft hub is up", 20)
        return daemon

    def knows_all(self, name: str) -> bool:
        status = json.loads(
            self.lab.host(name).run([self.weft, "status", "--json"], quiet=True).out)
        return [hub["reachable"] for hub in status.get("hubs", [])] == [True] * len(HUBS)

    def owner(self) -> str:
        """The hub that has taken the rendezvous last and still runs."""
        epochs = {int(match[1]): name for name, daemon in self.hubs.items() if daemon.running
                  for line in daemon.lines()
                  if (match := re.search(r"serves the rendezvous .* \(epoch (\d+)\)", line))}
        return epochs[max(epochs)] if epochs else ""

    def argv(self, nnodes: str, job: str, *words: str) -> list[object]:
        return [self.weft, "run", "--nnodes", nnodes, "--job", job, *words, "torchrun",
                "--rdzv_conf", "is_host=false,last_call_timeout=1", PROGRAMS / "counting_job.py",
                f"/var/lib/weft/{job}.checkpoint"]

    def start_on(self, node: str, nnodes: str, job: str, *words: str) -> Daemon:
        return self.lab.host(node).spawn(self.argv(nnodes, job, *words), name=job,
                                         env={"OMP_NUM_THREADS": "1"}, allow=[""])

    def start_job(self, nnodes: str, job: str, *words: str) -> dict[str, Daemon]:
        return {node: self.start_on(node, nnodes, job, *words) for node in NODES}

    def stop(self) -> None:
        """They end before their store does, or they would wait for it."""
        for daemon in self.hubs.values():
            assert not daemon.running or daemon.stop() == 0


def said(jobs: dict[str, Daemon], pattern: str) -> list[re.Match[str]]:
    return [match for job in jobs.values() for line in job.lines()
            if (match := re.match(pattern, line))]


def finish(jobs: dict[str, Daemon], what: str, lost_at: float) -> None:
    """It ends well, and has gone on from where it was, with no step lost or counted twice."""
    with contextlib.suppress(ConditionError):  # What it has said tells more.
        wait_for(lambda: not any(job.running for job in jobs.values()), 60, "the job to end")
    for name, job in jobs.items():
        assert not job.running and job.rc == 0, f"{name}: " + "\n".join(job.lines()[-30:])
    first = int(said(jobs, BEGUN)[-1][2])
    steps = [tuple(map(float, match.groups())) for match in said(jobs, STEP)]
    # Each step adds 1 and 2, so this is so only if no step was lost or counted twice.
    assert all(total == 3 * step for step, total, _ in steps)
    again_s = min(at for step, _, at in steps if step > first and at > lost_at) - lost_at
    print(f"FIGURE {what}: the job goes on from step {first} after {again_s:.1f} s "
          "(to be below 30)")
    assert first >= 10


def wait_training(jobs: dict[str, Daemon]) -> None:
    wait_for(lambda: len(said(jobs, STEP)) > 20, 90, "the nodes to train")


def finish_after_takeover(site: ThreeHubs, owner: str, jobs: dict[str, dict[str, Daemon]],
                          lost_at: float) -> None:
    """The hub @owner was killed: jobs by c10d begin again, and one by etcd-v2 does not pause."""
    for kind in jobs:
        if kind != "etcd":
            finish(jobs[kind], f"the owner of a rendezvous is killed, {kind} by c10d", lost_at)
    assert site.owner() not in ("", owner)
    # torchrun of this one waits for the hub, and its workers do not.
    looked_at = time.monotonic()
    wait_for(lambda: all(float(said({name: daemon}, STEP)[-1][3]) > looked_at
                         for name, daemon in jobs["etcd"].items()), 20, "steps of the job by etcd")
    assert all(int(match[2]) == 3 * int(match[1]) for match in said(jobs["etcd"], STEP))
    steps = [[float(match[3]) for match in said({name: daemon}, STEP)]
             for name, daemon in jobs["etcd"].items()]
    gap_s = max(b - a for at in steps for a, b in zip(at, at[1:]))
    print(f"FIGURE the owner of a rendezvous is killed, elastic by etcd-v2: longest time without "
          f"a step {gap_s:.1f} s (to be below 30)")
    assert len(said(jobs["etcd"], BEGUN)) == 2
    for daemon in jobs["etcd"].values():
        assert daemon.running
        daemon.stop()
