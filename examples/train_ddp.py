"""A small data-parallel training job on plain PyTorch, to see a cluster work.

Every rank learns the same function from its own shard of the data; after each step the gradients
are averaged over all ranks by DistributedDataParallel, so the overlay carries a real all-reduce.
Runs on CPU with Gloo, and unchanged on GPUs with NCCL. On each of four nodes:

    weft run --nnodes 4 -- torchrun examples/train_ddp.py --steps 60

With a range of nodes it is elastic: when a node is lost or a new one comes, torchrun starts the
workers anew, and they go on from the newest checkpoint that any of them has:

    weft run --nnodes 2:4 -- torchrun examples/train_ddp.py --checkpoint /var/tmp/job.pt

Rank 0 prints a progress line and, at the end, one JSON line with the first and the last loss.
The exit status is 1 when the loss did not fall or the ranks' weights differ.
"""
from __future__ import annotations

import argparse
import json
import sys
import time

import checkpoint
import task
import torch
import weft
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Job:
    """A model that learns on all ranks at once, and what it takes to go on after a restart."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.checkpoints = checkpoint.Checkpoints(args)
        self.rank, self.world, self.device = task.begin(args.timeout)
        self.plain = task.make_model(args.hidden).to(self.device)
        self.optimizer = torch.optim.Adam(self.plain.parameters(), lr=1e-2)
        self.step = 0
        self.first_loss: float | None = None
        self.loss = float("nan")
        self._resume()
        self.model = DistributedDataParallel(self.plain)
        self.x, self.y = task.make_shard(self.rank, 256, self.device)
        self.mean = task.Mean(self.device)

    def _resume(self) -> None:
        if self.args.checkpoint is None:
            return
        state = checkpoint.agree(self.checkpoints.load(), self.device)
        if state:
            self.plain.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.first_loss = state["step"], state["first_loss"]
            self.loss = state.get("loss", self.loss)
        if self.rank == 0:
            print(f"{self.world} ranks, from step {self.step}", flush=True)

    def save(self) -> None:
        """Every worker of a node would write the same: the first one does."""
        if task.is_first_of_node():
            self.checkpoints.save({"step": self.step, "first_loss": self.first_loss,
                                   "loss": self.loss, "model": self.plain.state_dict(),
                                   "optimizer": self.optimizer.state_dict()})

    def train_step(self) -> None:
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        self.loss = self.mean.of(loss)
        weft.report(step=self.step)
        if self.first_loss is None:
            self.first_loss = self.loss

    def train(self) -> None:
        started, before = time.monotonic(), self.step
        steps = self.args.steps
        while self.step < steps:
            self.train_step()
            if self.step % self.args.save_every == 0:
                self.save()
            if self.rank == 0 and (self.step == 1 or self.step % max(1, steps // 6) == 0):
                rate = (self.step - before) / (time.monotonic() - started)
                print(f"step {self.step:4d}/{steps}  loss {self.loss:.4f}  world {self.world}  "
                      f"{rate:.1f} steps/s", flush=True)
            time.sleep(self.args.pause)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=task.count, default=60)
    parser.add_argument("--hidden", type=task.count, default=128, help="width; sets the bytes on the wire")
    checkpoint.add_options(parser)
    parser.add_argument("--save-every", type=task.count, default=5, help="steps between two checkpoints")
    parser.add_argument("--timeout", type=task.seconds, default=300, help="s; a silent peer is lost then")
    parser.add_argument("--pause", type=float, default=0, help="seconds after each step, for trials")
    job = Job(parser.parse_args())
    job.train()
    same = task.same_everywhere(job.plain, job.device)
    if job.rank == 0:
        print(json.dumps({"world": job.world, "steps": job.step, "first_loss": job.first_loss,
                          "last_loss": job.loss, "same_weights": same}), flush=True)
    del job.model
    task.end()
    return task.verdict(same, job.first_loss, job.loss)


if __name__ == "__main__":
    sys.exit(task.or_failed(main))
