#!/usr/bin/python3
"""The proof of a member's request, written from docs/wire/member.md alone.

    member_reference.py > member.txt      the vectors that the C tests read

The tests of the hub sign their requests with it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from noise_reference import public_of, scalar, x25519  # noqa: E402

LABEL = b"weft member 1"


def kdf1(key: bytes, data: bytes) -> bytes:
    mac = hmac.new(key, data, hashlib.blake2s).digest()
    return hmac.new(mac, b"\x01", hashlib.blake2s).digest()


def key_of(own_secret: bytes, other_public: bytes, node: bytes) -> bytes:
    return kdf1(hashlib.blake2s(LABEL + node).digest(), x25519(own_secret, other_public))


def mac_of(key: bytes, boot: int, sequence: int, method: str, path: str, body: bytes) -> bytes:
    head = struct.pack(">QQB", boot, sequence, len(method)) + method.encode()
    head += struct.pack(">H", len(path)) + path.encode()
    return hashlib.blake2s(head + hashlib.blake2s(body).digest(), key=key).digest()


def header(key: bytes, boot: int, sequence: int, method: str, path: str, body: bytes) -> str:
    mac = mac_of(key, boot, sequence, method, path, body)
    return f"Weft-Member {boot:016x} {sequence:016x} {base64.b64encode(mac).decode()}"


class Signer:
    """A node's end, with its key of key_of(): learns the stamp from the hub's refusal."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.boot = 0
        self.next = 0

    def sign(self, method: str, path: str, body: bytes = b"") -> str:
        self.next += 1
        return header(self.key, self.boot, self.next - 1, method, path, body)

    def learn(self, refusal: object) -> bool:
        """Take in the answer 401; False: it tells nothing new."""
        if not isinstance(refusal, dict) or "boot" not in refusal:
            return False
        if self.boot != refusal["boot"] or self.next <= refusal["after"]:
            self.next = refusal["after"] + 1
        self.boot = refusal["boot"]
        return True


def signer_of(secret: str, hub_public: str) -> Signer:
    """The same of keys as wg(8) prints them."""
    own = base64.b64decode(secret)
    return Signer(key_of(own, base64.b64decode(hub_public), public_of(own)))


def main() -> None:
    print("# Made by member_reference.py: do not edit. Hex, but for boot and sequence; '-' is no "
          "bytes.")
    rows = [(0, 0, "POST", "/v1/enrol", b'{"secret":"x"}'),
            (1234567890123, 1, "PUT", "/v1/status", b'{"node":{},"edges":{}}'),
            (2**53 - 1, 2**63 - 1, "POST", "/v1/leave", b""),
            (7, 2**32, "DELETE", "/v1/jobs/" + "j" * 63 + "/rendezvous", b""),
            (7, 2**40, "GET", "/" + "p" * 511, bytes(range(256)) * 4)]
    for i, (boot, sequence, method, path, body) in enumerate(rows):
        node, hub = scalar(f"member node {i}"), scalar(f"member hub {i}")
        key = key_of(node, public_of(hub), public_of(node))
        assert key == key_of(hub, public_of(node), public_of(node))
        print(f"\ncase = member {i}")
        for name, value in (("node_secret", node), ("hub_secret", hub),
                            ("node_public", public_of(node)), ("hub_public", public_of(hub)),
                            ("method", method.encode()), ("path", path.encode()), ("body", body),
                            ("key", key),
                            ("mac", mac_of(key, boot, sequence, method, path, body)),
                            ("header", header(key, boot, sequence, method, path, body).encode())):
            print(f"{name} = {value.hex() or '-'}")
        print(f"boot = {boot}\nsequence = {sequence}")


if __name__ == "__main__":
    main()
