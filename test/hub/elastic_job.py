#!/usr/bin/python3
"""elastic_job - the smallest job that can lose and gain nodes, for torchrun.

    elastic_job DIRECTORY

Counts steps, each an all-reduce over Gloo, from the checkpoint in the directory, until there is a
file "finish" in it. Rank 0 says each step, with the world's size.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

PAUSE_S = 0.05


def main(directory: Path) -> None:
    checkpoint = directory / "step"
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    rank, world = dist.get_rank(), dist.get_world_size()
    # The newest that any rank has seen.
    step = torch.tensor(int(checkpoint.read_text()) if checkpoint.exists() else 0)
    dist.all_reduce(step, dist.ReduceOp.MAX)
    while True:
        state = torch.tensor([1, int((directory / "finish").exists())])
        dist.all_reduce(state)
        step += 1
        assert state[0] == world
        if rank == 0:
            fresh = checkpoint.with_suffix(".new")
            fresh.write_text(str(int(step)))
            os.replace(fresh, checkpoint)
            print(f"step {int(step)} world {world}", flush=True)
        if state[1] > 0:
            break
        time.sleep(PAUSE_S)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
