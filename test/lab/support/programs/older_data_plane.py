"""A configuration socket before that of `weft wg`, which knows no hand_over=1 and keeps no rates.

    older_data_plane.py SOCKET REAL-SOCKET

As in version 0.1.0. It passes on all other requests, and ends once it has refused that one.
"""

from __future__ import annotations

import os
import socket
import sys


def ask(path: str, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as real:
        real.connect(path)
        real.sendall(request)
        answer = b""
        while not answer.endswith(b"\n\n"):
            answer += real.recv(1 << 16)
        return answer


def serve(path: str, real: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print("listening", flush=True)
    while True:
        connection, _ = server.accept()
        with connection:
            request = b""
            while not request.endswith(b"\n\n") and (more := connection.recv(1 << 16)):
                request += more
            if request.startswith(b"hand_over"):
                os.unlink(path)
                connection.sendall(b"errno=-22\n\n")
                return
            if request:
                connection.sendall(ask(real, request).replace(b"rates=true\n", b""))


if __name__ == "__main__":
    serve(*sys.argv[1:])
