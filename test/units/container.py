"""A container that runs systemd and the units: a lab's host with a Debian of its own.

    with Lab.from_text(...) as lab, Container(lab.host("m"), weft) as machine:
        machine.run(["systemctl", "start", "weft-hub"])

Its network is the host's; its processes, mounts, names and control groups are its own, its kernel
is this machine's. It is made with unshare(1), and ends with its first process.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import Daemon, Host, Result, wait_for
from lab.support.guest import Guest
from lab.support.network.construction import run_script
from lab.support.network.process import quoted

from . import root
from .machine import SystemdMachine

CAP_SYS_RESOURCE = 24  # linux/capability.h
BOOT = Path(__file__).resolve().parent / "boot-container.sh"
CGROUPS = "/run/cgroups"  # of the host, all that the kernel has
NAMESPACES = ("mount", "pid", "ipc", "uts", "cgroup", "net", "root")
ENVIRONMENT = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
               "LC_ALL=C.UTF-8")
# They would set what belongs to the machine, or speak to a console that is not there.
MASKED = ("console-getty.service", "systemd-modules-load.service", "systemd-sysctl.service")


def why_not(weft: Path, more: Sequence[str] = ()) -> str | None:
    """Why there is no container here, or None if there is."""
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--cgroup", "mount", "-t", "cgroup2", "cgroup2",
         "/mnt"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"a container with systemd cannot be made here: {done.stderr.strip()}"
    return root.why_not(weft, more)


def _lifts_limits() -> bool:
    """Machines that are somebody's guest may be root without CAP_SYS_RESOURCE."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return bool(int(re.search(r"CapEff:\s*(\w+)", status)[1], 16) >> CAP_SYS_RESOURCE & 1)


class Container(Guest, SystemdMachine):
    packages: Sequence[str] = ()  # that its root file system has besides

    def __init__(self, host: Host, weft: Path) -> None:
        super().__init__(host, weft)
        self.name = host.name
        self.lifts_limits = _lifts_limits()
        self._cgroup = f"{CGROUPS}/weft-lab-{host.lab.tag}-{host.name}"
        self._has_cgroup = False
        self._unshare: Daemon | None = None
        self._init_pid = 0

    def boot(self) -> None:
        layers = f"{self.bring()}:{root.tree(self.weft, self.packages)}"
        run_script(self.host, [f"mkdir {CGROUPS}", f"mount -t cgroup2 cgroup2 {CGROUPS}",
                               f"mkdir {self._cgroup}"])
        self._has_cgroup = True
        self._unshare = self.host.spawn(
            ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
             "sh", BOOT, self._cgroup, layers, "/sbin/init", *self.init_words(*MASKED)],
            name="systemd", allow=["."])
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        self._init_pid = int(wait_for(children.read_text, 10, "the container's first process"))
        self.wait_up()

    def end(self) -> None:
        if self._unshare:
            self._unshare.kill9()
        if not self._has_cgroup:
            return
        wait_for(lambda: self.host.run(
            ["find", self._cgroup, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"],
            check=False, quiet=True).rc == 0, 10, "the container's processes to end")

    def run(
        self,
        argv: Sequence[str | Path | int],
        *,
        check: bool = True,
        timeout_s: float = 30,
        stdin: str | None = None,
        quiet: bool = False,
    ) -> Result:
        command = f"{self.name}$ {quoted(argv)}"
        if not quiet:
            print(command, flush=True)
        inside = ["env", "-i", "-C", "/root", *ENVIRONMENT]
        done = self.host.run(
            ["nsenter", f"--target={self._init_pid}", *(f"--{name}" for name in NAMESPACES),
             "--wd", *inside, *argv], check=False, timeout_s=timeout_s, stdin=stdin, quiet=True)
        result = Result(command, done.rc, done.out + done.err, "")
        return result.check() if check else result
