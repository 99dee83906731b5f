#!/usr/bin/python3
"""A UDP prober: a socket in a lab host that sends and tells what it received, on command.

Started by Prober below, it reads one command a line on standard input and answers each with one
line of JSON:

    send ADDRESS PORT TEXT    -> true, or the reason why not
    receive SECONDS           -> [text, address, port] of the next datagram, or null in vain
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .network.laboratory import Host


def serve(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        udp.bind((address, port))
        print(json.dumps(udp.getsockname()[1]), flush=True)
        for line in sys.stdin:
            print(json.dumps(obey(udp, line.split())), flush=True)


def obey(udp: socket.socket, words: list[str]) -> object:
    if words[0] == "send":
        try:
            udp.sendto(words[3].encode(), (words[1], int(words[2])))
        except OSError as error:
            return str(error)
        return True
    udp.settimeout(float(words[1]))
    try:
        data, sender = udp.recvfrom(2048)
    except TimeoutError:
        return None
    return [data.decode(), sender[0], sender[1]]


class Prober:
    """A UDP socket of a lab host; use it in a `with` block."""

    def __init__(self, host: Host, address: str | None = None, port: int = 0) -> None:
        self.address = address or host.address()
        argv = host.namespace.enter(["/usr/bin/python3", __file__, self.address, port])
        self._process = subprocess.Popen(
            argv, env=host.namespace.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            encoding="utf-8")
        self.port = self._answer()

    @property
    def endpoint(self) -> tuple[str, int]:
        return self.address, self.port

    def send(self, endpoint: tuple[str, int], text: str) -> None:
        answer = self._ask(f"send {endpoint[0]} {endpoint[1]} {text}")
        if answer is not True:
            raise OSError(answer)

    def receive(self, timeout_s: float = 15) -> tuple[str, tuple[str, int]] | None:
        """The next datagram and who sent it; None if none came in time."""
        answer = self._ask(f"receive {timeout_s}")
        return (answer[0], (answer[1], answer[2])) if answer else None

    def receives(self, text: str, timeout_s: float = 15) -> tuple[str, int]:
        """Insist that the next datagram is `text`, and return who sent it."""
        received = self.receive(timeout_s)
        assert received, f"{self.endpoint} received nothing instead of {text!r}"
        assert received[0] == text, f"{self.endpoint} received {received} instead of {text!r}"
        return received[1]

    def _ask(self, command: str) -> object:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> object:
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"the prober on {self.address} ended with {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
