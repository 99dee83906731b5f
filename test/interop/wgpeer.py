"""One end of a WireGuard tunnel in a lab, whatever implementation is behind it.

    weft = WgPeer.userspace(lab.host("u"), [program, "wg"])     # runs: PROGRAM wg -f wg0
    kernel = WgPeer.kernel(vm)
    weft.configure(["10.7.0.1/24", "fd07::1/64"])
    kernel.configure(["10.7.0.2/24", "fd07::2/64"])
    weft.add_peer(kernel, endpoint=True)
    kernel.add_peer(weft)
    weft.ping(kernel)

Every implementation is configured and looked at with wg(8) only.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import Daemon, Host, Result, wait_for

from .vm.kernelvm import KernelVm


@dataclass(frozen=True)
class PeerState:
    """What wg(8) tells of a peer."""

    endpoint: str  # "(none)" or ADDRESS:PORT
    allowed_ips: list[str]
    handshake: int  # Unix time of the latest; 0 = none
    rx_bytes: int
    tx_bytes: int
    keepalive: str  # "off" or seconds


class WgPeer:
    """A WireGuard interface on a machine of the lab; made by kernel() or userspace()."""

    def __init__(self, machine: Host | KernelVm, interface: str, daemon: Daemon | None) -> None:
        self.machine = machine
        self.interface = interface
        self.daemon = daemon  # None if the kernel does it
        self.addresses: list[ipaddress.IPv4Interface | ipaddress.IPv6Interface] = []
        self.private_key = _wg(["genkey"])
        self.public_key = _wg(["pubkey"], self.private_key)

    @classmethod
    def kernel(cls, machine: Host | KernelVm, interface: str = "wg0") -> WgPeer:
        """The WireGuard of the machine's kernel."""
        machine.run(["ip", "link", "add", interface, "type", "wireguard"])
        return cls(machine, interface, None)

    @classmethod
    def userspace(
        cls,
        host: Host,
        argv: Sequence[str | Path],
        interface: str = "wg0",
        *,
        env: Mapping[str, str] | None = None,
        allow: Iterable[str] = (),
    ) -> WgPeer:
        """A program that is started as wireguard-go is: ARGV -f INTERFACE."""
        daemon = host.spawn([*argv, "-f", interface], env=env, allow=allow)

        def is_up() -> bool:
            if not daemon.running:
                said = "\n".join(daemon.lines()[-20:])
                raise AssertionError(f"{daemon.name} ended with {daemon.rc}\n{said}")
            # Not wg(8) first: it removes a socket that is bound and does not listen yet.
            connect = f"UNIX-CONNECT:/run/wireguard/{interface}.sock"
            return all(host.run(argv, check=False, quiet=True).rc == 0 for argv in (
                ["socat", "-u", "/dev/null", connect], ["wg", "show", interface]))

        wait_for(is_up, 10, f"{daemon.name} to answer wg(8)")
        return cls(host, interface, daemon)

    def remove(self) -> None:
        """End the interface, and the program that makes it."""
        if self.daemon:
            self.daemon.stop()
        else:
            self.machine.run(["ip", "link", "delete", self.interface])

    def configure(self, addresses: Iterable[str], port: int = 51820) -> None:
        """Give it its key, its port and its inner addresses, and bring it up."""
        self.addresses = [ipaddress.ip_interface(address) for address in addresses]
        self.set("private-key", "/dev/stdin", "listen-port", port, stdin=self.private_key)
        for address in self.addresses:
            nodad = ["nodad"] if address.version == 6 else []
            self.machine.run(["ip", "address", "add", address, "dev", self.interface, *nodad])
        self.machine.run(["ip", "link", "set", self.interface, "up"])

    def set(self, *words: object, stdin: str | None = None) -> Result:
        """wg set INTERFACE WORDS..."""
        return self.machine.run(["wg", "set", self.interface, *words], stdin=stdin)

    def add_peer(
        self,
        peer: WgPeer,
        *,
        endpoint: bool | str = False,
        keepalive_s: int = 0,
        preshared_key: str | None = None,
    ) -> None:
        """Make `peer` known.

        `endpoint` is true if this end should know where the other is, or says where; an end that
        does not know cannot begin.
        """
        words: list[object] = ["peer", peer.public_key]
        words += ["allowed-ips", ",".join(str(address.ip) for address in peer.addresses)]
        if endpoint is True:
            endpoint = f"{peer.machine.address()}:{peer.port()}"
        if endpoint:
            words += ["endpoint", endpoint]
        if keepalive_s:
            words += ["persistent-keepalive", keepalive_s]
        if preshared_key:
            words += ["preshared-key", "/dev/stdin"]
        self.set(*words, stdin=preshared_key)

    def port(self) -> int:
        return int(self._show("listen-port"))

    def state(self, peer: WgPeer) -> PeerState:
        """What this end knows of the other."""
        for line in self._show("dump").splitlines()[1:]:
            key, _, endpoint, allowed_ips, handshake, rx, tx, keepalive = line.split("\t")
            if key == peer.public_key:
                return PeerState(
                    endpoint, allowed_ips.split(","), int(handshake), int(rx), int(tx), keepalive)
        raise KeyError(f"{self.machine.name} does not know {peer.machine.name}")

    def can_ping(self, peer: WgPeer, version: int = 4, size: int = 56, wait_s: float = 1) -> bool:
        """One try: to see that something does not get through."""
        address = next(a.ip for a in peer.addresses if a.version == version)
        argv = ["ping", "-c", 1, "-W", wait_s, "-s", size, address]
        return self.machine.run(argv, check=False, quiet=True).rc == 0

    def ping(self, peer: WgPeer, version: int = 4, size: int = 56, deadline_s: int = 15) -> None:
        """Insist that the other end answers through the tunnel before the deadline."""
        wait_for(lambda: self.can_ping(peer, version, size), deadline_s,
                 f"{peer.machine.name} to answer {self.machine.name} over IPv{version}")

    def _show(self, what: str) -> str:
        return self.machine.run(["wg", "show", self.interface, what], quiet=True).out.strip()


def preshared_key() -> str:
    return _wg(["genpsk"])


def _wg(argv: list[str], stdin: str = "") -> str:
    done = subprocess.run(
        ["wg", *argv], input=stdin, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()
