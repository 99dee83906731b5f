"""How long a NAT keeps a silent UDP mapping is measured, and the keepalive set under it.

    hub ── [ wan ] ── short ── [ lan-s ] ── s1     a NAT that forgets after 5 s
              │
              ├─────── long ── [ lan-l ] ── l1     one that forgets after 10 s
              ├─────── in ──── [ lan-i ] ── i1     one that comes to let no UDP in
              └─────── out ─── [ lan-o ] ── o1     and one that lets none out

All do so at the same time: two measure while the others find out what became of their UDP.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

SHORT_S, LONG_S = 5, 10
BROKEN = {"i1": "in", "o1": "out"}
HUB = "198.51.100.10"
TOPOLOGY = f"""
switch wan 198.51.100.0/24
switch lan-s 10.1.0.0/24 gateway=short
switch lan-l 10.2.0.0/24 gateway=long
switch lan-i 10.3.0.0/24 gateway=in
switch lan-o 10.4.0.0/24 gateway=out
host hub
nat short port-restricted out=wan
nat long  port-restricted out=wan
nat in    port-restricted out=wan
nat out   port-restricted out=wan
host s1
host l1
host i1
host o1
link hub   wan {HUB}
link short wan 198.51.100.20
link long  wan 198.51.100.30
link in    wan 198.51.100.40
link out   wan 198.51.100.50
link short lan-s 10.1.0.1
link long  lan-l 10.2.0.1
link in    lan-i 10.3.0.1
link out   lan-o 10.4.0.1
link s1 lan-s 10.1.0.11
link l1 lan-l 10.2.0.11
link i1 lan-i 10.3.0.11
link o1 lan-o 10.4.0.11
"""


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        lab.nat("short").set_udp_idle(SHORT_S)
        lab.nat("long").set_udp_idle(LONG_S)
        site = Site(lab, weft)
        site.join("s1", "l1", "i1", "o1")
        yield site


def keepalive(node: AgentNode) -> dict:
    return node.status()["keepalive"]


def told(node: AgentNode) -> str:
    """What the engine has: the seconds of the one peer that has any, the hub."""
    listing = node.host.run(["wg", "show", "weft0", "persistent-keepalive"], quiet=True).out
    [seconds] = [line.split()[1] for line in listing.splitlines() if line.split()[1] != "off"]
    return seconds


# Asks argv[1], port argv[2], with RESPONSE-PORT; prints the answer in hex.
ASK_ELSEWHERE = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
request = ("000100182112a4420102030405060708090a0b0c0027000410e10000"
           "8022000c202020202020202020202020")
sock.sendto(bytes.fromhex(request), (sys.argv[1], int(sys.argv[2])))
print(sock.recv(1500).hex())
"""


def test_another_port_is_refused_where_it_is_not_served(site: Site) -> None:
    answer = site.nodes["s1"].host.run([sys.executable, "-c", ASK_ELSEWHERE, HUB, 8443]).out.strip()
    assert answer == ("011100102112a442" "0102030405060708090a0b0c"
                      "0009000400000414" "000a000200270000")


@pytest.mark.parametrize("name", BROKEN)
def test_a_one_way_break_is_named(site: Site, name: str) -> None:
    """And the stream is taken, although one way still works."""
    node, way = site.nodes[name], BROKEN[name]
    node.agent.allow(r"the hub hears this node|the hub's datagrams arrive|is blocked, packets go")
    start = time.monotonic()
    site.lab.nat(way).block_udp(way)
    wait_for(lambda: not node.status()["hub"]["udp"], 40, f"{name} to leave UDP")
    print(f"{name}: on the stream after {time.monotonic() - start:.0f} s")
    wait_for(lambda: node.status()["hub"]["oneWay"] == way, 20, f"{name} to know which way")
    why = node.status()["hub"]["why"]
    print(f"{name}: which way after {time.monotonic() - start:.0f} s: {why}")
    if way == "in":
        assert re.match(r"the hub hears this node at 198\.51\.100\.40:\d+, but nothing that "
                        r"the hub sends by UDP arrives", why)
    else:
        assert "the hub's datagrams arrive, but it does not hear this node" in why
    assert f": {why[:400]}" in node.host.run([node.weft, "status"], quiet=True).out
    assert any(why in line for line in node.agent.lines())
    node.reaches(site.nodes["l1"], 10)
    site.lab.nat(way).block_udp(False)
    wait_for(lambda: node.status()["hub"]["udp"], 30, f"{name} to take UDP again")
    assert (node.status()["hub"]["oneWay"], node.status()["hub"]["why"]) == ("", "")


