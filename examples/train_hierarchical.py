"""Training in islands: gradients are averaged inside an island, weights between islands.

Inside an island, where the fabric is fast, every step averages the gradients. Between islands, over
slow links, what each island has moved its weights by is exchanged every H steps, compressed, and
taken by an outer optimizer as if it were a gradient (DiLoCo, arXiv:2311.08105, algorithm 1). What
compression has cut off is added to the next exchange (error feedback, arXiv:1901.09847). Who is in
which island, H and the form come from `weft plan`:

    weft plan --params 7B --json > plan.json                       # once; copy it to every node
    WEFT_PLAN=plan.json weft run --nnodes 4 -- torchrun examples/train_hierarchical.py

(WEFT_NODE is this node's name in the plan, if it is not the host's), or from the command line:
--islands 0,1/2,3 (ranks), --interval, --form. Beside it, for comparing:
--mode ddp averages gradients of all ranks in each step, --mode sharded does so with an optimizer
whose state is sharded over all ranks (ZeRO stage 1), --mode diloco makes each rank an island.
(FSDP, which shards weights and gradients too, runs on GPUs only before PyTorch 2: torch 1.13 says
"FSDP does not support CPU only execution".)

With --checkpoint and a range of nodes, as in `weft run --nnodes 2:4`, it is elastic: when a node is
lost, the others wait --timeout seconds for it in their collective and begin again at the last
exchange, in the islands that are left; when it is back, it joins them. What islands did since the
exchange is lost, and so are what compression had cut off and the state of the inner optimizers:
a checkpoint has the shared weights and the outer optimizer's state, and a resumed job picks other
batches than it began with.

Gloo connects all ranks and carries what islands exchange. Inside an island it is Gloo as well, or,
on GPUs, NCCL: so with `weft run --inside-islands` NCCL may use a fabric that reaches nobody outside.
With `weft run --island-lan` an island's own connections leave the overlay for its private network,
unencrypted. Rank 0 prints a line now and then and one JSON line at the end; the exit status is 1
when the loss did not fall or the ranks' weights differ.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import checkpoint
import task
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.utils import parameters_to_vector, vector_to_parameters

HOST = torch.device("cpu")  # what Gloo carries between all ranks
BLOCK = 256  # weights that share a scale in int8
# Of the weights that topk sends. The rest waits for a later exchange, and with less than this too
# much waits too long: 1 % is enough where gradients are sent in each of many steps
# (arXiv:1712.01887), not where islands exchange a few dozen times.
SHARE = 0.2
BITS = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8)
NOISE = 0.5  # of the data: no model gets below its square, as no language model below the text's


# ---- forms of an exchange ----------------------------------------------------------------------

def pack_int8(vector: torch.Tensor) -> list[torch.Tensor]:
    """A scale for each BLOCK weights, and a byte a weight."""
    padded = nn.functional.pad(vector, (0, -len(vector) % BLOCK)).view(-1, BLOCK)
    scale = padded.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
    return [scale.flatten(), (padded / scale).round().to(torch.int8).flatten()]


def unpack_int8(parts: list[torch.Tensor], length: int) -> torch.Tensor:
    scale, values = parts
    return (values.view(-1, BLOCK).float() * scale.unsqueeze(1)).flatten()[:length]


def pack_bits(flags: torch.Tensor) -> torch.Tensor:
    """Eight flags a byte."""
    padded = nn.functional.pad(flags.to(torch.uint8), (0, -len(flags) % 8)).view(-1, 8)
    return (padded * BITS.to(flags.device)).sum(1, dtype=torch.uint8)


def unpack_bits(packed: torch.Tensor, length: int) -> torch.Tensor:
    return (packed.unsqueeze(1) & BITS.to(packed.device)).bool().flatten()[:length]


def pack_topk(vector: torch.Tensor) -> list[torch.Tensor]:
    """A bit for each weight, which says whether it is one of the largest, and those as int8."""
    chosen = torch.zeros(len(vector), dtype=torch.bool, device=vector.device)
    chosen[vector.abs().topk(max(1, int(len(vector) * SHARE)), sorted=False).indices] = True
    return [pack_bits(chosen), *pack_int8(vector[chosen])]


def unpack_topk(parts: list[torch.Tensor], length: int) -> torch.Tensor:
    chosen, *values = parts
    chosen = unpack_bits(chosen, length)
    vector = torch.zeros(length, device=chosen.device)
    vector[chosen] = unpack_int8(values, int(chosen.sum()))
    return vector


FORMS = {
    "fp32": (lambda v: [v.clone()], lambda parts, _: parts[0]),
    "bf16": (lambda v: [v.to(torch.bfloat16).view(torch.int16).view(torch.uint8)],
             lambda parts, _: parts[0].view(torch.int16).view(torch.bfloat16).float()),
    "int8": (pack_int8, unpack_int8),
    "topk": (pack_topk, unpack_topk),
}


# ---- islands -----------------------------------------------------------------------------------

def read_islands(args: argparse.Namespace, rank: int, world: int, plan: dict) -> list[list[int]]:
    """The ranks of each island, the leader first; islands in the order of their leaders' ranks, in
    which torch has the members of a group."""
    if args.mode == "diloco":
        return [[r] for r in range(world)]
    if args.mode != "hierarchical" or not (args.islands or plan):
        return [list(range(world))]
    if args.islands:
        islands = args.islands
    else:
        nodes: list = [None] * world
        dist.all_gather_object(nodes, node_name())
        islands = [[r for node in [island["leader"], *island["ring"]]
                    for r in range(world) if nodes[r] == node] for island in plan["islands"]]
        islands = [list(dict.fromkeys(island)) for island in islands if island]
    if sorted(r for island in islands for r in island) != list(range(world)):
        raise task.Failed(f"rank {rank}: the islands {islands} are not the {world} ranks, each once")
    return sorted(islands, key=lambda island: island[0])


@contextlib.contextmanager
def interface_of(name: str) -> Iterator[None]:
    """Gloo's connections of a group that is made meanwhile go over this interface ("": as ever)."""
    before = os.environ.get("GLOO_SOCKET_IFNAME")
    if name:
        os.environ["GLOO_SOCKET_IFNAME"] = name
    try:
        yield
    finally:
        if name and before is None:
            del os.environ["GLOO_SOCKET_IFNAME"]
        elif name:
            os.environ["GLOO_SOCKET_IFNAME"] = before


