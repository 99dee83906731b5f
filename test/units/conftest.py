"""A hub and a node as plain programs, and beside them a machine that has the units; booted once.

    hub  ──┐
    u, v ──┤ s           plain programs in namespaces; v is for the hub that m is
    m    ──┘             a machine with systemd, and weft as `make install` leaves it
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.topologies import one_switch

from . import container, vm
from .container import Container
from .machine import SystemdMachine
from .vm import SystemdVm

TOPOLOGY = one_switch("s", "192.0.2", {"hub": 10, "u": 2, "v": 3, "m": 1}, v6=True)


@dataclass(frozen=True)
class Site:
    weft: Path
    hub: Host
    u: Host
    v: Host
    m: SystemdMachine

    def token(self) -> str:
        return self.hub.run([self.weft, "token", "new"], quiet=True).out.strip()

    def status_of_u(self, *words: str) -> dict:
        return json.loads(self.u.run([self.weft, "status", "--json", *words], quiet=True).out)


@contextmanager
def running(weft: Path, lab: Lab, machine: SystemdMachine) -> Iterator[Site]:
    """A hub that runs and u, which has joined; u leaves at the end."""
    hub, u = lab.host("hub"), lab.host("u")
    hub.spawn([weft, "hub", "up", "--public", hub.address()], name="hub")
    wait_for(lambda: hub.run([weft, "nodes"], check=False, quiet=True).rc == 0, 20,
             "the hub to answer")
    site = Site(weft, hub, u, lab.host("v"), machine)
    u.run([weft, "join", site.token(), "--name", "u"])
    yield site
    u.run([weft, "leave"])


@contextmanager
def _site(weft: Path, kind: type[Container] | type[SystemdVm]) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab, kind(lab.host("m"), weft) as machine:
        with running(weft, lab, machine) as site:
            yield site
        assert machine.run(["systemctl", "is-system-running"], check=False).out == "running\n"
        assert "\n".join(machine.warnings()) == ""


@pytest.fixture(scope="session")
def site(weft: Path) -> Iterator[Site]:
    """With a container, whose kernel is this machine's."""
    reason = container.why_not(weft)
    if reason:
        pytest.skip(reason)
    with _site(weft, Container) as site:
        yield site


@pytest.fixture(scope="session")
def kernel_site(weft: Path) -> Iterator[Site]:
    """With a virtual machine, whose kernel has WireGuard."""
    reason = vm.why_not(weft)
    if reason:
        pytest.skip(reason)
    with _site(weft, SystemdVm) as site:
        yield site
