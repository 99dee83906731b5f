"""The configuration socket of `weft wg`, for the keys that are our own and wg(8) does not know."""

from __future__ import annotations

import base64

from .wgpeer import WgPeer


def uapi(end: WgPeer, request: str) -> dict[str, str]:
    """Ask the configuration socket itself; of repeated keys the last counts."""
    socket = f"UNIX-CONNECT:/run/wireguard/{end.interface}.sock"
    answer = end.machine.run(["socat", "-t5", "-", socket], stdin=request, quiet=True).out
    return dict(line.split("=", 1) for line in answer.splitlines() if line)


def set_peer(end: WgPeer, peer: WgPeer, line: str) -> None:
    """Give a peer that is there one more key."""
    key = base64.b64decode(peer.public_key).hex()
    answer = uapi(end, f"set=1\npublic_key={key}\nupdate_only=true\n{line}\n\n")
    assert answer == {"errno": "0"}


def drops(end: WgPeer, reason: str) -> int:
    return int(uapi(end, "stats=1\n\n")[f"drop_{reason}"])
