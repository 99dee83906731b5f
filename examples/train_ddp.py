"""A small data-parallel training job on plain PyTorch, to see a cluster work.

Every rank learns the same target function from its own shard of the data; after each step the
gradients are averaged over all ranks by DistributedDataParallel, so the overlay carries a real
all-reduce. Runs on CPU with Gloo, and unchanged on GPUs with NCCL:

    torchrun --nnodes 4 --nproc_per_node 1 ... examples/train_ddp.py --steps 60

Rank 0 prints a progress line and, at the end, one JSON line with the first and the last loss.
The exit status is 1 when the loss did not fall or the ranks' weights differ.
"""
import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 32


def target(x: torch.Tensor) -> torch.Tensor:
    """The function to learn: smooth, not linear. x: (batch, FEATURES) -> (batch, 1)."""
    return torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3]


def make_shard(rank: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's own data, never seen by another: (samples, FEATURES) and (samples, 1)."""
    generator = torch.Generator().manual_seed(1000 + rank)
    x = torch.randn(samples, FEATURES, generator=generator)
    return x, target(x)


def same_everywhere(model: nn.Module, sent: list[torch.Tensor]) -> bool:
    """Do all ranks hold the same weights, bit for bit?"""
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyone = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    sent += [flat, *everyone]
    dist.all_gather(everyone, flat)
    return all(torch.equal(flat, other) for other in everyone)


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, rank: int,
          sent: list[torch.Tensor]) -> list[float]:
    """Run `steps` steps; returns the loss of each, averaged over the ranks."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    started = time.monotonic()
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        sent.append(mean)
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
        if rank == 0 and (step == 1 or step % max(1, steps // 6) == 0):
            rate = step / (time.monotonic() - started)
            print(f"step {step:4d}/{steps}  loss {losses[-1]:.4f}  {rate:.1f} steps/s", flush=True)
    return losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=128, help="width; sets the bytes on the wire")
    args = parser.parse_args()

    use_gpu = torch.cuda.is_available()
    if use_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if use_gpu else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda" if use_gpu else "cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(FEATURES, args.hidden), nn.Tanh(),
        nn.Linear(args.hidden, args.hidden), nn.Tanh(),
        nn.Linear(args.hidden, 1)).to(device)
    model = DistributedDataParallel(model)
    x, y = (t.to(device) for t in make_shard(rank, 256))
    # Every tensor given to a collective is kept until the process group is gone: Gloo's worker
    # thread would otherwise be the last to drop one, wait for the interpreter's lock to do so, and
    # never get it from the main thread, which holds it while it joins that worker (torch 1.13).
    sent: list[torch.Tensor] = []
    losses = train(model, x, y, args.steps, rank, sent)
    same = same_everywhere(model, sent)
    if rank == 0:
        print(json.dumps({"world": dist.get_world_size(), "steps": args.steps,
                          "first_loss": losses[0], "last_loss": losses[-1], "same_weights": same}),
              flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()
    return 0 if same and losses[-1] < losses[0] / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
