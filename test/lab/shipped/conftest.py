"""The image of `make image`, made and unpacked once for all tests that run something from it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.support import ROOT
from lab.support.container import Image

# What apt says where Debian's mirrors are out of reach.
NO_NETWORK = re.compile(r"Could not (resolve|connect)|Temporary failure resolving|"
                        r"Network is unreachable|Connection (failed|timed out)")


def build(weft: Path, file: Path) -> str | None:
    """Makes the image; returns why it cannot be made here."""
    if "san" in weft.parent.name:
        return "an image of a sanitizer's build is none to ship"
    missing = [tool for tool in ("crun", "mmdebstrap", "strip") if not shutil.which(tool)]
    if missing:
        return f"the image needs {', '.join(missing)}"
    done = subprocess.run([ROOT / "tools/image", weft.parent, file], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if NO_NETWORK.search(done.stderr):
        return f"there is no image: {done.stderr.strip()}"
    assert done.returncode == 0, done.stderr
    print(f"FIGURE image {done.stdout.strip()}")
    return None


@pytest.fixture(scope="session")
def made(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("image") / "weft.tar"
    reason = build(weft, file)
    if reason:
        pytest.skip(reason)
    return file


@pytest.fixture(scope="session")
def image(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("unpacked")
    # A container that is not root passes through them.
    for path in (folder, *list(folder.parents)[:2]):
        path.chmod(0o755)
    yield Image(made, folder)
    shutil.rmtree(folder)
