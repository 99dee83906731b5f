"""A path whose round trips take longer than in its last hour is found, at both ends and by the hub.

    hub 203.0.113.10, a on .11 and b on .12; what leaves a is delayed
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site

from .net import BUSY

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
host a
host b
link hub wan 203.0.113.10
link a wan 203.0.113.11 emulated
link b wan 203.0.113.12
"""
USUAL_MS, LONGER_MS = 10, 50
FOUND = ("WEFT-RTT-001", "a--b")


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        lab.link("a").set(out_delay=f"{USUAL_MS}ms")
        site.join("a", "b")
        site.wait_paths({("a", "b"): {"lan", "direct"}}, 30)
        yield site


def rtts(site: Site) -> list[dict]:
    """What both ends say of the edge."""
    rows = json.loads(site.hub.run([site.weft, "get", "edges", "--json"], quiet=True).out)["edges"]
    [status] = [row["status"] for row in rows if row["name"] == "a--b"]
    return [status[f"agent/{name}"].get("rtt", {}) for name in "ab"]


def findings(site: Site) -> dict[tuple[str, str], str]:
    answer = json.loads(site.hub.run([site.weft, "get", "findings", "--json"], quiet=True).out)
    return {(one["code"], one["subject"]): one["text"] for one in answer["findings"]}


def test_round_trips_take_longer(site: Site) -> None:
    a, b = site.nodes["a"], site.nodes["b"]
    # While something flows a path is measured often.
    pings = a.host.spawn(["ping", "-i", "1", b.address()], name="ping")
    pings.wait_line("bytes from", 20)
    wait_for(lambda: all("usualMs" in rtt for rtt in rtts(site)), 180, "what is usual to be known")
    assert all(USUAL_MS * 0.8 <= rtt["usualMs"] <= USUAL_MS * 2 for rtt in rtts(site))
    assert FOUND not in findings(site)
    assert a.peers()["b"]["rttUsualMs"] >= USUAL_MS * 0.8
    table = site.hub.run([site.weft, "get", "edges"]).out
    assert " ms, usually " in table
    site.lab.link("a").set(out_delay=f"{LONGER_MS}ms")
    wait_for(lambda: FOUND in findings(site), 180, "the hub to find it")
    assert {one for one in findings(site) if one[0] not in BUSY} == {FOUND}
    text = findings(site)[FOUND]
    assert text.startswith("each round trip between "), text
    assert f"has taken {LONGER_MS}." in text, text
    site.lab.link("a").set(out_delay=f"{USUAL_MS}ms")
    wait_for(lambda: FOUND not in findings(site), 60, "it to be over")
    assert pings.running
