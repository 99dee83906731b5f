"""A lab with a hub in it, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab

from .hub import TOPOLOGY, Hub


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield lab


@pytest.fixture
def hub(lab: Lab, weft: Path, tmp_path: Path) -> Hub:
    """It runs, with its first network."""
    return Hub(lab, weft, tmp_path).start()
