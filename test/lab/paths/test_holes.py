"""Lines on which longer packets vanish without a word, between two members and the hub.

    hub ── [ wan ] ── a: through an emulated link with the hole
                 └─── b

All that TCP moves has to arrive, in both directions and both families.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site
from lab.support.network.laboratory import Host
from lab.support.waiting import wait_for

pytestmark = pytest.mark.namespaces

HOLES = (1300, 1420, 1450)
AMOUNT = 8 << 20

TOPOLOGY = """
switch wan 203.0.113.0/24 2001:db8::/64
host hub
link hub wan 203.0.113.10 2001:db8::10
host a
link a wan 203.0.113.11 2001:db8::11 emulated
host b
link b wan 203.0.113.12 2001:db8::12
"""

SERVE = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.create_server((sys.argv[1], 5001), family=family)
print("ready", flush=True)
c, _ = s.accept()
c.settimeout(120)
n = int(c.recv(16, socket.MSG_WAITALL))
if n > 0:
    c.sendall(bytes(n))
else:
    got = 0
    while got < -n:
        got += len(c.recv(1 << 16)) or sys.exit("cut off")
    c.sendall(b"!")
c.recv(1)
"""

MOVE = """
import socket, sys
c = socket.create_connection((sys.argv[1], 5001), 60)
c.settimeout(120)
n = int(sys.argv[2])
c.sendall(b"%16d" % n)
if n > 0:
    got = 0
    while got < n:
        got += len(c.recv(1 << 16)) or sys.exit("cut off")
else:
    c.sendall(bytes(-n))
    assert c.recv(1) == b"!"
"""


@pytest.fixture(scope="module", params=("auto", "hub"))
def site(weft: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """`auto` finds direct paths; with `hub` all that members say to each other is relayed."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        site.set_topology(request.param)
        site.join("a", "b")
        wanted = {"lan", "direct"} if request.param == "auto" else {"relay"}
        site.wait_paths({("a", "b"): wanted}, 60)
        yield site


def move(client: AgentNode, server: Host, address: str, n: int) -> float:
    """`n` bytes from the server, or, less than 0, to it; gives how long that took."""
    daemon = server.spawn(["python3", "-c", SERVE, address], name="serve")
    daemon.wait_line("ready", 10)
    began = time.monotonic()
    client.host.run(["python3", "-c", MOVE, address, n], quiet=True, timeout_s=60)
    took = time.monotonic() - began
    daemon.stop()
    return took


@pytest.mark.parametrize("hole", HOLES)
def test_all_arrives(site: Site, hole: int) -> None:
    a, b = site.nodes["a"], site.nodes["b"]
    specs = [node["spec"] for node in site.hub_nodes().values()]
    hub = next({4: spec["address4"], 6: spec["address6"]} for spec in specs if "hub" in spec)
    site.lab.link("a").set(path_mtu=str(hole))
    for version in (4, 6):
        for what, server, address in (("member", b.host, b.address(version)),
                                      ("hub", site.hub, hub[version])):
            for n in (AMOUNT, -AMOUNT):
                took = move(a, server, address, n)
                print(f"FIGURE hole of {hole}: 8 MiB {'from' if n > 0 else 'to'} the {what}, "
                      f"IPv{version}: {took:.1f} s, is to be less than 20 s", flush=True)


def test_what_the_hub_says_arrives(site: Site) -> None:
    """The last of this file: one of the two is removed, and the other hears of it."""
    a = site.nodes["a"]
    site.lab.link("a").set(path_mtu="1300")
    site.hub.run([site.weft, "node", "rm", "b"])
    wait_for(lambda: "b" not in a.peer_names(), 20, "a to hear that b was removed")
