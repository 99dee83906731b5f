"""Subnets behind a node: asked for, admitted, reached by all, given back.

    hub ── [ wan ] ──┬── core ── [ up-a ] ── nat-a ── [ lan-a ] ── a
    stock ──┤        └── nat-b ── [ lan-b ] ──┬── gw ──┬── [ site ] ──┬── printer
    d ──────┤                                 └── b ───┼── [ site ]   └── r9 ── [ wan ]
                                                       └── [ vault ] ── safe

gw is the way to the site, 10.9.0.0/24 and fd09::/64, where the printer knows nothing of it: it has
no router at all. The vault is behind gw as well, and nobody is to be led there. b is a node that
stands in the site itself. d reaches gw's address in the site, by the default route and r9, without
a tunnel: its WireGuard's own packets go there, while all others to the site go into the tunnel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.pinging import can_ping

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24 gateway=core
router core
link core wan 203.0.113.1
host hub
link hub wan 203.0.113.10
host stock
link stock wan 203.0.113.20
host d
link d wan 203.0.113.21
switch up-a 198.51.100.0/30 gateway=core
link core up-a 198.51.100.1
nat nat-a port-restricted out=up-a
link nat-a up-a 198.51.100.2
switch lan-a 192.168.1.0/24 gateway=nat-a
link nat-a lan-a 192.168.1.1
host a
link a lan-a 192.168.1.11
nat nat-b port-restricted out=wan
link nat-b wan 203.0.113.9 delay=20ms
switch lan-b 192.168.2.0/24 gateway=nat-b
link nat-b lan-b 192.168.2.1
switch site 10.9.0.0/24 fd09::/64
host gw
link gw lan-b 192.168.2.11
link gw site 10.9.0.1 fd09::1
host b
link b lan-b 192.168.2.12
link b site 10.9.0.8 fd09::8
host printer
link printer site 10.9.0.7 fd09::7
router r9
link r9 wan 203.0.113.99
link r9 site 10.9.0.254
route core 10.9.0.0/24 via=r9
route gw 203.0.113.21/32 via=r9
switch vault 10.10.0.0/24 gateway=gw
link gw vault 10.10.0.1
host safe
link safe vault 10.10.0.7
"""
ROUTES = "10.9.0.0/24,fd09::/64"
PRINTER = ("10.9.0.7", "fd09::7")


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def hub(site: Site, *words: str) -> str:
    return site.hub.run([site.weft, *words]).out


def forward(node: AgentNode) -> None:
    node.host.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; "
                               "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"])


def kernel_routes(node: AgentNode) -> str:
    """What leads from a node into the tunnel: routes of all tables, and rules."""
    return "".join(node.host.run(["ip", *family, *what], quiet=True).out
                   for family in ((), ("-6",))
                   for what in (["route", "show", "table", "all", "dev", "weft0"], ["rule"]))


def used(node: AgentNode) -> dict[str, str]:
    """The subnets of others that a node knows of, and why each is not used: "" if it is."""
    return {item["route"]: item["why"] for item in node.status()["routes"]}


def reaches_printer(node: AgentNode) -> None:
    for address in PRINTER:
        node.insist_ping(address)


def test_a_subnet_is_reached_by_all_once_it_is_admitted(site: Site) -> None:
    a, b, d, gw = site.join("a", "b", "d", "gw", words={"gw": ["--route", ROUTES]})

    # Asked for: everybody who could admit it sees so, and nobody acts upon it.
    said = hub(site, "nodes")
    assert ("gw asks to be the way to 10.9.0.0/24, fd09::/64, which is not admitted: weft node set "
            "gw --route 10.9.0.0/24 --route fd09::/64") in said
    assert [own["admitted"] for own in gw.status()["ownRoutes"]] == [False, False]
    assert "weft node set gw --route 10.9.0.0/24" in gw.host.run([site.weft, "status"]).out
    assert gw.found() == {("WEFT-ROUTE-001", "gw")}
    wait_for(lambda: ("WEFT-ROUTE-001", "gw") in site.found(), 60, "the hub to know")
    forward(gw)
    assert used(a) == {}
    assert not a.can_ping(PRINTER[0])
    site.wait_paths({("d", "gw"): {"lan", "direct"}}, 20)
    wait_for(lambda: d.peers()["gw"]["endpoint"].startswith("10.9.0.1:"), 20, "d's native path")

    # Admitted, while all of them run.
    assert "gw of network default is the way to 10.9.0.0/24, fd09::/64" in hub(
        site, "node", "set", "gw", "--route", ROUTES)
    assert "gw is the way to 10.9.0.0/24, fd09::/64" in hub(site, "nodes")
    reaches_printer(a)
    assert used(a) == {"10.9.0.0/24": "", "fd09::/64": ""}
    wait_for(lambda: ("WEFT-ROUTE-001", "gw") not in site.found(), 60, "it to be over")
    assert all(own["admitted"] and own["why"] == "" for own in gw.status()["ownRoutes"])
    assert "through gw: 10.9.0.0/24, fd09::/64" in a.host.run([site.weft, "status"]).out

    # What WireGuard itself sends to an address in the subnet does not go into the tunnel.
    reaches_printer(d)
    assert used(d) == {"10.9.0.0/24": "", "fd09::/64": ""}
    d.reaches(gw)
    assert d.peers()["gw"]["endpoint"].startswith("10.9.0.1:")
    assert "dev weft0" in d.host.run(["ip", "route", "get", "10.9.0.1"], quiet=True).out

    # A machine that stands in the subnet keeps its own way there.
    assert used(b).keys() == {"10.9.0.0/24", "fd09::/64"}
    assert all("by site itself" in why for why in used(b).values()), used(b)
    assert "10.9.0" not in kernel_routes(b)
    assert "dev site" in b.host.run(["ip", "route", "get", "10.9.0.7"], quiet=True).out
    reaches_printer(b)

    # A host of the subnet with a route to the overlay speaks first.
    printer = site.lab.host("printer")
    printer.run(["ip", "route", "add", "10.42.0.0/16", "via", "10.9.0.1"])
    wait_for(lambda: can_ping(printer, a.address()), 10, "the printer to reach a")

    # Who leaves takes along what it has set up in the kernel.
    d.host.run([site.weft, "leave"])
    assert "5187" not in d.host.run(["sh", "-c", "ip rule; ip -6 rule"], quiet=True).out

    # Given back: gone from every kernel.
    hub(site, "node", "set", "gw", "--no-route", "all")
    wait_for(lambda: "10.9.0" not in kernel_routes(a) and "fd09:" not in kernel_routes(a), 10,
             "a to forget the subnet")
    assert "5187" not in kernel_routes(a)
    assert used(a) == {}
    wait_for(lambda: not a.can_ping(PRINTER[0]), 10, "the printer to be out of reach")
    a.reaches(gw)
    assert "weft_route" in gw.host.run(["nft", "list", "tables"]).out
    gw.host.run([site.weft, "leave"])
    assert "weft" not in gw.host.run(["nft", "list", "tables"]).out


