"""The kinds of path beside the bare line: TCP and round trips through a line of 100 Mbit/s.

                 hub
                  |
        [ net 198.51.100.0/24 ]
          |         |         |
          a         b         c       NATs; the lines of a and c are equal, and c blocks UDP
          |         |         |
          n1        n2        n3

direct is n1 to the hub by UDP, relay n1 to n2 with a session that the hub passes on, stream n3 to
the hub in TLS, bare n1 to the hub without an overlay. All of them are up at once.
"""

from __future__ import annotations

from lab import Lab, wait_for
from lab.support.agents import Site
from tunnel import WEFT, Way, in_turns

TOPOLOGY = """
switch net 198.51.100.0/24
switch lan-a 10.1.0.0/24 gateway=a
switch lan-b 10.2.0.0/24 gateway=b
switch lan-c 10.3.0.0/24 gateway=c
host hub
nat  a port-restricted out=net
nat  b port-restricted out=net
nat  c port-restricted out=net udp=blocked
host n1
host n2
host n3
link hub net 198.51.100.10
link a   net 198.51.100.20 delay=5ms rate=100mbit
link b   net 198.51.100.30
link c   net 198.51.100.40 delay=5ms rate=100mbit
link a lan-a 10.1.0.1
link b lan-b 10.2.0.1
link c lan-c 10.3.0.1
link n1 lan-a 10.1.0.11
link n2 lan-b 10.2.0.12
link n3 lan-c 10.3.0.13
"""
REFERENCE = "direct"
HUB = "10.42.0.1"


def join_all(site: Site) -> None:
    """Until each node has the path that it stands for."""
    _, _, n3 = site.join("n1", "n2", "n3", allow={"n3": ["UDP", "stream"]})
    site.hub.run([site.weft, "edge", "set", "n1", "n2", "--path", "relay"])
    site.wait_paths({("n1", "n2"): {"relay"}}, 30)
    wait_for(lambda: n3.can_ping(HUB) and not n3.status()["hub"]["udp"], 30,
             "n3 to reach the hub in TLS")


def measure(rounds: int, seconds: int) -> dict[str, dict[str, float]]:
    """The figures of each path; they are divided by those of REFERENCE."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, WEFT)
        join_all(site)
        n1, n2, n3 = (site.nodes[name] for name in ("n1", "n2", "n3"))
        ways = [Way("direct", n1.host, site.hub, HUB, []),
                Way("relay", n1.host, n2.host, n2.address(), []),
                Way("stream", n3.host, site.hub, HUB, [], port=5202),
                Way("bare", n1.host, site.hub, site.hub.address(), [])]
        figures: dict[str, dict[str, float]] = {way.name: {} for way in ways}
        for step in (lambda way: way.tcp("tcp1", seconds), lambda way: way.round_trip("rttIdle")):
            for name, found in in_turns(ways, rounds, step).items():
                figures[name].update(found)
        return figures
