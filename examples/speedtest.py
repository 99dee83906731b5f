"""How fast do two ranks talk? Send and receive one way, then the other, then both ways at once.

    weft run --nnodes 2 -- torchrun examples/speedtest.py --size 256M

Runs on GPUs by NCCL and on CPUs by Gloo. One way is dist.send to dist.recv; both ways is an
all-gather, in which each rank sends its half while it receives the other's. Figures are payload
in Mbit/s (10^6 bit/s), as `weft bench` prints them, the median of several rounds.

Made after a script that is passed around for this purpose, in which these are wrong, and here not:

* The clock began before the other side was ready, so it also timed the other's start. Here a
  barrier comes first, and a second one ends the round: it counts until the data has arrived.
* The checksum that was to force the transfer to its end was itself timed. Here the device is
  synchronised; the content is checked once, outside.
* One transfer was measured, after a warm-up of 1/1024 of it: that is TCP's slow start and the
  opening of NCCL's channels. Here rounds of the full size go before and are not counted.
* An all-gather of `size` bytes moves half of them each way. Here each direction is counted, and
  said to be; the sum of both was printed as "bandwidth".
* A size without a letter ("1048576") lost its last digit. Here it does not.
* Only rank 1 to rank 0 was measured; lines differ by direction.
"""
from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable

import task
import torch
import torch.distributed as dist

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or not 1 << 10 <= (size := int(match[1]) * UNITS[match[2]]) <= 1 << 36:
        raise argparse.ArgumentTypeError(f'"{text}" is no size from 1K to 64G, such as 256M')
    return size


def finish(device: torch.device) -> None:
    """Until all that was started on the device has happened."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def timed(transfer: Callable[[], None], device: torch.device, barrier: Callable[[], None],
          rounds: int) -> float:
    """The median of the seconds that a transfer takes, from both ready to both done."""
    times = []
    for number in range(rounds + 2):
        finish(device)
        barrier()
        started = time.perf_counter()
        transfer()
        finish(device)
        barrier()
        if number >= 2:
            times.append(time.perf_counter() - started)
    return statistics.median(times)


class Speedtest:
    """The buffers, made once: what is sent is a ramp, what is received is checked against it."""

    def __init__(self, size: int, rounds: int) -> None:
        self.rank, world, self.device = task.begin()
        if world != 2:
            raise task.Failed(f"{world} ranks are here, and it is for two")
        self.size, self.rounds = size, rounds
        ramp = torch.arange(size // 4, dtype=torch.int32, device=self.device)
        self.ours = ramp + self.rank
        self.theirs = torch.zeros_like(self.ours)
        self.parts = [torch.zeros_like(self.ours) for _ in range(2)]
        self._token = torch.zeros(1, device=self.device)

    def _barrier(self) -> None:
        dist.all_reduce(self._token)
        finish(self.device)

    def _mbit(self, transfer: Callable[[], None]) -> float:
        seconds = timed(transfer, self.device, self._barrier, self.rounds)
        return round(self.ours.numel() * self.ours.element_size() * 8 / seconds / 1e6, 1)

    def one_way(self, source: int) -> float:
        if self.rank == source:
            return self._mbit(lambda: dist.send(self.ours, 1 - source))
        speed = self._mbit(lambda: dist.recv(self.theirs, source))
        self._check(self.theirs, source)
        return speed

    def both_ways(self) -> float:
        """Each direction's; as much goes the other way in the same time."""
        speed = self._mbit(lambda: dist.all_gather(self.parts, self.ours))
        for rank in range(2):
            self._check(self.parts[rank], rank)
        return speed

    def _check(self, received: torch.Tensor, source: int) -> None:
        if not torch.equal(received, self.ours - self.rank + source):
            raise task.Failed(f"what rank {source} sent has not arrived as it was")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=parse_size, default="64M", help="bytes a transfer (64M)")
    parser.add_argument("--rounds", type=task.count, default=5, help="that are counted (5)")
    args = parser.parse_args()
    test = Speedtest(args.size, args.rounds)
    result = {"bytes": args.size, "oneWayMbit": {"0->1": test.one_way(0), "1->0": test.one_way(1)},
              "bothWaysMbit": test.both_ways(), "backend": dist.get_backend()}
    if test.rank == 0:
        one = result["oneWayMbit"]
        print(f"one way    0 -> 1 {one['0->1']:10.1f} Mbit/s\n"
              f"           1 -> 0 {one['1->0']:10.1f} Mbit/s\n"
              f"both ways  each   {result['bothWaysMbit']:10.1f} Mbit/s", flush=True)
        print(json.dumps(result), flush=True)
    task.end()
    return 0


if __name__ == "__main__":
    sys.exit(task.or_failed(main))
