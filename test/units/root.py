"""Debian's root file system with systemd, for a virtual machine that runs the shipped units.

It is installed by mmdebstrap from Debian's packages into a file of its own, once, and kept in
build/vm.  The machine writes to a copy that is gone with it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from interop.vm import image

TOOLS = ("mmdebstrap", "mke2fs", "objdump", "dpkg-query")
PACKAGE_LIST = Path(__file__).resolve().parents[2] / "tools/packages.txt"
SUITE = "bookworm"
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
# What a small server has anyhow; ping and pgrep are for the tests.
PACKAGES = ("adduser", "apt", "systemd-sysv", "iproute2", "iputils-ping", "procps")
UNREAD = ("doc", "man", "info", "locale")
SIZE = "600M"  # of a sparse file


def why_not(weft: Path) -> str | None:
    """Why there is no such machine here, or None if there is."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"a machine with systemd needs {', '.join(missing)}"
    reason = image.why_not()
    if reason:
        return reason
    try:
        file_system(weft)
    except image.ImageError as error:
        return f"there is no root file system for a machine with systemd: {error}"
    return None


def file_system(weft: Path) -> Path:
    """With all that the program needs, from the cache or made now."""
    packages = sorted({*PACKAGES, *_run_time_packages(), *_libraries(weft)})
    digest = hashlib.sha256(repr((packages, SUITE, SIZE)).encode()).hexdigest()[:16]
    path = image.CACHE / f"root-{digest}.ext4"
    if not path.exists():
        _make(path, packages)
    return path


def _run_time_packages() -> list[str]:
    return re.findall(r"(?m)^(\S+) +run ", PACKAGE_LIST.read_text(encoding="utf-8"))


def _libraries(weft: Path) -> set[str]:
    """The packages of the libraries that the program is linked with."""
    needed = re.findall(r"NEEDED +(\S+)", image.run(["objdump", "-p", weft]))
    found = dict(re.findall(r"(\S+) => (/\S+)", image.run(["ldd", weft])))
    packages = set()
    for name in needed:
        file = Path(found[name]).resolve() if name in found else Path(name)
        owners = image.run(["dpkg-query", "--search", f"*/{file.name}"])
        packages.add(re.match(r"[^:]+", owners)[0])
    return packages


def _make(path: Path, packages: list[str]) -> None:
    draft = path.with_suffix(f".{os.getpid()}")
    tree = image.CACHE / f"root.{os.getpid()}"
    try:
        image.run([
            "mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(packages)}",
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNREAD),
            SUITE, tree, "-",
        ], stdin=sources())
        image.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, draft, SIZE])
        draft.rename(path)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
        draft.unlink(missing_ok=True)


def sources() -> str:
    """Where this machine has its packages from: perhaps a mirror near by."""
    for path in map(Path, SOURCES):
        if path.exists() and SUITE in path.read_text(encoding="utf-8"):
            return path.read_text(encoding="utf-8")
    return f"deb http://deb.debian.org/debian {SUITE} main\n"
