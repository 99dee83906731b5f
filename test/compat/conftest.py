"""The program under test and the one of the last release."""

from __future__ import annotations

from pathlib import Path

import pytest

from .release import Unavailable, build, last_release


@pytest.fixture(scope="session")
def old(weft: Path) -> Path:
    """`weft` of the last release; below compat/ in the build folder."""
    try:
        return build(last_release(), weft.parent / "compat")
    except Unavailable as reason:
        pytest.skip(str(reason))
