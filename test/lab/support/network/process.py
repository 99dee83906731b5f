"""Processes of a lab: a command that was run, a daemon that runs, and their end.

Every process that a lab starts carries WEFT_LAB=TAG in its environment, which its children
inherit, so that all of them can be found and ended even if the tool that started them is gone.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..waiting import PATIENCE, wait_for

TAG_VARIABLE = "WEFT_LAB"
COMPLAINT = re.compile(r"\b(warning|error):", re.IGNORECASE)


class CommandError(AssertionError):
    """A command failed, or took too long; the text has the command and what it said."""


@dataclass
class Result:
    """What came of a command."""

    command: str  # as echoed, with the host's name
    rc: int
    out: str
    err: str

    def check(self) -> Result:
        if self.rc != 0:
            said = "\n".join(text for text in (self.out.rstrip(), self.err.rstrip()) if text)
            raise CommandError(f"{self.command}\nended with {self.rc}\n{said}")
        return self


class Daemon:
    """A background process of a lab host, with its log."""

    def __init__(self, popen: subprocess.Popen, name: str, log: Path, allow: Iterable[str]) -> None:
        self.name = name  # HOST-PROGRAM, as the log file is called
        self.log = log
        self._popen = popen
        self._allowed = [re.compile(pattern) for pattern in allow]

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def rc(self) -> int | None:
        """None while it runs, else its exit status (negative: the signal that ended it)."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        return self.rc is None

    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def wait_line(self, pattern: str, deadline_s: float = 10) -> re.Match:
        """Wait until a line of the log matches, and return the match."""
        regex = re.compile(pattern)

        def find() -> re.Match | None:
            ended = not self.running
            match = next(filter(None, map(regex.search, self.lines())), None)
            if ended and not match:
                said = "\n".join(self.lines()[-20:])
                raise CommandError(
                    f"{self.name} ended with {self.rc} without saying {pattern!r}\n{said}")
            return match

        return wait_for(find, deadline_s, f"{self.name} to say {pattern!r}")

    def wait(self, deadline_s: float = 10) -> int:
        """Wait until it has ended by itself, and return its exit status."""
        wait_for(lambda: not self.running, deadline_s, f"{self.name} to end")
        return self.rc

    def stop(self, deadline_s: float = 5) -> int:
        """Ask it to end, insist after the deadline, and return its exit status."""
        if self.running:
            self._popen.terminate()
            try:
                self._popen.wait(PATIENCE * deadline_s)
            except subprocess.TimeoutExpired:
                self.kill9()
        return self.rc

    def kill9(self) -> None:
        """End it as a crash or the kernel's memory killer would."""
        self._popen.kill()
        self._popen.wait()

    def interrupt(self) -> None:
        """Send what a terminal sends at Ctrl-C."""
        self._popen.send_signal(signal.SIGINT)

    def allow(self, pattern: str) -> None:
        """Expect complaints (lines with "warning:" or "error:") that match `pattern`."""
        self._allowed.append(re.compile(pattern))

    def complaints(self) -> list[str]:
        """The lines with "warning:" or "error:" that nobody allowed."""
        return [
            line
            for line in self.lines()
            if COMPLAINT.search(line) and not any(regex.search(line) for regex in self._allowed)
        ]


def quoted(argv: Iterable[str | Path | int]) -> str:
    return shlex.join(map(str, argv))


def start_time(pid: int) -> int | None:
    """When the process started, in ticks since boot; with the pid it names a process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def tagged_pids(tag: str) -> list[int]:
    """All processes, of whatever parent, that belong to the lab `tag`."""
    wanted = f"{TAG_VARIABLE}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if wanted in environment.split(b"\0") and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def end_tagged(tag: str) -> None:
    """End all processes of the lab `tag` at once."""

    def none_left() -> bool:
        pids = tagged_pids(tag)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not pids

    wait_for(none_left, 10, f"the processes of lab {tag} to end")
