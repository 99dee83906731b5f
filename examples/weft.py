"""Tells Weft how a job goes: weft.report(step=120, comm_s=0.8).

One file without a dependency: put it beside your script. `weft run` gives the name of a socket in
WEFT_REPORT; without that, and whatever goes wrong, nothing happens. Nothing waits for it.

    import weft
    for step in range(steps):
        ...
        began = time.monotonic()
        dist.all_reduce(gradients)
        weft.report(step=step, comm_s=time.monotonic() - began)

`comm_s` is how long this rank was in collectives in this step. Who waits for others is in them for
long; the rank that the others wait for is not, and so `weft jobs` names it, also where all ranks
compute while they wait, as NCCL's do.
"""
from __future__ import annotations

import json
import os
import socket
import time

# So often it is said; meanwhile it is added up.
_EACH_S = 1.0


class _Reporter:
    """What this process has said."""

    def __init__(self) -> None:
        name = os.environ.get("WEFT_REPORT", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if name else None
        self._comm_s = 0.0
        self._next = 0.0

    def report(self, step: int, comm_s: float) -> None:
        self._comm_s += comm_s
        now = time.monotonic()
        if self._socket is None or now < self._next:
            return
        self._next = now + _EACH_S
        said = {"rank": int(os.environ.get("RANK", 0)), "step": int(step),
                "commSeconds": round(self._comm_s, 3)}
        self._socket.sendto(json.dumps(said).encode(), socket.MSG_DONTWAIT, self._address)


_reporter: _Reporter | None = None


def report(step: int, comm_s: float = 0.0) -> None:
    """This rank has made that step, and was in collectives for so long in it, s."""
    global _reporter  # pylint: disable=global-statement
    try:
        if _reporter is None:
            _reporter = _Reporter()
        _reporter.report(step, comm_s)
    except (OSError, ValueError):  # Whoever trains goes on.
        pass
