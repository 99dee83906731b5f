"""Real torchrun jobs over four nodes behind two NATs, a symmetric one among them, by `weft run`.

No variable is set by hand but OMP_NUM_THREADS; the topology is topo/two-providers.topo. The nodes
meet at the hub. One of them loses its power, the one of rank 0; the hub is killed and started
again; the job goes on from its checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support import ROOT

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

NODES = ("n1", "n2", "n3", "n4")
HUB_AWAY = ["the hub does not answer", "UDP to the hub fails, and so does TLS"]


class Site:
    """The lab with a hub and four nodes that have joined."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.hub = lab.host("hub")
        self.start_hub()
        for name in NODES:
            token = self.hub.run([weft, "token", "new"], quiet=True).out.strip()
            host = lab.host(name)
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent", allow=HUB_AWAY).wait_line("the hub answers")

    def start_hub(self) -> None:
        self.daemon = self.hub.spawn([self.weft, "hub", "up", "--public", self.hub.address()],
                                     name="hub")
        self.daemon.wait_line("weft hub is up")

    def start(self, nnodes: str, *words: object) -> dict[str, Daemon]:
        """The same command on every node."""
        argv = [self.weft, "run", "--nnodes", nnodes, *words]
        return {name: self.lab.host(name).spawn(argv, name="job", env={"OMP_NUM_THREADS": "1"},
                                                allow=[""])
                for name in NODES}


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_file(ROOT / "test/lab/topo/two-providers.topo") as lab:
        yield Site(lab, weft)


def said(jobs: dict[str, Daemon], pattern: str) -> list[tuple[str, re.Match[str]]]:
    """Lines that begin with `pattern`, each with the node that has printed it."""
    return [(name, match) for name, job in jobs.items() for line in job.lines()
            if (match := re.match(pattern, line))]


def end_of(jobs: dict[str, Daemon], seconds: float) -> dict:
    """Wait for all of them, which must succeed; what rank 0 says at the end."""
    wait_for(lambda: not any(job.running for job in jobs.values()), seconds, "the job to end")
    for name, job in jobs.items():
        assert job.rc == 0, f"{name}: " + "\n".join(job.lines()[-30:])
    [(_, result)] = said(jobs, r'({"world".*})')
    return json.loads(result[1])


def test_a_job_on_four_nodes(site: Site) -> None:
    jobs = site.start("4", "torchrun", ROOT / "examples/train_ddp.py", "--steps", 40)
    result = end_of(jobs, 120)
    assert result["world"] == 4
    assert result["last_loss"] < result["first_loss"] / 2
    assert result["same_weights"] is True


@pytest.mark.parametrize("backend", ["c10d", "etcd-v2"])
def test_a_job_that_outlives_rank_0_and_the_hub(site: Site, backend: str) -> None:
    # torchrun waits half a minute for more nodes than the fewest, at each of the three meetings.
    jobs = site.start("2:4", "--rendezvous", backend, "--job", backend, "torchrun", "--rdzv_conf",
                      "is_host=false,last_call_timeout=5", ROOT / "examples/train_ddp.py",
                      "--steps", 120, "--pause", "0.1", "--checkpoint",
                      f"/var/lib/weft/{backend}.pt", "--timeout", 10)
    begun = r"(\d) ranks, from step (\d+)"
    wait_for(lambda: said(jobs, r"step +20/.* world 4"), 150, "four nodes to train")

    # Power off: not a word to anybody.
    lost, _ = said(jobs, r"step +20/.* world 4")[-1]
    site.lab.link(lost).down()
    jobs.pop(lost).kill9()
    again = wait_for(lambda: [m for _, m in said(jobs, begun) if m[1] == "3"], 150,
                     "the others to begin again")[-1]
    assert int(again[2]) >= 20
    wait_for(lambda: said(jobs, r"step +60/.* world 3"), 60, "the others to train")

    site.daemon.kill9()
    site.start_hub()
    result = end_of(jobs, 200)
    # etcd's client connects again by itself; TCPStore's does not, so the job is begun once more.
    steps = [int(match[2]) for _, match in said(jobs, begun)]
    assert (max(steps) > int(again[2])) == (backend == "c10d")
    assert result["world"] == 3
    assert result["steps"] == 120
    assert result["last_loss"] < result["first_loss"] / 2
    assert result["same_weights"] is True
    site.lab.link(lost).up()


