#!/usr/bin/python3
"""Asks a hub something, from inside a lab host: ask.py METHOD URL [SOCKET] < BODY

Prints the status on one line and the answer's text below. With SOCKET it goes to that unix socket.
The certificate is not checked: that is what the join token's pin is for, which has its own tests.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import sys
import urllib.parse


def connection(url: urllib.parse.SplitResult, path: str | None) -> http.client.HTTPConnection:
    if path:
        unix = http.client.HTTPConnection("hub", timeout=60)
        unix.sock = socket.socket(socket.AF_UNIX)
        unix.sock.connect(path)
        return unix
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(url.hostname, url.port, timeout=60, context=context)
    return http.client.HTTPConnection(url.hostname, url.port, timeout=60)


def main() -> None:
    method, text, *rest = sys.argv[1:]
    url = urllib.parse.urlsplit(text)
    hub = connection(url, rest[0] if rest else None)
    body = sys.stdin.read()
    hub.request(method, url.path, body or None, {"Content-Type": "application/json"})
    answer = hub.getresponse()
    print(answer.status)
    print(answer.read().decode())


if __name__ == "__main__":
    main()
