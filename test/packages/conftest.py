"""A hub and a node as plain programs, and a machine with systemd where the packages are installed.

    hub ──┐
    u   ──┤ s
    m   ──┘        a container with systemd; upgrades happen there under a flow to u
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from units import container
from units.conftest import TOPOLOGY, Site, running

from . import build
from .machine import PackageMachine


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> build.Packages:
    ready = os.environ.get("WEFT_PACKAGES")
    if ready:
        return build.found(Path(ready))
    reason = build.why_not()
    if reason:
        pytest.skip(reason)
    return build.build(tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="session")
def earlier(packages: build.Packages, tmp_path_factory: pytest.TempPathFactory) -> build.Packages:
    return build.as_earlier(packages, tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module")
def site(weft: Path, packages: build.Packages, earlier: build.Packages) -> Iterator[Site]:
    reason = container.why_not(weft)
    if reason:
        pytest.skip(reason)
    with (Lab.from_text(TOPOLOGY, capture=False) as lab,
          PackageMachine(lab.host("m"), weft, [earlier, packages]) as machine,
          running(weft, lab, machine) as site):
        yield site
