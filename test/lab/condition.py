"""Waiting for something to become true, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


class ConditionError(AssertionError):
    """A condition did not become true before its deadline."""


def wait_for(condition: Callable[[], object], deadline_s: float, what: str) -> object:
    """Call `condition` until it returns something true, and return that.

    `what` completes the sentence "waited N s for ...".  An exception from `condition` is not
    caught: it is a failure, not a reason to wait on.
    """
    end = time.monotonic() + deadline_s
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise ConditionError(f"waited {deadline_s:g} s for {what}, in vain")
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
