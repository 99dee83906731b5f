"""A router that grants ports: two nodes behind symmetric NATs become direct through one of them.

    hub ── [ wan 11.0.0.0/24 ] ── nat-a ── [ lan-a ] ── a      nat-a runs miniupnpd
                    └──────────── nat-b ── [ lan-b ] ── b      nat-b grants nothing

The public addresses are ones that no document reserves, because miniupnpd grants nothing at those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.network.process import Daemon

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 11.0.0.0/24
host hub
link hub wan 11.0.0.10
switch lan-a 192.168.1.0/24 gateway=nat-a
nat nat-a symmetric out=wan
link nat-a wan 11.0.0.21
link nat-a lan-a 192.168.1.1
host a no-v6
link a lan-a 192.168.1.11
switch lan-b 192.168.2.0/24 gateway=nat-b
nat nat-b symmetric out=wan
link nat-b wan 11.0.0.22
link nat-b lan-b 192.168.2.1
host b no-v6
link b lan-b 192.168.2.11
"""

TABLE = """
table inet miniupnpd {
    chain forward { }
    chain prerouting_miniupnpd { }
    chain postrouting_miniupnpd { }
    chain prerouting {
        type nat hook prerouting priority -100;
        jump prerouting_miniupnpd
    }
    chain postrouting {
        type nat hook postrouting priority 90;
        jump postrouting_miniupnpd
    }
}
"""

CONFIG = """
ext_ifname=wan
listening_ip=lan-a
enable_natpmp={natpmp}
enable_upnp={upnp}
secure_mode=yes
uuid=4d5a2c1e-8d0b-4a55-9d3a-0d9f1c6b7e11
upnp_table_name=miniupnpd
upnp_nat_table_name=miniupnpd
upnp_forward_chain=forward
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
allow 1024-65535 192.168.1.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""

# Answers each request of NAT-PMP with one that promises what cannot be.
LIAR = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("192.168.1.1", 5351))
print("listening", flush=True)
while True:
    request, client = s.recvfrom(2000)
    s.sendto(b"\\xff" * 1400, client)
    s.sendto(struct.pack("!BBHI4s", 0, 128, 0, 0xffffffff, b"\\x7f\\0\\0\\1"), client)
    s.sendto(struct.pack("!BBHIHHI", 0, 129, 0, 0, 0, 0, 0), client)
"""


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


class Router:
    """The daemon of nat-a."""

    def __init__(self, site: Site, tmp_path: Path) -> None:
        self.host = site.lab.host("nat-a")
        self.path = tmp_path / "miniupnpd.conf"
        self.daemon: Daemon | None = None

    def start(self, natpmp: bool, upnp: bool) -> None:
        words = {True: "yes", False: "no"}
        self.path.write_text(CONFIG.format(natpmp=words[natpmp], upnp=words[upnp]))
        self.host.run(["nft", "delete", "table", "inet", "miniupnpd"], check=False, quiet=True)
        self.host.run(["nft", "-f", "-"], stdin=TABLE, quiet=True)
        self.daemon = self.host.spawn(
            ["miniupnpd", "-d", "-f", self.path, "-P", self.path.with_suffix(".pid")],
            name="miniupnpd", allow=[".*"])

    def grants(self) -> bool:
        """Is there a mapping, by the packet filter's own account?"""
        listing = self.host.run(
            ["nft", "list", "chain", "inet", "miniupnpd", "prerouting_miniupnpd"], quiet=True)
        return "dnat" in listing.out


def mapped(site: Site, name: str) -> list[str]:
    """What the router has granted that node, as it tells the network."""
    nodes = site.hub_nodes()
    return [c["endpoint"] for c in nodes[name]["status"]["candidates"] if c["type"] == "mapped"]


def test_nat_pmp(site: Site, tmp_path: Path) -> None:
    router = Router(site, tmp_path)
    liar = router.host.spawn(["/usr/bin/python3", "-c", LIAR], name="liar")
    liar.wait_line("listening")
    a, b = site.join("a", "b")
    # What is impossible is not told to anybody, and does no harm.
    a.reaches(b, 10)
    assert mapped(site, "a") == []
    liar.stop()
    router.start(natpmp=True, upnp=False)
    a.agent.stop()
    a.start()
    a.agent.wait_line(r"the router has opened 11\.0\.0\.21:\d+ for this node \(NAT-PMP\)", 20)
    site.wait_paths({("a", "b"): {"direct"}}, 30)
    a.reaches(b, 5)
    assert len(mapped(site, "a")) == 1
    assert any(way["type"] == "mapped" and way["verdict"] == "chosen"
               for way in b.paths("a")["candidates"])
    # A router that was restarted has forgotten it, and is asked again.
    router.daemon.stop()
    router.start(natpmp=True, upnp=False)
    assert not router.grants()
    wait_for(router.grants, 45, "the mapping to be asked for again")
    # A node that leaves gives it back.
    a.host.run([a.weft, "leave"])
    wait_for(lambda: not router.grants(), 10, "the mapping to be given back")


def test_upnp(site: Site, tmp_path: Path) -> None:
    router = Router(site, tmp_path)
    router.start(natpmp=False, upnp=True)
    a, b = site.join("a", "b")
    a.agent.wait_line(r"the router has opened 11\.0\.0\.21:\d+ for this node \(UPnP\)", 20)
    site.wait_paths({("a", "b"): {"direct"}}, 30)
    a.reaches(b, 5)
    a.host.run([a.weft, "leave"])
    wait_for(lambda: not router.grants(), 15, "the mapping to be given back")
