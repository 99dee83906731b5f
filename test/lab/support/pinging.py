"""One ping; or pings in a row from one node to another, and how long none of them was answered.

    pings = Pings(a.host, b.address())
    began = time.time()
    ...
    pings.wait_more()
    assert pings.longest_gap_s(since=began) < 3
"""

from __future__ import annotations

import itertools
import re

from .network.laboratory import Host
from .waiting import wait_for

# By itself WireGuard begins anew after 15 s without an answer. What is there to find that out
# sooner has to, on a machine that is busy otherwise, too; figures say what it takes at rest.
LONGEST_GAP_S = 8

ANSWER = re.compile(r"^\[(\d+\.\d+)\] .*bytes from")


def can_ping(host: Host, address: object, *words: object) -> bool:
    """One try, one second; `words` are further options of ping(8)."""
    argv = ["ping", "-c", 1, "-W", 1, *words, address]
    return host.run(argv, check=False, quiet=True).rc == 0


class Pings:
    """100 a second, until they are stopped."""

    def __init__(self, host: Host, address: str) -> None:
        self.daemon = host.spawn(["ping", "-D", "-i", "0.01", address], name="ping")
        self.daemon.wait_line("bytes from", 10)

    def answered(self) -> list[float]:
        """When answers came, by the clock of time.time()."""
        return [float(m[1]) for m in map(ANSWER.match, self.daemon.lines()) if m]

    def longest_gap_s(self, since: float = 0) -> float:
        """Between two answers that follow each other, the later of them after `since`."""
        return max(b - a for a, b in itertools.pairwise(self.answered()) if b > since)

    def wait_more(self, n: int = 20, within_s: float = 30) -> None:
        """Until there are so many more answers."""
        before = len(self.answered())
        wait_for(lambda: len(self.answered()) > before + n, within_s, "answers")

    def stop(self) -> None:
        self.daemon.stop()
