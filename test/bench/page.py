"""The hub's page with 200 nodes, beside one with nine: what is loaded, and how soon it is seen.

Headless Chromium loads the page's own files from a stub of the hub (test/hub/page_stub.py), each
time with an empty profile, in the view that draws most: the matrix of all pairs. Then rows change,
as often as CHANGES says: an update lasts from the event's arrival until it is on the screen, and
updateSeen from before the event is sent until the browser, who is asked all the time, says so.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from hub.browser import PROGRAM, WHY_NONE, Browser
from hub.page_stub import FILES, Stub

NODES = (9, 200)
REFERENCE = f"{NODES[0]} nodes"
CHANGES = 10
SHOWN_AT = "document.querySelector('#main')?.dataset.at"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
SHOWN = "performance.getEntriesByName('weft-shown')[0]"


def load(stub: Stub, folder: Path) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Of one browser: the page that is loaded, and its updates."""
    updates = []
    with Browser(folder) as browser:
        browser.goto(f"{stub.url}#/default/pairs")
        browser.wait(f"{SHOWN_AT} && document.querySelector('canvas')", 60)
        first = {"firstPaintMs": browser.wait(PAINTED, 60),
                 "allShownMs": browser.run(f"{SHOWN}.startTime + {SHOWN}.duration")}
        for _ in range(CHANGES):
            shown_at = browser.run(SHOWN_AT)
            began = time.monotonic()
            stub.change()
            browser.wait(f"{SHOWN_AT} !== '{shown_at}'", 60)
            updates.append({"updateSeenMs": (time.monotonic() - began) * 1000,
                            "updateMs": browser.run(f"{SHOWN}.duration")})
        if browser.complaints:
            raise SystemExit(f"the page complains: {browser.complaints}")
    return first, updates


def one(nodes: int, rounds: int) -> dict[str, float]:
    firsts, updates = [], []
    with Stub(nodes) as stub:
        figures = {"filesKB": sum(path.stat().st_size for path in FILES.iterdir()) / 1000,
                   "firstDataKB": len(stub.first()) / 1000}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="weft-bench-page.") as folder:
                first, more = load(stub, Path(folder))
            firsts.append(first)
            updates += more
    for figure in firsts[0]:
        figures[figure] = statistics.median(first[figure] for first in firsts)
    for figure in updates[0]:
        figures[figure] = statistics.median(update[figure] for update in updates)
        figures[f"{figure.removesuffix('Ms')}WorstMs"] = max(update[figure] for update in updates)
    return figures


def measure(rounds: int) -> dict[str, dict[str, float]]:
    if PROGRAM is None:
        raise SystemExit(WHY_NONE)
    return {f"{nodes} nodes": one(nodes, rounds) for nodes in NODES}
