"""Real torchrun jobs that gain a node while they train, by both rendezvous backends.

The nodes are on a switch in place of the overlay. Jobs that lose a node, and their hub, are in
test/lab/jobs/test_training.py.
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
        self.command = [
            "torchrun", "--nnodes", "1:2", "--nproc_per_node", "1", "--rdzv_backend", backend,
            "--rdzv_endpoint", at, "--rdzv_id", meeting["run"], "--rdzv_conf",
            "last_call_timeout=1", "--max_restarts", "20", "--redirects", "2", "--tee", "1"]

    def start(self, name: str) -> None:
        environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "weft-default"}
        self.nodes[name] = self.hub.lab.host(name).spawn(
            [*self.command, "--log_dir", self.directory / name, JOB, self.directory],
            name="torchrun", env=environment, allow=[""])

    def wait_steps(self, world: int, behind: int, what: str) -> int:
        """The first steps of a world of that size behind a step; the last of them."""
        def find() -> list[int]:
            found = [re.search(r"step (\d+) world (\d)$", line)
                     for node in self.nodes.values() for line in node.lines()]
            return sorted(int(m[1]) for m in found
                          if m and int(m[2]) == world and int(m[1]) > behind + 3)
        return wait_for(find, PATIENCE_S, what)[-1]


@pytest.mark.parametrize("backend", ["c10d", "etcd-v2"])
def test_a_node_joins_a_job(hub: Hub, tmp_path: Path, backend: str) -> None:
    if backend != "c10d" and not importlib.util.find_spec("etcd"):
        pytest.skip("python3-etcd is not installed")
    job = Job(hub, backend, tmp_path)
    job.start("a")
    step = job.wait_steps(1, 0, "one to train alone")
    job.start("b")
    job.wait_steps(2, step, "both to train on from there")
    (tmp_path / "finish").touch()
    wait_for(lambda: not any(node.running for node in job.nodes.values()), PATIENCE_S,
             "the job to end")
    assert [node.rc for node in job.nodes.values()] == [0, 0]
