"""Real torchrun jobs go on when the hub that serves their rendezvous is killed, or a node is lost.

    etcd, hub, hub-b, hub-c ── [ wan ] ── a, b, late

Three hubs share one etcd, and end one after another. The client of c10d does not connect again:
weft run ends such a job when another hub serves it, and starts it again from its checkpoint. That
of etcd-v2 finds the other hub by its name. Some jobs are elastic, others have a fixed number of
nodes. Jobs run beside each other, since most of their time is waiting.
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

    def argv(self, nnodes: str, job: str, *words: str) -> list[object]:
        return [self.weft, "run", "--nnodes", nnodes, "--job", job, *words, "torchrun",
                "--rdzv_conf", "is_host=false,last_call_timeout=1", PROGRAMS / "counting_job.py",
                f"/var/lib/weft/{job}.checkpoint"]

    def start_on(self, node: str, nnodes: str, job: str, *words: str) -> Daemon:
        return self.lab.host(node).spawn(self.argv(nnodes, job, *words), name=job,
                                         env={"OMP_NUM_THREADS": "1"}, allow=[""])

    def start_job(self, nnodes: str, job: str, *words: str) -> dict[str, Daemon]:
        return {node: self.start_on(node, nnodes, job, *words) for node in NODES}


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


def wait_training(jobs: dict[str, Daemon]) -> None:
    wait_for(lambda: len(said(jobs, STEP)) > 20, 90, "the nodes to train")


def kill_torchrun(site: Site, job: Daemon, node: str) -> None:
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
    site.lab.host(node).run(["kill", "-9", *children.split()])


def test_a_node_of_a_fixed_job_is_lost(site: Site) -> None:
    """Its torchrun alone, and weft run with all below it, as when its machine is started anew.

    weft run begins the first job again at once, and so do the other nodes, although none of them
    has failed. Of the second job the other node fails, waits for this one, and begins again when
    somebody starts the command there once more.
    """
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    killed, lost = site.start_job("2", "killed"), site.start_job("2", "lost")
    for jobs in (killed, lost):
        wait_training(jobs)
    kill_torchrun(site, killed["b"], "b")
    # torchrun ends with it.
    lost["b"].kill9()
    lost_at = time.monotonic()
    lost["a"].wait_line("waiting for up to 10 min.* until all nodes of the job are there", 60)
    assert any(re.search(r"lost of the job lost\.1: b, whose", line) for line in lost["a"].lines())
    back_at = time.monotonic()
    lost["b"] = site.start_on("b", "2", "lost")
    finish(killed, "a torchrun of a job of fixed size is killed", lost_at)
    finish(lost, "a node of a job of fixed size comes back", back_at)


def test_the_owner_of_the_jobs_rendezvous_is_killed(site: Site) -> None:
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    owner = wait_for(site.owner, 10, "a hub to serve the rendezvous")
    kinds = {"elastic": ("2:3",), "fixed": ("2",), "etcd": ("2:3", "--rendezvous", "etcd-v2")}
    jobs = {kind: site.start_job(words[0], kind, *words[1:]) for kind, words in kinds.items()}
    for job in jobs.values():
        wait_training(job)
    site.hubs[owner].kill9()
    lost_at = time.monotonic()
    for kind in ("elastic", "fixed"):
        finish(jobs[kind], f"the owner of a rendezvous is killed, {kind} by c10d", lost_at)
    assert site.owner() not in ("", owner)
    # The other job has not so much as paused: its torchrun waits for the hub, and its workers not.
    later = [float(match[3]) for match in said(jobs["etcd"], STEP)]
    gap_s = max(b - a for a, b in zip(later, later[1:]))
    print(f"FIGURE the owner of a rendezvous is killed, elastic by etcd-v2: longest time without "
          f"a step {gap_s:.1f} s (to be below 30)")
    assert len(said(jobs["etcd"], BEGUN)) == 2
    for job in jobs["etcd"].values():
        assert job.running
        job.stop()
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
