"""Checkpoints that are whole or not there, and a resume that needs no shared file system.

Each node keeps its own file. After a restart the ranks compare how far theirs goes, and the one
that is furthest hands its to the others: a node that is new, or has lost its disk, just follows.
"""
from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist


def save(path: Path, state: dict) -> None:
    """Replace the file by a rename: a crash leaves the old one or the new one."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with open(fresh, "wb") as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(path: Path) -> dict | None:
    return torch.load(path, map_location="cpu") if path.exists() else None


def agree(mine: dict | None, device: torch.device) -> dict | None:
    """The state with the largest "step" of all ranks', on all ranks; None when nobody has one."""
    steps = torch.full((dist.get_world_size(),), -1, dtype=torch.int64, device=device)
    steps[dist.get_rank()] = mine["step"] if mine else -1
    dist.all_reduce(steps, dist.ReduceOp.MAX)
    if steps.max().item() < 0:
        return None
    # Pickled, which is fine for a small model; a large one is better sent tensor by tensor.
    box = [mine]
    dist.broadcast_object_list(box, src=int(steps.argmax().item()))
    return box[0]
