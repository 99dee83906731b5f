#!/usr/bin/python3
"""streamer - a member's end of a stream, written from docs/wire/stream.md alone.

    streamer ADDRESS NETWORK SECRET HUBKEY      reads one command a line, prints one line of JSON

    open NAME [WORD]     a stream; WORD spoils it: `stranger`, `forged`, `plain`, `elsewhere`
    say NAME TEXT        a datagram; the next one that comes back
    beat NAME            an empty frame; whether one comes back
    raw NAME HEX         bytes as they are
    gone NAME            wait for the hub to end it
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import ssl
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors"))
from noise_reference import public_of, x25519  # noqa: E402

PORT = 8443
LABEL = b"weft stream 1"
PATIENCE_S = 60


def hkdf1(key: bytes, data: bytes) -> bytes:
    mac = hmac.new(key, data, hashlib.blake2s).digest()
    return hmac.new(mac, b"\x01", hashlib.blake2s).digest()


def proof(secret: bytes, hub: bytes, node: bytes) -> bytes:
    key = hkdf1(hashlib.blake2s(LABEL).digest(), x25519(secret, hub))
    return hashlib.blake2s(LABEL + node, key=key).digest()


class Stream:
    def __init__(self, address: str, request: str) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection((address, PORT), timeout=PATIENCE_S)
        self.sock = context.wrap_socket(plain)
        self.sock.sendall(request.encode())
        self.got = b""
        while b"\r\n\r\n" not in self.got and (piece := self.sock.recv(65536)):
            self.got += piece
        head, _, self.got = self.got.partition(b"\r\n\r\n")
        self.status = int(head.split(b" ")[1])
        self.head = head.decode()

    def frame(self) -> bytes:
        while len(self.got) < 2 or len(self.got) < 2 + struct.unpack(">H", self.got[:2])[0]:
            piece = self.sock.recv(65536)
            if not piece:
                raise EOFError
            self.got += piece
        length = struct.unpack(">H", self.got[:2])[0]
        frame, self.got = self.got[2:2 + length], self.got[2 + length:]
        return frame

    def ends(self) -> bool:
        try:
            while self.sock.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


class Streamer:
    def __init__(self, address: str, network: str, secret: str, hub: str) -> None:
        self.address = address
        self.network = network
        self.secret = base64.b64decode(secret)
        self.hub = base64.b64decode(hub)
        self.streams: dict[str, Stream] = {}

    def open(self, name: str, word: str = "") -> dict:
        secret = os.urandom(32) if word == "stranger" else self.secret
        node = public_of(secret)
        mac = os.urandom(32) if word == "forged" else proof(secret, self.hub, node)
        network = "elsewhere" if word == "elsewhere" else self.network
        upgrade = "" if word == "plain" else "Connection: Upgrade\r\nUpgrade: weft-stream\r\n"
        request = (f"GET /v1/stream/{network} HTTP/1.1\r\nHost: hub\r\n{upgrade}"
                   f"Authorization: Weft-Stream {base64.b64encode(node).decode()} "
                   f"{base64.b64encode(mac).decode()}\r\n\r\n")
        stream = Stream(self.address, request)
        self.streams[name] = stream
        return {"status": stream.status, "upgrade": "Upgrade: weft-stream" in stream.head}

    def say(self, name: str, text: str) -> dict:
        stream = self.streams[name]
        stream.sock.sendall(struct.pack(">H", len(text)) + text.encode())
        return {"said": stream.frame().decode()}

    def beat(self, name: str) -> dict:
        stream = self.streams[name]
        stream.sock.sendall(b"\0\0")
        return {"beat": stream.frame() == b""}

    def raw(self, name: str, text: str) -> dict:
        self.streams[name].sock.sendall(bytes.fromhex(text))
        return {}

    def gone(self, name: str) -> dict:
        return {"gone": self.streams[name].ends()}


def main() -> None:
    streamer = Streamer(*sys.argv[1:5])
    for line in sys.stdin:
        verb, *words = line.split()
        print(json.dumps(getattr(streamer, verb)(*words)), flush=True)


if __name__ == "__main__":
    main()
