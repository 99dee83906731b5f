"""DiLoCo: training over slow links, with one exchange every H steps instead of every step.

Each rank takes H steps of its own on its own shard (the inner optimizer, AdamW). What that moved
its weights by is averaged over all ranks and taken by an outer optimizer, SGD with Nesterov
momentum, as if it were a gradient; all ranks go on from its result (arXiv:2311.08105, algorithm 1).
So the overlay carries the model once every H steps, and a round trip of 100 ms costs little.

    weft run --nnodes 4 -- torchrun examples/train_diloco.py --rounds 12 --inner-steps 20

Runs on CPU with Gloo, and unchanged on GPUs with NCCL; with `--nnodes 2:4` and `--checkpoint` it
begins again at its last round when nodes come and go; no test takes a node from it, as one does
from train_ddp.py. Rank 0 prints a line a round and one JSON line at the end; the exit status is 1
when the loss did not fall or the ranks' weights differ.
"""
from __future__ import annotations

import argparse
import json
import sys
import time

import checkpoint
import task
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class DiLoCo:
    """The weights that all ranks share, between two exchanges, and the outer optimizer."""

    def __init__(self, model: nn.Module, lr: float, momentum: float) -> None:
        self.model = model
        # One vector, and one buffer for what is exchanged: one collective, not one a layer.
        self.shared = nn.Parameter(parameters_to_vector(model.parameters()).detach().clone())
        self.delta = torch.empty_like(self.shared)
        self.outer = torch.optim.SGD([self.shared], lr=lr, momentum=momentum, nesterov=True)

    @torch.no_grad()
    def exchange(self) -> None:
        """Average what the ranks have moved by, step along it, and have all go on from there."""
        self.delta.copy_(self.shared - parameters_to_vector(self.model.parameters()))
        dist.all_reduce(self.delta)
        self.shared.grad = self.delta / dist.get_world_size()
        self.outer.step()
        vector_to_parameters(self.shared.detach().clone(), self.model.parameters())

    def state(self) -> dict:
        return {"shared": self.shared.detach().cpu(), "outer": self.outer.state_dict()}

    @torch.no_grad()
    def load(self, state: dict) -> None:
        self.shared.copy_(state["shared"])
        self.outer.load_state_dict(state["outer"])
        vector_to_parameters(self.shared.detach().clone(), self.model.parameters())


class Job:
    """The inner loop around it. The inner optimizer's moments are this rank's, and stay here."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.checkpoints = checkpoint.Checkpoints(args)
        self.rank, self.world, self.device = task.begin(args.timeout)
        self.model = task.make_model(args.hidden).to(self.device)
        self.inner = torch.optim.AdamW(self.model.parameters(), lr=5e-3)
        self.diloco = DiLoCo(self.model, args.outer_lr, args.outer_momentum)
        self.x, self.y = task.make_shard(self.rank, 1024, self.device)
        self.batches = torch.Generator().manual_seed(self.rank)
        self.mean = task.Mean(self.device)
        self.round = 0
        self.losses: list[float] = []
        self._resume()

    def _resume(self) -> None:
        state = checkpoint.agree(self.checkpoints.load(), self.device)
        if state:
            self.diloco.load(state["diloco"])
            self.round, self.losses = state["step"], state["losses"]
        if self.rank == 0:
            print(f"{self.world} ranks, {self.diloco.shared.numel()} weights, "
                  f"from round {self.round}", flush=True)

    def _save(self) -> None:
        if task.is_first_of_node():
            self.checkpoints.save({"step": self.round, "losses": self.losses,
                                   "diloco": self.diloco.state()})

    def _inner_steps(self) -> None:
        for _ in range(self.args.inner_steps):
            picked = torch.randint(len(self.x), (self.args.batch,), generator=self.batches)
            self.inner.zero_grad()
            loss = nn.functional.mse_loss(self.model(self.x[picked]), self.y[picked])
            loss.backward()
            self.inner.step()

    @torch.no_grad()
    def _loss(self) -> float:
        """Of the shared weights, over all data of all ranks."""
        return self.mean.of(nn.functional.mse_loss(self.model(self.x), self.y))

    def train(self) -> None:
        if not self.losses:
            self.losses.append(self._loss())
        while self.round < self.args.rounds:
            started = time.monotonic()
            self._inner_steps()
            computed = time.monotonic()
            self.diloco.exchange()
            exchanged = time.monotonic()
            self.round += 1
            self.losses.append(self._loss())
            self._save()
            if self.rank == 0:
                print(f"round {self.round:3d}/{self.args.rounds}  loss {self.losses[-1]:.4f}  "
                      f"{self.args.inner_steps} steps in {computed - started:.2f} s, "
                      f"exchange in {exchanged - computed:.2f} s", flush=True)
            time.sleep(self.args.pause)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=task.count, default=12, help="exchanges")
    parser.add_argument("--inner-steps", type=task.count, default=20, help="H, between two exchanges")
    parser.add_argument("--batch", type=task.count, default=64)
    parser.add_argument("--hidden", type=task.count, default=128, help="width; sets the bytes on the wire")
    parser.add_argument("--outer-lr", type=float, default=0.7)
    parser.add_argument("--outer-momentum", type=float, default=0.9)
    checkpoint.add_options(parser)
    parser.add_argument("--timeout", type=task.seconds, default=300, help="s; a silent peer is lost then")
    parser.add_argument("--pause", type=float, default=0, help="seconds after a round, for trials")
    return parser.parse_args()


def main() -> int:
    job = Job(parse())
    job.train()
    same = task.same_everywhere(job.model, job.device)
    first, last = job.losses[0], job.losses[-1]
    if job.rank == 0:
        print(json.dumps({"world": job.world, "rounds": job.round, "first_loss": first,
                          "last_loss": last, "same_weights": same}), flush=True)
    task.end()
    return task.verdict(same, first, last)


if __name__ == "__main__":
    sys.exit(task.or_failed(main))
