"""A hub and a node as plain programs, and beside them a machine that has the units; booted once.

    hub  ──┐
    u, v ──┤ s           plain programs in namespaces; v is for the hub that m is
    m    ──┘             a virtual machine with systemd, and weft as `make install` leaves it
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for

from . import root
from .machine import SystemdVm

TOPOLOGY = """
switch s 192.0.2.0/24 2001:db8::/64
host hub
host u
host v
host m
link hub s 192.0.2.10 2001:db8::10
link u s 192.0.2.2 2001:db8::2
link v s 192.0.2.3 2001:db8::3
link m s 192.0.2.1 2001:db8::1
"""


@dataclass(frozen=True)
class Site:
    weft: Path
    hub: Host
    u: Host
    v: Host
    m: SystemdVm

    def token(self) -> str:
        return self.hub.run([self.weft, "token", "new"], quiet=True).out.strip()

    def status_of_u(self, *words: str) -> dict:
        return json.loads(self.u.run([self.weft, "status", "--json", *words], quiet=True).out)


@pytest.fixture(scope="session")
def site(weft: Path) -> Iterator[Site]:
    reason = root.why_not(weft)
    if reason:
        pytest.skip(reason)
    with Lab.from_text(TOPOLOGY, capture=False) as lab, SystemdVm(lab.host("m"), weft) as machine:
        hub, u = lab.host("hub"), lab.host("u")
        hub.spawn([weft, "hub", "up", "--public", hub.address()], name="hub")
        wait_for(lambda: hub.run([weft, "nodes"], check=False, quiet=True).rc == 0, 20,
                 "the hub to answer")
        site = Site(weft, hub, u, lab.host("v"), machine)
        u.run([weft, "join", site.token(), "--name", "u"])
        yield site
        u.run([weft, "leave"])
        assert machine.run(["systemctl", "is-system-running"], check=False).out == "running\n"
        assert "\n".join(machine.warnings()) == ""
