"""Jobs that are started by something else than a launcher: each becomes one world of two.

    hub 203.0.113.10, and n1, n2 on .11 and .12

No variable is set by hand but OMP_NUM_THREADS, no rank, no address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support.topologies import one_switch

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
NODES = ("n1", "n2")
PYTHON = "/usr/bin/python3"

# How a script meets: {0} is the argument of init_process_group().
SCRIPT = """
import os
import torch
import torch.distributed as dist
at = "tcp://" + os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
dist.init_process_group("gloo", init_method={0},
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
ones = torch.ones(1)
dist.all_reduce(ones)
print(f"rank {{dist.get_rank()}} of world {{int(ones.item())}}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""


class Site:
    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        self.lab = lab
        self.weft = weft
        hub = lab.host("hub")
        hub.spawn([weft, "hub", "up", "--public", hub.address()],
                  name="hub").wait_line("weft hub is up")
        for name in NODES:
            token = hub.run([weft, "token", "new"], quiet=True).out.strip()
            host = lab.host(name)
            host.run([weft, "join", token, "--name", name, "--no-start"], quiet=True)
            host.spawn([weft, "agent"], name="agent").wait_line("the hub answers")
        self.env_script = folder / "env.py"
        self.env_script.write_text(SCRIPT.format('"env://"'))
        self.tcp_script = folder / "tcp.py"
        self.tcp_script.write_text(SCRIPT.format("at"))
        self.shell = folder / "train.sh"
        self.shell.write_text("#!/bin/bash\nset -e\n"
                              f"torchrun --nproc_per_node 1 {self.env_script}\n")
        self.shell.chmod(0o755)

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


def check_world(jobs: Sequence[Daemon], within_s: float = 90) -> list[int]:
    """They end well, in one world; the rank of each."""
    wait_for(lambda: not any(job.running for job in jobs), within_s, "the job to end")
    ranks = []
    for job in jobs:
        text = "\n".join(job.lines())
        assert job.rc == 0, text
        [(rank, world)] = re.findall(r"rank (\d+) of world (\d+)", text)
        assert world == str(len(jobs)), text
        ranks.append(int(rank))
    assert sorted(ranks) == list(range(len(jobs)))
    return ranks


WRAPPERS = {
    "sh": lambda s: ["sh", "-c", f"torchrun {s.env_script}"],
    "env": lambda s: ["env", "A=1", "torchrun", s.env_script],
    "nice": lambda s: ["nice", "torchrun", s.env_script],
    "shell-file": lambda s: [s.shell],
    "bash": lambda s: ["bash", s.shell],
    "plain-env": lambda s: [PYTHON, s.env_script],
    "plain-tcp": lambda s: [PYTHON, s.tcp_script],
    "sh-plain-tcp": lambda s: ["sh", "-c", f"{PYTHON} {s.tcp_script}"],
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_one_world_of_two(site: Site, wrapper: str) -> None:
    words = WRAPPERS[wrapper](site)
    check_world([site.start(name, wrapper, words) for name in NODES])


@pytest.mark.parametrize("script", ["env_script", "tcp_script"])
def test_two_runs_of_one_name(site: Site, script: str) -> None:
    """The second begins at once, with nothing of the first."""
    job = f"again-{script.partition('_')[0]}"
    for _ in range(2):
        check_world([site.start(name, job, [PYTHON, getattr(site, script)]) for name in NODES])


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
