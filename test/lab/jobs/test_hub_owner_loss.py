"""A real torchrun job goes on when the hub that serves its rendezvous is killed.

    etcd, hub, hub-b, hub-c ── [ wan ] ── a, b, late

Three hubs share one etcd, and end one after another. The jobs meet by c10d, whose client does not
connect again: weft run ends them when another hub serves them, and starts them again from their
checkpoints. One job is elastic; others have a fixed number of nodes, and of one of these a
torchrun is killed.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import ConditionError, Daemon, Lab, wait_for
from lab.support import PROGRAMS

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not shutil.which("etcd"), reason="there is no etcd (Debian's etcd-server)"),
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

ADDRESSES = {"etcd": 10, "hub": 11, "hub-b": 12, "hub-c": 13, "a": 14, "b": 15,
             "late": 16}
HUBS = ("hub", "hub-b", "hub-c")
NODES = ("a", "b")
CLIENT = "http://203.0.113.10:2379"
PEER = "http://203.0.113.10:2380"
STORE = "etcd://203.0.113.10?prefix=/weft/lab"
# What a node may say of a hub that was killed.
COMPLAINTS = ["the hub does not answer|UDP to the hub|report"]
BEGUN = r"rank (\d) of 2 begins at step (\d+)"
STEP = r"step (\d+) total (\d+) at ([\d.]+)"


def topology() -> str:
    lines = ["switch wan 203.0.113.0/24"]
    for name, last in ADDRESSES.items():
        lines += [f"host {name} no-v6", f"link {name} wan 203.0.113.{last}"]
    return "\n".join(lines)


def start_etcd(lab: Lab, directory: Path) -> None:
    host = lab.host("etcd")
    host.spawn(["/usr/bin/etcd", "--name", "one", "--data-dir", directory,
                "--listen-client-urls", CLIENT, "--advertise-client-urls", CLIENT,
                "--listen-peer-urls", PEER, "--initial-advertise-peer-urls", PEER,
                "--initial-cluster", f"one={PEER}", "--logger=zap", "--log-level=error"],
               name="etcd")
    wait_for(lambda: "true" in host.run(["curl", "-s", f"{CLIENT}/health"], check=False,
                                        quiet=True).out, 10, "etcd to answer")


class Site:
    """The three hubs, and two nodes that have joined."""

    def __init__(self, lab: Lab, weft: Path, directory: Path) -> None:
        self.lab = lab
        self.weft = weft
        start_etcd(lab, directory)
        self.hubs = {name: self.start_hub(name) for name in HUBS}
        for name, hub in zip(NODES, HUBS):
            token = lab.host(hub).run([weft, "token", "new"], quiet=True).out.strip()
            host = lab.host(name)
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent", allow=COMPLAINTS).wait_line(
                "the hub answers", 20)

    def start_hub(self, name: str) -> Daemon:
        host = self.lab.host(name)
        daemon = host.spawn([self.weft, "hub", "up", "--name", name, "--public", host.address(),
                             "--cidr4", "10.42.0.0/16", "--store", STORE], name=name)
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

    def start_job(self, nnodes: str, job: str) -> dict[str, Daemon]:
        argv = [self.weft, "run", "--nnodes", nnodes, "--job", job, "torchrun", "--rdzv_conf",
                "is_host=false,last_call_timeout=1", PROGRAMS / "counting_job.py",
                f"/var/lib/weft/{job}.checkpoint"]
        return {name: self.lab.host(name).spawn(argv, name=job, env={"OMP_NUM_THREADS": "1"},
                                                allow=[""]) for name in NODES}


@pytest.fixture(scope="module")
def site(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Lab.from_text(topology(), capture=False) as lab:
        site = Site(lab, weft, tmp_path_factory.mktemp("etcd"))
        yield site
        # They end before their etcd does, or they would wait for it.
        for daemon in site.hubs.values():
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


def train(site: Site, nnodes: str, job: str) -> dict[str, Daemon]:
    jobs = site.start_job(nnodes, job)
    wait_for(lambda: len(said(jobs, STEP)) > 20, 40, "the nodes to train")
    return jobs


def test_a_torchrun_of_a_fixed_job_is_killed(site: Site) -> None:
    """weft run begins it again, and so do the other nodes, although none of them has failed."""
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    jobs = train(site, "2", "lost")
    children = Path(f"/proc/{jobs['b'].pid}/task/{jobs['b'].pid}/children").read_text()
    site.lab.host("b").run(["kill", "-9", *children.split()])
    lost_at = time.monotonic()
    finish(jobs, "a torchrun of a job of fixed size is killed", lost_at)


@pytest.mark.parametrize("nnodes", ["2:3", "2"])
def test_the_owner_of_a_jobs_rendezvous_is_killed(site: Site, nnodes: str) -> None:
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    owner = wait_for(site.owner, 10, "a hub to serve the rendezvous")
    jobs = train(site, nnodes, "count" if ":" in nnodes else "fixed")
    site.hubs[owner].kill9()
    finish(jobs, f"the owner of a rendezvous is killed, {nnodes} nodes", time.monotonic())
    assert site.owner() not in ("", owner)
    site.hubs[owner] = site.start_hub(owner)


def test_the_owner_stops_while_a_job_starts(site: Site) -> None:
    """No hub serves the rendezvous for a moment: weft run waits until another one does.

    A client of etcd's finds the other one by the name that it knows. A machine joins and leaves
    with a token that the hub has made which is away.
    """
    def step(*words: str) -> str:
        url = "http://rendezvous.default.weft:2379/v2/keys/step"
        return site.lab.host("a").run(["curl", "-s", "-m", "2", *words, url], check=False,
                                      quiet=True).out

    owner = wait_for(site.owner, 10, "a hub to serve the rendezvous")
    assert json.loads(step("-X", "PUT", "-d", "value=41"))["node"]["value"] == "41"
    token = site.lab.host(owner).run([site.weft, "token", "new"], quiet=True).out.strip()
    assert site.hubs[owner].stop() == 0
    explained = site.lab.host("a").run(
        [site.weft, "run", "--explain", "--nnodes", "2", "--job", "later", "torchrun", "x.py"])
    assert "job later" in explained.out
    assert site.owner() not in ("", owner)
    wait_for(lambda: '"value":"41"' in step(), 20, "the name to lead to the other hub")

    late, other = site.lab.host("late"), site.owner()
    late.run([site.weft, "join", token, "--name", "late", "--no-start"], quiet=True)
    agent = late.spawn([site.weft, "agent"], name="agent", allow=COMPLAINTS)
    agent.wait_line("the hub answers", 20)

    def lists(pattern: str) -> bool:
        shown = site.lab.host(other).run([site.weft, "nodes"], quiet=True).out
        return re.search(pattern, shown, re.MULTILINE) is not None

    assert lists(r"^late +10\.42\.")
    wait_for(lambda: lists(rf"^{owner} .* hub, away "), 20, "the hub to be seen as away")
    late.run([site.weft, "leave"], quiet=True)
    assert not lists("^late ")
