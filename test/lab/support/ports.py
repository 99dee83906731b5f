"""Ports on 127.0.0.1 for servers that want to be told theirs."""

from __future__ import annotations

import os
import socket


def free_ports(count: int) -> int:
    """The first of @count ports in a row on which nobody listens.

    None of them is of those that the kernel gives to whoever names none, which another program may
    have got until the server begins.
    """
    for first in range(21000 + os.getpid() % 300 * 20, 32000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for offset, s in enumerate(sockets):
                s.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for s in sockets:
                s.close()
    raise OSError(f"there are no {count} free ports in a row")
