"""The packages under test, made once: those of this tree, and the same as an earlier version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("dpkg-buildpackage", "dh", "dpkg-deb", "dpkg-scanpackages", "lintian")
# A version below that of every commit of this tree; no release has it.
EARLIER = "0.0.9"


@dataclass(frozen=True)
class Packages:
    weft: Path
    hub: Path

    @property
    def version(self) -> str:
        return self.weft.name.split("_")[1]

    def all(self) -> list[Path]:
        return [self.weft, self.hub]


def why_not() -> str | None:
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"Debian packages need {', '.join(missing)}" if missing else None


def build(folder: Path, **env: str) -> Packages:
    """As `make deb` does, from a clean copy of the tree; with more variables for tools/make-deb.

    What only debuggers read is not compiled: it would be stripped, and there is no package of it.
    """
    ccache = "/usr/lib/ccache"
    subprocess.run(
        [ROOT / "tools/make-deb", folder], check=True, stdout=subprocess.DEVNULL,
        env=dict(os.environ, DEB_BUILD_OPTIONS="noautodbgsym",
                 DEB_CFLAGS_APPEND="-g0", PATH=f"{ccache}:{os.environ['PATH']}", **env))
    return found(folder)


def found(folder: Path) -> Packages:
    """Those that lie there, of one version."""
    [weft], [hub] = folder.glob("weft_*.deb"), folder.glob("weft-hub_*.deb")
    return Packages(weft, hub)


def as_earlier(packages: Packages, folder: Path) -> Packages:
    """The same files with an earlier version, for there is none that was packaged."""
    for path in packages.all():
        with tempfile.TemporaryDirectory(prefix="weft-deb-") as tree:
            subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
            control = Path(tree, "DEBIAN/control")
            text = control.read_text(encoding="utf-8")
            control.write_text(text.replace(packages.version, EARLIER), encoding="utf-8")
            name = re.sub(r"_[^_]+_", f"_{EARLIER}_", path.name)
            subprocess.run(["dpkg-deb", "-b", "-Znone", "--root-owner-group", tree, folder / name],
                           check=True, stdout=subprocess.DEVNULL)
    return found(folder)
