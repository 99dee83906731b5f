"""What all Python tests share: where the program under test is, and what they need to run."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from lab import unavailable

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def why_no_namespaces() -> str | None:
    return unavailable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("namespaces") and why_no_namespaces():
        pytest.skip(why_no_namespaces())


@pytest.fixture(scope="session")
def weft() -> Path:
    """The program under test: $WEFT, or else build/weft."""
    program = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
    if not program.exists():
        pytest.skip(f"{program} is not built; build it, or name another one in WEFT")
    return program


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what tests measured: lines that begin with FIGURE, which pytest keeps to itself."""
    for report in terminalreporter.stats.get("passed", []):
        for line in report.capstdout.splitlines():
            if line.startswith("FIGURE"):
                terminalreporter.write_line(line)
