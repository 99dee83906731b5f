"""A job that runs in a lab, and what `weft jobs` says of who holds it up."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from .agents import Site
from .network.laboratory import Lab
from .network.process import Daemon
from .waiting import wait_for


class HeldUp:
    """The job of that name, whose commands run, by their nodes."""

    def __init__(self, site: Site, name: str, commands: Mapping[str, Daemon]) -> None:
        self.site, self.name, self.commands = site, name, dict(commands)

    def look(self) -> dict:
        answer = self.site.hub.run([self.site.weft, "jobs", "--json"], quiet=True).out
        [job] = [job for job in json.loads(answer)["jobs"] if job["job"] == self.name]
        return job

    def held_up_by(self) -> list[dict]:
        return self.look()["heldUpBy"]

    def wait_well(self, seconds: float) -> None:
        """For so long nothing is named."""
        since = time.monotonic()

        def is_over() -> bool:
            assert self.held_up_by() == []
            return time.monotonic() - since > seconds

        wait_for(is_over, seconds + 10, "the job to go well for a while")

    def wait_named(self, what: str, code: str, subject: str) -> dict:
        since = time.monotonic()
        wait_for(self.held_up_by, 60, f"{what} to be named")
        print(f"FIGURE {what}: named after {time.monotonic() - since:.1f} s (to be below 30)")
        [found] = self.held_up_by()
        assert (found["code"], found["subject"]) == (code, subject), found
        return found

    def wait_mended(self, what: str) -> None:
        since = time.monotonic()
        wait_for(lambda: self.held_up_by() == [], 60, f"{what} to be over")
        print(f"FIGURE {what}: over after {time.monotonic() - since:.1f} s (to be below 30)")

    def end(self) -> None:
        for command in self.commands.values():
            command.interrupt()
        for command in self.commands.values():
            wait_for(lambda c=command: not c.running, 60, "the job to end")


Job = TypeVar("Job", bound=HeldUp)


@contextlib.contextmanager
def in_lab(make: Callable[[Site, Path, Path], Job], weft: Path, topology: str,
           nodes: Sequence[str], folder: Path, well_s: float) -> Iterator[Job]:
    """The job that `make` begins on nodes that have joined, once it runs and for so long nothing
    was named."""
    with Lab.from_text(topology, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        site.join(*nodes)
        job = make(site, weft, folder)
        for command in job.commands.values():
            command.wait_line("it runs", 60)
        job.wait_well(well_s)
        yield job
        job.end()


def descendants(pid: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found


def words_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
