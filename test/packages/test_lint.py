"""What Debian's own checker says of the packages, and their bills of materials."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from .build import Packages

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)[^)]*\)")
# What is of the source only, or has another place: man pages, the changelog.
OF_THE_SOURCE = {"src", "test", "tools", "man", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"}


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


def test_documents_lead_to_each_other(packages: Packages, tmp_path: Path) -> None:
    """README and docs are in the package, and what they link is where they say."""
    subprocess.run(["dpkg-deb", "--extract", packages.weft, tmp_path], check=True)
    top = tmp_path / "usr/share/doc/weft"
    pages = [top / "README.md", *top.glob("docs/**/*.md")]
    assert len(pages) > 30
    for page in pages:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            to = (page.parent / link).resolve()
            assert to.is_relative_to(top), f"{page}: {link}"
            first = [*to.relative_to(top).parts, ""][0]
            assert first in OF_THE_SOURCE or to.exists(), f"{page}: {link}"
    assert (top / "examples/train_ddp.py").is_file()
