"""Both ends of one TCP connection at full rate; streaming.py runs them.

The receiver says each pause in what arrives; the sender goes on until it is told to stop, and then
waits for the receiver's count.
"""

from __future__ import annotations

import signal
import socket
import sys
import time

BLOCK = bytes(1 << 18)
# A pause in what arrives that is longer than this gets a line of its own.
PAUSE_S = 0.02
# While data arrives, a line says at least this often how much has arrived so far.
REPORT_S = 0.2
PORT = 5201


def receive(address: str) -> None:
    server = socket.create_server((address, PORT))
    print("listening", flush=True)
    connection, _ = server.accept()
    buffer, n, last, said = bytearray(len(BLOCK)), 0, time.time(), 0.0
    while got := connection.recv_into(buffer):
        now = time.time()
        n += got
        if now - last > PAUSE_S or now - said > REPORT_S:
            print(f"[{now:.6f}] {n} bytes, pause of {now - last:.6f} s", flush=True)
            said = now
        last = now
    connection.sendall(n.to_bytes(8, "big"))
    print(f"end: {n} bytes", flush=True)


def send(address: str) -> None:
    is_over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: is_over.append(number))
    connection = socket.create_connection((address, PORT), timeout=60)
    n = 0
    while not is_over:
        n += connection.send(BLOCK)
    connection.shutdown(socket.SHUT_WR)
    counted = connection.recv(8)
    print(f"end: {n} bytes sent, {int.from_bytes(counted, 'big')} arrived", flush=True)


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](sys.argv[2])
