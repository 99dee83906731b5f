"""The program under test and the one of the last release."""

from __future__ import annotations

from pathlib import Path

import pytest

from .release import Unavailable, build, last_release


@pytest.fixture(scope="session")
def weft(weft: Path) -> Path:
    """The program under test, by a path whose JSON the lab does not check.

    What it prints of a daemon of the last release lacks fields that came since.
    """
    link = weft.parent / "compat/this/weft"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(weft)
    return link


@pytest.fixture(scope="session")
def old(weft: Path) -> Path:
    """`weft` of the last release; below compat/ in the build folder."""
    try:
        return build(last_release(), weft.parents[1])
    except Unavailable as reason:
        pytest.skip(str(reason))
