"""A relay whose own line is full draws no pair away from its direct path; one that has room does.

    a, c ── [ west ] ── ra ──┬── [ net ] ──┬── rb ── [ east ] ── b, d
                             │     |       │
                             │    hub      │          the hub's line: 10 Mbit/s, 10 ms
                             └── [ sea ] ──┘          80 ms there and back

The direct path of each pair crosses the sea, the way through the hub does not: an idle hub is the
better way for a and b. c and d are set to relay, and send more than the hub's line carries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch west 192.0.2.0/24 gateway=ra
switch east 198.51.100.0/24 gateway=rb
switch net 203.0.113.0/24
switch sea-a 10.9.1.0/24
switch sea-b 10.9.2.0/24
router ra
router rb
router sea
host hub no-v6
host a no-v6
host b no-v6
host c no-v6
host d no-v6
link ra west 192.0.2.1
link ra net 203.0.113.1
link ra sea-a 10.9.1.1
link sea sea-a 10.9.1.9 delay=20ms
link sea sea-b 10.9.2.9 delay=20ms
link rb sea-b 10.9.2.1
link rb net 203.0.113.2
link rb east 198.51.100.1
link hub net 203.0.113.10 delay=2ms rate=10mbit queue=256k
link a west 192.0.2.11
link c west 192.0.2.12
link b east 198.51.100.11
link d east 198.51.100.12
route ra 198.51.100.0/24 via=sea
route rb 192.0.2.0/24 via=sea
route sea 192.0.2.0/24 via=ra
route sea 198.51.100.0/24 via=rb
route hub 192.0.2.0/24 via=ra
route hub 198.51.100.0/24 via=rb
"""
# Seconds that the pair is watched beside the full relay. What a relay's round trip was before it
# was full is forgotten in less.
WATCHED_S = 40


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def path_of(site: Site, a: str, b: str) -> str:
    return site.nodes[a].peers()[b]["path"]


def watch(site: Site, a: str, b: str, for_s: float) -> list[str]:
    """The pair's path, once a second."""
    until = time.monotonic() + for_s
    seen = []
    while time.monotonic() < until:
        due = time.monotonic() + 1
        seen.append(path_of(site, a, b))
        time.sleep(max(0, due - time.monotonic()))
    return seen


def test_a_full_relay_draws_nobody(site: Site) -> None:
    a, b, c, d = site.join("a", "b", "c", "d")
    for node in site.nodes.values():
        node.agent.allow("the hub")
    site.hub.run([site.weft, "edge", "set", "c", "d", "--path", "relay"])
    wait_for(lambda: path_of(site, "c", "d") == path_of(site, "d", "c") == "relay", 30,
             "c and d to be relayed")
    d.host.spawn(["iperf3", "-s", "--forceflush"], name="sink").wait_line("listening")
    flood = c.host.spawn(["iperf3", "-c", d.address(), "-u", "-b", "15M", "-l", "1100", "-t", "0",
                          "--forceflush"], name="flood")
    flood.wait_line("Mbits/sec", 20)
    a.host.spawn(["ping", "-q", "-i", "0.5", b.address()], name="ping")
    wait_for(lambda: path_of(site, "a", "b") == "direct", 120, "a and b to leave the full relay")
    seen = watch(site, "a", "b", WATCHED_S)
    print(f"FIGURE beside a full relay: {len(seen)} looks, {seen.count('relay')} of them at a "
          "relayed path (to be 0)")
    assert set(seen) == {"direct"}
    flood.stop()
    wait_for(lambda: path_of(site, "a", "b") == "relay", 120,
             "a and b to take the relay, which has room now")
