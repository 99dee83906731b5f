"""Traffic through a tunnel whose every byte is checked, and senders of nonsense."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from lab import Daemon, Host, wait_for

from .wgpeer import WgPeer

HERE = Path(__file__).resolve().parent


def inner_address(peer: WgPeer, version: int) -> str:
    return str(next(a.ip for a in peer.addresses if a.version == version))


def transfer(tmp_path: Path, src: WgPeer, dst: WgPeer, version: int = 4, n_bytes: int = 4 << 20,
             deadline_s: float = 30) -> None:
    """Send a file over TCP through the tunnel and insist that it arrives as it was."""
    sent, got = tmp_path / "sent", tmp_path / "got"
    block = hashlib.sha256(b"weft").digest() * 1024
    sent.write_bytes((block * (n_bytes // len(block) + 1))[:n_bytes])
    got.unlink(missing_ok=True)
    address = inner_address(dst, version)
    where = f"[{address}]" if version == 6 else address
    listener = dst.machine.spawn(
        ["socat", "-u", f"TCP{version}-LISTEN:7000,reuseaddr,bind={where}", f"CREATE:{got}"])
    wait_for(lambda: dst.machine.run(["ss", "-Hltn", "sport = :7000"], quiet=True).out, 5,
             "the listener")
    target = f"TCP{version}:{where}:7000,connect-timeout=60"
    src.machine.run(["socat", "-u", f"OPEN:{sent}", target], timeout_s=deadline_s)
    listener.wait(deadline_s)
    assert got.read_bytes() == sent.read_bytes()


def flood(host: Host, kind: str, address: str, port: int, **options: object) -> Daemon:
    """Start flood.py on a machine; it prints what it did when it is stopped."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return host.spawn([sys.executable, HERE / "flood.py", kind, address, port, *words])


def stats(peer: WgPeer, weft: Path) -> dict[str, str]:
    """The counters of a `weft wg`."""
    text = peer.machine.run([weft, "wg", "--stats", peer.interface], quiet=True).out
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def drops(peer: WgPeer, weft: Path) -> dict[str, int]:
    """How many packets ended in a `weft wg`, by the reasons of docs/DROPS.md."""
    return {
        key.removeprefix("drop_"): int(value)
        for key, value in stats(peer, weft).items() if key.startswith("drop_")}
