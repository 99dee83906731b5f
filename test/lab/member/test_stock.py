"""A stock WireGuard is a node, and stays one while the network changes around it.

    hub        203.0.113.10, later also .20
     |
   [ wan ]
    |  |  |
   n1  n2 s    n1 and n2 with our agent; s with wireguard-go, wg-quick, curl and the recipe's line
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support.agents import CIDR4, AgentNode, Site
from lab.support.pinging import can_ping
from lab.support.stock_recipe import recipe, sync_line

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24 2001:db8::/64
host hub
host n1
host n2
host s
link hub wan 203.0.113.10
link n1 wan 203.0.113.11
link n2 wan 203.0.113.12
link s wan 203.0.113.13
"""
HUB_AT = "10.42.0.1"
MOVED = "203.0.113.20"
CONF = "/etc/wireguard/wg0"
FLOW_PORT = 7000

# One connection for as long as it lasts: a line there and back, and again.
FLOW = """
import socket, sys, time
flow = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
lines = flow.makefile("rw")
for n in range(10**9):
    lines.write(f"{n}\\n")
    lines.flush()
    if lines.readline() != f"{n}\\n":
        sys.exit("error: the connection is gone")
    print(n, flush=True)
    time.sleep(0.02)
"""


class Stock:
    """A machine with wg-quick; `make_key`, `up` and `sync` are all that it does."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def wg(self, *words: str) -> str:
        return self.host.run(["wg", *words], quiet=True).out

    def make_key(self) -> str:
        """The private key stays in its file. Gives the public one."""
        self.host.run(["mkdir", "-p", "/etc/wireguard"])
        return self.host.run(recipe("key")).out.strip()

    def up(self, conf: str) -> None:
        self.host.run(["sh", "-c", f"umask 077; cat > {CONF}.conf"], stdin=conf)
        self.host.run(recipe("up"), env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})

    def sync(self) -> None:
        self.host.run(sync_line(HUB_AT))

    def peers(self) -> set[str]:
        return set(self.wg("show", "wg0", "peers").split())

    def endpoints(self) -> set[str]:
        return {row.split("\t")[1] for row in self.wg("show", "wg0", "endpoints").splitlines()}

    def can_ping(self, address: str) -> bool:
        return can_ping(self.host, address)

    def reaches(self, address: str) -> None:
        wait_for(lambda: self.can_ping(address), 15, f"s to reach {address}")


class Flow:
    """A TCP connection from one machine to another."""

    def __init__(self, src: Host, dst: Host, address: str) -> None:
        dst.spawn(["socat", f"TCP-LISTEN:{FLOW_PORT},reuseaddr,fork", "EXEC:cat"], name="echo")
        wait_for(lambda: dst.run(["ss", "-Hltn", f"sport = :{FLOW_PORT}"], quiet=True).out, 5,
                 "the listener")
        self.daemon: Daemon = src.spawn([sys.executable, "-c", FLOW, address, str(FLOW_PORT)],
                                        name="flow")
        self.goes_on()

    def goes_on(self) -> None:
        before = len(self.daemon.lines())
        wait_for(lambda: len(self.daemon.lines()) > before + 5, 60, "the flow to go on")


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft)


def keys(site: Site) -> dict[str, str]:
    return {name: node["spec"]["publicKey"] for name, node in site.hub_nodes().items()}


def is_stock(node: AgentNode, name: str) -> bool:
    peer = node.peers()[name]
    return peer["stock"] and peer["path"] == "relay" and "stock WireGuard" in peer["why"]


def test_a_stock_node_keeps_up(site: Site, weft: Path, tmp_path: Path) -> None:
    s = Stock(site.lab.host("s"))
    [n1] = site.join("n1")
    site.hub.run(recipe("add", f"cd {tmp_path}; KEY={s.make_key()}; PATH={weft.parent}:$PATH"))
    s.up((tmp_path / "wg0.conf").read_text())
    own = site.hub_nodes()["nas"]["spec"]
    for version in (4, 6):
        s.reaches(n1.address(version))
        n1.insist_ping(own[f"address{version}"])
    wait_for(lambda: is_stock(n1, "nas"), 10, "n1 to say what s is")
    # The hub reads the counters of its data plane now and then.
    wait_for(lambda: site.hub_nodes()["nas"]["rxBytes"] > 0, 10, "the hub to count what s sent")
    seen = site.hub_nodes()["nas"]
    assert seen["reachable"] and seen["status"]["engine"] == "stock"
    assert seen["endpoint"].startswith("203.0.113.13:")
    flow = Flow(s.host, n1.host, n1.address())
    before = s.wg("show", "wg0", "private-key"), s.wg("show", "wg0", "listen-port")

    # A node comes: s hears of it by the line, and not before.
    [n2] = site.join("n2")
    assert s.peers() == {keys(site)[n] for n in ("hub", "n1")}
    s.sync()
    assert s.peers() == {keys(site)[n] for n in ("hub", "n1", "n2")}
    s.reaches(n2.address())
    site.hub.run([weft, "node", "set", "n2", "--route", "10.9.0.0/24"])
    s.sync()
    s.host.run(recipe("routes"))
    assert " dev wg0 " in s.host.run(["ip", "route", "get", "10.9.0.7"]).out
    n2.insist_ping(own["address4"])
    flow.goes_on()

    # And goes.
    n2.agent.allow(".*")
    site.hub.run([weft, "node", "rm", "n2"])
    s.sync()
    assert s.peers() == {keys(site)[n] for n in ("hub", "n1")}
    flow.goes_on()

    # The hub moves to another address of its machine: what is relayed goes there.
    site.hub.run(["sh", "-c", f"ip address add {MOVED}/24 dev $(ip -br -4 addr | "
                  "sed -n 's/^\\([^ @]*\\).*203.0.113.10.*/\\1/p')"])
    assert site.daemon.stop() == 0
    n1.agent.allow(".*")
    site.daemon = site.hub.spawn([weft, "hub", "up", "--public", MOVED, "--cidr4", CIDR4],
                                 name="hub-moved")
    site.daemon.wait_line("weft hub is up")
    wait_for(lambda: s.can_ping(HUB_AT), 30, "s to reach the hub again")

    def has_moved() -> bool:
        s.sync()
        return s.endpoints() == {f"{MOVED}:51820"}

    # A packet that was on its way from the former address still sets it back.
    wait_for(has_moved, 30, "s to have the hub's new address")
    s.reaches(n1.address())
    flow.goes_on()
    assert before == (s.wg("show", "wg0", "private-key"), s.wg("show", "wg0", "listen-port"))

    # The hub is away: the line fails, and changes nothing.
    peers = s.peers()
    site.daemon.kill9()
    failed = s.host.run(sync_line(HUB_AT), check=False)
    assert failed.rc != 0 and "curl" in failed.err
    assert s.peers() == peers
    s.host.run(["wg-quick", "down", "wg0"])


def test_a_phone_that_is_off_is_nobody_s_fault(site: Site, weft: Path) -> None:
    """A member without an agent takes part in nothing that needs one, unless it is named."""
    public = site.hub.run(["sh", "-c", "wg genkey | wg pubkey"], quiet=True).out.strip()
    site.hub.run([weft, "node", "add", "phone", "--public-key", public], quiet=True)
    [n1, n2] = site.join("n1", "n2")
    wait_for(lambda: "phone" in n1.peers(), 20, "n1 to know the phone")
    n1.reaches(n2)

    def probe(*words: str) -> tuple[int, set[str]]:
        done = n1.run("probe", "--once", "--json", *words, check=False)
        members = json.loads(done.out)["members"] if done.out else []
        return done.rc, {member["name"] for member in members}

    wait_for(lambda: probe() == (0, {"hub", "n2"}), 20, "n1's probe to watch all but the phone")
    assert probe("--nodes", "n2,phone") == (3, {"n2", "phone"})
    assert "is no other member of the network" in n1.run("probe", "--nodes", "n7", check=False).err
    seen = json.loads(n1.run("preflight", "--quick", "--json", check=False).out)
    assert [node["name"] for node in seen["nodes"]] == ["n1", "n2"]
    assert not [f for f in seen["findings"] if f["fault"] == "absent"]
    named = n1.run("preflight", "--quick", "--nodes", "phone", check=False)
    assert named.rc != 0 and "it is a stock WireGuard, without an agent" in named.out
    assert "phone" not in n1.run("env", "--hostfile").out

    ask = 'curl -sk -H "Authorization: Bearer $(cat /var/lib/weft/hub/admin.token)"'
    metrics = site.hub.run(["sh", "-c", f"{ask} https://127.0.0.1:8443/v1/metrics"], quiet=True).out
    figures = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    assert figures['weft_agents{network="default"}'] == "2" and figures["weft_watches"] == "2"
