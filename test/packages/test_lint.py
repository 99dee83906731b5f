"""What Debian's own checker says of the packages."""

from __future__ import annotations

import subprocess

from .build import Packages


def test_lintian_is_silent(packages: Packages) -> None:
    said = subprocess.run(
        ["lintian", "--allow-root", "--fail-on=error,warning", *packages.all()],
        stdout=subprocess.PIPE, text=True, check=False)
    assert (said.stdout, said.returncode) == ("", 0)