def node_name() -> str:
    return os.environ.get("WEFT_NODE", socket.gethostname())


def private_islands(islands: list[list[int]]) -> list[bool]:
    """Of each island: does each of its nodes reach all others over their private network?

    By what `weft run --island-lan` has found on each node.
    """
    path = os.environ.get("WEFT_ISLAND_LAN")
    reached = {line.split()[1] for line in Path(path).read_text().splitlines()} if path else set()
    said: list = [None] * dist.get_world_size()
    dist.all_gather_object(said, (node_name(), reached))
    names = [{said[r][0] for r in island} for island in islands]
    return [len(names[i]) > 1 and all(names[i] <= said[r][1] | {said[r][0]} for r in island)
            for i, island in enumerate(islands)]


class Islands:
    """Process groups: this rank's island, and the leaders of all."""

    def __init__(self, islands: list[list[int]], rank: int, device: torch.device,
                 timeout_s: float) -> None:
        # A group does not inherit the timeout; its own default is half an hour.
        timeout = timedelta(seconds=timeout_s)
        backend = "nccl" if device.type == "cuda" else "gloo"
        made = []
        for island, is_private in zip(islands, private_islands(islands)):
            with interface_of(os.environ.get("WEFT_ISLAND_IFNAME", "") if is_private else ""):
                made.append(dist.new_group(island, timeout=timeout, backend=backend))
        self.leaders = dist.new_group([island[0] for island in islands], timeout=timeout,
                                      backend="gloo")
        [self.mine] = [i for i, island in enumerate(islands) if rank in island]
        self.group, self.ranks = made[self.mine], islands[self.mine]
        self.is_leader = rank == self.ranks[0]
        world = sum(map(len, islands))
        self.weights = [len(island) / world for island in islands]


