"""A node whose engine is the kernel's: it joins, finds its peer, is mended, and leaves. And one
that is the kernel's WireGuard alone.

    hub ──┐
    u   ──┤ s            u is a node with the userspace engine
    k   ──┘              k is a virtual machine, with a kernel that has WireGuard
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.stock_recipe import sync_line

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


@contextmanager
def make_site(weft: Path, program: Path) -> Iterator[tuple[Lab, KernelVm]]:
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(SITE) as lab:
        start_hub(lab.host("hub"), weft)
        with KernelVm(lab.host("k"), (*MODULES, "tun"), [program]) as vm:
            yield lab, vm


@pytest.fixture
def site(weft: Path) -> Iterator[tuple[Lab, KernelVm]]:
    with make_site(weft, weft) as made:
        yield made


@pytest.fixture
def stock_site(weft: Path) -> Iterator[tuple[Lab, KernelVm]]:
    """The machine has curl, and nothing of ours."""
    with make_site(weft, Path("/usr/bin/curl")) as made:
        yield made


def status(vm: KernelVm) -> dict:
    return json.loads(vm.run(["weft", "status", "--json"], quiet=True).out)


def reaches(vm: KernelVm, address: str) -> bool:
    return vm.run(["ping", "-c1", "-W2", address], check=False, quiet=True).rc == 0


def test_node_with_the_kernels_engine(site: tuple[Lab, KernelVm], weft: Path) -> None:
    lab, vm = site
    hub, u = lab.host("hub"), lab.host("u")
    # A subnet of one address, so that nothing has to be forwarded to be reached.
    u.run(["ip", "address", "add", "10.9.0.1/32", "dev", "lo"])
    u.run([weft, "join", hub.run([weft, "token", "new", "--route", "10.9.0.0/16"]).out.strip(),
           "--name", "u", "--route", "10.9.0.0/24"])
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

    # What lies behind u is reached through it; WireGuard's own packets have the mark.
    wait_for(lambda: reaches(vm, "10.9.0.1"), 30, "k to reach the subnet behind u")
    assert [route["used"] for route in status(vm)["routes"]] == [True]
    assert vm.run(["wg", "show", "weft0", "fwmark"]).out.strip() == "0x57460087"

    # Somebody meddles with the interface.
    for damage in ("ip link delete weft0", f"wg set weft0 peer {peer['publicKey']} remove"):
        vm.run(damage.split())
        wait_for(lambda: reaches(vm, far["address4"]), 40, f"k to be whole after: {damage}")
        wait_for(lambda: reaches(vm, "10.9.0.1"), 40, f"the subnet to be reached after: {damage}")

    assert vm.run(["weft", "leave"], timeout_s=60).out.startswith("Left the network default;")
    assert "weft0" not in vm.run(["ip", "link"]).out
    wait_for(lambda: tell_u()["peers"] == [], 5, "u to hear that k is gone")
    u.run([weft, "leave"])


def bring_up(vm: KernelVm, text: str, tmp_path: Path) -> None:
    """What wg-quick does with its file; the machine's shell cannot run it."""
    conf = tmp_path / "wg0.conf"
    conf.write_text(text)
    conf.chmod(0o600)
    peers = subprocess.run(["wg-quick", "strip", conf], check=True, capture_output=True, text=True,
                           timeout=60).stdout
    vm.run(["sh", "-c", "cat > /etc/wireguard/wg0.conf"], stdin=peers)
    vm.run("ip link add wg0 type wireguard".split())
    vm.run("wg setconf wg0 /etc/wireguard/wg0.conf".split())
    for address in re.search("^Address = (.*)$", text, re.MULTILINE)[1].split(", "):
        vm.run(["ip", "address", "add", address, "dev", "wg0"])
    vm.run("ip link set wg0 mtu 1420 up".split())
    for command in re.findall("^PostUp = (.*)$", text, re.MULTILINE):
        vm.run(command.replace("%i", "wg0").split())


def test_the_kernels_wireguard_alone(stock_site: tuple[Lab, KernelVm], weft: Path,
                                     tmp_path: Path) -> None:
    """Without an agent it keeps up by the README's line, which leaves what runs as it is."""
    lab, vm = stock_site
    hub, u = lab.host("hub"), lab.host("u")
    u.run([weft, "join", token(hub, weft), "--name", "u"])
    public = vm.run(["sh", "-c", "mkdir -p /etc/wireguard; wg genkey | "
                     "tee /etc/wireguard/wg0.key | wg pubkey"]).out.strip()
    bring_up(vm, hub.run([weft, "node", "add", "k", "--public-key", public]).out, tmp_path)
    far = json.loads(u.run([weft, "status", "--json"], quiet=True).out)["self"]
    for address in (far["address4"], far["address6"]):
        wait_for(lambda to=address: reaches(vm, to), 30, f"k to reach {address}")

    def show(what: str) -> str:
        return vm.run(["wg", "show", "wg0", what], quiet=True).out

    def received() -> dict[str, int]:
        """Bytes by peer: a peer that was made anew has none."""
        return {key: int(n) for key, n, _ in map(str.split, show("transfer").splitlines())}

    kept, before = (show("private-key"), show("listen-port")), received()
    other = vm.run(["sh", "-c", "wg genkey | wg pubkey"]).out.strip()
    hub.run([weft, "node", "add", "other", "--public-key", other])
    hub_at = re.sub(r"\d+$", "1", far["address4"])
    vm.run(sync_line(hub_at))
    assert set(show("peers").split()) == {*before, other}
    assert kept == (show("private-key"), show("listen-port"))
    after = received()
    assert all(after[key] >= n > 0 for key, n in before.items()), (before, after)
    assert reaches(vm, far["address4"])
    hub.run([weft, "node", "rm", "other"])
    vm.run(sync_line(hub_at))
    assert set(show("peers").split()) == set(before)
    u.run([weft, "leave"])
