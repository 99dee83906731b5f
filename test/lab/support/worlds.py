"""Commands that are no launcher, each of which becomes one world with those of the other nodes.

    WRAPPERS["nice"](scripts)     the words of a command, of scripts that were written by write()
    check_world(jobs)             they have ended well, in one world
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .network.process import Daemon
from .waiting import wait_for

PYTHON = "/usr/bin/python3"

# {0} is the argument of init_process_group().
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


@dataclass(frozen=True)
class Scripts:
    """Files of one folder: how they are called on the nodes, and what is in them."""

    folder: str

    @property
    def by_env(self) -> str:
        return f"{self.folder}/env.py"

    @property
    def by_tcp(self) -> str:
        return f"{self.folder}/tcp.py"

    @property
    def shell(self) -> str:
        return f"{self.folder}/train.sh"

    def files(self) -> Mapping[str, str]:
        return {self.by_env: SCRIPT.format('"env://"'), self.by_tcp: SCRIPT.format("at"),
                self.shell: "#!/bin/bash\nset -e\n"
                            f"torchrun --nproc_per_node 1 {self.by_env}\n"}


WRAPPERS: Mapping[str, Callable[[Scripts], list[str]]] = {
    "sh": lambda s: ["sh", "-c", f"torchrun {s.by_env}"],
    "env": lambda s: ["env", "A=1", "torchrun", s.by_env],
    "nice": lambda s: ["nice", "torchrun", s.by_env],
    "shell-file": lambda s: [s.shell],
    "bash": lambda s: ["bash", s.shell],
    "plain-env": lambda s: [PYTHON, s.by_env],
    "plain-tcp": lambda s: [PYTHON, s.by_tcp],
    "sh-plain-tcp": lambda s: ["sh", "-c", f"{PYTHON} {s.by_tcp}"],
}


def check_world(jobs: Sequence[Daemon], within_s: float = 90) -> list[int]:
    """They end well, in one world; the rank of each."""
    wait_for(lambda: not any(job.running for job in jobs), within_s, "the job to end")
    ranks = []
    for job in jobs:
        text = "\n".join(job.lines())
        assert job.rc == 0, text
        assert "another node of the job" not in text
        [(rank, world)] = re.findall(r"rank (\d+) of world (\d+)", text)
        assert world == str(len(jobs)), text
        ranks.append(int(rank))
    assert sorted(ranks) == list(range(len(jobs)))
    return ranks
