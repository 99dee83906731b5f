"""A node whose engine is the kernel's: it joins, finds its peer, is mended, and leaves.

    hub ──┐
    u   ──┤ s            u is a node with the userspace engine
    k   ──┘              k is a virtual machine, with a kernel that has WireGuard
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for

from .vm import image
from .vm.kernelvm import MODULES, KernelVm

pytestmark = pytest.mark.namespaces

SITE = """
switch s 192.0.2.0/24 2001:db8::/64
host hub
host u
host k
link hub s 192.0.2.10 2001:db8::10
link u s 192.0.2.2 2001:db8::2
link k s 192.0.2.1 2001:db8::1
"""


def start_hub(hub: Host, weft: Path) -> None:
    hub.spawn([weft, "hub", "up", "--public", hub.address()], name="hub")
    wait_for(lambda: hub.run([weft, "nodes"], check=False, quiet=True).rc == 0, 20,
             "the hub to answer")


def token(hub: Host, weft: Path) -> str:
    return hub.run([weft, "token", "new"]).out.strip()


@pytest.fixture
def site(weft: Path) -> Iterator[tuple[Lab, KernelVm]]:
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(SITE) as lab:
        start_hub(lab.host("hub"), weft)
        with KernelVm(lab.host("k"), (*MODULES, "tun"), [weft]) as vm:
            yield lab, vm


def status(vm: KernelVm) -> dict:
    return json.loads(vm.run(["weft", "status", "--json"], quiet=True).out)


def reaches(vm: KernelVm, address: str) -> bool:
    return vm.run(["ping", "-c1", "-W2", address], check=False, quiet=True).rc == 0


def test_node_with_the_kernels_engine(site: tuple[Lab, KernelVm], weft: Path) -> None:
    lab, vm = site
    hub, u = lab.host("hub"), lab.host("u")
    u.run([weft, "join", token(hub, weft), "--name", "u"])
    said = vm.run(["weft", "join", token(hub, weft), "--name", "k"], timeout_s=60).out
    assert "the agent runs the kernel engine" in said

    def tell_u() -> dict:
        return json.loads(u.run([weft, "status", "--json"], quiet=True).out)

    assert status(vm)["self"]["engine"] == "kernel"
    assert "interface: weft0" in vm.run(["wg", "show"]).out
    wait_for(lambda: [peer["name"] for peer in tell_u()["peers"]] == ["k"], 10, "u to hear of k")
    far = tell_u()["self"]
    for address in (far["address4"], far["address6"]):
        wait_for(lambda to=address: reaches(vm, to), 30, f"k to reach {address}")
    wait_for(lambda: status(vm)["peers"][0]["path"] == "direct", 30, "k and u to meet directly")
    [peer] = status(vm)["peers"]
    assert peer["rxBytes"] > 0

    # Somebody meddles with the interface.
    for damage in ("ip link delete weft0", f"wg set weft0 peer {peer['publicKey']} remove"):
        vm.run(damage.split())
        wait_for(lambda: reaches(vm, far["address4"]), 40, f"k to be whole after: {damage}")

    assert vm.run(["weft", "leave"], timeout_s=60).out.startswith("Left the network default;")
    assert "weft0" not in vm.run(["ip", "link"]).out
    wait_for(lambda: tell_u()["peers"] == [], 5, "u to hear that k is gone")
    u.run([weft, "leave"])
