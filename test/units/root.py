"""Debian's root file system with systemd, for a machine that runs the shipped units.

It is installed by mmdebstrap from Debian's packages, once, and kept (image.KEPT).  What one test
needs besides is installed into a copy.  Machines write to layers or copies that are gone with them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
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


def why_not(weft: Path, more: Sequence[str] = ()) -> str | None:
    """Why there is no such root here, or None if there is."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"a machine with systemd needs {', '.join(missing)}"
    try:
        tree(weft, more)
    except image.ImageError as error:
        return f"there is no root file system for a machine with systemd: {error}"
    return None


def tree(weft: Path, more: Sequence[str] = ()) -> Path:
    """A folder with all that the program needs and @more packages, from the cache or made now."""
    packages = sorted({*PACKAGES, *_run_time_packages(), *_libraries(weft)})
    base = image.once(_kept(packages), lambda draft: _install(draft, packages))
    if not more:
        return base
    return image.once(_kept(packages, sorted(more)), lambda draft: _add(draft, base, more))


def _kept(*what: list[str]) -> Path:
    digest = hashlib.sha256(repr((*what, SUITE)).encode()).hexdigest()[:16]
    return image.KEPT / f"root-{digest}"


def file_system(weft: Path) -> Path:
    """The same in a file, for a virtual machine."""
    folder = tree(weft)
    return image.once(folder.with_suffix(".ext4"), lambda draft: image.run(
        ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", folder, draft, SIZE]))


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


def _install(draft: Path, packages: list[str]) -> None:
    image.run([
        "mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(packages)}",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNREAD),
        SUITE, draft, "-",
    ], stdin=sources())


def _add(draft: Path, base: Path, packages: Sequence[str]) -> None:
    """A copy of @base with these packages, and what they depend on, as dpkg installs them."""
    image.run(["cp", "--archive", base, draft])
    debs = draft / "var/cache/apt/archives"
    (debs / "partial").mkdir(parents=True, exist_ok=True)
    # What is missing there, of the packages that this machine's apt knows.
    image.run([
        "apt-get", "-qq", "-o", "APT::Sandbox::User=root",
        "-o", f"Dir::State::status={draft}/var/lib/dpkg/status",
        "-o", f"Dir::Cache::archives={debs}", "-o", "Debug::NoLocking=true",
        "--yes", "--no-install-recommends", "--download-only", "install", *packages,
    ])
    files = sorted(debs.glob("*.deb"))
    image.run(["dpkg", f"--root={draft}", "--force-unsafe-io", "--install", *files])
    for package in files:
        package.unlink()


def sources() -> str:
    """Where this machine has its packages from: perhaps a mirror near by."""
    for path in map(Path, SOURCES):
        if path.exists() and SUITE in path.read_text(encoding="utf-8"):
            return path.read_text(encoding="utf-8")
    return f"deb http://deb.debian.org/debian {SUITE} main\n"
