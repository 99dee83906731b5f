#!/usr/bin/python3
"""connect_proxy - an HTTP proxy that knows CONNECT and nothing else, for the lab.

    connect_proxy ADDRESS PORT [USER:PASSWORD]
"""

from __future__ import annotations

import base64
import contextlib
import socket
import sys
import threading


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def serve(client: socket.socket, wanted: str) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        if not piece:
            return
        head += piece
    line, _, fields = head.decode().partition("\r\n")
    method, target, _ = line.split(" ")
    if wanted and f"proxy-authorization: basic {wanted}" not in fields.lower():
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                       b"Proxy-Authenticate: Basic realm=\"lab\"\r\nContent-Length: 0\r\n\r\n")
        client.close()
        return
    if method != "CONNECT":
        client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        client.close()
        return
    host, _, port = target.rpartition(":")
    try:
        server = socket.create_connection((host.strip("[]"), int(port)), timeout=10)
    except OSError:
        client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        client.close()
        return
    server.settimeout(None)
    print(f"connected to {target}", flush=True)
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for sock in (client, server):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    there = threading.Thread(target=pump, args=(client, server), daemon=True)
    there.start()
    pump(server, client)
    there.join()


def main() -> None:
    wanted = base64.b64encode(sys.argv[3].encode()).decode().lower() if len(sys.argv) > 3 else ""
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
        print("proxy is up", flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, wanted), daemon=True).start()


if __name__ == "__main__":
    main()
