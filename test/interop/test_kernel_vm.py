"""The virtual machine is a good peer: its kernel's WireGuard and wireguard-go talk to each other.

    k (virtual machine, kernel WireGuard) ── [ s ] ── u (namespace, wireguard-go)

This tests the tools with which Weft is tested, on two implementations that are known to agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from lab import CommandError

from .vm.kernelvm import KernelVm
from .wgpeer import WgPeer, preshared_key

pytestmark = pytest.mark.namespaces


@pytest.fixture
def ends(kernel_vm: KernelVm) -> Iterator[dict[str, WgPeer]]:
    """The two ends of a tunnel, which do not know each other yet."""
    with ExitStack() as stack:
        kernel = WgPeer.kernel(kernel_vm)
        stack.callback(kernel.remove)
        other = WgPeer.userspace(kernel_vm.host.lab.host("u"), ["wireguard-go"])
        stack.callback(other.remove)
        kernel.configure(["10.7.0.1/24", "fd07::1/64"])
        other.configure(["10.7.0.2/24", "fd07::2/64"])
        yield {"kernel": kernel, "userspace": other}


@pytest.mark.parametrize(("first", "second"), [("kernel", "userspace"), ("userspace", "kernel")])
def test_handshake_and_data(ends, first, second):
    initiator, responder = ends[first], ends[second]
    key = preshared_key()
    responder.add_peer(initiator, preshared_key=key)
    initiator.add_peer(responder, endpoint=True, preshared_key=key)
    assert initiator.state(responder).handshake == 0
    assert responder.state(initiator).endpoint == "(none)"

    initiator.ping(responder)
    seen = responder.state(initiator)
    assert seen.endpoint == f"{initiator.machine.address()}:51820"
    assert seen.handshake > 0
    assert initiator.state(responder).handshake > 0

    responder.ping(initiator)
    for version in (4, 6):
        initiator.ping(responder, version, size=1300)
        responder.ping(initiator, version, size=1300)
    for end, peer in ((initiator, responder), (responder, initiator)):
        state = end.state(peer)
        assert state.rx_bytes > 2 * 1300
        assert state.tx_bytes > 2 * 1300


def test_a_wrong_preshared_key_is_noticed(ends):
    kernel, other = ends["kernel"], ends["userspace"]
    other.add_peer(kernel, preshared_key=preshared_key())
    kernel.add_peer(other, endpoint=True, preshared_key=preshared_key())
    assert not kernel.can_ping(other)
    assert kernel.state(other).handshake == 0


def test_commands_in_the_machine(kernel_vm):
    assert kernel_vm.run(["uname", "-s"]).out == "Linux\n"
    assert kernel_vm.run(["cat"], stdin="a b\nc").out == "a b\nc"
    assert kernel_vm.run(["sh", "-c", "exit 3"], check=False).rc == 3
    with pytest.raises(CommandError, match="(?s)ls /nowhere.*No such file"):
        kernel_vm.run(["ls", "/nowhere"])


def test_the_machine_has_the_addresses_of_its_host(kernel_vm):
    u = kernel_vm.host.lab.host("u")
    for version in (4, 6):
        u.run(["ping", "-c1", "-W15", kernel_vm.address(version)])
        kernel_vm.run(["ping", "-c1", "-W15", u.address(version)])
