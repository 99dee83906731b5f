"""A stock WireGuard that is a node: what docs/recipes/stock-wireguard.md says of it, done."""

from __future__ import annotations

import re

from . import ROOT
from .pages import blocks

RECIPE = "recipes/stock-wireguard.md"
CRON = re.compile(r"\* \* \* \* \* root (.*)\n")  # when, as whom, and what
THERE = re.compile(r"(?<=http://)[\d.]+(?=:8443/v1/wg)")


def recipe(name: str, before: str = "") -> list[str]:
    """A block of the page, for a shell; `before` is what it expects to be so."""
    return ["/bin/sh", "-ec", f"{before}\n{blocks(RECIPE, 'sh')[name]}"]


def sync_line(hub_address: str) -> list[str]:
    """The page's line, as cron runs it, with the address that the hub has here."""
    line = blocks(RECIPE, "cron")["sync"]
    assert line in (ROOT / "README.md").read_text(), "the README has another line"
    here, n_found = THERE.subn(hub_address, CRON.fullmatch(line)[1])
    assert n_found == 1, line
    return ["/bin/sh", "-c", here]
