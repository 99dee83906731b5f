"""A client of the frame socket, run in a host of the lab: frame_client_program.py INTERFACE FIFO

Makes the FIFO, reads commands from it, one a line, and prints what arrives, one JSON object a line:

    send ADDRESS PORT HEX [df]
"""

from __future__ import annotations

import ipaddress
import json
import os
import selectors
import socket
import struct
import sys

HEADER = struct.Struct("=16s16sHHIq")  # src/dataplane/shared/frame_client.h


def mapped(text: str) -> bytes:
    address = ipaddress.ip_address(text)
    return address.packed if address.version == 6 else b"\0" * 10 + b"\xff\xff" + address.packed


def unmapped(packed: bytes) -> str:
    address = ipaddress.IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def send(frames: socket.socket, words: list[str]) -> None:
    flags = 1 if "df" in words else 0
    header = HEADER.pack(mapped(words[1]), bytes(16), int(words[2]), flags, 0, 0)
    frames.send(header + bytes.fromhex(words[3]))


def receive(frames: socket.socket) -> bool:
    message = frames.recv(65536)
    if not message:
        return False
    remote, local, port, _, _, received_at = HEADER.unpack_from(message)
    print(json.dumps({"remote": unmapped(remote), "local": unmapped(local), "port": port,
                      "at": received_at, "frame": message[HEADER.size:].hex()}), flush=True)
    return True


class Commands:
    """The lines of a FIFO. Python's own reader would keep what arrived together with a line, and
    select() would not know of it."""

    def __init__(self, path: str) -> None:
        os.mkfifo(path)
        # Also for writing, so that it does not end with its first writer.
        self._fd = os.open(path, os.O_RDWR)
        self._rest = b""

    def fileno(self) -> int:
        return self._fd

    def read(self) -> list[str]:
        *lines, self._rest = (self._rest + os.read(self._fd, 65536)).split(b"\n")
        return [line.decode() for line in lines]


def main() -> None:
    frames = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    frames.connect(f"/run/wireguard/{sys.argv[1]}.path")
    waiting = selectors.DefaultSelector()
    waiting.register(frames, selectors.EVENT_READ)
    commands = Commands(sys.argv[2])
    waiting.register(commands, selectors.EVENT_READ)
    print("open", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is frames:
                if not receive(frames):
                    print("closed", flush=True)
                    return
                continue
            for line in commands.read():
                send(frames, line.split())


if __name__ == "__main__":
    main()
