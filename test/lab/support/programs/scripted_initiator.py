#!/usr/bin/python3
"""A WireGuard that tells its secrets: an initiator in plain Python, to be run in a lab host.

    scripted_initiator.py SECRET HUB_ADDRESS HUB_PORT [PEER_PUBLIC]... (keys in hex)

Shakes hands with each peer in turn, all at the hub's address, sends it an empty data packet, which
makes the other side use the session, and prints the sessions as one line of JSON:

    [{"peer": HEX, "secrets": [HEX, ...]}, ...]

`secrets` are all that the two sides share and nobody else may know: both session keys and the
chaining key that they come from. Then it keeps quiet, and the socket open, until standard input
ends. The primitives are those of test/vectors/noise_reference.py, written from the RFCs.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "vectors"))

import noise_reference as noise  # noqa: E402 - the path is set above

RETRIES = 5
RETRY_S = 1.2


def initiation(secret: bytes, peer: bytes, index: int) -> tuple[bytes, tuple[bytes, bytes, bytes]]:
    """Whitepaper 5.4.2: the message, and (ephemeral, chaining key, hash) for its answer."""
    ephemeral = os.urandom(32)
    public = noise.public_of(ephemeral)
    ck = noise.blake2s(noise.CONSTRUCTION)
    h = noise.blake2s(noise.blake2s(ck + noise.IDENTIFIER) + peer)
    ck = noise.kdf(1, ck, public)[0]
    h = noise.blake2s(h + public)
    ck, key = noise.kdf(2, ck, noise.x25519(ephemeral, peer))
    static = noise.counter_aead(key, 0, noise.public_of(secret), h)
    h = noise.blake2s(h + static)
    ck, key = noise.kdf(2, ck, noise.x25519(secret, peer))
    stamp = noise.counter_aead(key, 0, noise.tai64n(time.time_ns()), h)
    h = noise.blake2s(h + stamp)
    message = struct.pack("<II", 1, index) + public + static + stamp
    return noise.with_macs(message, peer, None), (ephemeral, ck, h)


def finish(secret: bytes, state: tuple[bytes, bytes, bytes], message: bytes) -> list[bytes]:
    """Whitepaper 5.4.3 and 5.4.5: sending key, receiving key, chaining key."""
    ephemeral, ck, h = state
    theirs = message[12:44]
    ck = noise.kdf(1, ck, theirs)[0]
    h = noise.blake2s(h + theirs)
    ck = noise.kdf(1, ck, noise.x25519(ephemeral, theirs))[0]
    ck = noise.kdf(1, ck, noise.x25519(secret, theirs))[0]
    ck, tau, key = noise.kdf(3, ck, bytes(32))
    h = noise.blake2s(h + tau)
    assert message[44:60] == noise.counter_aead(key, 0, b"", h), "the response does not decrypt"
    return [*noise.kdf(2, ck, b""), ck]


def shake(udp: socket.socket, hub: tuple[str, int], secret: bytes, peer: bytes) -> list[bytes]:
    for _ in range(RETRIES):
        index = int.from_bytes(os.urandom(4), "little")
        message, state = initiation(secret, peer, index)
        udp.sendto(message, hub)
        deadline = time.monotonic() + RETRY_S
        while (left := deadline - time.monotonic()) > 0:
            udp.settimeout(left)
            try:
                answer = udp.recv(2048)
            except TimeoutError:
                break
            if len(answer) == 92 and struct.unpack("<II", answer[:4] + answer[8:12]) == (2, index):
                keys = finish(secret, state, answer)
                # 5.4.6: an empty packet, which confirms the session to the responder.
                udp.sendto(struct.pack("<I", 4) + answer[4:8] + bytes(8) +
                           noise.counter_aead(keys[0], 0, b"", b""), hub)
                return keys
    sys.exit(f"no answer from {peer.hex()}")


def main() -> None:
    secret, address, port, *peers = sys.argv[1:]
    noise.check_primitives()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        sessions = [
            {"peer": peer, "secrets": [key.hex() for key in shake(
                udp, (address, int(port)), bytes.fromhex(secret), bytes.fromhex(peer))]}
            for peer in peers]
        print(json.dumps(sessions), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
