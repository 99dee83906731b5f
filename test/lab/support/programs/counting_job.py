"""A training job in small, for torchrun: each step adds the ranks' numbers to a total.

    counting_job.py CHECKPOINT

It begins at the checkpoint, a file of each node, and writes it after each step. A job that began
at step 0 goes on without end; one that began at a later step takes 10 more steps and succeeds. So
it succeeds only if it was begun again, whenever that was. Times are of the monotonic clock.
"""
from __future__ import annotations

import datetime
import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed

MORE = 10
PAUSE_S = 0.1
PATIENCE = datetime.timedelta(seconds=60)


def load(path: Path) -> tuple[int, int]:
    """The number of steps, and the total after them."""
    if not path.exists():
        return 0, 0
    step, total = map(int, path.read_text(encoding="ascii").split())
    return step, total


def save(path: Path, step: int, total: int) -> None:
    new = path.with_suffix(".new")
    new.write_text(f"{step} {total}", encoding="ascii")
    os.replace(new, path)


def agree(step: int, total: int) -> tuple[int, int]:
    """The newest checkpoint of any rank."""
    state = torch.tensor([step, total])
    distributed.all_reduce(state, op=distributed.ReduceOp.MAX)
    return int(state[0]), int(state[1])


def main() -> None:
    path = Path(sys.argv[1])
    distributed.init_process_group("gloo", timeout=PATIENCE)
    rank, world = distributed.get_rank(), distributed.get_world_size()
    step, total = agree(*load(path))
    begun_at = step
    print(f"rank {rank} of {world} begins at step {step}", flush=True)
    while begun_at == 0 or step < begun_at + MORE:
        number = torch.tensor([rank + 1])
        distributed.all_reduce(number)
        step, total = step + 1, total + int(number)
        save(path, step, total)
        print(f"step {step} total {total} at {time.monotonic():.3f}", flush=True)
        time.sleep(PAUSE_S)
    distributed.barrier()
    distributed.destroy_process_group()


main()
