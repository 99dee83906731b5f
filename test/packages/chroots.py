"""Fresh Debian 12 roots for lab hosts: apt, an apt source of files, and nothing of Weft's.

    base = chroots.base(packages)
    machine = Chroot(lab.host("a"), base, packages)
    machine.run(["apt-get", "install", "-y", "./weft.deb"])

The root is made by mmdebstrap once and kept (image.KEPT), with the packages that Weft depends on as
files in its apt source, not installed.  Each host has it below an overlay of its own.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from interop.vm import image
from lab import Daemon, Host, Result
from lab.support.network.construction import run_script
from units.root import SUITE, sources

from .build import Packages

ROOT = "/run/machine"
REPOSITORY = "srv/apt"
SOURCE = f"deb [trusted=yes] file:/{REPOSITORY} ./\n"
# python3-torch is large, and no part of what is measured: this machine's own is used, in its own
# root, whose hosts file is the machine's.
TORCHRUN = """\
#!/bin/sh
exec chroot /opt/torch /usr/bin/python3 -m torch.distributed.run "$@"
"""


def _needed(path: Path) -> list[str]:
    """The packages that it depends on or recommends; of alternatives the first."""
    said = subprocess.run(["dpkg-deb", "-f", path, "Depends", "Recommends"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return sorted(set(re.findall(r"(?:: |, )([a-z][a-z0-9.+-]+)", said)) - {"weft"})


def base(packages: Packages) -> Path:
    """The folder of the root, from the cache or made now."""
    needed = _needed(packages.weft)
    digest = hashlib.sha256(repr((needed, SUITE)).encode()).hexdigest()[:16]
    return image.once(image.KEPT / f"chroot-{digest}", lambda draft: _make(draft, needed))


def _make(draft: Path, needed: list[str]) -> None:
    get = ("APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get --yes --download-only install "
           f"{' '.join(needed)}")
    keep = f'mkdir -p "$1/{REPOSITORY}" && mv "$1"/var/cache/apt/archives/*.deb "$1/{REPOSITORY}"'
    image.run(["mmdebstrap", "--quiet", "--variant=apt", f"--customize-hook={get}",
               f"--customize-hook={keep}", SUITE, draft, "-"], stdin=sources())


class Chroot:
    """A lab host's network, and a Debian root of its own."""

    def __init__(self, host: Host, base_root: Path, packages: Packages) -> None:
        self.host = host
        run_script(host, [
            f"mkdir -p {ROOT} /run/up /run/work",
            f"mount -t overlay overlay -o lowerdir={base_root},upperdir=/run/up,workdir=/run/work "
            f"{ROOT}",
            f"mkdir -p {ROOT}/opt/torch {ROOT}/root/packages",
            f"cp {packages.weft} {packages.hub} {ROOT}/root/packages",
            f"mount --rbind /dev {ROOT}/dev", f"mount -t proc proc {ROOT}/proc",
            f"mount --bind /sys {ROOT}/sys", f"mount -t tmpfs tmpfs {ROOT}/run",
            f"mount --rbind / {ROOT}/opt/torch", f"ln -sf {ROOT}/etc/hosts /etc/hosts",
        ])
        self._write("etc/apt/sources.list", SOURCE)
        self._write("usr/local/bin/torchrun", TORCHRUN, mode="755")
        self._write("etc/hosts", "127.0.0.1 localhost\n")
        host.run(["sh", "-c", f"cd {ROOT}/{REPOSITORY} && dpkg-scanpackages . > Packages"])
        self.run(["apt-get", "-qq", "update"])

    def _write(self, path: str, text: str, mode: str = "644") -> None:
        self.host.run(["sh", "-c", f"cat > {ROOT}/{path} && chmod {mode} {ROOT}/{path}"],
                      stdin=text, quiet=True)

    def _inside(self, argv: Sequence[str | Path | int]) -> list:
        return ["chroot", ROOT, "env", "-C", "/root/packages", "PATH=/usr/local/bin:/usr/sbin:"
                "/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *argv]

    def run(self, argv: Sequence[str | Path | int], **options) -> Result:
        return self.host.run(self._inside(argv), **options)

    def spawn(self, argv: Sequence[str | Path | int], **options) -> Daemon:
        return self.host.spawn(self._inside(argv), **options)
