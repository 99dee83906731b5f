"""Real torchrun jobs go on when the hub that serves their rendezvous is killed, or a node is lost.

    store, hub, hub-b, hub-c ── [ wan ] ── a, b, late

Three hubs share one etcd, and end one after another. The client of c10d does not connect again:
weft run ends such a job when another hub serves it, and starts it again from its checkpoint. That
of etcd-v2 finds the other hub by its name. Some jobs are elastic, others have a fixed number of
nodes. Jobs run beside each other, since most of their time is waiting.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.etcd import start_etcd
from lab.support.three_hubs import (
    COMPLAINTS, NODES, ThreeHubs, finish, finish_after_takeover, topology, wait_training,
)

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not shutil.which("etcd"), reason="there is no etcd (Debian's etcd-server)"),
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

CLIENT = "http://203.0.113.10:2379"
PEER = "http://203.0.113.10:2380"
STORE = "etcd://203.0.113.10?prefix=/weft/lab"


@pytest.fixture(scope="module")
def site(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeHubs]:
    with Lab.from_text(topology(), capture=False) as lab:
        start_etcd(lab.host("store"), tmp_path_factory.mktemp("etcd"), CLIENT, PEER)
        site = ThreeHubs(lab, weft, STORE)
        yield site
        site.stop()


def kill_torchrun(site: ThreeHubs, job: Daemon, node: str) -> None:
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
    site.lab.host(node).run(["kill", "-9", *children.split()])


def test_a_node_of_a_fixed_job_is_lost(site: ThreeHubs) -> None:
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


def test_the_owner_of_the_jobs_rendezvous_is_killed(site: ThreeHubs) -> None:
    wait_for(lambda: all(map(site.knows_all, NODES)), 30, "each node to know each hub")
    owner = wait_for(site.owner, 10, "a hub to serve the rendezvous")
    kinds = {"elastic": ("2:3",), "fixed": ("2",), "etcd": ("2:3", "--rendezvous", "etcd-v2")}
    jobs = {kind: site.start_job(words[0], kind, *words[1:]) for kind, words in kinds.items()}
    for job in jobs.values():
        wait_training(job)
    site.hubs[owner].kill9()
    lost_at = time.monotonic()
    finish_after_takeover(site, owner, jobs, lost_at)
    site.hubs[owner] = site.start_hub(owner)


def test_the_owner_stops_while_a_job_starts(site: ThreeHubs) -> None:
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
