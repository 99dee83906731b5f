"""Two Linux gateways that only masquerade, as machines that share a line and Docker hosts do.

    flat    hub ── [ wan ] ── core ──┬── [ up-a ] ── nat-a ── [ lan-a ] ── a
                                     └── [ up-b ] ── nat-b ── [ lan-b ] ── b

    deep    hub ── [ wan ] ── core ──┬── [ up-a ] ── nat-a ── [ mid-a ] ── inner-a ── [ lan-a ] ── a
                                     └── [ to-2 ] ── core-2 ── [ to-3 ] ── core-3
                                              b ── [ lan-b ] ── nat-b ── [ up-b ] ──┘

None drops anything on its INPUT chain, so a packet that comes before its own side has sent spoils
the mapping (gateway.py). In the flat topology one router is between the two, the least that there
can be: a packet with a time to live of 2 leaves the sender's gateway and reaches no other. In the
deep one a is behind two such gateways, so that it takes a time to live of 3 to open them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import Site

pytestmark = pytest.mark.namespaces

COMMON = """
switch wan 203.0.113.0/24 gateway=core
router core
link core wan 203.0.113.1
host hub
link hub wan 203.0.113.10
switch up-a 198.51.100.0/30 gateway=core
link core up-a 198.51.100.1
nat nat-a masquerade out=up-a
link nat-a up-a 198.51.100.2 delay=5ms
switch lan-b 192.168.2.0/24 gateway=nat-b
nat nat-b masquerade out=up-b
link nat-b lan-b 192.168.2.1
host b no-v6
link b lan-b 192.168.2.11
"""
FLAT = """
switch up-b 198.51.100.4/30 gateway=core
link core up-b 198.51.100.5
link nat-b up-b 198.51.100.6 delay=5ms
switch lan-a 192.168.1.0/24 gateway=nat-a
link nat-a lan-a 192.168.1.1
host a no-v6
link a lan-a 192.168.1.11
"""
DEEP = """
switch to-2 198.51.100.8/30
router core-2
link core to-2 198.51.100.9
link core-2 to-2 198.51.100.10
switch to-3 198.51.100.12/30
router core-3
link core-2 to-3 198.51.100.13
link core-3 to-3 198.51.100.14
switch up-b 198.51.100.4/30 gateway=core-3
link core-3 up-b 198.51.100.5
link nat-b up-b 198.51.100.6 delay=5ms
route core 198.51.100.4/30 via=core-2
route core-2 198.51.100.4/30 via=core-3
route core-2 198.51.100.0/30 via=core
route core-2 203.0.113.0/24 via=core
route core-3 198.51.100.0/30 via=core-2
route core-3 203.0.113.0/24 via=core-2
switch mid-a 192.168.1.0/24 gateway=nat-a
link nat-a mid-a 192.168.1.1
nat inner-a masquerade out=mid-a
link inner-a mid-a 192.168.1.2
switch lan-a 172.17.0.0/24 gateway=inner-a
link inner-a lan-a 172.17.0.1
host a no-v6
link a lan-a 172.17.0.11
"""
DIRECT = {("a", "b"): {"direct"}}


@pytest.fixture
def site(request: pytest.FixtureRequest, weft: Path) -> Iterator[Site]:
    with Lab.from_text(COMMON + request.param, capture=False) as lab:
        yield Site(lab, weft)


every_depth = pytest.mark.parametrize("site", [FLAT, DEEP], ids=["flat", "deep"], indirect=True)


@every_depth
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_who_joins_later_is_reached_directly(order: str, site: Site) -> None:
    for name in order:
        site.join(name)
    start = time.monotonic()
    # A chance that was missed comes again after a minute, when the gateways have forgotten.
    site.wait_paths(DIRECT, 45)
    print(f"FIGURE plain masquerade on both sides, direct after {time.monotonic() - start:.1f} s "
          "(to be below 3)")
    site.all_reach(DIRECT)
    for name, other in (("a", "b"), ("b", "a")):
        assert not site.nodes[name].peers()[other]["why"], "a direct path needs no excuse"
