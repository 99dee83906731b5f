#!/usr/bin/python3
"""One rank of Gloo: averages vectors as it is told, and says how long each one took.

    worker.py SOCKET RANK WORLD MASTER

Orders are lines of JSON on a unix socket, one at a time, the same one to all ranks:

    {"do": "group", "groups": {"all": [0, 1, 2, 3], "leaders": [0, 2]}}     new connections
    {"do": "time", "steps": [["ring", "all", 1000000]], "repeats": 5, "pause": 3.0}
    {"do": "end"}

The steps of one repeat are "ring" (all-reduce), "gather" (all-gather) and "broadcast", each with a
group and bytes; a rank that is not in the group leaves it out. The answer to "time" is when each
repeat began and ended, by the machine's monotonic clock, which all ranks share here.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=120)
MARGIN_S = 0.3  # between agreeing on a beginning and beginning; more than any round trip here


class Rank:
    def __init__(self, rank: int, world: int, master: str) -> None:
        torch.set_num_threads(1)
        store = dist.TCPStore(master, 29500, world, rank == 0, timeout=TIMEOUT)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=TIMEOUT)
        self.rank = rank
        self.groups: dict[str, tuple[list[int], dist.ProcessGroup]] = {}
        self.vectors: dict[tuple, list[torch.Tensor]] = {}

    def group(self, order: dict) -> dict:
        for _, group in self.groups.values():
            if group is not dist.GroupMember.NON_GROUP_MEMBER:
                dist.destroy_process_group(group)
        self.groups = {name: (ranks, dist.new_group(ranks, timeout=TIMEOUT))
                       for name, ranks in order["groups"].items()}
        return {}

    def _step(self, kind: str, name: str, size: int) -> None:
        ranks, group = self.groups[name]
        if self.rank not in ranks:
            return
        key = (kind, name, size)
        if key not in self.vectors:
            many = len(ranks) + 1 if kind == "gather" else 1
            self.vectors[key] = [torch.ones(size // 4) for _ in range(many)]
        first, *others = self.vectors[key]
        if kind == "ring":
            dist.all_reduce(first, group=group)
            first /= len(ranks)
        elif kind == "gather":
            dist.all_gather(others, first, group=group)
        else:
            dist.broadcast(first, ranks[0], group=group)

    def _agree(self) -> None:
        """All ranks go on at the same moment, on connections that are not measured."""
        at = torch.tensor([time.monotonic() + MARGIN_S], dtype=torch.float64)
        dist.all_reduce(at, dist.ReduceOp.MAX)
        time.sleep(max(0.0, at.item() - time.monotonic()))

    def time(self, order: dict) -> dict:
        """The first two open the connections' windows and are not counted."""
        spans = []
        for repeat in range(order["repeats"] + 2):
            if order["pause"] or repeat == 0:
                time.sleep(order["pause"] if repeat else 0)
                self._agree()
            begun = time.monotonic()
            for kind, name, size in order["steps"]:
                self._step(kind, name, size)
            spans.append([begun, time.monotonic()])
        self.vectors.clear()
        return {"spans": spans[2:]}


def main() -> None:
    path, rank, world, master = sys.argv[1:]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "weft0")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        print("listening", flush=True)
        me = Rank(int(rank), int(world), master)
        with listener.accept()[0] as peer, peer.makefile("rw") as stream:
            for line in stream:
                order = json.loads(line)
                if order["do"] == "end":
                    break
                stream.write(json.dumps(getattr(me, order["do"])(order)) + "\n")
                stream.flush()


if __name__ == "__main__":
    main()
