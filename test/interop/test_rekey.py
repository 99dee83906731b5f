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

# Rekey-After-Time, and what the slowest end may take to see it.
REKEY_S = 120
LATEST_S = REKEY_S + 12


@pytest.mark.parametrize(
    "pair", ["weft-go", "go-weft", "weft-weft", "weft-kernel", "kernel-weft"])
def test_keys_change_without_a_gap(rekeying, pair):
    """The first named end began the session, so it is to renew it."""
    if pair not in rekeying:
        pytest.skip(image.why_not())
    run = rekeying[pair]
    wait_for(lambda: run.initiator.state(run.responder).handshake > run.first_handshake,
             max(1, run.started + LATEST_S - time.monotonic()), "the second handshake")
    again = run.initiator.state(run.responder).handshake
    assert REKEY_S <= again - run.first_handshake <= LATEST_S
    wait_for(lambda: run.responder.state(run.initiator).handshake > run.first_handshake, 10,
             "the other end to confirm it")
    answered = {int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", "\n".join(run.pinger.lines()))}
    run.pinger.stop()
    assert len(answered) > 4 * REKEY_S
    assert set(range(1, max(answered) + 1)) - answered == set()