class Exchange:
    """The weights that all islands share, between two exchanges, and the outer optimizer."""

    def __init__(self, model: nn.Module, islands: Islands, args: argparse.Namespace) -> None:
        self.model, self.islands = model, islands
        self.form = args.form
        self.pack, self.unpack = FORMS[args.form]
        self.shared = nn.Parameter(parameters_to_vector(model.parameters()).detach().clone())
        self.outer = torch.optim.SGD([self.shared], lr=args.outer_lr, momentum=args.outer_momentum,
                                     nesterov=True)
        self.cut_off = torch.zeros_like(self.shared)
        self.sent = 0  # bytes

    def _average(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """Over the islands, of what their leaders hand in."""
        if self.form == "fp32":
            # Added on the way, so each leader sends less than twice its own, however many there are.
            mean = parts[0].cpu()
            mean *= self.islands.weights[self.islands.mine]
            dist.all_reduce(mean, group=self.islands.leaders)
            n = len(self.islands.weights)
            self.sent += mean.numel() * mean.element_size() * 2 * (n - 1) // n
            return mean.to(self.shared.device)
        return self._gather([part.cpu() for part in parts])

    def _gather(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """Compressed vectors cannot be added on the way."""
        gathered = []
        for part in parts:
            each = [torch.empty_like(part) for _ in self.islands.weights]
            dist.all_gather(each, part, group=self.islands.leaders)
            gathered.append(each)
            self.sent += part.numel() * part.element_size() * (len(each) - 1)
        mean = torch.zeros_like(self.shared)
        for weight, *island in zip(self.islands.weights, *gathered):
            mean += weight * self.unpack([part.to(mean.device) for part in island], len(mean))
        return mean

    @torch.no_grad()
    def run(self) -> None:
        # All ranks of an island have the same weights, so each of them knows what was cut off.
        wanted = self.shared - parameters_to_vector(self.model.parameters()) + self.cut_off
        parts = self.pack(wanted)
        self.cut_off = wanted - self.unpack(parts, len(wanted))
        mean = self._average(parts) if self.islands.is_leader else torch.empty_like(self.shared)
        dist.broadcast(mean, self.islands.ranks[0], group=self.islands.group)
        self.shared.grad = mean
        self.outer.step()
        vector_to_parameters(self.shared.detach().clone(), self.model.parameters())


# ---- the job -----------------------------------------------------------------------------------

class Job:
    def __init__(self, args: argparse.Namespace, plan: dict) -> None:
        self.args = args
        self.checkpoints = checkpoint.Checkpoints(args)
        self.rank, self.world, self.device = task.begin(args.timeout, "gloo")
        self.model = task.make_model(args.hidden).to(self.device)
        self.islands = Islands(read_islands(args, self.rank, self.world, plan), self.rank,
                               self.device, args.timeout)
        self.many = len(self.islands.weights) > 1
        if args.mode == "sharded":
            self.inner = ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.AdamW,
                                                 process_group=self.islands.group, lr=args.lr)
        else:
            self.inner = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.exchange = Exchange(self.model, self.islands, args)
        self.x, self.y = self._data(self.rank, args.samples)
        # Nobody trains on it; each rank looks at a part of it.
        self.held = [part[self.rank::self.world] for part in self._data(10000, args.held_out)]
        self.batches = torch.Generator().manual_seed(self.rank)
        self.gradient = torch.empty_like(self.exchange.shared)
        self.step = 0
        self.steps_s, self.exchanges_s = 0.0, 0.0  # in which this rank was at each of the two
        self.losses: list[float] = []
        self._resume()

    def _data(self, seed: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = task.make_shard(seed, samples, self.device)
        noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed))
        return x, y + NOISE * noise.to(self.device)

    def _resume(self) -> None:
        state = checkpoint.agree(self.checkpoints.load(), HOST)
        if state:
            self.step, self.losses = state["step"], state["losses"]
            self.batches.manual_seed(self.rank + self.world * self.step)
            self.exchange.outer.load_state_dict(state["outer"])
            with torch.no_grad():
                self.exchange.shared.copy_(state["shared"])
                vector_to_parameters(self.exchange.shared.detach().clone(),
                                     self.model.parameters())
        if self.rank == 0:
            print(f"{self.world} ranks in {len(self.islands.weights)} islands, "
                  f"{len(self.gradient)} weights, from step {self.step}", flush=True)

    def _save(self) -> None:
        """After an exchange, when all ranks have the same weights."""
        if self.args.checkpoint and task.is_first_of_node():
            shared = self.exchange.shared.detach().cpu() if self.many else (
                parameters_to_vector(self.model.parameters()).detach().cpu())
            self.checkpoints.save({
                "step": self.step, "losses": self.losses, "shared": shared,
                "outer": self.exchange.outer.state_dict()})

    def _average_gradients(self) -> None:
        """As one vector: one collective, not one a layer."""
        parameters = list(self.model.parameters())
        torch.cat([p.grad.flatten() for p in parameters], out=self.gradient)
        dist.all_reduce(self.gradient, group=self.islands.group)
        self.gradient /= len(self.islands.ranks)
        for p, part in zip(parameters, self.gradient.split([p.numel() for p in parameters])):
            p.grad.copy_(part.view_as(p))

    def _step(self) -> None:
        picked = torch.randint(len(self.x), (self.args.batch,), generator=self.batches)
        self.inner.zero_grad()
        loss = nn.functional.mse_loss(self.model(self.x[picked]), self.y[picked])
        loss.backward()
        if len(self.islands.ranks) > 1:
            self._average_gradients()
        for group in self.inner.param_groups:
            group["lr"] = self.args.lr * min(1.0, (self.step + 1) / max(1, self.args.warmup))
        self.inner.step()
        self.step += 1

    @torch.no_grad()
    def _loss(self) -> float:
        x, y = self.held
        self.error = nn.functional.mse_loss(self.model(x), y, reduction="sum").cpu().reshape(1)
        dist.all_reduce(self.error)
        return self.error.item() / self.args.held_out

    def _round(self) -> None:
        """Steps until the next exchange, and that."""
        started = time.monotonic()
        while True:
            self._step()
            if self.step % self.args.interval == 0 or self.step >= self.args.steps:
                break
        reached = time.monotonic()
        self.steps_s += reached - started
        if self.many:
            self.exchange.run()
        self.exchanges_s += time.monotonic() - reached

    def train(self) -> float:
        """Steps a second, without the looks at the loss."""
        if not self.losses:
            self.losses.append(self._loss())
        begun, rate = self.step, 0.0
        while self.step < self.args.steps:
            self._round()
            rate = (self.step - begun) / (self.steps_s + self.exchanges_s)
            self.losses.append(self._loss())
            self._save()
            if self.rank == 0:
                print(f"step {self.step:4d}/{self.args.steps}  loss {self.losses[-1]:.4f}  world "
                      f"{self.world}  {rate:.1f} steps/s", flush=True)
            time.sleep(self.args.pause)
        return rate


