"""The container itself: what is left of one that could not be started."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import Lab
from lab.support.topologies import one_switch

from . import root
from .container import CGROUPS, Container

pytestmark = pytest.mark.namespaces


def test_leaves_no_cgroup_behind(weft: Path, monkeypatch: pytest.MonkeyPatch):
    """They are the kernel's, and stay when the host's namespaces end."""
    def cannot_start(*_words: object, **_options: object) -> None:
        raise OSError("no process can be started")

    with Lab.from_text(one_switch("s", "192.0.2", {"m": 1}), capture=False) as lab:
        host = lab.host("m")
        if host.run(["unshare", "--mount", "mount", "-t", "cgroup2", "cgroup2", "/mnt"],
                    check=False, quiet=True).rc != 0:
            pytest.skip("control groups cannot be mounted here")
        machine = Container(host, weft)
        monkeypatch.setattr(root, "tree", lambda *_: Path("/"))
        monkeypatch.setattr(machine, "bring", lambda: Path("/"))
        monkeypatch.setattr(host, "spawn", cannot_start)
        with pytest.raises(OSError, match="no process"), machine:
            pass
        assert lab.tag in machine._cgroup
        assert host.run(["ls", CGROUPS], quiet=True).out.count(lab.tag) == 0
