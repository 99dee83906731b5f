"""What the examples learn, and on what: a small function, a small network, and each rank's data.

A real job has its own model and its own data here; the rest of an example stays as it is.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import checkpoint
import torch
import torch.distributed as dist
from torch import nn

FEATURES = 32

# What an error begins with, or has in it, when another rank does not answer any more.
LOST = ("gloo", "NCCL", "Connection reset by peer", "Connection closed by peer", "Socket Timeout")


# What was given to a last collective, for end().
kept: list[torch.Tensor] = []


class Failed(Exception):
    """A sentence that says why the script ends."""


def or_failed(main: Callable[[], int]) -> int:
    """For sys.exit(): the status of main(). What ends it is said in a sentence, but for errors of
    the model and the data: those keep their traceback."""
    try:
        return main()
    except (Failed, checkpoint.Refused) as e:
        why = str(e)
    except KeyboardInterrupt:
        why = "ended by a person"
    except RuntimeError as e:
        if not any(word in str(e) for word in LOST):
            raise
        why = f"another rank has ended or is not reached any more: {str(e).splitlines()[0]}"
    print(f"{Path(sys.argv[0]).stem}: {why}", file=sys.stderr, flush=True)
    return 1


def verdict(same: bool, first: float, last: float) -> int:
    """The exit status of a job whose ranks have all come here; a failure is said on each node."""
    if same and last < first:
        return 0
    why = (f"the loss did not fall: it began at {first:.4f} and is {last:.4f}" if same
           else "the ranks do not hold the same weights")
    if is_first_of_node():
        print(f"{Path(sys.argv[0]).stem}: {why}", file=sys.stderr, flush=True)
    return 1


def count(text: str) -> int:
    """For argparse: a number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 1 on')
    return int(text)


def seconds(text: str) -> float:
    """For argparse: a time above 0."""
    try:
        if 0 < float(text) < 1e6:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f'"{text}" is no time in seconds above 0')


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
    try:
        dist.init_process_group(backend or ("nccl" if use_gpu else "gloo"),
                                timeout=timedelta(seconds=timeout_s))
    except (OSError, RuntimeError, ValueError) as e:  # a store that is not reached, RANK that is not set
        raise Failed(f"the ranks do not meet: {str(e).splitlines()[0]} (weft run and torchrun say "
                     "where)") from e
    torch.manual_seed(0)  # The same first weights everywhere.
    return dist.get_rank(), dist.get_world_size(), torch.device("cuda" if use_gpu else "cpu")


def end() -> None:
    """Leave together, so that nobody hangs up on one that is still talking.

    What was given to the last collectives must still be referred to. Otherwise Gloo's thread may be
    the last to drop such a tensor, for which it needs Python's lock, while destroying the process
    group keeps that lock and waits for the thread: neither ends (torch 2.6; PyTorch's pull request
    154976).
    """
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

    One tensor for all of the job, as end() needs it.
    """

    def __init__(self, device: torch.device) -> None:
        self._sum = torch.zeros(1, device=device)

    def of(self, value: torch.Tensor) -> float:
        self._sum.copy_(value.detach().reshape(1))
        dist.all_reduce(self._sum)
        return self._sum.item() / dist.get_world_size()


def same_everywhere(model: nn.Module, device: torch.device) -> bool:
    """Do all ranks hold the same weights? Compares their largest and their smallest sums."""
    total = float(sum(p.detach().double().sum() for p in model.parameters()))
    ends = torch.tensor([total, -total], dtype=torch.float64, device=device)
    kept.append(ends)
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    return ends[0].item() == -ends[1].item()
