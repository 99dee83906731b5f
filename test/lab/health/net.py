"""A hub and three nodes, in which one fault at a time is injected.

    hub ── [ wan ] ──┬── a
                     ├── b
                     ├── c
                     └── d  joins in a test, or never
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from lab import Host, Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.waiting import ConditionError

QUARTET = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host a no-v6
link a wan 203.0.113.21
host b no-v6
link b wan 203.0.113.22
host c no-v6
link c wan 203.0.113.23
host d no-v6
link d wan 203.0.113.24
"""

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
SEVERITIES = ["note", "warning", "critical"]

# What this machine's cores may bring about.
BUSY = ("WEFT-CPU-001",)

# What the programs say of such faults in their logs.
ALLOWED = ["does not answer", "is not told", "is not as the hub wants it", "path lost", "relay",
           "hub", "no answer"]


class Net:
    """The hub, and three nodes, each with its agent and, but for `probes`, its probe."""

    def __init__(self, lab: Lab, weft: Path, probes: bool = True) -> None:
        self.lab = lab
        self.site = Site(lab, weft)
        self.site.daemon.allow(".*")
        names = ("a", "b", "c")
        self.nodes: dict[str, AgentNode] = dict(zip(
            names, self.site.join(*names, allow={name: ALLOWED for name in names}), strict=True))
        self.probes = {}
        for name in names if probes else ():
            self.start_probe(name)
        # Who never speaks to another one has no path to it.
        for name, other in [] if probes else PAIRS:
            self.nodes[name].host.spawn(["ping", self.nodes[other].address()], name="ping")
        wait_quiet(self, 60, "nothing to be found")

    def start_probe(self, name: str) -> None:
        self.probes[name] = self.nodes[name].host.spawn(
            [self.site.weft, "probe", "--report"], name="probe", allow=ALLOWED)

    def get(self, what: str) -> dict:
        return json.loads(self.site.hub.run(
            [self.site.weft, "get", what, "--json"], quiet=True).out)

    def findings(self) -> list[dict]:
        return self.get("findings")["findings"]

    def unquiet(self) -> list[str]:
        """What is found but notes, which pairs are not direct, and which probes do not reach all
        others: nothing, if all is well."""
        edges = {e["name"]: e for e in self.get("edges")["edges"]}
        said = [f"{one['code']} {one['subject']}: {one['text']}" for one in self.findings()
                if one["severity"] != "note"]
        for x, y in PAIRS:
            edge = edges.get(f"{x}--{y}", {})
            if edge.get("state") not in ("lan", "direct"):
                said.append(f"{x}--{y} is {edge.get('state')}")
            for n in (x, y):
                part = edge.get("status", {}).get(f"probe/{n}", {})
                if n in self.probes and not (
                        part.get("tunnel") == "reached" and part.get("underlay") == "reached"
                        and part.get("underlayHeard")):
                    said.append(f"the probe of {n} says of {x}--{y}: {part}")
        return said


class Judged(Protocol):
    """A network whose findings can be asked for."""

    def findings(self) -> list[dict]:
        """All that are found now."""

    def unquiet(self) -> list[str]:
        """What is not well, in words: nothing, if all is."""


def wait_quiet(net: Judged, deadline_s: float, what: str) -> None:
    try:
        wait_for(lambda: not net.unquiet(), deadline_s, what)
    except ConditionError as none:
        raise ConditionError(f"{none}; {'; '.join(net.unquiet())}") from None


@contextlib.contextmanager
def fault(net: Judged, code: str, subject: str, within_s: float, over_s: float = 30,
          at: Callable[[], list[dict]] | None = None) -> Iterator[Callable[[], dict]]:
    """In the block the fault is injected, and the function waits until it is found; at its end it
    is mended. Then it is over, and nothing else as grave was found meanwhile: by the hub, or by
    whom `at` asks."""
    seen: dict[tuple[str, str], str] = {}

    def look() -> dict | None:
        found = None
        for one in (at or net.findings)():
            seen[one["code"], one["subject"]] = one["severity"]
            if (one["code"], one["subject"]) == (code, subject):
                found = one
        return found

    wait_quiet(net, 60, "nothing to be found before")
    look()
    notes = set(seen)
    began = time.monotonic()

    def wait_found() -> dict:
        nonlocal began
        try:
            found = wait_for(look, within_s, f"{code} {subject}")
        except ConditionError as none:
            raise ConditionError(f"{none}; what was found: {seen}") from None
        print(f"FIGURE {code} {subject} is found after {time.monotonic() - began:.1f} s "
              f"(to be below {within_s:g})")
        began = time.monotonic()
        return found

    try:
        yield wait_found
    finally:
        # What a failed test has not mended.
        while dropping:
            undo(*dropping[-1])
    began = time.monotonic()
    wait_for(lambda: not look(), over_s, f"{code} {subject} to be over")
    print(f"FIGURE {code} {subject} is over after {time.monotonic() - began:.1f} s "
          f"(to be below {over_s:g})")
    wait_quiet(net, 150, "nothing to be found after")
    grave = SEVERITIES.index(seen[code, subject])
    others = {key: severity for key, severity in seen.items()
              if SEVERITIES.index(severity) >= grave and key != (code, subject)
              and key[0] not in BUSY and key not in notes}
    assert not others, others


# What drop() has made, and undo() not taken back.
dropping: list[tuple[Host, str]] = []


def drop(host: Host, name: str, hook: str, *rules: str) -> None:
    """Packets that match are dropped there, until undo()."""
    lines = "".join(f"{rule} drop\n" for rule in rules)
    host.run(["nft", "-f", "-"], quiet=True, stdin=(
        f"table inet {name} {{\nchain c {{\n"
        f"type filter hook {hook} priority -300\n{lines}}}\n}}\n"))
    dropping.append((host, name))


def undo(host: Host, name: str) -> None:
    dropping.remove((host, name))
    host.run(["nft", "delete", "table", "inet", name], quiet=True)


def part(net: Net, one: str, other: str, what: str = "") -> None:
    """UDP between the two, or `what` of it, is dropped where it leaves."""
    for frm, to in ((one, other), (other, one)):
        drop(net.lab.host(frm), "apart", "output",
             f"ip daddr {net.lab.host(to).address(4)} meta l4proto udp {what}")


def join(net: Net, one: str, other: str) -> None:
    """Undo part()."""
    for name in (one, other):
        undo(net.lab.host(name), "apart")


def cut(net: Net, frm: str, to: str, on: bool) -> None:
    """UDP from one node to the other is dropped where it leaves."""
    if on:
        drop(net.lab.host(frm), "oneway", "output",
             f"ip daddr {net.lab.host(to).address(4)} meta l4proto udp")
    else:
        undo(net.lab.host(frm), "oneway")
