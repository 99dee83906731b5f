"""Jobs that run with --isolate: nobody but their members reaches the ports at which they listen, by
the kernel's packet filter and by the data plane itself.

      hub        203.0.113.10
       |
     [ wan ]
     |  |  |
    n1 n2 n3     203.0.113.11 to .13

The job a is on n1 and n2, the job b on n2 and n3: to a, n3 is a stranger, and n1 to b.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support.agents import Site
from lab.support.enforcing import KINDS, Enforcing
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

PROGRAMS = Path(__file__).parents[1] / "support" / "programs"
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
NODES = ("n1", "n2", "n3")
needs_torch = pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                                 reason="python3-torch is not installed")
# Listens at a port that the kernel chooses, and says which one.
LISTEN = """
import socket, time
with socket.create_server(("0.0.0.0", 0)) as server:
    print("listens at", server.getsockname()[1], flush=True)
    while True:
        server.accept()[0].close()
"""
CONNECT = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])).close()
"""


class Jobs:
    def __init__(self, lab: Lab, weft: Path, enforcing: Enforcing) -> None:
        self.lab = lab
        self.weft = weft
        self.enforcing = enforcing
        self.site = Site(lab, weft, versions=(4,), wrap=enforcing.wrap)
        self.site.join(*NODES, words={name: enforcing.words for name in NODES})
        self.at = {name: self.site.nodes[name].address() for name in NODES}
        self.started: list[Daemon] = []

    def start(self, name: str, argv: list[object]) -> Daemon:
        started = self.lab.host(name).spawn(argv, name="job", env={"OMP_NUM_THREADS": "1"},
                                            allow=[""])
        self.started.append(started)
        return started

    def run(self, name: str, job: str, *command: object, nnodes: str = "2",
            words: tuple[str, ...] = ("--isolate",)) -> Daemon:
        return self.start(name, [self.weft, "run", "--nnodes", nnodes, "--job", job, *words, "--",
                                 *command])

    def listen(self, name: str, job: str, **options: object) -> tuple[Daemon, int]:
        """A command of the job that listens, and its port."""
        started = self.run(name, job, "/usr/bin/python3", "-c", LISTEN, **options)
        return started, int(started.wait_line(r"listens at (\d+)", 60)[1])

    def reaches(self, frm: str, to: str, port: int, within_s: float = 2) -> bool:
        return self.lab.host(frm).run(
            ["/usr/bin/python3", "-c", CONNECT, self.at[to], str(port), str(within_s)], check=False,
            quiet=True).rc == 0

    def rules(self) -> dict[str, dict]:
        said = self.site.hub.run([self.weft, "rule", "ls", "--json"], quiet=True).out
        return {r["metadata"]["name"]: r["spec"] for r in json.loads(said)["rules"]}

    def enforced_on(self) -> list[str]:
        return [name for name in NODES if self.enforcing.is_on(self.lab.host(name))]

    def has_ended(self) -> bool:
        return not self.rules() and not self.enforced_on()


