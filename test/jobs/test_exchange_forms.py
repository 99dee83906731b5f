"""What examples/train_hierarchical.py puts on the wire in an exchange, and what comes out again."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest
from lab.support import ROOT

torch = pytest.importorskip("torch", reason="python3-torch is not installed")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return importlib.import_module("train_hierarchical")
    finally:
        sys.path.remove(str(ROOT / "examples"))


def sent(parts: list) -> int:
    return sum(part.numel() * part.element_size() for part in parts)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 255, 256, 257, 10007])
def test_topk(example: ModuleType, length: int) -> None:
    """The largest fifth comes through as int8, and nothing else."""
    vector = torch.randn(length, generator=torch.Generator().manual_seed(length))
    parts = example.pack_topk(vector)
    got = example.unpack_topk(parts, length)
    kept = vector.abs().topk(max(1, length // 5)).indices
    rest = torch.ones(length, dtype=torch.bool)
    rest[kept] = False
    assert torch.count_nonzero(got[rest]) == 0
    # Half a step of a scale's 127.
    assert (got[kept] - vector[kept]).abs().max() <= vector.abs().max() / 127 / 2 * 1.01
    if length > 10000:
        assert sent(parts) < sent(example.pack_int8(vector)) / 3


def test_bits(example: ModuleType) -> None:
    flags = torch.tensor([True, False, False, True, False, False, False, True, True, False])
    packed = example.pack_bits(flags)
    assert packed.tolist() == [0b10001001, 0b1]
    assert torch.equal(example.unpack_bits(packed, len(flags)), flags)
