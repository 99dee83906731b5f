"""Real torchrun jobs that lose and gain nodes, and whose hub dies, by both rendezvous backends.

The nodes are on a switch in place of the overlay; test/lab/test_training.py has the overlay, and
`weft run`, which does what the shell does here: it starts torchrun again when its store has gone.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from lab import Daemon, wait_for

from .hub import Hub, member_call

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"),
                                reason="python3-torch is not installed")

JOB = Path(__file__).parent / "elastic_job.py"
PATIENCE_S = 90


class Job:
    """An elastic job on the hosts a and b."""

    def __init__(self, hub: Hub, backend: str, directory: Path) -> None:
        self.hub = hub
        self.directory = directory
        self.nodes: dict[str, Daemon] = {}
        for name in ("a", "b"):
            host = hub.lab.host(name)
            assert hub.enrol(host, hub.secret(), name=name)[0] == 200
            host.run(["sh", "-c", "printf '10.42.0.2 a\\n10.42.0.3 b\\n' >> /etc/hosts"])
        _, meeting = member_call(hub.lab.host("a"), "POST", "/v1/jobs/elastic/rendezvous")
        at = meeting["c10d" if backend == "c10d" else "etcdV2"]["endpoint"]
        self.command = (
            f"until torchrun --nnodes 1:2 --nproc_per_node 1 --rdzv_backend {backend} "
            f"--rdzv_endpoint {at} --rdzv_id {meeting['run']} --rdzv_conf last_call_timeout=1 "
            f"--max_restarts 20 --redirects 2 --tee 1 --log_dir {directory}/$(hostname) "
            f"{JOB} {directory}; do sleep 0.5; done")

    def start(self, name: str) -> None:
        environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "weft-default"}
        # In a process group of its own, so that all of it can be ended at once.
        own = f"echo $$ > {self.directory}/{name}.group; {self.command}"
        self.nodes[name] = self.hub.lab.host(name).spawn(
            ["setsid", "--wait", "sh", "-c", own], name="torchrun", env=environment, allow=[""])

    def kill(self, name: str) -> None:
        """The node's torchrun and its workers, as if its power had gone."""
        group = int((self.directory / f"{name}.group").read_text())
        self.hub.lab.host(name).run(["kill", "-9", "--", f"-{group}"])
        self.nodes.pop(name).wait()

    def steps(self) -> list[tuple[int, int, str]]:
        """(step, world, host of rank 0) of all that was said, in the order of steps."""
        found = [re.search(r"step (\d+) world (\d) on (\w)$", line)
                 for node in self.nodes.values() for line in node.lines()]
        return sorted((int(m[1]), int(m[2]), m[3]) for m in found if m)

    def wait_steps(self, world: int, behind: int, what: str) -> tuple[int, int, str]:
        """The first steps of a world of that size behind a step; the last of them."""
        def find():
            return [s for s in self.steps() if s[1] == world and s[0] > behind + 3]
        return wait_for(find, PATIENCE_S, what)[-1]


@pytest.mark.parametrize("backend", ["c10d", "etcd-v2"])
def test_a_job_goes_on(hub: Hub, tmp_path: Path, backend: str) -> None:
    if backend != "c10d" and not importlib.util.find_spec("etcd"):
        pytest.skip("python3-etcd is not installed")
    job = Job(hub, backend, tmp_path)
    job.start("a")
    job.start("b")
    step, _, first = job.wait_steps(2, 0, "both to train")
    other = "b" if first == "a" else "a"

    job.kill(first)
    step, _, now = job.wait_steps(1, step, "the other to go on alone")
    assert now == other

    job.start(first)
    step, _, _ = job.wait_steps(2, step, "the lost node to be back in the job")

    # That a job of c10d outlives its hub is seen in test/lab/test_training.py.
    if backend != "c10d":
        hub.restart()
        job.wait_steps(2, job.steps()[-1][0], "both to go on with the new hub")
    (tmp_path / "finish").touch()
    wait_for(lambda: not any(node.running for node in job.nodes.values()), PATIENCE_S,
             "the job to end")
    assert [node.rc for node in job.nodes.values()] == [0, 0]