def test_nobody_gets_what_is_another_ones(site: Site) -> None:
    token = hub(site, "token", "new", "--uses", "9", "--route", "10.0.0.0/8").strip()
    gw = AgentNode(site.lab.host("gw"), site.weft)
    a = AgentNode(site.lab.host("a"), site.weft)

    gw.join(token, "--route", "10.9.0.0/24")
    assert "gw is the way to 10.9.0.0/24" in hub(site, "nodes")
    for route in ("10.9.0.0/24", "10.9.0.128/25", "10.9.0.0/16"):
        done = a.host.run([site.weft, "join", token, "--name", "a", "--no-start", "--route", route],
                          check=False)
        assert done.rc == 1
        assert (f'route {route} overlaps 10.9.0.0/24, which is reached through node "gw"'
                in done.err), done.err
    assert set(site.hub_nodes()) == {"hub", "gw"}
    for words, says in ((["--route", "10.9.0.4"], 'reached through node "gw"'),
                        (["--route", "10.42.7.0/24"], "from which network"),
                        (["--route", "203.0.113.0/24"], "where nodes reach the hub")):
        a.host.run(["rm", "-rf", "/var/lib/weft"])
        a.join(token, "--no-hosts")
        done = site.hub.run([site.weft, "node", "set", "a", *words], check=False)
        assert done.rc == 1
        assert says in done.err, done.err
        hub(site, "node", "rm", "a")
        assert a.agent
        a.agent.wait()
    done = site.hub.run([site.weft, "node", "set", "hub", "--route", "10.8.0.0/24"], check=False)
    assert "the hub itself" in done.err

    # The name and the subnet are free again once their owner is gone.
    hub(site, "node", "rm", "gw")
    assert gw.agent
    gw.agent.wait()
    a.join(token, "--route", "10.9.0.0/24")
    assert site.hub_nodes()["a"]["spec"]["routes"] == ["10.9.0.0/24"]


def test_a_stock_wireguard_reaches_it_and_nothing_else_behind(site: Site) -> None:
    """wg-quick makes the routes from the file; one that says more than the hub gets no further."""
    token = hub(site, "token", "new", "--route", "10.9.0.0/16").strip()
    gw = AgentNode(site.lab.host("gw"), site.weft)
    stock = site.lab.host("stock")

    gw.join(token, "--route", "10.9.0.0/24")
    assert any("forwards no IPv4" in own["why"] for own in gw.status()["ownRoutes"])
    assert "sysctl -w net.ipv4.ip_forward=1" in gw.host.run([site.weft, "status"]).out
    forward(gw)
    assert [own["why"] for own in gw.status()["ownRoutes"]] == [""]
    stock.run([site.weft, "join", hub(site, "token", "new").strip(), "--name", "stock",
               "--no-start"])
    node = json.loads(stock.run(["cat", "/var/lib/weft/node/node.json"], quiet=True).out)
    conf = hub(site, "render", "stock")
    assert re.search(r"^AllowedIPs = 10\.9\.0\.0/24, 10\.42\.", conf, re.MULTILINE)
    conf = conf.replace("AllowedIPs = 10.9.0.0/24,", "AllowedIPs = 10.9.0.0/24, 10.10.0.0/24,")
    stock.run(["mkdir", "-p", "/etc/wireguard"])
    for name, text in (("stock0.key", node["privateKey"] + "\n"), ("stock0.conf", conf)):
        stock.run(["sh", "-c", f"umask 077; cat > /etc/wireguard/{name}"], stdin=text, quiet=True)
    stock.run(["wg-quick", "up", "stock0"],
              env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})

    wait_for(lambda: can_ping(stock, "10.9.0.7"), 20, "the printer to answer a stock WireGuard")
    assert not can_ping(stock, "10.10.0.7")
    # It is the rules that keep it from there: without them a machine that forwards, forwards.
    gw.host.run(["nft", "delete", "table", "inet", "weft_route_weft0"])
    wait_for(lambda: can_ping(stock, "10.10.0.7"), 10, "the way without the rules")
    stock.run(["wg-quick", "down", "stock0"])