def check_measured(node: AgentNode, idle_s: int) -> None:
    start = time.monotonic()
    wait_for(lambda: keepalive(node)["from"] == "measured", 75, f"{node.name} to measure")
    found = keepalive(node)
    print(f"{node.name}: forgotten after {idle_s} s; measured {found['survivedSeconds']} to "
          f"{found['forgottenSeconds']} s, keepalive {found['seconds']} s, "
          f"{time.monotonic() - start:.0f} s later")
    # A packet that is late on a busy machine makes a rest seem shorter than it was, by that.
    assert idle_s / 2 < found["forgottenSeconds"] < idle_s + 4
    assert found["forgottenSeconds"] - 4 <= found["survivedSeconds"] < idle_s + 1
    assert idle_s / 3 <= found["seconds"] < idle_s
    assert re.match(r"the NAT forgets a silent UDP mapping after about \d+ s$", found["found"])
    wait_for(lambda: told(node) == str(keepalive(node)["seconds"]), 5, "the engine to have it")
    node.agent.wait_line(f"{found['found']}; the keepalive is {found['seconds']} s", 1)


def test_each_nat_is_measured(site: Site) -> None:
    check_measured(site.nodes["s1"], SHORT_S)
    check_measured(site.nodes["l1"], LONG_S)


def test_an_idle_node_is_reached_at_once(site: Site) -> None:
    """From the hub, and by the direct path: each echo request comes after its NAT would forget.

    One of four may be lost to a keepalive that a busy machine has sent too late.
    """
    s1, l1 = site.nodes["s1"], site.nodes["l1"]
    wait_for(lambda: l1.peers()["s1"]["path"] == "direct", 30, "l1 and s1 to meet")
    before = l1.peers()["s1"]["since"]
    argv = ["ping", "-c", 4, "-i", SHORT_S + 1, "-W", 2, s1.address()]
    with ThreadPoolExecutor(2) as pool:
        looks = list(pool.map(lambda host: host.run(argv, check=False).out, (site.hub, l1.host)))
    for look in looks:
        assert int(re.search(r"(\d+) received", look)[1]) >= 3
    assert l1.peers()["s1"]["path"] == "direct"
    assert abs(l1.peers()["s1"]["since"] - before) <= 1, "the path has not changed meanwhile"


def test_a_restart_does_not_forget(site: Site) -> None:
    s1 = site.nodes["s1"]
    before = keepalive(s1)
    s1.agent.stop()
    s1.start()
    for field in ("seconds", "from", "survivedSeconds", "forgottenSeconds", "measured"):
        assert keepalive(s1)[field] == before[field]
    assert told(s1) == str(before["seconds"])


def set_keepalive(site: Site, keepalive: object) -> None:
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    network["spec"]["keepalive"] = keepalive
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))


def test_a_keepalive_that_does_not_hold_the_nat_is_found(site: Site) -> None:
    """Of each node whose NAT was seen to forget, and gone with the mend."""
    for node in site.nodes.values():
        node.agent.allow(".*")
    set_keepalive(site, 0)
    for name in ("s1", "l1"):
        wait_for(lambda n=name: ("WEFT-NAT-001", n) in site.nodes[n].found(), 20,
                 f"{name} to find that")
        text = site.nodes[name].run("status").out
        assert re.search(r"forgets a silent UDP mapping after about \d+ s, and the network's "
                         r"keepalive is 0 s", text), text
    set_keepalive(site, "auto")
    for name in ("s1", "l1"):
        wait_for(lambda n=name: ("WEFT-NAT-001", n) not in site.nodes[n].found(), 60,
                 f"{name} to be well")
