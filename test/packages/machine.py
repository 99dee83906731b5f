"""A machine with systemd and apt, and the packages in a folder of its own; nothing is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab import Host, Result
from units.container import Container

from .build import Packages

FOLDER = "/srv/packages"


class PackageMachine(Container):
    program = "/usr/bin/weft"

    def __init__(self, host: Host, weft: Path, packages: list[Packages]) -> None:
        super().__init__(host, weft)
        self._packages = packages

    def put_program(self, folder: Path) -> None:
        at = folder / FOLDER.lstrip("/")
        at.mkdir(parents=True)
        for packages in self._packages:
            for path in packages.all():
                shutil.copy(path, at)

    def apt(self, *words: str) -> Result:
        """Nothing of it asks; there is no network to load anything from."""
        return self.run(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *words],
                        timeout_s=120)

    def install(self, packages: Packages) -> None:
        self.apt("install", *(f"{FOLDER}/{path.name}" for path in packages.all()))

    def files(self) -> dict[str, str]:
        """What is installed, configured or kept: each file with its mode, owner and size."""
        said = self.run(["sh", "-c", "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o "
                         "-path /tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg "
                         "-o -path /var/lib/apt -o -path /var/tmp -o -path /var/lib/systemd \\) "
                         "-prune -o -type f -printf '%m%U-%s %p\\n' -o -printf '%y%m%U %p\\n'; "
                         "find /etc -type f -exec md5sum {} +; "
                         "find /run -name 'weft*' -o -path '/run/wireguard*'"], timeout_s=120)
        found: dict[str, str] = {}
        for line in said.out.splitlines():
            what, _, path = line.rpartition(" ")
            found[path] = found.get(path, "") + what
        return found
