"""What machines with systemd have in common that run the units that `make install` lays down.

A container (container.py) is one, and boots in a second or two; a virtual machine (vm.py) is
another, and has a kernel with WireGuard. Each has Debian's root file system with a /tmp, an /etc
and a /run of its own, and all that a unit's sandbox is made of: control groups, seccomp, mount
namespaces, capabilities.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import Host, Result, wait_for

PROGRAM = "/usr/local/bin/weft"
# Time, log-ins, devices that come and go: nothing that weft has to do with.
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
    "e2scrub_reap.service", "fstrim.timer", "getty@tty1.service", "serial-getty@ttyS0.service",
    "systemd-binfmt.service", "systemd-logind.service", "systemd-pstore.service",
    "systemd-random-seed.service", "systemd-timesyncd.service", "systemd-udev-trigger.service",
    "systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
    "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
)
HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"


class SystemdMachine:
    """In the place of the lab's host @host; `run` has the same meaning as Host.run."""

    program = PROGRAM
    host: Host
    name: str
    # Whether its root may lift limits, so that a unit's LimitMEMLOCK= is in force.
    lifts_limits = True

    def __init__(self, host: Host, weft: Path) -> None:
        self.host = host
        self.weft = weft

    def run(self, argv: Sequence[str | Path | int], **options) -> Result:
        """What it says on either stream is `.out`."""
        raise NotImplementedError

    def init_words(self, *more_masked: str) -> list[str]:
        """For systemd, on the command line of the kernel or of the first process."""
        masked = (f"systemd.mask={unit}" for unit in (*MASKED, *more_masked))
        return ["systemd.show_status=no", *masked]

    def wait_up(self) -> None:
        def is_up() -> bool:
            said = self.run(["systemctl", "is-system-running"], check=False, quiet=True)
            return said.out.strip() in ("running", "degraded")

        wait_for(is_up, 60, "the machine to be up")

    def bring(self) -> Path:
        """A folder with what is put into the root file system: the program, and the names."""
        folder = self.host.lab.logs / f"{self.name}-brought"
        folder.mkdir()
        self.put_program(folder)
        self.write(folder / "etc/hosts", HOSTS)
        self.write(folder / "etc/hostname", f"{self.host.name}\n")
        return folder

    def put_program(self, folder: Path) -> None:
        """What `make install` lays down."""
        subprocess.run(
            ["meson", "install", "-C", self.weft.parent, "--no-rebuild", "--quiet",
             "--destdir", folder], check=True)

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    # ---- units --------------------------------------------------------------------------------

    def property(self, unit: str, name: str) -> str:
        return self.run(["systemctl", "show", "--value", "--property", name, unit],
                        quiet=True).out.strip()

    def main_pid(self, unit: str) -> int:
        """0 while it does not run."""
        return int(self.property(unit, "MainPID"))

    def wait_other_pid(self, unit: str, than: int) -> int:
        """Of the unit's next run, once it is there."""
        return wait_for(lambda: (pid := self.main_pid(unit)) not in (0, than) and pid, 20,
                        f"{unit} to run again")

    def journal(self, unit: str) -> list[str]:
        return self.run(["journalctl", "--quiet", "--output=cat", f"--unit={unit}"],
                        quiet=True).out.splitlines()

    def warnings(self) -> list[str]:
        """What the programs said that somebody should look at."""
        return self.run(["journalctl", "--quiet", "--output=cat", "--priority=warning",
                         *(f"_COMM={name}" for name in ("weft", "weft-wg"))],
                        quiet=True).out.splitlines()

    def replace_program(self) -> None:
        """As an upgrade does: another file of the same name, by a rename."""
        self.run(["sh", "-e", "-c", f"cp {PROGRAM} {PROGRAM}.new; mv {PROGRAM}.new {PROGRAM}"])

    def runs_present_program(self, pid: int) -> bool:
        """Rather than one whose file was replaced since."""
        return self.run(["readlink", f"/proc/{pid}/exe"], quiet=True).out.strip() == self.program