CALLED_OTHERWISE = """
switch wan 203.0.113.0/24
host hub
host a1
host a2
link hub wan 203.0.113.10
link a1 wan 203.0.113.11
link a2 wan 203.0.113.12
"""
# torchrun of torch 1.13 announces the host's name; as root weft run gives it the node's.
WITHOUT_NAMESPACE = ["setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin"]


@pytest.fixture(scope="module")
def other_names(weft: Path) -> Iterator[Lab]:
    """Machines a1 and a2, which are the nodes gpu-1 and gpu-2."""
    with Lab.from_text(CALLED_OTHERWISE) as lab:
        hub = lab.host("hub")
        hub.spawn([weft, "hub", "up", "--public", hub.address(), "--cidr4", "10.42.0.0/16"],
                  name="hub").wait_line("weft hub is up")
        for name, host in (("gpu-1", lab.host("a1")), ("gpu-2", lab.host("a2"))):
            token = hub.run([weft, "token", "new"], quiet=True).out.strip()
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent").wait_line("the hub answers")
        for host, other in (("a1", "a2"), ("a2", "a1")):
            wait_for(lambda h=host, o=other: lab.host(h).run(
                ["getent", "ahostsv4", o], check=False, quiet=True).out.startswith("10.42."), 15,
                f"{host} to know {other}")
        yield lab


@pytest.mark.parametrize("before", [[], WITHOUT_NAMESPACE], ids=["root", "unprivileged"])
def test_machines_that_are_called_otherwise_than_their_nodes(
        other_names: Lab, weft: Path, before: list[str]) -> None:
    job = f"job-{len(before)}"
    argv = [*before, weft, "run", "--nnodes", "2", "--job", job, "torchrun",
            ROOT / "examples/train_ddp.py", "--steps", 20]
    jobs = {name: other_names.host(name).spawn(argv, name=job, env={"OMP_NUM_THREADS": "1"},
                                               allow=[""]) for name in ("a1", "a2")}
    assert end_of(jobs, 60)["world"] == 2
    assert other_names.host("a1").run(["hostname"]).out == "a1\n"


def test_preflight_looks_at_the_host_names(other_names: Lab, weft: Path) -> None:
    """As root weft run gives the job another one; else it has to lead to the node."""
    host = other_names.host("a2")
    ask = [weft, "preflight", "--quick", "--json", "--socket", "/run/weft/agent.sock"]
    # NCCL and Gloo would take what they like then; here only this is looked at.
    plain = [*ask, "--plain"]

    def found(argv: list) -> list[dict]:
        done = host.run(argv, check=False, timeout_s=60)
        assert done.rc in (0, 3), done.err
        return [f for f in json.loads(done.out)["findings"] if f["fault"] == "host-name"]

    assert found(ask) == found(plain) == []
    host.run(["sh", "-c", "cp /etc/hosts /run/hosts; echo 192.0.2.9 a1 >> /etc/hosts"])
    wait_for(lambda: host.run(["getent", "ahostsv4", "a1"], quiet=True).out.startswith("192.0.2.9"),
             15, "a1 to be elsewhere")
    assert found(ask) == []
    [finding] = found(plain)
    assert (finding["level"], finding["nodes"]) == ("no", ["gpu-1"])
    assert '"a1", leads to 192.0.2.9 on gpu-2' in finding["text"]
    host.run(["cp", "/run/hosts", "/etc/hosts"])


def test_a_job_says_who_is_missing(other_names: Lab, weft: Path) -> None:
    job = other_names.host("a1").spawn(
        [weft, "run", "--nnodes", "2", "--job", "alone", "torchrun",
         ROOT / "examples/train_ddp.py"], name="alone", allow=[""])
    job.wait_line(r"still waiting: 1 of 2 nodes has come to the job alone\.1 \(gpu-1\); not yet: "
                  r"gpu-2: start the same command there", 30)
    job.stop()
