"""Waiting for something to become true, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


# A limit says what a machine needs that has its processors to itself. One that shares them, and has
# none for a second now and then, gets so many times as long; who waits in vain is told later, and
# nothing else depends on it. What a requirement bounds is measured and asserted, not waited for.
PATIENCE = 3


class ConditionError(AssertionError):
    """A condition did not become true before its deadline."""


def wait_for(condition: Callable[[], object], deadline_s: float, what: str) -> object:
    """Call `condition` until it returns something true, and return that.

    In vain it waits PATIENCE times as long as the deadline says.  `what` completes the sentence
    "waited N s for ...".  An exception from `condition` is not caught: it is a failure, not a
    reason to wait on.

    A look that starts programs takes from the tests that run beside this one. So it is repeated
    less often the more it costs, once it has been waited for some seconds: what is measured by
    waiting is late by a twentieth at most.
    """
    patience_s = PATIENCE * deadline_s
    start = time.monotonic()
    pause = 0.005
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now - start >= patience_s:
            raise ConditionError(f"waited {patience_s:g} s for {what}, in vain")
        time.sleep(max(pause, min(10 * (now - began), (now - start) / 20, 0.5)))
        pause = min(pause * 2, 0.1)
