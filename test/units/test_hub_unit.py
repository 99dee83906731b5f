"""weft-hub.service and weft-wg@.service: the machine serves a network and a bare interface."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from interop.wgpeer import WgPeer
from lab import wait_for
from lab.support.pinging import Pings, can_ping

from .conftest import Site
from .machine import SystemdMachine
from .sandbox import assert_in_force, capabilities

pytestmark = pytest.mark.namespaces

HUB, WG = "weft-hub.service", "weft-wg@wg0.service"
OVERLAY_ADDRESS = "10.99.0.1"


def nodes(m: SystemdMachine) -> list[str]:
    said = m.run(["weft", "nodes", "--json"], check=False, quiet=True)
    return ([node["metadata"]["name"] for node in json.loads(said.out)["nodes"]]
            if said.rc == 0 else [])


@pytest.fixture(scope="module")
def hub(site: Site) -> Iterator[SystemdMachine]:
    """The machine, as the hub of a network of its own; `v` is its member."""
    m = site.m
    m.run(["tee", "/etc/default/weft-hub"], stdin=(
        f'WEFT_HUB_OPTIONS="--public {m.address()} --cidr4 10.99.0.0/16"\n'))
    m.run(["systemctl", "enable", "--now", HUB])
    wait_for(lambda: m.run(["weft", "nodes"], check=False, quiet=True).rc == 0, 20,
             "the hub to answer")
    token = m.run(["weft", "token", "new"], quiet=True).out.strip()
    site.v.run([site.weft, "join", token, "--name", "v"])
    yield m
    site.v.run([site.weft, "leave"])
    m.run(["systemctl", "stop", HUB])


def serves_on(site: Site, harm: Callable[[], None]) -> None:
    """The member has the hub back after `harm`, with all that it had acknowledged."""
    pings = Pings(site.v, OVERLAY_ADDRESS)
    harm()
    wait_for(lambda: "v" in nodes(site.m), 20, "the hub to know its member")
    pings.wait_more()
    pings.stop()


def test_serves_members(site: Site, hub: SystemdMachine) -> None:
    assert "v" in nodes(hub)
    wait_for(lambda: can_ping(site.v, OVERLAY_ADDRESS), 20, "v to reach the hub")


def test_sandbox_is_in_force(hub: SystemdMachine) -> None:
    pid = hub.main_pid(HUB)
    assert_in_force(hub, pid)
    assert capabilities(hub, pid) <= {"cap_net_admin", "cap_net_bind_service"}


def test_killed(site: Site, hub: SystemdMachine) -> None:
    before = hub.main_pid(HUB)

    def kill() -> None:
        hub.run(["kill", "-9", before])
        hub.wait_other_pid(HUB, before)

    serves_on(site, kill)


def test_upgraded(site: Site, hub: SystemdMachine) -> None:
    def upgrade() -> None:
        hub.replace_program()
        hub.run(["systemctl", "restart", HUB])

    serves_on(site, upgrade)
    assert hub.runs_present_program(hub.main_pid(HUB))


def test_another_name_of_a_file_of_roots_is_not_given_away(
        site: Site, hub: SystemdMachine) -> None:
    """The hub's user could give such a name, where the kernel does not protect links."""
    state = "/var/lib/weft/hub"
    hub.run(["sh", "-e", "-c", f"echo x > /root/victim; ln /root/victim {state}/second-name; "
             f"echo y > {state}/left-by-root"])
    serves_on(site, lambda: hub.run(["systemctl", "restart", HUB]))

    def owner(path: str) -> str:
        return hub.run(["stat", "-c", "%U", path], quiet=True).out.strip()

    assert owner("/root/victim") == "root"
    assert owner(f"{state}/left-by-root") == "weft"
    hub.run(["rm", "/root/victim", f"{state}/second-name", f"{state}/left-by-root"])


# ---- a bare interface -----------------------------------------------------------------------


@pytest.fixture
def tunnel(site: Site) -> Iterator[tuple[WgPeer, WgPeer]]:
    """The unit's interface at one end, and `weft wg` as a plain program at the other."""
    site.m.run(["systemctl", "start", WG])
    wait_for(lambda: site.m.run(["wg", "show", "wg0"], check=False, quiet=True).rc == 0, 20,
             "the interface")
    ours = WgPeer(site.m, "wg0", None)
    theirs = WgPeer.userspace(site.v, [site.weft, "wg"])
    ours.configure(["10.7.0.1/24"], port=51999)
    theirs.configure(["10.7.0.2/24"], port=51999)
    ours.add_peer(theirs)
    theirs.add_peer(ours, endpoint=True)
    yield ours, theirs
    theirs.remove()
    site.m.run(["systemctl", "stop", WG])


def test_interface_of_a_unit(site: Site, tunnel: tuple[WgPeer, WgPeer]) -> None:
    ours, theirs = tunnel
    theirs.ping(ours)
    pid = site.m.main_pid(WG)
    assert_in_force(site.m, pid)
    assert capabilities(site.m, pid) <= {"cap_net_admin"}
    # The interface goes with the process, and both come back.
    site.m.run(["kill", "-9", pid])
    site.m.wait_other_pid(WG, pid)
    wait_for(lambda: site.m.run(["wg", "show", "wg0"], check=False, quiet=True).rc == 0, 20,
             "the interface to be back")


# ---- all of them ----------------------------------------------------------------------------


def test_exposure(site: Site) -> None:
    """As systemd reckons it from what a unit's process could do: 10 is everything."""
    units = {"weft-agent.service": "weft-agent.service", HUB: HUB, WG: "weft-wg@.service",
             "weft-probe.service": "weft-probe.service",
             "weft-hosts@1.service": "weft-hosts@.service",
             "weft-resolved.service": "weft-resolved.service"}
    folder = "/tmp/units"
    site.m.run(["mkdir", folder])
    for unit, file in units.items():
        site.m.run(["cp", f"/usr/local/lib/systemd/system/{file}", f"{folder}/{unit}"], quiet=True)
    said = site.m.run(["sh", "-c", "systemd-analyze security --offline=yes --no-pager "
                       f"{folder}/*.service | grep Overall"], timeout_s=60).out
    found = {unit: float(n) for unit, n in re.findall(r"level for (\S+): (\d+\.\d) ", said)}
    print(f"FIGURE exposure {found} (each at most 2.0)")
    assert sorted(found) == sorted(units)
    assert all(exposure <= 2.0 for exposure in found.values())
