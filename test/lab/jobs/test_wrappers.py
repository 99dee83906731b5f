"""Jobs that are started by something else than a launcher: each becomes one world of two.

    hub 203.0.113.10, and n1, n2 on .11 and .12; n3 on .13 is one more

No variable is set by hand but OMP_NUM_THREADS, no rank, no address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support.topologies import one_switch
from lab.support.worlds import PYTHON, WRAPPERS, Scripts, check_world

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
NODES = ("n1", "n2")


class Site:
    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        self.lab = lab
        self.weft = weft
        hub = lab.host("hub")
        hub.spawn([weft, "hub", "up", "--public", hub.address()],
                  name="hub").wait_line("weft hub is up")
        for name in (*NODES, "n3"):
            token = hub.run([weft, "token", "new"], quiet=True).out.strip()
            host = lab.host(name)
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent").wait_line("the hub answers")
        self.scripts = Scripts(str(folder))
        for path, text in self.scripts.files().items():
            Path(path).write_text(text)
            Path(path).chmod(0o755)

    def start(self, name: str, job: str, words: Sequence[object], nnodes: int = 2) -> Daemon:
        argv = [self.weft, "run", "--nnodes", str(nnodes), "--job", job, "--", *words]
        return self.lab.host(name).spawn(argv, name=f"job-{job}", env={"OMP_NUM_THREADS": "1"},
                                         allow=[""])

    def host(self, name: str) -> Host:
        return self.lab.host(name)


@pytest.fixture(scope="module")
def site(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft, tmp_path_factory.mktemp("wrappers"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_one_world_of_two(site: Site, wrapper: str) -> None:
    words = WRAPPERS[wrapper](site.scripts)
    check_world([site.start(name, wrapper, words) for name in NODES])


@pytest.mark.parametrize("script", ["by_env", "by_tcp"])
def test_two_runs_of_one_name(site: Site, script: str) -> None:
    """The second begins at once, with nothing of the first."""
    job = f"again-{script.partition('_')[2]}"
    for _ in range(2):
        check_world([site.start(name, job, [PYTHON, getattr(site.scripts, script)])
                     for name in NODES])


def test_ranks_are_by_arrival_and_stay(site: Site) -> None:
    """Whoever comes first is rank 0; a node whose command is started again keeps its rank."""
    show = "echo is $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT; exec sleep 600"
    first = site.start("n2", "order", ["sh", "-c", show])
    at = first.wait_line(r"is 0 of 2 at 10\.77\.0\.\d+:\d+")
    second = site.start("n1", "order", ["sh", "-c", show])
    second.wait_line("is 1 of 2 at")
    explained = site.host("n1").run([site.weft, "run", "--nnodes", "2", "--job", "order",
                                     "--explain", "--", "sh", "-c", show]).out
    assert "RANK=1" in explained
    assert "MASTER_ADDR=10.77.0." in explained
    second.stop()
    again = site.start("n1", "order", ["sh", "-c", show])
    again.wait_line("is 1 of 2 at")
    mine = [re.search(r" at (\S+)", "\n".join(job.lines()))[1] for job in (first, again)]
    assert mine[0] == mine[1], at
    first.stop()
    again.stop()


def test_an_explanation_changes_nothing(site: Site) -> None:
    """Who asks what would be set has not come to the job: neither makes it, nor is it there."""
    def jobs() -> dict[str, dict[str, object]]:
        told = site.host("hub").run([site.weft, "jobs", "--json"], quiet=True).out
        return {job["job"]: job for job in json.loads(told)["jobs"]}

    wait = ["sh", "-c", "echo started; exec sleep 600"]
    explain = [site.weft, "run", "--nnodes", "2", "--job", "shown", "--explain", "--", *wait]
    told = site.host("n2").run(explain).out
    assert "job shown.1 meets at" in told and "RANK=0" in told
    assert "shown" not in jobs()
    first = site.start("n1", "shown", wait)
    first.wait_line("started")
    told = site.host("n2").run(explain).out
    assert "job shown.1 meets at" in told and "RANK=1" in told
    assert jobs()["shown"]["run"] == "shown.1"
    # It would not be missed otherwise.
    first.wait_line("still waiting: 1 of 2 .* not yet: n2", 40)
    first.stop()


def test_one_node_too_many(site: Site) -> None:
    """No process group has room for it: it is refused, and the others go on."""
    wait = ["sh", "-c", "echo is $RANK; exec sleep 600"]
    jobs = [site.start(name, "full", wait) for name in NODES]
    for job in jobs:
        job.wait_line(r"is [01]")
    refused = site.host("n3").run(
        [site.weft, "run", "--nnodes", "2", "--job", "full", "--", *wait], check=False)
    assert refused.rc != 0 and "is 2" not in refused.out
    assert 'the job "full" has its 2 nodes, n1, n2, and this would be one more' in refused.err
    for job in jobs:
        assert job.running
        job.stop()


def test_what_is_set_stays(site: Site) -> None:
    done = site.host("n1").run(
        [site.weft, "run", "--nnodes", "2", "--job", "own", "--", "sh", "-c",
         "echo $RANK $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE"],
        env={"MASTER_ADDR": "192.0.2.1", "RANK": "7"})
    assert done.out.strip() == "7 192.0.2.1"


def test_another_number_of_nodes(site: Site) -> None:
    """Such a job would run with one of both numbers, or never: refused where it is seen."""
    wait = ["sh", "-c", "echo started; exec sleep 600"]
    first = site.start("n1", "sizes", wait, nnodes=2)
    first.wait_line("started")
    refused = site.host("n2").run(
        [site.weft, "run", "--nnodes", "3", "--job", "sizes", "--", *wait], check=False)
    assert refused.rc != 0
    assert 'the job "sizes" runs with 2 nodes, as "n1" has begun it' in refused.err
    assert "--nnodes is 3" in refused.err
    first.stop()
    # With nobody there any more another number is as good as any. A command that was told to end
    # by nobody at a terminal may come back, and is waited for some seconds.
    explain = [site.weft, "run", "--nnodes", "3", "--job", "sizes", "--explain", "--", *wait]
    wait_for(lambda: site.host("n2").run(explain, check=False, quiet=True).rc == 0, 40,
             "the other number of nodes to be taken")


def test_all_were_killed_and_start_again(site: Site) -> None:
    """Nothing of the run before is left, and who is missing is said within its usual time."""
    wait = ["sh", "-c", "echo started as $RANK; exec sleep 600"]
    first = [site.start(name, "killed", wait) for name in NODES]
    for job in first:
        job.wait_line("started as")
    for job in first:
        job.kill9()
    show = [site.weft, "run", "--nnodes", "2", "--job", "killed", "--explain", "--", *wait]

    def is_new() -> bool:
        shown = site.host("n2").run(show, check=False, quiet=True)
        return "job killed.2 meets" in shown.out + shown.err

    wait_for(is_new, 60, "another run of the job")
    again = site.start("n2", "killed", wait)
    again.wait_line("started as 0")
    again.wait_line("still waiting: .* not yet: n1", 40)
    again.stop()
