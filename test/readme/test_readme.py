"""Every command of the README, and then of docs/TRAINING.md, typed in their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support import ROOT
from lab.support.pages import commands

from .rules import Rule, find, is_mention
from .stage import TOPOLOGY, Stage

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed")]


@pytest.fixture(scope="module")
def stage(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Stage(lab, weft, tmp_path_factory.mktemp("typed"))


@pytest.mark.parametrize("page", ["README.md", "docs/TRAINING.md"])
def test_every_command(stage: Stage, page: str) -> None:
    """golden/test_readme.py sees to it that those without a rule here are run by other tests."""
    n = 0
    for command in commands(ROOT / page):
        rule = find(command)
        if not isinstance(rule, Rule) or is_mention(command):
            continue
        print(f"--- {command}", flush=True)
        rule.act(stage, command.text)
        n += 1
    print(f"FIGURE commands of {page} that were run as it has them: {n}")
    assert n > 2
