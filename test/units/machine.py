"""A machine that runs systemd and the units that `make install` lays down.

    with Lab.from_text(...) as lab, SystemdVm(lab.host("m"), weft) as machine:
        machine.run(["systemctl", "start", "weft-hub"])

It is a KernelVm with Debian's root file system in the place of an initramfs, so it has a /tmp, an
/etc and a /run of its own, and all that a unit's sandbox is made of: control groups, seccomp, mount
namespaces, capabilities.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from interop.vm import image
from interop.vm.kernelvm import MODULES, KernelVm
from lab import Host, wait_for

from . import root

HERE = Path(__file__).resolve().parent
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
SERVICE = """\
[Unit]
Description=Commands of the tests
[Service]
ExecStart=/bin/sh /usr/local/lib/weft-test/serve.sh
[Install]
WantedBy=multi-user.target
"""
HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"


class SystemdVm(KernelVm):
    memory_mib = 512
    program = PROGRAM
    kernel_words = ("rw", "systemd.show_status=no", *(f"systemd.mask={unit}" for unit in MASKED))

    def __init__(self, host: Host, weft: Path) -> None:
        super().__init__(host, (*MODULES, "virtio_blk", "tun", "nf_tables"))
        self._weft = weft
        self.more_words = (
            # What is written goes to a file of the emulator's that is gone when it ends.
            "-drive", f"file={root.file_system(weft)},if=virtio,format=raw,snapshot=on",
        )

    def boot(self) -> None:
        super().boot()
        wait_for(lambda: self.run(["systemctl", "is-system-running"], check=False, quiet=True)
                 .out.strip() != "starting", 60, "the machine to be up")

    def make_initramfs(self, kernel: image.Kernel) -> Path:
        brought = self._bring()
        return image.pack(
            kernel, self._modules, {"init": HERE / "boot.sh", "brought.tar": brought})

    def _bring(self) -> Path:
        """What is put into the root file system: the program, and how the tests get in."""
        folder = self.host.lab.logs / f"{self.name}-brought"
        folder.mkdir()
        self.put_program(folder)
        self._write(folder / "etc/systemd/system/weft-test.service", SERVICE)
        self._write(folder / "etc/hosts", HOSTS)
        self._write(folder / "etc/hostname", f"{self.host.name}\n")
        self._write(folder / "usr/local/lib/weft-test/serve.sh",
                    image.SERVE.read_text(encoding="utf-8"))
        wants = folder / "etc/systemd/system/multi-user.target.wants/weft-test.service"
        wants.parent.mkdir()
        wants.symlink_to("/etc/systemd/system/weft-test.service")
        archive = folder.with_suffix(".tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(folder, ".")
        return archive

    def put_program(self, folder: Path) -> None:
        """What `make install` lays down."""
        subprocess.run(
            ["meson", "install", "-C", self._weft.parent, "--no-rebuild", "--quiet",
             "--destdir", folder], check=True)

    @staticmethod
    def _write(path: Path, text: str) -> None:
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
