"""A virtual machine that runs systemd and the units, with a kernel that has WireGuard.

    with Lab.from_text(...) as lab, SystemdVm(lab.host("m"), weft) as machine:
        machine.run(["systemctl", "start", "weft-hub"])

It is a KernelVm with Debian's root file system in the place of an initramfs.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from interop.vm import image
from interop.vm.kernelvm import MODULES, KernelVm
from lab import Host

from . import root
from .machine import SystemdMachine

HERE = Path(__file__).resolve().parent
SERVICE = """\
[Unit]
Description=Commands of the tests
[Service]
ExecStart=/bin/sh /usr/local/lib/weft-test/serve.sh
[Install]
WantedBy=multi-user.target
"""


def why_not(weft: Path) -> str | None:
    """Why there is no such machine here, or None if there is."""
    return image.why_not() or root.why_not(weft)


class SystemdVm(KernelVm, SystemdMachine):
    memory_mib = 512

    def __init__(self, host: Host, weft: Path) -> None:
        KernelVm.__init__(self, host, (*MODULES, "virtio_blk", "tun", "nf_tables"))
        self.weft = weft
        self.kernel_words = ("rw", *self.init_words())
        self.more_words = (
            # What is written goes to a file of the emulator's that is gone when it ends.
            "-drive", f"file={root.file_system(weft)},if=virtio,format=raw,snapshot=on",
        )

    def boot(self) -> None:
        super().boot()
        self.wait_up()
        # The first start reads programs and libraries from the disk, which beside other tests may
        # take longer than `weft join` waits for its agent.
        self.run([self.program, "agent", "--help"], timeout_s=60, quiet=True)

    def make_initramfs(self, kernel: image.Kernel) -> Path:
        archive = self._pack(self.bring())
        return image.pack(
            kernel, self._modules, {"init": HERE / "boot-vm.sh", "brought.tar": archive})

    def _pack(self, folder: Path) -> Path:
        """With how the tests get in."""
        self.write(folder / "etc/systemd/system/weft-test.service", SERVICE)
        self.write(folder / "usr/local/lib/weft-test/serve.sh",
                   image.SERVE.read_text(encoding="utf-8"))
        wants = folder / "etc/systemd/system/multi-user.target.wants/weft-test.service"
        wants.parent.mkdir()
        wants.symlink_to("/etc/systemd/system/weft-test.service")
        archive = folder.with_suffix(".tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(folder, ".")
        return archive
