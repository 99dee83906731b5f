#!/usr/bin/python3
"""The lock of a network, written from docs/wire/lock.md alone.

    lock_reference.py > lock.txt      the vectors that the C tests read
    lock_reference.py FILE ...        decodes the entries in a file, and verifies their chain

Pure Python integers, slow on purpose.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from keys_reference import BASE, L, P, add, clamp, pack, sha512, times, unpack  # noqa: E402
from noise_reference import public_of  # noqa: E402

LABEL, JOIN_LABEL = b"weft lock entry 1", b"weft lock join 1"
KINDS = ["none", "genesis", "signers", "recover", "settings", "renew", "node", "keys", "hubs",
         "edge", "rule", "rule-end", "tombstone", "token", "token-end", "join"]
RELAY, STOCK, EPHEMERAL, HUB = 1, 2, 4, 8
TOPOLOGIES, CIPHERS = ("auto", "hub", "mesh"), ("auto", "chacha20poly1305", "aes256gcm")
ISOLATIONS, DEMANDS = ("open", "strict"), ("none", "psk", "ml-kem")


# ---- Ed25519: RFC 8032, section 5.1 ----

def ed25519_public(seed: bytes) -> bytes:
    return pack(times(clamp(hashlib.sha512(seed).digest()[:32]), BASE))


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    digest = hashlib.sha512(seed).digest()
    a, public = clamp(digest[:32]), ed25519_public(seed)
    r = sha512(digest[32:] + message) % L
    R = pack(times(r, BASE))
    return R + ((r + sha512(R + public + message) * a) % L).to_bytes(32, "little")


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    A = unpack(public)
    s = int.from_bytes(signature[32:], "little")
    if not A or s >= L or times(8, A) == (0, 1):
        return False
    h = sha512(signature[:32] + public + message) % L
    return pack(add(times(s, BASE), times(h, (P - A[0], A[1])))) == signature[:32]


# ---- decoding ----

class Input:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise ValueError(f"cut off at {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, width: int, least: int = 0, most: int = 2**64 - 1) -> int:
        value = int.from_bytes(self.take(width), "big")
        if not least <= value <= most:
            raise ValueError(f"{value} is not within {least} and {most}")
        return value

    def text(self, width: int = 1) -> str:
        return self.take(self.number(width)).decode()

    def word(self, words: tuple[str, ...]) -> str:
        return words[self.number(1, 0, len(words) - 1)]

    def hex(self, n: int = 32) -> str:
        return self.take(n).hex()

    def address(self) -> str:
        a = ipaddress.IPv6Address(self.take(16))
        return str(a.ipv4_mapped or a)

    def prefix(self) -> str:
        address = self.address()
        return str(ipaddress.ip_network(f"{address}/{self.number(1)}"))

    def endpoint(self) -> str:
        address, scope, port = self.address(), self.number(4), self.number(2)
        return f"{address}%{scope}:{port}" if port else "-"

    def many(self, n: int, item) -> list:
        return [item() for _ in range(n)]


def in_order(items: list) -> list:
    if any(a >= b for a, b in zip(items, items[1:])):
        raise ValueError(f"{items} are not in order")
    return items


def settings(i: Input) -> dict:
    return {"topology": i.word(TOPOLOGIES), "cipher": i.word(CIPHERS),
            "isolation": i.word(ISOLATIONS), "demand": i.word(DEMANDS),
            "keyRotation": i.number(4), "trustFor": i.number(4)}


def signers(i: Input) -> dict:
    threshold, n = i.number(1, 1, 16), i.number(1, 1, 16)
    people = in_order(i.many(n, lambda: (i.hex(), i.text())))
    codes = in_order(i.many(i.number(1, 0, 16), i.hex))
    if threshold > n or {key for key, _ in people} & set(codes):
        raise ValueError("too few signers, or a code is a signer's")
    return {"threshold": threshold, "signers": people, "codes": codes}


def hub(i: Input) -> dict:
    return {"endpoints": i.many(i.number(1, 1, 8), i.endpoint),
            "names": i.many(i.number(1, 0, 4), lambda: i.text(2)), "apiPort": i.number(2, 1),
            "pin": i.hex() if i.number(1, 0, 1) else None}


def flags(value: int, **bits: int) -> dict:
    return {name: bool(value & bit) for name, bit in bits.items()}


def labels(i: Input) -> list:
    return in_order(i.many(i.number(1, 0, 32), lambda: (i.text(), i.text())))


def node(i: Input) -> dict:
    n = {"name": i.text(), "key": i.hex(), "address4": str(ipaddress.IPv4Address(i.take(4))),
         "address6": str(ipaddress.IPv6Address(i.take(16)))}
    bits = i.number(1, 0, 15)
    n |= flags(bits, relay=RELAY, stock=STOCK, ephemeral=EPHEMERAL)
    n |= {"island": i.text(), "labels": labels(i), "routes": i.many(i.number(1, 0, 16), i.prefix)}
    return n | {"hub": hub(i) if bits & HUB else None}


def edge(i: Input) -> dict:
    off = bool(i.number(1, 0, 1))
    return {"off": off, "ends": in_order(i.many(2, lambda: (i.text(), i.endpoint(), i.hex())))}


def token(i: Input) -> dict:
    t = {"key": i.hex(), "uses": i.number(4, 1, 1000000), "until": i.number(8)}
    bits = i.number(1, 0, 5)
    t |= flags(bits, relay=RELAY, ephemeral=EPHEMERAL)
    return t | {"island": i.text(), "labels": labels(i),
                "routes": i.many(i.number(1, 0, 16), i.prefix)}


BODIES = {
    "genesis": lambda i: {"cidr4": i.prefix(), "cidr6": i.prefix(), "settings": settings(i),
                          "signers": signers(i), "validUntil": i.number(8)},
    "signers": signers,
    "recover": lambda i: {"code": i.hex(), "signers": signers(i)},
    "settings": settings,
    "renew": lambda i: {"version": i.number(8), "validUntil": i.number(8)},
    "node": node,
    "keys": lambda i: {"keys": in_order(i.many(i.number(2, 1, 256),
                                               lambda: (i.text(), i.hex())))},
    "hubs": lambda i: {"hubs": i.many(i.number(1, 1, 64), i.text)},
    "edge": edge,
    "rule": lambda i: {"name": i.text(), "from": i.many(i.number(2, 1, 512), i.text),
                       "to": i.many(i.number(2, 1, 512), i.text),
                       "allow": i.many(i.number(1, 1, 64), i.text)},
    "rule-end": lambda i: {"name": i.text()},
    "tombstone": lambda i: {"name": i.text(), "key": i.hex(), "counter": i.number(8, 1)},
    "token": token,
    "token-end": lambda i: {"key": i.hex()},
    "join": lambda i: {"token": i.hex(), "node": node(i)},
}


def decode(i: Input) -> dict:
    """One entry; its signatures are not looked at."""
    begin = i.at
    if i.take(len(LABEL)) != LABEL:
        raise ValueError("no label")
    network = i.text()
    placed = i.at
    seq, prev = i.number(8), i.hex()
    said = i.at
    made, kind = i.number(8), KINDS[i.number(1, 1, len(KINDS) - 1)]
    body = BODIES[kind](i)
    frame = i.data[begin:i.at]
    signed = frame
    if kind == "join":
        signed = JOIN_LABEL + i.data[begin + len(LABEL):placed] + i.data[said:i.at]
    signatures = i.many(i.number(1, 0, 16), lambda: (i.take(32), i.take(64)))
    in_order([key for key, _ in signatures])
    return {"network": network, "seq": seq, "prev": prev, "made": made, "kind": kind,
            "body": body, "signed": signed, "hash": hashlib.sha256(frame).hexdigest(),
            "signatures": signatures}


def wanted(entry: dict, who: dict, uses: dict[str, int]) -> tuple[set[str], int]:
    """Whose signatures it needs, and how many of them."""
    body, kind = entry["body"], entry["kind"]
    if kind == "join":
        uses[body["token"]] = uses.get(body["token"], 0) - 1
        if uses[body["token"]] < 0:
            raise ValueError("no uses are left of the token")
        return {body["token"]}, 1
    if kind == "recover":
        if body["code"] not in who["codes"]:
            raise ValueError("not one of the codes")
        return {body["code"]}, 1
    return {key for key, _ in who["signers"]}, who["threshold"]


def verify(data: bytes) -> list[dict]:
    """The entries of a chain; ValueError if one does not follow, or is not signed."""
    i, entries, who, uses = Input(data), [], None, {}
    head = bytes(32).hex()
    while i.at < len(data):
        entry = decode(i)
        body, kind = entry["body"], entry["kind"]
        if entry["seq"] != len(entries) or entry["prev"] != head or (who is None) != (
                kind == "genesis"):
            raise ValueError(f"entry {entry['seq']} does not follow")
        keys, least = wanted(entry, body["signers"] if who is None else who, uses)
        by = [key.hex() for key, _ in entry["signatures"]]
        if not set(by) <= keys or len(by) < least or not all(
                ed25519_verify(key, entry["signed"], s) for key, s in entry["signatures"]):
            raise ValueError(f"entry {entry['seq']} is not signed")
        if kind in ("genesis", "recover"):
            who = body["signers"]
        elif kind == "signers":
            who = body
        elif kind in ("token", "token-end"):
            uses[body["key"]] = body.get("uses", 0)
        head = entry["hash"]
        entries.append(entry)
    return entries


# ---- encoding, for the vectors ----

def number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "big")


def text(value: str, width: int = 1) -> bytes:
    return number(len(value.encode()), width) + value.encode()


def listed(items: list[bytes], width: int = 1) -> bytes:
    return number(len(items), width) + b"".join(items)


def address(value: str) -> bytes:
    a = ipaddress.ip_address(value)
    return bytes(10) + b"\xff\xff" + a.packed if a.version == 4 else a.packed


def prefix(value: str) -> bytes:
    host, _, length = value.partition("/")
    return address(host) + number(int(length), 1)


def endpoint(host: str, port: int) -> bytes:
    return address(host) + number(0, 4) + number(port, 2)


def seed(name: str) -> bytes:
    return hashlib.sha256(b"weft lock sample " + name.encode()).digest()


def signing(name: str) -> bytes:
    return ed25519_public(seed(name))


def key(name: str) -> bytes:
    return public_of(seed(name))


def make_settings(*values: int) -> bytes:
    return bytes(values[:4]) + number(values[4], 4) + number(values[5], 4)


def make_signers(threshold: int, names: list[str], codes: list[str]) -> bytes:
    people = sorted(signing(name) + text(name) for name in names)
    return number(threshold, 1) + listed(people) + listed(sorted(map(signing, codes)))


def make_node(name: str, host: int, bits: int = 0, island: str = "", marks: dict | None = None,
              routes: tuple[str, ...] = (), tail: bytes = b"") -> bytes:
    return (text(name) + key(name) + bytes([10, 7, 0, host]) +
            ipaddress.ip_address(f"fd07::{host:x}").packed + bytes([bits]) + text(island) +
            listed([text(k) + text(v) for k, v in sorted((marks or {}).items())]) +
            listed([prefix(route) for route in routes]) + tail)


def rows() -> list[tuple[str, str, bytes]]:
    """(kind, who signs, body)"""
    where = listed([endpoint("192.0.2.1", 51820), endpoint("2001:db8::1", 51820)])
    names = listed([text("hub.example.org:51820", 2)])
    pinned = where + names + number(8443, 2) + b"\1" + seed("pin")
    nobody = bytes(22) + bytes(32)
    return [
        ("genesis", "alice bob", prefix("10.7.0.0/16") + prefix("fd07::/64") +
         make_settings(1, 2, 1, 1, 604800, 86400) +
         make_signers(2, ["alice", "bob", "carol"], ["code-1", "code-2"]) + number(1800000000, 8)),
        ("node", "alice carol", make_node("hub-1", 1, HUB, tail=pinned)),
        ("node", "alice bob carol", make_node(
            "gpu-1", 2, RELAY, "east", {"role": "gpu", "zone": "a, b=\"c\""},
            ("10.9.0.0/24", "fd09::/64"))),
        ("node", "bob carol", make_node("gpu-2", 3, STOCK)),
        ("token", "alice bob", signing("token-1") + number(2, 4) + number(1791000000, 8) +
         bytes([RELAY | EPHEMERAL]) + text("east") + listed([text("role") + text("gpu")]) +
         listed([prefix("10.10.0.0/16")])),
        ("join", "token-1", signing("token-1") + make_node(
            "gpu-3", 4, RELAY | EPHEMERAL, "east", {"role": "gpu"}, ("10.10.1.0/24",))),
        ("keys", "alice bob", listed([text("gpu-1") + key("gpu-1 next"),
                                      text("gpu-2") + key("gpu-2")], 2)),
        ("hubs", "alice bob", listed([text("hub-1"), text("gpu-1")])),
        ("edge", "alice bob", b"\1" + text("gpu-1") + nobody + text("gpu-2") + nobody),
        ("edge", "alice bob", b"\0" + text("gpu-1") + endpoint("198.51.100.7", 4500) + bytes(32) +
         text("gpu-3") + bytes(22) + key("gpu-3")),
        ("rule", "alice bob", text("ssh") + listed([text("members"), text("role=gpu")], 2) +
         listed([text("node:gpu-1"), text("10.9.0.0/24")], 2) +
         listed([text("tcp/22"), text("udp/5000-5999")])),
        ("rule", "alice bob", text("all") + listed([text("hub")], 2) +
         listed([text("members")], 2) + listed([text("any")])),
        ("rule-end", "alice bob", text("all")),
        ("settings", "alice bob", make_settings(0, 1, 0, 2, 0, 3600)),
        ("renew", "alice bob", number(2, 8) + number(1810000000, 8)),
        ("tombstone", "alice bob", text("gpu-2") + key("gpu-2") + number(1, 8)),
        ("token-end", "alice bob", signing("token-1")),
        ("recover", "code-1", signing("code-1") + make_signers(1, ["dave"], ["code-3"])),
        ("signers", "dave", make_signers(1, ["dave", "erin"], ["code-3"])),
        ("node", "erin", make_node("gpu-1", 2)),
    ]


def make_entries() -> list[tuple[str, bytes]]:
    head, entries = bytes(32), []
    for seq, (kind, who, body) in enumerate(rows()):
        network = text("lab")
        said = number(1790000000 + 10 * seq, 8) + number(KINDS.index(kind), 1) + body
        frame = LABEL + network + number(seq, 8) + head + said
        signed = JOIN_LABEL + network + said if kind == "join" else frame
        by = sorted((signing(name), ed25519_sign(seed(name), signed)) for name in who.split())
        entries.append((kind, frame + listed([k + s for k, s in by])))
        head = hashlib.sha256(frame).digest()
    return entries


def code_text(code: bytes) -> str:
    value = int.from_bytes(code, "big")
    digits = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[value >> 155 - 5 * i & 31]
                     for i in range(32))
    return "-".join(digits[i:i + 4] for i in range(0, 32, 4))


def main() -> None:
    print("# Made by lock_reference.py: do not edit. Hex, but for seq.")
    for name in ("zeroes", "ones", "any"):
        code = {"zeroes": bytes(20), "ones": b"\xff" * 20}.get(name, seed("code")[:20])
        public = ed25519_public(hashlib.sha256(b"weft lock recovery 1" + code).digest())
        print(f"\ncase = code {name}\ncode = {code.hex()}\ntext = {code_text(code).encode().hex()}")
        print(f"public = {public.hex()}")
    entries = make_entries()
    decoded = verify(b"".join(data for _, data in entries))
    for (kind, data), entry in zip(entries, decoded):
        assert entry["kind"] == kind
        print(f"\ncase = entry {entry['seq']} {kind}")
        print(f"seq = {entry['seq']}\nhash = {entry['hash']}\nbytes = {data.hex()}")


def show(path: str) -> None:
    for entry in verify(Path(path).read_bytes()):
        by = ", ".join(k.hex() for k, _ in entry["signatures"])
        print(f"{entry['seq']} {entry['kind']}, made {entry['made']}, signed by {by}\n  "
              f"{json.dumps(entry['body'])}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        show(name)
    if len(sys.argv) == 1:
        main()
