"""A machine made of namespaces: network, mounts and host name of its own.

A holder process that only sleeps keeps the namespaces; they die with it.  Nothing is given a
name outside: no entry in /run/netns, no mount, no file.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ..waiting import PATIENCE
from .process import TAG_VARIABLE, CommandError, Result, quoted, start_time
from ..schemas import check_output

# A private /run (sockets such as /run/wireguard/wg0.sock, pid files) and private changes to /etc
# and /var/lib, so that many hosts can run the same daemons with their default paths.
PRIVATE_FILES = """
mount -t tmpfs -o mode=0755 tmpfs /run
for dir in etc var/lib; do
    mkdir -p /run/.lab/$dir/upper /run/.lab/$dir/work
    mount -t overlay overlay \
        -o lowerdir=/$dir,upperdir=/run/.lab/$dir/upper,workdir=/run/.lab/$dir/work /$dir
done
echo "127.0.1.1 $1" >> /etc/hosts
# The user that the daemons run as, and the device with the mode that udev gives it.
grep -q '^weft:' /etc/group || echo 'weft:x:777:' >> /etc/group
grep -q '^weft:' /etc/passwd || echo 'weft:x:777:777::/nonexistent:/usr/sbin/nologin' >> /etc/passwd
if [ -c /dev/net/tun ]; then
    mknod -m 0666 /run/.lab/tun c 10 200
    mount --bind /run/.lab/tun /dev/net/tun
fi
rm -f /etc/resolv.conf
echo "# There is no name server in a lab." > /etc/resolv.conf
"""

HOLDER = """
set -e
mount -t sysfs sysfs /sys
hostname "$1"
sysctl -q -w net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0
sysctl -q -w net.ipv6.conf.default.accept_ra=0
ip link set lo up
%s
echo ready
exec sleep infinity
"""


class Namespace:
    """The namespaces of one machine, and the commands that run in them."""

    def __init__(self, name: str, tag: str, private_files: bool) -> None:
        self.name = name
        self.tag = tag
        script = HOLDER % (PRIVATE_FILES if private_files else "")
        self._errors = tempfile.TemporaryFile()
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "sh", "-c", script, f"weft-lab:{tag}", name],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self.pid = self._holder.pid
        self.started = start_time(self.pid)

    def wait_ready(self) -> None:
        """Wait until the machine is set up; it begins to be when the object is made."""
        with self._holder.stdout, self._errors:
            if self._holder.stdout.readline() != b"ready\n":
                self._errors.seek(0)
                raise CommandError(f"cannot make {self.name}: {self._errors.read().decode()}")

    @classmethod
    def attach(cls, name: str, tag: str, pid: int, started: int) -> Namespace | None:
        """The machine that another process made; None if it is gone."""
        if start_time(pid) != started:
            return None
        namespace = cls.__new__(cls)
        namespace.name, namespace.tag = name, tag
        namespace.pid, namespace.started = pid, started
        namespace._holder = None
        return namespace

    def end(self) -> None:
        """End the holder, and so the namespaces as soon as their last process has ended."""
        if self._holder:
            self._holder.kill()
            self._holder.wait()

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "LC_ALL": "C.UTF-8", **(extra or {}), TAG_VARIABLE: self.tag}

    def enter(self, argv: Sequence[str | Path | int], cwd: Path | None = None) -> list[str]:
        """The command line that runs `argv` inside; it keeps its pid, nsenter(1) becomes it."""
        flags = ["--net", "--mount", "--uts", f"--wdns={cwd or Path.cwd()}"]
        return ["nsenter", f"--target={self.pid}", *flags, "--", *map(str, argv)]

    def echo(self, argv: Sequence[str | Path | int]) -> str:
        line = f"{self.name}$ {quoted(argv)}"
        print(line, flush=True)
        return line

    def run(
        self,
        argv: Sequence[str | Path | int],
        *,
        check: bool = True,
        timeout_s: float = 30,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> Result:
        """Run a command to its end.

        It fails with CommandError if the command does (unless `check` is false) or does not end
        in PATIENCE times the time, and if it is ours and prints JSON that is not as docs/schema
        says.  `quiet` leaves out the echo, for commands that a condition repeats.
        """
        command = f"{self.name}$ {quoted(argv)}" if quiet else self.echo(argv)
        # Files, not pipes: a daemon that the command leaves behind would keep a pipe open.
        with ExitStack() as stack:
            feed, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            feed.write((stdin or "").encode())
            feed.seek(0)
            process = subprocess.Popen(
                self.enter(argv), env=self.environment(env), stdin=feed, stdout=out, stderr=err,
                start_new_session=True)
            patience_s = PATIENCE * timeout_s
            in_time = _wait(process, patience_s)
            result = Result(command, process.returncode, _content(out), _content(err))
        if not in_time:
            raise CommandError(
                f"{command}\ndid not end within {patience_s:g} s\n{result.out}{result.err}")
        check_output(argv, result.out)
        return result.check() if check else result

    def start(
        self,
        argv: Sequence[str | Path | int],
        log: Path,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> subprocess.Popen:
        """Start a command in the background; what it says is appended to `log`."""
        if not quiet:
            self.echo(argv)
        with log.open("ab") as output:
            return subprocess.Popen(
                self.enter(argv),
                env=self.environment(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def _wait(process: subprocess.Popen, timeout_s: float) -> bool:
    """Wait until a command has ended, or end it after the timeout.

    Popen.wait() would poll, which is slower than most commands of a lab are.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        in_time = bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)
    if not in_time:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return in_time


def _content(file) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")
