"""Where a lab cannot be made, it says why."""

from __future__ import annotations

import os

from lab import unavailable
from lab.support.network import laboratory


def test_without_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in unavailable()


def test_without_tools(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    for tool in laboratory.TOOLS:
        if tool != "nft":
            (tmp_path / tool).symlink_to("/bin/true")
    assert unavailable() == "a lab needs nft"


def test_without_namespaces(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for tool in laboratory.TOOLS:
        (tmp_path / tool).symlink_to("/bin/true")
    refusal = tmp_path / "unshare"
    refusal.unlink()
    refusal.write_text("#!/bin/sh\necho unshare failed: no >&2; exit 1\n", encoding="utf-8")
    refusal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert unavailable() == "namespaces cannot be made here: unshare failed: no"
