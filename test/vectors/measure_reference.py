#!/usr/bin/python3
"""The proof of an order to a measuring service, written from docs/wire/measure.md alone.

    measure_reference.py > measure.txt      the vectors that the C tests read
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from member_reference import kdf1  # noqa: E402
from noise_reference import public_of, scalar, x25519  # noqa: E402

LABEL = b"weft measure 1"


def key_of(own_secret: bytes, other_public: bytes, orderer: bytes, measured: bytes) -> bytes:
    return kdf1(hashlib.blake2s(LABEL + orderer + measured).digest(),
                x25519(own_secret, other_public))


def mac_of(key: bytes, challenge: bytes, ident: bytes, seconds: int, purpose: bytes) -> bytes:
    body = challenge + ident + struct.pack(">I", seconds) + purpose.ljust(16, b"\0")
    return hashlib.blake2s(body, key=key, digest_size=16).digest()


def main() -> None:
    print("# Made by measure_reference.py: do not edit. Hex, but for seconds.")
    rows = [(60, b"preflight"), (600, b"bench"), (1, b"p" * 15)]
    for i, (seconds, purpose) in enumerate(rows):
        orderer, measured = scalar(f"measure orderer {i}"), scalar(f"measure measured {i}")
        ends = public_of(orderer), public_of(measured)
        key = key_of(orderer, ends[1], *ends)
        assert key == key_of(measured, ends[0], *ends)
        challenge = hashlib.sha256(b"challenge %d" % i).digest()[:16]
        ident = hashlib.sha256(b"id %d" % i).digest()[:16]
        print(f"\ncase = measure {i}")
        for name, value in (("orderer_secret", orderer), ("measured_secret", measured),
                            ("challenge", challenge), ("id", ident), ("purpose", purpose),
                            ("key", key),
                            ("mac", mac_of(key, challenge, ident, seconds, purpose))):
            print(f"{name} = {value.hex()}")
        print(f"seconds = {seconds}")


if __name__ == "__main__":
    main()
