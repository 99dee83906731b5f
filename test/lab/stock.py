"""A stock WireGuard that is a node: what the README says of it, done."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
# Of /etc/cron.d: when, as whom, and what.
CRON = re.compile(r"^    \* \* \* \* \* root (.*wg syncconf .*)$", re.MULTILINE)
THERE = re.compile(r"(?<=http://)[\d.]+(?=:8443/v1/wg)")


def sync_line(hub_address: str) -> list[str]:
    """The README's line, as cron runs it, with the address that the hub has here."""
    [line] = CRON.findall(README.read_text())
    here, n_found = THERE.subn(hub_address, line)
    assert n_found == 1, line
    return ["/bin/sh", "-c", here]