@pytest.fixture(scope="module", params=KINDS)
def module_jobs(weft: Path, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Jobs(lab, weft, Enforcing(request.param))


@pytest.fixture
def jobs(module_jobs: Jobs) -> Iterator[Jobs]:
    yield module_jobs
    for job in module_jobs.started:
        if job.running:
            job.stop()
    module_jobs.started.clear()
    wait_for(module_jobs.has_ended, 120, "no rule of a job to be left")


def test_two_jobs_on_the_same_nodes(jobs: Jobs) -> None:
    other = jobs.start("n2", ["/usr/bin/python3", "-c", LISTEN])
    before = int(other.wait_line(r"listens at (\d+)", 20)[1])
    a1, port_a1 = jobs.listen("n1", "a")
    _, port_a2 = jobs.listen("n2", "a")
    b2, port_b2 = jobs.listen("n2", "b")
    _, port_b3 = jobs.listen("n3", "b")
    for frm, to, port in (("n1", "n2", port_a2), ("n2", "n1", port_a1), ("n3", "n2", port_b2),
                          ("n2", "n3", port_b3)):
        assert jobs.reaches(frm, to, port, 10), f"{frm} is in the job of {to}:{port}"
    for frm, to, port in (("n3", "n1", port_a1), ("n3", "n2", port_a2), ("n1", "n2", port_b2),
                          ("n1", "n3", port_b3)):
        assert not jobs.reaches(frm, to, port), f"{frm} is a stranger to {to}:{port}"
    # What is no job's stays as it was, also what begins to listen meanwhile.
    assert jobs.reaches("n3", "n2", before) and jobs.reaches("n1", "n2", before)
    during = jobs.start("n2", ["/usr/bin/python3", "-c", LISTEN])
    port = int(during.wait_line(r"listens at (\d+)", 20)[1])
    assert jobs.reaches("n1", "n2", port, 10)
    rules = jobs.rules()
    assert rules["job-a"]["job"] == "a" and rules["job-a"]["to"] == ["node:n1", "node:n2"]
    assert rules["job-b"]["from"] == ["node:n2", "node:n3"]
    # So does the port of the job on the hub.
    hub, hub_port = jobs.site.hub, rules["jobhub-a"]["allow"][0].removeprefix("tcp/")
    address = json.loads(hub.run([jobs.weft, "get", "Node", "hub"], quiet=True).out)
    for name, wanted in (("n1", True), ("n3", False)):
        got = jobs.lab.host(name).run(
            ["/usr/bin/python3", "-c", CONNECT, str(address["spec"]["address4"]), hub_port, "3"],
            check=False, quiet=True)
        assert (got.rc == 0) == wanted, name
    tested = hub.run([jobs.weft, "rule", "test", "n3", "n1:40000"], check=False, quiet=True).out
    assert tested.splitlines()[1] == (
        "refused all the same by the rule job-a while the job a listens there")
    assert hub.run([jobs.weft, "rule", "test", "n2", "n1:40000"], quiet=True).out == (
        "allowed by the rule job-a\n")
    assert "    ISOLATED on n1, n2\n" in hub.run([jobs.weft, "jobs"], quiet=True).out

    def events() -> list[str]:
        said = hub.run([jobs.weft, "get", "events", "--json"], quiet=True).out
        return [e["text"] for e in json.loads(said)["events"] if e["type"] == "Refused"]

    def counts() -> int:
        said = json.loads(hub.run([jobs.weft, "rule", "ls", "--json"], quiet=True).out)["counts"]
        return sum(r["refused"] for r in said["rules"] if r["name"] == "job-a")

    wait_for(lambda: any(f"from n3 to n1, tcp/{port_a1}: the port is for members of the job a" in e
                         for e in events()), 40, "an event")
    wait_for(lambda: counts() >= 1, 90, "what was refused to be counted")
    # The one ends, and the other goes on.
    a1.stop()
    jobs.started[2].stop()
    wait_for(lambda: "job-a" not in jobs.rules(), 60, "the rule of the job a to go")
    assert b2.running and not jobs.reaches("n1", "n2", port_b2)
    assert jobs.reaches("n3", "n2", port_b2, 10)


def test_killed(jobs: Jobs) -> None:
    """Agents that are killed leave it closed; a weft run that is killed ends it."""
    a1, port = jobs.listen("n1", "a")
    a2, _ = jobs.listen("n2", "a")
    assert not jobs.reaches("n3", "n1", port) and jobs.reaches("n2", "n1", port, 10)
    node = jobs.site.nodes["n1"]
    node.agent.kill9()
    try:
        assert not jobs.reaches("n3", "n1", port)
    finally:
        node.start()
    wait_for(lambda: jobs.reaches("n2", "n1", port, 3), 30, "n2 to reach n1 again")
    assert not jobs.reaches("n3", "n1", port)
    a1.kill9()
    a2.kill9()
    wait_for(jobs.has_ended, 150, "the rules to go with the job")


def test_more_come(jobs: Jobs) -> None:
    """Members of an elastic job that come meanwhile are let in."""
    _, port = jobs.listen("n1", "grow", nnodes="2:3")
    _, _ = jobs.listen("n2", "grow", nnodes="2:3")
    assert not jobs.reaches("n3", "n1", port)
    _, port3 = jobs.listen("n3", "grow", nnodes="2:3")
    assert jobs.reaches("n3", "n1", port, 10) and jobs.reaches("n1", "n3", port3, 10)


def test_where_all_else_is_refused(jobs: Jobs) -> None:
    """Members of a job need no other rule, not even to the hub."""
    site = jobs.site
    site.hub.run([jobs.weft, "rule", "add", "ping", "--from", "members", "--to", "members",
                  "--allow", "icmp", "--yes"], quiet=True)
    try:
        wait_for(lambda: len(jobs.enforced_on()) == 3, 10, "the rule to be enforced")
        _, port = jobs.listen("n1", "a")
        jobs.listen("n2", "a")
        assert jobs.reaches("n2", "n1", port, 10)
        assert not jobs.reaches("n3", "n1", port)
    finally:
        site.hub.run([jobs.weft, "rule", "rm", "ping"], quiet=True)


@needs_torch
def test_gloo(jobs: Jobs) -> None:
    """Two real torchrun jobs, both of them on n2."""
    def start(name: str, job: str) -> Daemon:
        return jobs.run(name, job, "torchrun", "--rdzv_conf", "is_host=false,last_call_timeout=1",
                        PROGRAMS / "counting_job.py", f"/var/lib/weft/{job}.checkpoint")

    def steps(job: Daemon) -> int:
        return sum(line.startswith("step ") for line in job.lines())

    a = [start("n1", "a"), start("n2", "a")]
    b = [start("n2", "b"), start("n3", "b")]
    wait_for(lambda: all(steps(job) > 20 for job in a + b), 120, "the nodes to train")
    listed = jobs.lab.host("n1").run(["ss", "-Htlnp"], quiet=True).out.splitlines()
    ports = {int(line.split()[3].rsplit(":", 1)[1]): line for line in listed}
    # Weft's own process for measuring is called exe.
    own = {port: line for port, line in ports.items()
           if '(("weft' not in line and '(("exe"' not in line}
    assert own, listed
    reached = [line for port, line in own.items() if jobs.reaches("n3", "n1", port, 1)]
    assert not reached, reached
    before = steps(a[0])
    for job in b:
        job.stop()
    wait_for(lambda: steps(a[0]) > before + 20, 60, "the other job to go on")
