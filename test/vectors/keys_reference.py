#!/usr/bin/python3
"""Statements of keys and their signatures, written from docs/wire/keys.md alone.

    keys_reference.py > keys.txt          the vectors that the C tests read
    keys_reference.py TEXT ...            decodes statements in base64, and verifies them

Pure Python integers, slow on purpose.
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

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
LABEL = b"weft key statement 1"
NODE, HUB, TLS = 1, 2, 3


# ---- the curve: RFC 8032, section 5.1 ----

def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    t = D * a[0] * b[0] * a[1] * b[1] % P
    return ((a[0] * b[1] + b[0] * a[1]) * pow(1 + t, P - 2, P) % P,
            (a[1] * b[1] + a[0] * b[0]) * pow(1 - t, P - 2, P) % P)


def times(n: int, point: tuple[int, int]) -> tuple[int, int]:
    result = (0, 1)
    while n:
        if n & 1:
            result = add(result, point)
        point = add(point, point)
        n >>= 1
    return result


def pack(point: tuple[int, int]) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def unpack(data: bytes) -> tuple[int, int] | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * SQRT_M1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return (P - x if x & 1 != sign else x, y)


BASE = unpack((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
assert BASE and times(L, BASE) == (0, 1)


def sha512(data: bytes) -> int:
    return int.from_bytes(hashlib.sha512(data).digest(), "little")


# ---- XEdDSA ----

def edwards(public: bytes) -> bytes | None:
    """The public key as a point of Ed25519, with the sign bit zero."""
    u = int.from_bytes(public, "little")
    if u >= P - 1:
        return None
    return ((u - 1) * pow(u + 1, P - 2, P) % P).to_bytes(32, "little")


def clamp(data: bytes) -> int:
    return int.from_bytes(data, "little") & ~7 & ~(128 << 8 * 31) | 64 << 8 * 31


def sign(secret: bytes, message: bytes, random: bytes) -> bytes:
    k = clamp(secret)
    clamped = k.to_bytes(32, "little")
    nonce = hashlib.sha512(b"\xfe" + b"\xff" * 31 + clamped + message + random).digest()
    r = clamp(hashlib.sha512(nonce[:32]).digest()[:32])
    if nonce[32] & 1:
        r = -r
    point = times(k, BASE)
    a = -k if point[0] & 1 else k
    packed = (point[1]).to_bytes(32, "little")
    assert packed == edwards(public_of(secret))
    R = pack(times(r % L, BASE))
    h = sha512(R + packed + message)
    return R + ((r + h * a) % L).to_bytes(32, "little")


def verify(signature: bytes, public: bytes, message: bytes) -> bool:
    packed = edwards(public)
    A = packed and unpack(packed)
    s = int.from_bytes(signature[32:], "little")
    if not A or s >= L or times(8, A) == (0, 1):
        return False
    h = sha512(signature[:32] + packed + message) % L
    return pack(add(times(s, BASE), times(h, (P - A[0], A[1])))) == signature[:32]


# ---- statements ----

def statement(kind: int, network: str, subject: str, old: bytes, new: bytes, serial: int,
              made: int, random: bytes) -> bytes:
    """@old: a secret; @new: a secret, or the pin."""
    shown = new if kind == TLS else public_of(new)
    body = LABEL + bytes([kind])
    for name in (network, subject):
        body += bytes([len(name)]) + name.encode()
    body += public_of(old) + shown + struct.pack(">QQ", serial, made)
    by_new = b"" if kind == TLS else sign(new, body, random[64:])
    return body + sign(old, body, random[:64]) + by_new


def decode(data: bytes) -> dict:
    """The fields; ValueError if it is no statement, or is not signed."""
    at = len(LABEL)

    def take(n: int) -> bytes:
        nonlocal at
        at += n
        if at > len(data):
            raise ValueError("cut off")
        return data[at - n:at]

    if data[:at] != LABEL:
        raise ValueError("no label")
    kind = take(1)[0]
    if kind not in (NODE, HUB, TLS):
        raise ValueError(f"kind {kind}")
    network, subject = (take(take(1)[0]).decode() for _ in range(2))
    old, new = take(32), take(32)
    serial, made = struct.unpack(">QQ", take(16))
    body = data[:at]
    keys = [old] if kind == TLS else [old, new]
    if not all([verify(take(64), key, body) for key in keys]):
        raise ValueError("not signed")
    if at != len(data) or serial == 0:
        raise ValueError("too long, or serial 0")
    return {"kind": kind, "network": network, "subject": subject, "old": old.hex(),
            "new": new.hex(), "serial": serial, "made": made}


def ack(level: int, secret: bytes, acknowledged: bytes) -> bytes:
    """By the member's secret; @acknowledged: the other one's next key."""
    key = hashlib.blake2s(b"weft key ack 1" + acknowledged).digest()
    key = hmac.new(key, x25519(secret, acknowledged), hashlib.blake2s).digest()
    key = hmac.new(key, b"\x01", hashlib.blake2s).digest()
    return hashlib.blake2s(bytes([level]) + public_of(secret), key=key).digest()


# ---- vectors ----

def noise(label: str, n: int) -> bytes:
    return hashlib.shake_128(b"weft vector " + label.encode()).digest(n)


def show(case: str, **fields: bytes | int) -> None:
    print(f"\ncase = {case}")
    for name, value in fields.items():
        print(f"{name} = {value if isinstance(value, int) else value.hex() or '-'}")


def refused_cases() -> None:
    secret, message = scalar("keys refused"), b"a statement"
    public, good = public_of(secret), sign(scalar("keys refused"), message, noise("refused", 64))
    s = int.from_bytes(good[32:], "little")
    plus = good[:32] + (s + L).to_bytes(32, "little")
    assert verify(good, public, message)
    twist = next(u.to_bytes(32, "little") for u in range(2, 99)
                 if pow(u**3 + 486662 * u * u + u, (P - 1) // 2, P) != 1)
    # A point of small order verifies anything of which s is zero and R the neutral point.
    neutral = pack((0, 1)) + bytes(32)
    rows = {"s that is not reduced": (public, plus),
            "sign bit in s": (public, good[:63] + bytes([good[63] | 0x80])),
            "another message's": (public, sign(secret, b"another", noise("refused", 64))),
            "another key's": (public_of(scalar("keys other")), good),
            "bit 255 of u": (public[:31] + bytes([public[31] | 0x80]), good),
            "u = 0": (bytes(32), neutral),
            "u = 1": ((1).to_bytes(32, "little"), neutral),
            "u = -1": ((P - 1).to_bytes(32, "little"), neutral),
            "u = p": (P.to_bytes(32, "little"), neutral),
            "u = p + 9": ((P + 9).to_bytes(32, "little"), good),
            "twist": (twist, neutral)}
    for name, (key, signature) in rows.items():
        show("refused: " + name, public=key, message=message, signature=signature)


def main() -> None:
    print("# Made by keys_reference.py: do not edit. Hex, but for kind, serial, made and "
          "level; '-' is no bytes.")
    for i in range(8):
        secret, random = scalar(f"keys {i}"), noise(f"keys {i}", 64)
        message = noise(f"message {i}", (0, 1, 31, 64, 128, 229, 300, 1000)[i])
        signature = sign(secret, message, random)
        assert verify(signature, public_of(secret), message)
        show(f"signature {i}", secret=secret, public=public_of(secret), random=random,
             message=message, signature=signature)
    refused_cases()
    chain = [scalar(f"keys chain {i}") for i in range(4)]
    rows = [(NODE, "lab", "gpu-1", chain[i], chain[i + 1], i + 1, 1790000000 + i) for i in range(3)]
    rows += [(HUB, "lab", "hub", scalar("keys hub"), scalar("keys hub 2"), 1, 1790000000),
             (TLS, "lab", "hub", scalar("keys hub 2"), noise("pin", 32), 2**64 - 1, 2**64 - 1),
             (NODE, "n" * 63, "s" * 63, chain[0], chain[3], 2**32, 0)]
    for i, row in enumerate(rows):
        random = noise(f"statement {i}", 128)
        kind, network, subject, old, new, serial, made = row
        data = statement(*row, random)
        fields = decode(data)
        assert fields["serial"] == serial and fields["subject"] == subject
        show(f"statement {i}", old_secret=old, new=new, random=random,
             network=network.encode(), subject=subject.encode(), bytes=data,
             text=base64.b64encode(data), kind=kind, serial=serial, made=made)
    for level in (1, 2):
        member, following = scalar(f"keys member {level}"), scalar(f"keys next {level}")
        show(f"ack {level}", member_secret=member, next_secret=following,
             mac=ack(level, member, public_of(following)), level=level)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for text in sys.argv[1:]:
            print(decode(base64.b64decode(text, validate=True)))
    else:
        main()
