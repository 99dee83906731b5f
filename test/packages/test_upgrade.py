"""Installed, upgraded under a TCP flow, removed, installed again, purged: with apt, under systemd.

The earlier version is the same packages with a lower number: there is none that was packaged.
"""

from __future__ import annotations

import re
import time

import pytest
from lab import wait_for
from lab.support.streaming import Receiver
from units.conftest import Site

from .build import Packages
from .machine import PackageMachine

pytestmark = pytest.mark.namespaces

AGENT, HUB, PROBE = "weft-agent.service", "weft-hub.service", "weft-probe.service"
# The agent's unit starts it: it waits for what the agent has to tell systemd-resolved.
RESOLVED = "weft-resolved.path"
# What a figure is to be, and what a machine that is busy may make of it.
GAP_S, DEADLINE_S = 1, 20
# The user stays, as Debian's packages leave theirs.
USER_FILES = re.compile(r"^/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$")
# A block some dozen times a second, for dpkg has to run as well. At full rate
# test/lab/member/test_renew.py looks.
SENDER = """\
block=$(printf %%65536s)
while ! test -e /tmp/enough; do
    printf %%s "$block"; n=$((n + 1)); read -r -t 0.02 <> <(:)
done > /dev/tcp/%s/5201
echo $((n * 65536)) > /tmp/sent
"""


@pytest.fixture(scope="module")
def m(site: Site) -> PackageMachine:
    return site.m


@pytest.fixture(scope="module")
def before(m: PackageMachine) -> dict[str, str]:
    return m.files()


def status_of(m: PackageMachine, unit: str) -> tuple[str, str]:
    return m.property(unit, "UnitFileState"), m.property(unit, "ActiveState")


def reaches_u(m: PackageMachine) -> bool:
    return m.run(["ping", "-c1", "-W2", "u"], check=False, quiet=True).rc == 0


def data_plane(m: PackageMachine) -> int:
    return int(m.run(["pgrep", "-x", "weft-wg"], quiet=True).out)


def test_installing_starts_nothing(
    m: PackageMachine, before: dict[str, str], earlier: Packages
) -> None:
    assert before
    m.install(earlier)
    for unit in (AGENT, HUB, PROBE):
        assert status_of(m, unit) == ("disabled", "inactive")
    assert m.property(RESOLVED, "ActiveState") == "inactive"
    assert m.run(["pgrep", "-l", "weft"], check=False).out == ""
    assert m.run(["id", "-un", "weft"]).out == "weft\n"


def test_join_and_hub_run_by_their_units(site: Site, m: PackageMachine) -> None:
    m.run(["weft", "join", site.token(), "--name", "m", "--engine", "userspace"], timeout_s=60)
    assert status_of(m, AGENT) == ("enabled", "active")
    assert m.property(RESOLVED, "ActiveState") == "active"
    wait_for(lambda: reaches_u(m), 30, "m to reach u by name")
    m.run(["sed", "-i", f"s/^#.*OPTIONS=.*/WEFT_HUB_OPTIONS='--public {m.address()} "
           "--cidr4 10.99.0.0\\/16 --listen :51999'/", "/etc/default/weft-hub"])
    m.run(["systemctl", "enable", "--now", HUB, PROBE], timeout_s=60)
    wait_for(lambda: m.run(["weft", "nodes"], check=False, quiet=True).rc == 0, 30, "m's hub")


def test_upgraded_under_a_flow(site: Site, m: PackageMachine, packages: Packages) -> None:
    """By apt, which restarts daemons; then its data plane, which an upgrade leaves alone."""
    address = site.status_of_u()["self"]["address4"]
    receiver = Receiver(site.u, address)
    m.run(["systemd-run", "--quiet", "--unit=sender", "bash", "-c", SENDER % address])
    receiver.wait_more(1 << 20)
    pids = {unit: m.main_pid(unit) for unit in (AGENT, HUB, PROBE)}
    plane, began = data_plane(m), time.time()

    m.install(packages)
    for unit, pid in pids.items():
        assert m.runs_present_program(m.wait_other_pid(unit, pid))
        assert status_of(m, unit) == ("enabled", "active")
    receiver.wait_more(1 << 20)
    upgrade_gap = receiver.longest_gap_s(since=began)
    assert data_plane(m) == plane
    assert not m.runs_present_program(plane)

    wait_for(lambda: m.run(["weft", "status"], check=False, quiet=True).rc == 0, 20, "the agent")
    renewed_at = time.time()
    m.run(["systemctl", "reload", AGENT], timeout_s=60)
    receiver.wait_more(1 << 20)
    renewal_gap = receiver.longest_gap_s(since=renewed_at)
    assert data_plane(m) != plane

    m.run(["touch", "/tmp/enough"])
    n_bytes = int(receiver.daemon.wait_line(r"end: (\d+) bytes", 60)[1])
    wait_for(lambda: m.run(["test", "-s", "/tmp/sent"], check=False).rc == 0, 20, "its end")
    assert n_bytes == int(m.run(["cat", "/tmp/sent"]).out)
    print(f"FIGURE packages upgraded under a flow: nothing arrived for {upgrade_gap:.2f} s by apt "
          f"(to be below {GAP_S} s), {renewal_gap:.2f} s by the data plane's renewal "
          f"(to be below {GAP_S} s)")
    assert max(upgrade_gap, renewal_gap) < DEADLINE_S


def test_removed_keeps_what_was_joined(site: Site, m: PackageMachine, packages: Packages) -> None:
    m.apt("remove", "weft")
    assert m.run(["pgrep", "-l", "weft"], check=False).out == ""
    assert m.property(RESOLVED, "ActiveState") == "inactive"
    assert "weft" not in m.run(["ip", "link"]).out
    assert "weft" not in m.run(["cat", "/etc/hosts"]).out
    m.install(packages)
    m.run(["systemctl", "start", AGENT])
    wait_for(lambda: reaches_u(m), 30, "m to reach u again")


def test_purge_leaves_nothing(site: Site, m: PackageMachine, before: dict[str, str]) -> None:
    m.apt("purge", "weft", "weft-hub")
    after = m.files()
    assert m.run(["pgrep", "-l", "weft"], check=False).out == ""
    assert "weft" not in m.run(["ip", "link"]).out
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {path for path in changed if not USER_FILES.match(path)} == set()
    assert m.run(["systemctl", "is-system-running"], check=False).out == "running\n"
