"""The machines on which the README's commands are typed.

    hub            203.0.113.10, as in the README
     |
   [ wan ]──────── router ──────[ far ]
    |    |    |                    |
  gpu-1 gpu-2 gpu-3, gw-1        relay   198.51.100.7, as in the README
"""

from __future__ import annotations

import json
from pathlib import Path

from lab import Daemon, Lab, Result, wait_for
from lab.support import ROOT

TOPOLOGY = """
switch wan 203.0.113.0/24 gateway=router
switch far 198.51.100.0/24 gateway=router
router router
host hub
host gpu-1
host gpu-2
host gpu-3
host gw-1
host relay
link hub    wan 203.0.113.10
link gpu-1  wan 203.0.113.11
link gpu-2  wan 203.0.113.12
link gpu-3  wan 203.0.113.13
link gw-1   wan 203.0.113.14
link router wan 203.0.113.1
link router far 198.51.100.1
link relay  far 198.51.100.7
"""
# The job of the documents, from the examples, and shorter.
TRAIN = f"""
import sys
sys.path.insert(0, "{ROOT}/examples")
sys.argv[1:] = ["--steps", "20"]
import train_ddp
sys.exit(train_ddp.main())
"""


class Stage:
    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.folder = folder  # where commands are typed; all machines see it
        self.nodes = ["gpu-1", "gpu-2", "gpu-3"]  # members, as it goes
        self.tokens: list[str] = []  # join tokens that nobody has used yet
        (folder / "train.py").write_text(TRAIN, encoding="utf-8")

    def _env(self) -> dict[str, str]:
        path = f"{self.weft.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "OMP_NUM_THREADS": "1"}

    def type(self, machine: str, text: str, check: bool = True) -> Result:
        """Into a shell of root's, to its end."""
        return self.lab.host(machine).run(
            ["bash", "-c", f"cd {self.folder}; {text}"], check=check, timeout_s=120,
            env=self._env())

    def spawn(self, machine: str, text: str) -> Daemon:
        """The same for what stays in the foreground; it may say what it likes."""
        return self.lab.host(machine).spawn(
            ["bash", "-c", f"cd {self.folder}; exec {text}"], name=text.split()[1], allow=[""],
            env=self._env())

    def run_job(self, text: str, machines: list[str]) -> None:
        jobs = [self.spawn(machine, text) for machine in machines]
        for job in jobs:
            assert job.wait(120) == 0, "\n".join(job.lines()[-30:])
        assert any('"world": 2' in line for job in jobs for line in job.lines())

    def peers(self, machine: str) -> dict[str, dict]:
        argv = [self.weft, "status", "--json"]
        said = json.loads(self.lab.host(machine).run(argv, quiet=True).out)
        return {peer["name"]: peer for peer in said["peers"]}

    def wait_peers(self, machine: str, wanted: set[str]) -> None:
        wait_for(lambda: self.peers(machine).keys() == wanted, 20,
                 f"{machine} to have the peers {sorted(wanted)}")

    def nodes_of_hub(self) -> dict[str, dict]:
        argv = [self.weft, "nodes", "--json"]
        said = json.loads(self.lab.host("hub").run(argv, quiet=True).out)
        return {node["metadata"]["name"]: node for node in said["nodes"]}
