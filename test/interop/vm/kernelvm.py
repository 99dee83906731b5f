"""A virtual machine with a stock Linux kernel in the place of a lab host.

    with Lab.from_text(...) as lab, KernelVm(lab.host("k")) as vm:
        vm.run(["ip", "link", "add", "wg0", "type", "wireguard"])

The host keeps its link, but its namespace becomes a mere bridge to the machine, which has the
addresses, the routes and the interface name that the topology gives the host.  It is emulated
without hardware help, so it boots in some seconds anywhere.
"""

from __future__ import annotations

import base64
import socket
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from lab import CommandError, Daemon, Host, Result, wait_for
from lab.support.guest import Guest
from lab.support.network.construction import run_script, settings
from lab.support.network.process import quoted
from lab.support.schemas import check_output

from . import image

MODULES = ("virtio_pci", "virtio_net", "wireguard", "sch_netem")
BOOT_DEADLINE_S = 120
BRIDGE = "vmbridge"
TAP = "vmtap"
# What the machine says to a request that came damaged, and how often it is made.
AGAIN, TRIES = b"again", 5


class KernelVm(Guest):
    """Runs commands as a lab host does: `run` has the same meaning as Host.run.

    `programs` lie in the machine's /usr/bin, with the libraries that they need.
    """

    memory_mib = 256
    kernel_words: Sequence[str] = ()  # of the kernel's command line
    more_words: Sequence[str | Path] = ()  # of the emulator's

    def __init__(
        self, host: Host, modules: Sequence[str] = MODULES, programs: Sequence[Path] = ()
    ) -> None:
        self.host = host
        self.name = f"{host.name}.vm"
        self._modules = tuple(modules)
        self._programs = tuple(programs)
        self._qemu: Daemon | None = None
        self._serial: socket.socket | None = None
        self._received = b""

    def boot(self) -> None:
        kernel = image.kernel()
        initramfs = self.make_initramfs(kernel)
        topology = self.host.lab.topology
        links = topology.links_of(self.host.name)
        if len(links) != 1:
            raise ValueError(f"{self.host.name} needs one link to be a virtual machine")
        self._make_bridge(links[0].switch)
        with tempfile.TemporaryDirectory(prefix="weft-vm-") as folder:
            control = Path(folder) / "control"
            self._qemu = self.host.spawn(self._command(kernel, initramfs, control), name="qemu")
            wait_for(lambda: self._connect(control) or not self._qemu.running, 20, "qemu to start")
        if self._read_line(BOOT_DEADLINE_S) != b"ready":
            raise CommandError(f"{self.name} did not boot; see {self.console}")
        self.run(["ip", "link", "set", "eth0", "name", links[0].switch])
        run_script(self, settings(topology, topology.nodes[self.host.name]))

    def make_initramfs(self, kernel: image.Kernel) -> Path:
        """What the kernel runs first; another kind of machine has another one."""
        return image.initramfs(kernel, self._modules, self._programs)

    def _connect(self, control: Path) -> bool:
        """qemu makes the socket a moment before it listens there."""
        serial = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            serial.connect(str(control))
        except OSError:
            serial.close()
            return False
        self._serial = serial
        return True

    def end(self) -> None:
        if self._qemu:
            self._qemu.kill9()
        if self._serial:
            self._serial.close()

    @property
    def console(self) -> Path:
        """What the kernel says."""
        return self.host.lab.logs / f"{self.name}-console.log"

    def _make_bridge(self, interface: str) -> None:
        run_script(self.host, [
            f"ip address flush dev {interface}",
            f"ip link add {BRIDGE} type bridge mcast_snooping 0",
            f"ip tuntap add {TAP} mode tap",
            f"ip link set {interface} addrgenmode none master {BRIDGE}",
            f"ip link set {TAP} addrgenmode none master {BRIDGE} up",
            f"ip link set {BRIDGE} addrgenmode none up",
        ])

    def _command(self, kernel: image.Kernel, initramfs: Path, control: Path) -> list:
        # A local address that differs for each machine of a lab.
        mac = "02:00:" + zlib.crc32(self.host.name.encode()).to_bytes(4, "big").hex(":")
        return [
            # Without a processor that gives random numbers the kernel may have none for minutes,
            # and until then its WireGuard drops all handshake messages.
            "qemu-system-x86_64", "-accel", "tcg", "-cpu", "qemu64,+rdrand",
            "-m", self.memory_mib, "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot",
            "-kernel", kernel.vmlinuz, "-initrd", initramfs,
            "-append", " ".join(["console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on",
                                 *self.kernel_words]),
            "-serial", f"file:{self.console}",
            "-chardev", f"socket,id=control,path={control},server=on,wait=on",
            "-serial", "chardev:control",
            "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac={mac},romfile=",
            *self.more_words,
        ]

    def run(
        self,
        argv: Sequence[str | Path | int],
        *,
        check: bool = True,
        timeout_s: float = 30,
        stdin: str | None = None,
        quiet: bool = False,
    ) -> Result:
        """Run a command to its end; what it says on either stream is `.out`."""
        command = f"{self.name}$ {quoted(argv)}"
        if not quiet:
            print(command, flush=True)
        script = quoted(argv)
        if stdin is not None:
            script = f"echo {_base64(stdin)} | base64 -d | {script}"
        request = _base64(script)
        answer: bytes | None = AGAIN
        for _ in range(TRIES):
            self._serial.sendall(f"{len(request)} {request}\n".encode())
            answer = self._read_line(timeout_s)
            if answer != AGAIN:
                break
        if answer is None:
            self.end()  # it would answer the next command with this one's output
            raise CommandError(f"{command}\ndid not end within {timeout_s:g} s")
        if answer == AGAIN:
            raise CommandError(f"{command}\ncame damaged {TRIES} times")
        status, _, output = answer.partition(b" ")
        text = base64.b64decode(output).decode("utf-8", errors="replace")
        result = Result(command, int(status), text, "")
        if result.rc == 0:
            check_output(argv, text)
        return result.check() if check else result

    def _read_line(self, deadline_s: float) -> bytes | None:
        """The next line from the machine; None if it does not come in time."""
        def receive() -> bool:
            self._serial.settimeout(0.1)
            try:
                received = self._serial.recv(65536)
            except TimeoutError:
                return False
            if not received:
                raise CommandError(f"{self.name} has died; see {self.console}")
            self._received += received
            return b"\n" in self._received

        if b"\n" not in self._received:
            try:
                wait_for(receive, deadline_s, "an answer")
            except AssertionError as error:
                if isinstance(error, CommandError):
                    raise
                return None
        line, _, self._received = self._received.partition(b"\n")
        return line


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
