#!/usr/bin/python3
"""Send nonsense to a WireGuard port as fast as one process can, until told to stop.

    flood.py garbage ADDRESS PORT               random datagrams of random length and type
    flood.py initiations ADDRESS PORT --key=K   initiations for the public key K (base64) whose mac1
                                                is right, and everything else is not
"""
import argparse
import base64
import hashlib
import os
import random
import select
import signal
import socket
import struct
import time

INITIATION_LEN = 148
MACS_LEN = 32


def garbage(rng):
    """Random bytes, half of them with the type and length of a real message."""
    kind = rng.choice([0, 1, 2, 3, 4, 4, 4])
    length = {1: 148, 2: 92, 3: 64}.get(kind, rng.choice([0, 1, 3, 4, 15, 16, 31, 32, 48, 1452]))
    length = max(0, length + rng.choice([0, 0, 0, -1, 1]))
    body = rng.randbytes(max(length, 4))
    return (struct.pack("<I", kind) + body[4:])[:length] if kind else body[:length]


def initiation(rng, mac1_key):
    body = struct.pack("<II", 1, rng.getrandbits(32)) + rng.randbytes(INITIATION_LEN - MACS_LEN - 8)
    mac1 = hashlib.blake2s(body, key=mac1_key, digest_size=16).digest()
    return body + mac1 + bytes(16)


def answers(sock):
    """The sizes of those that have come."""
    sizes = []
    try:
        while True:
            sizes.append(len(sock.recv(2048, socket.MSG_DONTWAIT)))
    except OSError:
        return sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["garbage", "initiations"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--key", default="")
    parser.add_argument("--rate", type=int, default=0, help="at most so many a second")
    parser.add_argument("--ahead", type=int, default=0,
                        help="at most so many that are not answered, so that no queue runs over")
    args = parser.parse_args()

    rng = random.Random(1)
    if args.kind == "garbage":
        messages = [garbage(rng) for _ in range(5000)]
    else:
        # Whitepaper 5.4.4: HASH(LABEL-MAC1 || the responder's public key).
        key = hashlib.blake2s(b"mac1----" + base64.b64decode(args.key)).digest()
        messages = [initiation(rng, key) for _ in range(5000)]

    sock = socket.socket(socket.AF_INET6 if ":" in args.address else socket.AF_INET,
                         socket.SOCK_DGRAM)
    sock.connect((args.address, args.port))
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    n_sent = n_answers = answer_bytes = n_lost = 0
    started = time.monotonic()
    print(f"ready {os.getpid()}", flush=True)
    while not stopped:
        for message in messages:
            try:
                sock.send(message)
                n_sent += 1
            except OSError:
                pass  # Refused or no room: the next one.
            if n_sent % 64:
                continue
            # Not a wait for anything: the pace is what this program is asked for.
            early_s = started + n_sent / args.rate - time.monotonic() if args.rate else 0
            if early_s > 0:
                time.sleep(early_s)
            sizes = answers(sock)
            while args.ahead and n_sent - n_lost - n_answers - len(sizes) >= args.ahead:
                # What is not answered in a second never will be.
                if not select.select([sock], [], [], 1)[0]:
                    n_lost = n_sent - n_answers - len(sizes)
                sizes += answers(sock)
            n_answers += len(sizes)
            answer_bytes += sum(sizes)
            if stopped:
                break
    print(f"sent {n_sent}, answers {n_answers}, answer bytes {answer_bytes}", flush=True)


if __name__ == "__main__":
    main()
