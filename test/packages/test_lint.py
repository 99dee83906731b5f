"""What Debian's own checker says of the packages, and their bills of materials."""

from __future__ import annotations

import json
import subprocess

from .build import Packages


def test_lintian_is_silent(packages: Packages) -> None:
    said = subprocess.run(
        ["lintian", "--allow-root", "--fail-on=error,warning", *packages.all()],
        stdout=subprocess.PIPE, text=True, check=False)
    assert (said.stdout, said.returncode) == ("", 0)


def test_bills_of_materials_lie_beside_them(packages: Packages) -> None:
    for name, package, file in (
            ("weft", packages.weft, "./usr/bin/weft"),
            ("weft-hub", packages.hub, "./lib/systemd/system/weft-hub.service")):
        bill = json.loads(package.with_suffix(".spdx.json").read_text(encoding="utf-8"))
        assert bill["spdxVersion"] == "SPDX-2.3"
        described = bill["packages"][0]
        assert (described["name"], described["versionInfo"]) == (name, packages.version)
        assert file in [each["fileName"] for each in bill["files"]]
