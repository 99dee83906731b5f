"""One TCP connection at full rate between two hosts, and how long nothing of it arrived.

    stream = Stream(a.host, b.host, b.address())
    began = time.time()
    ...
    stream.wait_more()
    stream.stop()                  # asserts that every byte has arrived, and no reset
    assert stream.longest_gap_s(since=began) < 1
"""

from __future__ import annotations

import re
import sys

from . import PROGRAMS
from .network.laboratory import Host
from .network.process import Daemon
from .waiting import wait_for

PROGRAM = PROGRAMS / "tcp_end.py"
LINE = re.compile(r"^\[(\d+\.\d+)\] (\d+) bytes, pause of (\d+\.\d+) s$")

class Receiver:
    """The end that counts; whatever sends may be its peer."""

    def __init__(self, host: Host, address: str) -> None:
        self.daemon: Daemon = host.spawn([sys.executable, PROGRAM, "receive", address],
                                         name="receive")
        self.daemon.wait_line("listening", 20)

    def _arrived(self) -> list[tuple[float, int, float]]:
        """When, how much by then, and how long nothing had come."""
        found = map(LINE.match, self.daemon.lines())
        return [(float(m[1]), int(m[2]), float(m[3])) for m in found if m]

    def n_bytes(self) -> int:
        return self._arrived()[-1][1] if self._arrived() else 0

    def longest_gap_s(self, since: float = 0) -> float:
        return max((pause for at, _, pause in self._arrived() if at > since), default=0.0)

    def wait_more(self, n: int = 8 << 20, within_s: float = 60) -> None:
        """Until so much more has arrived."""
        before = self.n_bytes()
        wait_for(lambda: self.n_bytes() > before + n, within_s, "the flow to go on")

class Stream(Receiver):
    """From one host to another."""

    def __init__(self, sender: Host, receiver: Host, address: str) -> None:
        super().__init__(receiver, address)
        self.sender = sender.spawn([sys.executable, PROGRAM, "send", address], name="send")
        self.wait_more()

    def stop(self) -> None:
        self.sender.stop()
        said = self.sender.wait_line(r"end: (\d+) bytes sent, \1 arrived", 60)
        assert said
