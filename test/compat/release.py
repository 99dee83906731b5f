"""The last release, built beside the program under test.

    found = last_release()            its version and commit, from tools/releases.txt
    program = build(found, folder)    weft and weft-wg of it; made once for each commit

The source comes out of git, so there is nothing to compare with in a source tarball or in a clone
without its history; Unavailable says so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ROOT / "tools/releases.txt"
BUILD_DEADLINE_S = 900
# As a release, but quicker to compile; nothing of its own tests.
OPTIONS = ["-Doptimization=1", "-Ddebug=false", "-Dwerror=false"]
PROGRAMS = ("weft", "weft-wg")


class Unavailable(Exception):
    """There is no earlier release to test against; the text says why."""


@dataclass(frozen=True)
class Release:
    version: str
    commit: str


def last_release() -> Release:
    """The last line of tools/releases.txt."""
    lines = [line.split() for line in RELEASES.read_text(encoding="utf-8").splitlines()
             if line.strip() and not line.startswith("#")]
    if not lines:
        raise Unavailable("tools/releases.txt names no release yet")
    version, commit = lines[-1]
    return Release(version, commit)


def _source(release: Release, folder: Path) -> None:
    """The files of the release's commit."""
    try:
        archive = subprocess.run(["git", "-C", ROOT, "archive", release.commit],
                                 capture_output=True, check=True)
    except FileNotFoundError:
        raise Unavailable("git is not installed, so the last release cannot be built") from None
    except subprocess.CalledProcessError:
        raise Unavailable(
            f"{release.version} ({release.commit:.12}) is not in this tree's git history; a clone "
            "with all of it (git fetch --unshallow) has it") from None
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)


def _compile(folder: Path) -> None:
    for argv in (["meson", "setup", *OPTIONS, "b", "."], ["ninja", "-C", "b", *PROGRAMS]):
        done = subprocess.run(argv, cwd=folder, capture_output=True, encoding="utf-8",
                              timeout=BUILD_DEADLINE_S, check=False)
        assert done.returncode == 0, f"{argv[0]} of the last release failed:\n{done.stdout[-4000:]}"


def build(release: Release, folder: Path) -> Path:
    """Its `weft`, below `folder`, with what it runs beside it."""
    place = folder / release.commit[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "weft").exists():
            source = folder / "source"
            shutil.rmtree(source, ignore_errors=True)
            source.mkdir()
            _source(release, source)
            _compile(source)
            made = folder / "made"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            for name in PROGRAMS:
                shutil.copy2(source / "b" / name, made / name)
            shutil.rmtree(source)
            os.rename(made, place)
    return place / "weft"
