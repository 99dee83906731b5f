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
from lab.support import PROGRAMS
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
        site.join("s1", "l1", "i1", "o1", words={
            "s1": ["--label", "provider=short", "--label", "region=r1"],
            "l1": ["--label", "provider=long"]})
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


def providers(site: Site) -> dict[tuple[str, str], dict]:
    """What the hub shows, by provider and region."""
    said = json.loads(site.hub.run([site.weft, "get", "nat", "--json"], quiet=True).out)
    return {(one["provider"], one["region"]): one for one in said["providers"]}


def test_the_hub_shows_each_provider(site: Site) -> None:
    wait_for(lambda: providers(site).get(("short", "r1"), {}).get("measured") == 1, 90,
             "the hub to know")
    wait_for(lambda: providers(site).get(("long", ""), {}).get("measured") == 1, 90,
             "the hub to know")
    for group, name in ((("short", "r1"), "s1"), (("long", ""), "l1")):
        found = keepalive(site.nodes[name])
        said = providers(site)[group]
        assert (said["nodes"], said["natted"]) == (1, 1)
        assert said["forgottenSeconds"]["least"] == pytest.approx(found["forgottenSeconds"], abs=1)
        assert said["survivedSeconds"]["most"] == pytest.approx(found["survivedSeconds"], abs=1)
    metrics = site.hub.run(["/usr/bin/python3", PROGRAMS / "ask.py", "GET",
                            "http://weft/v1/metrics", "/run/weft/hub.sock"], quiet=True).out
    found = re.search(r'weft_nat_forgotten_seconds\{network="default",provider="short",'
                      r'region="r1"\} (\S+)', metrics)
    assert SHORT_S / 2 < float(found[1]) < SHORT_S + 4
    assert 'weft_nat_nodes{network="default",provider="long",region=""} 1' in metrics
    assert re.search(r"^short +r1 +1 +1 +1 ", site.hub.run([site.weft, "get", "nat"]).out, re.M)


def nat_findings(site: Site) -> set[str]:
    said = json.loads(site.hub.run([site.weft, "get", "findings", "--json"], quiet=True).out)
    return {one["subject"] for one in said["findings"] if one["code"] == "WEFT-NAT-001"}


def test_no_keepalive_behind_a_nat_that_forgets_is_found(site: Site) -> None:
    """At the hub and at the node, and it is over when the network has it measured again."""
    s1 = site.nodes["s1"]
    for node in site.nodes.values():
        node.agent.allow("so this node cannot be reached when|the hub does not answer")
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    network.pop("status", None)
    network["metadata"].pop("resourceVersion", None)
    measured = json.dumps(network)
    network["spec"]["keepalive"] = 0
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))
    wait_for(lambda: {"s1", "l1"} <= nat_findings(site), 30, "the hub to find it")
    wait_for(lambda: any(one["code"] == "WEFT-NAT-001" and one["subject"] == "s1"
                         for one in s1.status()["findings"]), 30, "the node to find it")
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=measured)
    wait_for(lambda: nat_findings(site) == set(), 30, "it to be over")
