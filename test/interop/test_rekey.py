"""Keys change after 120 seconds (whitepaper 6.2) without a gap.

No stock peer lets that time be shortened, so the traffic of this file starts with the session of
tests (conftest.py) and is looked at when its time has come, while the others run.
"""

from __future__ import annotations

import re
import time

import pytest
from lab import wait_for

from .vm import image

pytestmark = pytest.mark.namespaces

# Rekey-After-Time, and what the slowest end may take to act on it.
REKEY_S = 120
LATEST_S = REKEY_S + 12
# Three stamps in whole seconds are compared, and one end confirms a session after the other.
STAMPS_S = 3


def seen_handshakes(run):
    """When the session's handshakes were, in Unix time, by what one end wrote down."""
    return sorted({int(line.split()[1]) for line in run.handshakes.lines()})


def clock_lead_s(end):
    """How far its clock is ahead of this machine's, or less: a virtual machine has its own."""
    return int(end.machine.run(["date", "+%s"], quiet=True).out) - time.time()


@pytest.mark.parametrize(
    "pair", ["weft-go", "go-weft", "weft-weft", "weft-kernel", "kernel-weft"])
def test_keys_change_without_a_gap(rekeying, pair):
    """The first named end began the session, so it is to renew it."""
    if pair not in rekeying:
        pytest.skip(image.why_not())
    run = rekeying[pair]
    wait_for(lambda: len(seen_handshakes(run)) > 1,
             max(1, run.started + LATEST_S + 2 - time.monotonic()), "the second handshake")
    run.handshakes.stop()
    first, second, *_ = seen_handshakes(run)
    assert REKEY_S - 1 <= second - first <= LATEST_S
    for end, other in ((run.initiator, run.responder), (run.responder, run.initiator)):
        assert end.state(other).handshake - clock_lead_s(end) >= second - STAMPS_S
    answered = {int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", "\n".join(run.pinger.lines()))}
    run.pinger.stop()
    assert len(answered) > 4 * REKEY_S
    assert set(range(1, max(answered) + 1)) - answered == set()