def read_plan(path: str | None) -> dict:
    """What `weft plan --json` prints, as far as it is used here."""
    if not path:
        return {}
    try:
        plan = json.loads(Path(path).read_text())
        for island in plan["islands"]:
            [island["leader"], *island["ring"]]
        int((plan.get("exchange") or {}).get("interval") or 1)
    except OSError as e:
        raise task.Failed(f"the plan {path} (WEFT_PLAN) cannot be read: {e.strerror}") from e
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise task.Failed(f"{path} (WEFT_PLAN) is no plan of weft plan --json") from e
    return plan


def parse_islands(text: str) -> list[list[int]]:
    try:
        return [[int(r) for r in island.split(",")] for island in text.split("/")]
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is no list of ranks such as 0,1/2,3') from None


def parse() -> tuple[argparse.Namespace, dict]:
    plan = read_plan(os.environ.get("WEFT_PLAN"))
    exchange = plan.get("exchange") or {}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["hierarchical", "ddp", "sharded", "diloco"],
                        default="hierarchical")
    parser.add_argument("--islands", type=parse_islands, metavar="RANKS/RANKS",
                        help="ranks of each island, as 0,1/2,3 (default: the plan's)")
    parser.add_argument("--interval", type=task.count, default=int(exchange.get("interval") or 20),
                        help="H: steps between two exchanges (default: the plan's, or 20)")
    parser.add_argument("--form", choices=FORMS, default=exchange.get("form", "int8"))
    parser.add_argument("--steps", type=task.count, default=200)
    parser.add_argument("--batch", type=task.count, default=64, help="of each rank")
    parser.add_argument("--samples", type=task.count, default=2048, help="that each rank has to learn from")
    parser.add_argument("--held-out", type=task.count, default=1024,
                        help="samples that the loss is of; nobody learns from them")
    parser.add_argument("--hidden", type=task.count, default=128, help="width; sets the bytes on the wire")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--warmup", type=int, default=20, help="steps until it is reached")
    parser.add_argument("--outer-lr", type=float, default=0.7)
    parser.add_argument("--outer-momentum", type=float, default=0.6)
    checkpoint.add_options(parser)
    parser.add_argument("--timeout", type=task.seconds, default=300, help="s; a silent peer is lost then")
    parser.add_argument("--pause", type=float, default=0, help="seconds after a round, for trials")
    return parser.parse_args(), plan


def main() -> int:
    job = Job(*parse())
    rate = job.train()
    same = task.same_everywhere(job.model, HOST)
    sent = torch.tensor([float(job.exchange.sent)])
    dist.all_reduce(sent, dist.ReduceOp.MAX)  # Rank 0 may be no leader.
    first, last = job.losses[0], job.losses[-1]
    worked_s = job.steps_s + job.exchanges_s  # 0 when it was resumed at its end
    if job.rank == 0:
        print(json.dumps({"world": job.world, "islands": len(job.islands.weights),
                          "ring": job.islands.ranks,
                          "steps": job.step, "first_loss": first, "last_loss": last,
                          "same_weights": same, "stepsPerSecond": round(rate, 2),
                          "exchangesShare": round(job.exchanges_s / worked_s, 3) if worked_s else 0,
                          "exchangedBytes": int(sent.item())}), flush=True)
    task.end()
    return task.verdict(same, first, last)


if __name__ == "__main__":
    sys.exit(task.or_failed(main))
