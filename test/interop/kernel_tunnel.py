"""A tunnel between `weft wg` and the Linux kernel's own WireGuard, for tests.

    k (virtual machine, kernel) ──┐
    u (namespace, weft wg)      ──┼── [ s ]
    r (another one, which moves) ─┤
    x (a stranger)              ──┘
"""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for

from .traffic import drops
from .vm import image
from .vm.kernelvm import KernelVm
from .wgpeer import WgPeer
from .wire import Capture, socket_in

TOPOLOGY = """
switch s 192.0.2.0/24 2001:db8::/64
host k
host u
host r
host x
link k s 192.0.2.1 2001:db8::1 emulated
link u s 192.0.2.2 2001:db8::2
link r s 192.0.2.3 2001:db8::3
link x s 192.0.2.4 2001:db8::4
"""

KERNEL_INNER = ["10.7.0.1/24", "fd07::1/64"]
WEFT_INNER = ["10.7.0.2/24", "fd07::2/64"]
PORT = 51820


@contextmanager
def machines() -> Iterator[KernelVm]:
    """The lab, with the virtual machine running."""
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(TOPOLOGY) as lab, KernelVm(lab.host("k")) as vm:
        yield vm


@dataclass
class Ends:
    """The two ends of a tunnel."""

    kernel: WgPeer
    weft: WgPeer
    program: Path

    @property
    def lab(self) -> Lab:
        return self.weft.machine.lab

    def order(self, first: str) -> tuple[WgPeer, WgPeer]:
        """Both, the initiator first."""
        return (self.weft, self.kernel) if first == "weft" else (self.kernel, self.weft)

    def join(self, first: str = "weft", psk: str | None = None, version: int = 4) -> None:
        """Make them know each other; `first` begins."""
        initiator, responder = self.order(first)
        endpoint = f"{responder.machine.address(version)}:{responder.port()}"
        if version == 6:
            endpoint = f"[{responder.machine.address(6)}]:{responder.port()}"
        responder.add_peer(initiator, preshared_key=psk)
        initiator.add_peer(responder, endpoint=endpoint, preshared_key=psk)

    def capture(self) -> Capture:
        """The tunnel's datagrams at weft's end of the link."""
        return Capture(self.weft.machine, "s", port=PORT)

    def dropped(self) -> dict[str, int]:
        """Weft's drop counters."""
        return drops(self.weft, self.program)

    def wait_drop(self, reason: str, more_than: int = 0, deadline_s: float = 10) -> None:
        wait_for(
            lambda: self.dropped()[reason] > more_than, deadline_s,
            f"weft to count more than {more_than} {reason}")


@contextmanager
def tunnel(vm: KernelVm, host: Host, program: Path) -> Iterator[Ends]:
    """A tunnel whose ends do not know each other yet."""
    with ExitStack() as stack:
        kernel = WgPeer.kernel(vm)
        stack.callback(kernel.remove)
        weft = WgPeer.userspace(host, [program, "wg"])
        stack.callback(weft.remove)
        kernel.configure(KERNEL_INNER)
        weft.configure(WEFT_INNER)
        yield Ends(kernel, weft, program)


def transfer_to_kernel(ends: Ends, size: int, deadline_s: float = 180) -> None:
    """Send `size` bytes over TCP from weft's end, and compare what arrived."""
    data = hashlib.sha256(b"seed").digest() * (size // 32)
    vm, host = ends.kernel.machine, ends.weft.machine
    vm.run(["sh", "-c", "rm -f /tmp/in /tmp/done; (nc -l -p 5000 > /tmp/in; touch /tmp/done) &"])
    listens = ["sh", "-c", "netstat -ltn | grep -q :5000"]
    wait_for(lambda: vm.run(listens, check=False, quiet=True).rc == 0, 10, "nc to listen")
    with socket_in(host, socket.AF_INET, socket.SOCK_STREAM) as stream:
        stream.settimeout(deadline_s)
        stream.connect(("10.7.0.1", 5000))
        stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
        wait_for(
            lambda: vm.run(["test", "-e", "/tmp/done"], check=False, quiet=True).rc == 0,
            deadline_s, "the machine to have all")
    assert vm.run(["md5sum", "/tmp/in"]).out.split()[0] == hashlib.md5(data).hexdigest()


def transfer_from_kernel(ends: Ends, size: int, deadline_s: float = 180) -> None:
    """The same from the kernel's end."""
    vm, host = ends.kernel.machine, ends.weft.machine
    received = hashlib.md5()

    def receive() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(deadline_s)
            while block := connection.recv(1 << 16):
                received.update(block)

    vm.run(["sh", "-c", f"dd if=/dev/urandom of=/tmp/out bs=65536 count={size >> 16} 2>/dev/null"])
    with socket_in(host, socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.settimeout(deadline_s)
        listener.bind(("10.7.0.2", 5000))
        listener.listen()
        thread = threading.Thread(target=receive)
        thread.start()
        vm.run(["sh", "-c", "nc 10.7.0.2 5000 < /tmp/out > /dev/null"], timeout_s=deadline_s)
        thread.join()
    assert received.hexdigest() == vm.run(["md5sum", "/tmp/out"]).out.split()[0]
