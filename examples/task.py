"""What the examples learn, and on what: a small function, a small network, and each rank's data.

A real job has its own model and its own data here; the rest of an example stays as it is.
"""
from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

FEATURES = 32


def begin(timeout_s: float = 300, backend: str = "") -> tuple[int, int, torch.device]:
    """Join the others, by `backend`, or on GPUs by NCCL and on CPUs by Gloo. Gives rank, world size
    and device.

    A machine that loses its power says no goodbye: its peers wait in their collective, by default
    for half an hour, until the time is up, and only then does torchrun start them anew.
    """
    use_gpu = torch.cuda.is_available()
    if use_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    else:
        torch.set_num_threads(1)
    dist.init_process_group(backend or ("nccl" if use_gpu else "gloo"),
                            timeout=timedelta(seconds=timeout_s))
    torch.manual_seed(0)  # The same first weights everywhere.
    return dist.get_rank(), dist.get_world_size(), torch.device("cuda" if use_gpu else "cpu")


def end() -> None:
    """Leave together, so that nobody hangs up on one that is still talking."""
    dist.barrier()
    dist.destroy_process_group()


def is_first_of_node() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"


def make_model(hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, hidden), nn.Tanh(), nn.Linear(hidden, hidden),
                         nn.Tanh(), nn.Linear(hidden, 1))


def make_shard(rank: int, samples: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's own data, never seen by another: (samples, FEATURES) and (samples, 1)."""
    generator = torch.Generator().manual_seed(1000 + rank)
    x = torch.randn(samples, FEATURES, generator=generator)
    y = torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3]
    return x.to(device), y.to(device)


class Mean:
    """The average of a number over all ranks.

    One tensor for all of the job: Gloo's thread may be the last to drop one that was given to a
    collective, and in torch 1.13 a process group that is destroyed at that moment never ends.
    """

    def __init__(self, device: torch.device) -> None:
        self._sum = torch.zeros(1, device=device)

    def of(self, value: torch.Tensor) -> float:
        self._sum.copy_(value.detach().reshape(1))
        dist.all_reduce(self._sum)
        return self._sum.item() / dist.get_world_size()


def same_everywhere(model: nn.Module, device: torch.device) -> bool:
    """Do all ranks hold the same weights? Compares their largest and their smallest sums."""
    total = sum(p.detach().double().sum() for p in model.parameters())
    most, least = (torch.full((1,), float(total), dtype=torch.float64, device=device)
                   for _ in range(2))
    dist.all_reduce(most, dist.ReduceOp.MAX)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return most.item() == least.item()
