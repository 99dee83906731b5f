"""A machine becomes a node, stays one whatever dies around it, and is none any more.

    hub        203.0.113.10, 2001:db8::10
     |
   [ wan ]
    |   |
   n1   n2     203.0.113.11, .12; their packets to each other need not go through the hub
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, Result, wait_for
from lab.support.pinging import LONGEST_GAP_S, Pings

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24 2001:db8::/64
host hub
host n1
host n2
link hub wan 203.0.113.10 2001:db8::10
link n1 wan 203.0.113.11 2001:db8::11
link n2 wan 203.0.113.12 2001:db8::12
"""
CIDR4 = "10.42.0.0/16"
STATE = "/var/lib/weft/node"
HUB_AWAY = "the hub does not answer"
# What an agent may say that looks while its interface, and the data plane with it, goes.
ENGINE_AWAY = "weft0 is not as the hub wants it, trying again"


class Node:
    """A host that joins; its agent is ours, so that its log is looked at."""

    def __init__(self, host: Host, weft: Path) -> None:
        self.host = host
        self.weft = weft
        self.agent: Daemon | None = None

    def run(self, *words: str, check: bool = True) -> Result:
        return self.host.run([self.weft, *words], check=check)

    def join(self, token: str, *words: str) -> None:
        self.run("join", token, "--name", self.host.name, "--no-start", *words)
        self.start()

    def start(self, allow: list[str] | None = None) -> None:
        self.agent = self.host.spawn([self.weft, "agent"], name="agent", allow=allow or [])
        self.agent.wait_line("the hub answers")

    def status(self) -> dict:
        return json.loads(self.host.run([self.weft, "status", "--json"], quiet=True).out)

    def address(self, version: int = 4) -> str:
        return self.status()["self"][f"address{version}"]

    def ping(self, address: str) -> bool:
        """One try, one second."""
        return self.host.run(["ping", "-c1", "-W1", address], check=False, quiet=True).rc == 0

    def reaches(self, address: str, within_s: float) -> None:
        wait_for(lambda: self.ping(address), within_s, f"{self.host.name} to reach {address}")

    def pids(self, program: str) -> list[int]:
        return self.host.pids(program)

    def link_text(self, name: str = "weft0") -> str:
        """What ip(8) says of the interface; nothing when there is none."""
        return self.host.run(["ip", "link", "show", name], check=False, quiet=True).out

    def has_interface(self, name: str = "weft0") -> bool:
        return self.link_text(name) != ""

    def peer_names(self) -> set[str]:
        return {peer["name"] for peer in self.status()["peers"]}


class Site:
    """The lab above with a hub that runs."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.hub = lab.host("hub")
        self.n1 = Node(lab.host("n1"), weft)
        self.n2 = Node(lab.host("n2"), weft)
        self.start_hub()

    def start_hub(self) -> None:
        self.daemon = self.hub.spawn(
            [self.weft, "hub", "up", "--public", self.hub.address(), "--cidr4", CIDR4], name="hub")
        wait_for(lambda: self.hub.run([self.weft, "nodes"], check=False, quiet=True).rc == 0, 20,
                 "the hub to answer")

    def token(self, *words: str) -> str:
        return self.hub.run([self.weft, "token", "new", *words]).out.strip()

    def node_names(self) -> set[str]:
        nodes = json.loads(self.hub.run([self.weft, "nodes", "--json"], quiet=True).out)["nodes"]
        return {node["metadata"]["name"] for node in nodes}

    def both_join(self) -> None:
        for node in (self.n1, self.n2):
            node.join(self.token())
        wait_for(lambda: self.n1.peer_names() == {"n2"}, 5, "n1 to hear of n2")


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft)


# ---- joining --------------------------------------------------------------------------------


def test_join_is_one_command(site: Site) -> None:
    """The agent is started by the join, and the first packet to another node gets through."""
    site.n1.join(site.token())
    said = site.n2.run("join", site.token(), "--name", "n2", "--label", "gpu=h100").out
    assert re.search(r"^n2 has joined the network default: 10\.42\.0\.\d+ and fd\S+ on weft0\.$",
                     said, re.MULTILINE)
    assert "The hub at 203.0.113.10:51820 answers" in said
    for version in (4, 6):
        start = time.monotonic()
        site.n2.reaches(site.n1.address(version), within_s=3)
        print(f"FIGURE first packet after join, IPv{version}: {time.monotonic() - start:.2f} s "
              "(to be below 1)")
    log = site.n2.host.run(["cat", f"{STATE}/agent.log"], quiet=True).out
    assert "warning" not in log and "error" not in log
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ info: agent: ", line)
               for line in log.splitlines())
    site.n2.run("leave")


def test_status(site: Site) -> None:
    site.both_join()
    site.n1.reaches(site.n2.address(), within_s=5)
    status = site.n1.status()
    assert status["self"]["name"] == "n1"
    assert status["self"]["interface"] == "weft0"
    assert status["self"]["mtu"] == 1420
    assert status["self"]["engine"] in ("userspace", "kernel")
    assert status["hub"]["endpoint"] == "203.0.113.10:51820"
    assert status["hub"]["reachable"] is True
    assert status["hub"]["udp"] is True
    assert 0 <= status["hub"]["handshakeAgeSeconds"] < 30
    [peer] = status["peers"]
    assert peer.keys() >= {"name", "address4", "address6", "publicKey", "path", "endpoint",
                           "handshakeAgeSeconds", "rttMs", "loss", "mtu", "rxBytes", "txBytes",
                           "since", "why"}
    assert peer["name"] == "n2"
    assert peer["path"] in ("relay", "direct", "lan")
    assert peer["rxBytes"] > 0
    assert status["hub"]["apiPort"] == 8443
    assert (peer["why"] != "") == (peer["path"] == "relay")
    assert peer["sinceSeconds"] >= 0
    site.hub.run([site.weft, "edge", "set", "n1", "n2", "--path", "relay"])
    wait_for(lambda: site.n1.status()["peers"][0]["path"] == "relay", 5, "the edge to be relayed")
    assert "the edge is set to relay" in site.n1.status()["peers"][0]["why"]
    table = site.n1.run("status").out
    assert re.search(r"^n2 +10\.42\.\S+ +relay ", table, re.MULTILINE)


def test_the_token_does_not_stay_on_the_command_line(site: Site) -> None:
    """While it waits for a hub that does not answer, nobody can read it any more."""
    host = site.n1.host
    token = site.token()
    site.hub.run(["nft", "-f", "-"], stdin="table inet f {\nchain c {\ntype filter hook input "
                 "priority 0;\ntcp dport 8443 drop\n}\n}\n")
    join = host.spawn([site.weft, "join", token, "--name", "n1", "--no-start", "--proxy",
                       "http://me:password@203.0.113.12:1"], name="join", allow=[""])
    line = Path(f"/proc/{join.pid}/cmdline")
    wait_for(lambda: b"weft1." not in line.read_bytes() and b"join" in line.read_bytes(), 10,
             "the token to be gone")
    assert b"password" not in line.read_bytes()
    assert join.running
    site.hub.run(["nft", "delete", "table", "inet", "f"])
    join.wait()
    assert join.rc == 0, join.lines()
    site.n2.host.run(["sh", "-c", "umask 077; cat > /run/token"], stdin=site.token() + "\n")
    both = site.n2.run("join", "x", "--token-file", "/run/token", check=False)
    assert both.rc == 2
    assert "say one of TOKEN" in both.err
    site.n2.run("join", "--token-file", "/run/token", "--no-start")


def test_names(site: Site) -> None:
    """Every node is known by name, beside what the file says, and forgotten when it goes."""
    n1 = site.n1.host
    n1.run(["sh", "-c", "echo 192.0.2.7 mine >> /etc/hosts"])
    site.both_join()

    def resolves(name: str, address: str) -> bool:
        done = n1.run(["getent", "ahostsv4", name], check=False, quiet=True)
        return done.out.split(" ")[0] == address

    for name in ("n2", "n2.default.weft", "hub.default.weft"):
        address = "10.42.0.1" if name.startswith("hub") else site.n2.address()
        wait_for(lambda n=name, a=address: resolves(n, a), 5, f"{name} to be {address}")
    # An empty file, as an editor may leave it for a moment, is filled again.
    n1.run(["truncate", "-s", "0", "/etc/hosts"])
    n1.run(["sh", "-c", "echo 192.0.2.7 mine >> /etc/hosts"])
    wait_for(lambda: resolves("n2", site.n2.address()), 15, "the block to be there again")
    # Where the file is mounted on its own, it is written in its place.
    n1.run(["mount", "--bind", "/etc/hosts", "/etc/hosts"])
    site.n2.run("leave")
    wait_for(lambda: "n2.default" not in n1.run(["cat", "/etc/hosts"], quiet=True).out, 5,
             "n2 to be forgotten")
    site.n2.run("join", site.token(), "--name", "n2", "--no-hosts", "--no-start")
    site.n2.start()
    wait_for(lambda: resolves("n2", site.n2.address()), 5, "n2 to be known again")
    assert "weft" not in site.n2.host.run(["cat", "/etc/hosts"]).out
    site.n1.run("leave")
    assert n1.run(["cat", "/etc/hosts"]).out == "192.0.2.7 mine\n"


def test_second_join_is_refused(site: Site) -> None:
    site.n1.join(site.token())
    refused = site.n1.run("join", site.token(), check=False)
    assert refused.rc == 1
    assert 'is "n1" in the network "default" already' in refused.err
    assert "weft leave" in refused.err


@pytest.mark.parametrize(("commands", "named"), [
    (["ip route add 10.42.99.0/24 dev wan"], "route 10.42.99.0/24 of wan"),
    (["ip address add 10.42.200.7/32 dev wan"], "address 10.42.200.7/32 of wan"),
    (["ip route add 10.0.0.0/8 via 203.0.113.10"], "route 10.0.0.0/8 of wan"),
], ids=["route", "address", "wider route"])
def test_collision_is_refused(site: Site, commands: list[str], named: str) -> None:
    """And the same single-use token still works once the collision is gone: the key was kept."""
    token = site.token()
    for command in commands:
        site.n1.host.run(command.split())
    refused = site.n1.run("join", token, "--name", "n1", check=False)
    assert refused.rc == 1
    assert f"block {CIDR4} collides with the {named}" in refused.err
    assert not site.n1.has_interface()
    for command in commands:
        site.n1.host.run(command.replace(" add ", " del ").split())
    site.n1.join(token)
    assert site.node_names() >= {"n1"}


def test_existing_interface_is_refused(site: Site) -> None:
    site.n1.host.run(["ip", "link", "add", "weft0", "type", "bridge"])
    refused = site.n1.run("join", site.token(), check=False)
    assert refused.rc == 1
    assert "an interface weft0 exists already" in refused.err
    site.n1.join(site.token(), "--interface", "mesh0")
    assert site.n1.has_interface("mesh0")
    assert site.n1.status()["self"]["interface"] == "mesh0"


def test_join_tells_what_is_missing(site: Site) -> None:
    """It is joined all the same, and comes up by itself once it can."""
    site.hub.run(["nft", "-f", "-"], stdin="""
        add table inet wall
        add chain inet wall in { type filter hook input priority 0; }
        add rule inet wall in udp dport 51820 drop
        add rule inet wall in tcp dport 8443 ct state new limit rate over 1/hour burst 1 packets \\
            drop
    """)
    said = site.n1.run("join", site.token(), "--name", "n1", check=False)
    assert said.rc == 1
    assert "n1 has joined the network default" in said.out
    assert "is UDP to it blocked?" in said.err
    status = site.n1.status()
    assert status["hub"]["reachable"] is False
    assert status["hub"]["udp"] is False
    site.hub.run(["nft", "delete table inet wall"])
    wait_for(lambda: site.n1.status()["hub"]["reachable"], 20, "n1 to reach the hub")
    site.n1.run("leave")


FAKE_SYSTEMCTL = """#!/bin/sh
echo "$@" > /run/systemctl.said
{weft} agent > /run/unit.log 2>&1 &
"""


@pytest.mark.skipif(not Path("/usr/bin/systemctl").exists(), reason="there is no systemctl here")
def test_join_starts_the_unit(site: Site) -> None:
    """Where systemd is the init and has the unit, it runs the agent, now and after a boot."""
    n1 = site.n1.host
    n1.run(["mkdir", "-p", "/run/systemd/system", "/etc/systemd/system"])
    n1.run(["touch", "/etc/systemd/system/weft-agent.service", "/run/systemctl"])
    n1.run(["sh", "-c", "cat > /run/systemctl"], stdin=FAKE_SYSTEMCTL.format(weft=site.weft))
    n1.run(["chmod", "755", "/run/systemctl"])
    n1.run(["mount", "--bind", "/run/systemctl", "/usr/bin/systemctl"])
    said = site.n1.run("join", site.token()).out
    assert "under systemd" in said
    assert n1.run(["cat", "/run/systemctl.said"]).out == (
        "enable --now --quiet weft-agent.service\n")
    # The unit is for the usual paths; another state directory gets an agent of its own.
    site.n1.run("leave")
    said = site.n1.run("join", site.token(), "--state", "/var/lib/other").out
    assert "logs to /var/lib/other/agent.log" in said
    site.n1.run("leave", "--state", "/var/lib/other")


@pytest.mark.parametrize("token", [
    "", "weft1.", "weft1.e30", "weft1." + "A" * 5000, "weft1.!!!", "weft9.e30",
])
def test_bad_token_is_refused(site: Site, token: str) -> None:
    refused = site.n1.run("join", token, check=False)
    assert refused.rc in (1, 2)
    assert refused.err.count("\n") <= 3
    assert "token" in refused.err
    from_stdin = site.n1.host.run([site.weft, "join", "-"], stdin=token, check=False)
    assert from_stdin.rc == 1
    assert "token" in from_stdin.err


def test_stock_wireguard_is_a_node(site: Site) -> None:
    """The file of `weft render` and the node's key are all that wg-quick needs."""
    site.n1.join(site.token())
    site.n2.run("join", site.token(), "--name", "n2", "--no-start")
    key = json.loads(site.n2.host.run(["cat", f"{STATE}/node.json"], quiet=True).out)["privateKey"]
    conf = site.hub.run([site.weft, "render", "n2"]).out
    site.n2.host.run(["mkdir", "-p", "/etc/wireguard"])
    for name, text in (("stock0.key", key + "\n"), ("stock0.conf", conf)):
        path = f"/etc/wireguard/{name}"
        site.n2.host.run(["sh", "-c", f"umask 077; cat > {path}"], stdin=text, quiet=True)
    site.n2.host.run(["wg-quick", "up", "stock0"],
                     env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})
    # The first keepalive goes out when the key is there, so the hub hears of the node at once.
    start = time.monotonic()
    wait_for(lambda: re.search(r"\t[1-9]\d*\n", site.n2.host.run(
        ["wg", "show", "stock0", "latest-handshakes"], quiet=True).out), 10, "a handshake")
    print(f"FIGURE stock WireGuard is up: first handshake after {time.monotonic() - start:.2f} s "
          "(to be below 1)")
    wait_for(lambda: site.n1.peer_names() == {"n2"}, 5, "n1 to hear of n2")
    for version in (4, 6):
        site.n2.reaches(site.n1.address(version), within_s=10)
    site.n2.host.run(["wg-quick", "down", "stock0"])


# ---- things that die ------------------------------------------------------------------------


def without_loss(node: Node, address: str, meanwhile: Callable[[], None]) -> None:
    """Not one packet is lost while something happens."""
    ping = node.host.spawn(["ping", "-i", "0.05", "-W", "2", address], name="ping")
    ping.wait_line(r"icmp_seq=5 ")
    meanwhile()
    before = len(ping.lines())
    wait_for(lambda: len(ping.lines()) >= before + 10, 10, "more answers")
    ping.kill9()
    answered = [int(n) for n in re.findall(r"icmp_seq=(\d+) ", "\n".join(ping.lines()))]
    assert answered == list(range(1, len(answered) + 1))


def test_traffic_goes_on_without_the_agent(site: Site) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    data_plane = site.n1.pids("weft-wg")
    without_loss(site.n1, far, site.n1.agent.kill9)
    pings = Pings(site.n1.host, far)
    site.n1.start()
    site.n1.agent.stop()
    site.n1.start()
    pings.wait_more()
    pings.stop()
    gap = pings.longest_gap_s()
    print(f"FIGURE agent started, stopped, started: no answer for {gap:.2f} s (to be below 0.1)")
    assert gap < LONGEST_GAP_S
    assert site.n1.pids("weft-wg") == data_plane
    # It takes the interface over as it is; only where peers are reached may be set anew.
    changed = [int(n) for n in re.findall(r"applied to weft0: (\d+) change",
                                          "\n".join(site.n1.agent.lines()))]
    assert max(changed) < 4, "as many as make an interface"


def test_probe_sees_what_agents_do_not_tell(site: Site) -> None:
    site.both_join()

    def look() -> tuple[int, dict[str, tuple[str, str]]]:
        done = site.n1.run("probe", "--once", "--json", check=False)
        members = json.loads(done.out)["members"]
        return done.rc, {m["name"]: (m["ipv4"]["state"], m["ipv6"]["state"]) for m in members}

    everybody = {name: ("reached", "reached") for name in ("hub", "n2")}
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached")
    # It needs no key, and does not look at it.
    site.n1.host.run(["mv", f"{STATE}/node.json", "/run/node.json"])
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached without the key")
    site.n1.host.run(["mv", "/run/node.json", f"{STATE}/node.json"])
    refused = site.n1.run("probe", "--metrics", "/nowhere/probe.prom", check=False)
    assert refused.rc == 1 and "metrics are not written: " in refused.err, refused
    metrics = "/var/lib/weft/probe.prom"
    probe = site.n1.host.spawn([site.weft, "probe", "--metrics", metrics], name="probe",
                               allow=["n2 does not answer"])
    probe.wait_line("n2 is reached over ipv6")
    for node in (site.n1, site.n2):
        node.agent.kill9()
    # The tunnel does not need the agents.
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached without agents")

    for pid in site.n2.pids("weft-wg"):
        os.kill(pid, signal.SIGKILL)
    probe.wait_line("n2 does not answer over ipv4: ")
    wait_for(lambda: look() == (3, everybody | {"n2": ("silent", "silent")}), 10, "n2 to be lost")
    assert re.search(r"^n2 +no answer +100.0 % +no answer ", site.n1.run(
        "probe", "--once", check=False).out, re.MULTILINE)
    wait_for(lambda: 'weft_probe_reached{node="n2",family="ipv4"} 0\n' in
             site.n1.host.run(["cat", metrics], quiet=True).out, 10, "the metrics to say so")
    for node in (site.n1, site.n2):
        node.start()
    wait_for(lambda: sum("n2 is reached over ipv4" in line for line in probe.lines()) >= 2, 20,
             "n2 to answer again")
    probe.stop()


def test_data_plane_comes_back(site: Site) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    for _ in range(2):
        [pid] = site.n1.pids("weft-wg")
        site.n1.agent.allow(ENGINE_AWAY)
        os.kill(pid, 9)
        wait_for(lambda old=pid: site.n1.pids("weft-wg") not in ([], [old]), 10, "a new data plane")
        site.n1.reaches(far, within_s=10)


@pytest.mark.parametrize("damage", [
    "ip link delete weft0", "ip address flush dev weft0", "ip link set weft0 down",
    "ip link set weft0 mtu 1300", "wg set weft0 private-key /dev/null",
], ids=["link deleted", "addresses flushed", "link down", "MTU changed", "key removed"])
def test_interface_is_made_whole(site: Site, damage: str) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    site.n1.agent.allow(ENGINE_AWAY)
    site.n1.host.run(damage.split())
    # What no event tells of is found by the next regular look.
    wait_for(lambda: site.n1.ping(far) and "mtu 1440" in site.n1.link_text(), 50,
             "the interface to be whole")


def test_peers_that_were_led_astray(site: Site) -> None:
    """As after copies of their packets came first from elsewhere: WireGuard sends all of it there.

    Both are, so that neither is found again by what the other sends of its own accord.
    """
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    for node in (site.n1, site.n2):
        [peer] = node.status()["peers"]
        node.host.run(["wg", "set", "weft0", "peer", peer["publicKey"],
                       "endpoint", "203.0.113.99:9"])
    assert not site.n1.ping(far)
    site.n1.reaches(far, within_s=5)


def test_a_silent_hub_is_not_said_to_answer(site: Site) -> None:
    """Long before it counts as away, which takes three heartbeats."""
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    start = time.monotonic()
    site.daemon.kill9()
    said = wait_for(lambda: (t := site.n1.host.run([site.weft, "status"], quiet=True).out)
                    and "silent for " in t and t, 20, "the status to say it")
    assert ": answers" not in said
    took = time.monotonic() - start
    print(f"FIGURE a dead hub is said to be silent after {took:.1f} s (to be about 7)")
    hub = site.n1.status()["hub"]
    assert hub["reachable"] and 7 <= hub["silentSeconds"] <= took + 8


def test_a_hub_that_is_there_is_not_called_silent(site: Site) -> None:
    """Between two heartbeats nobody speaks, but for the kernels."""
    site.n1.join(site.token())
    watch = site.n1.host.spawn([site.weft, "status", "--watch"], name="watch")
    wait_for(lambda: sum("weft0" in line for line in watch.lines()) > 11, 30, "eleven looks")
    assert not [line for line in watch.lines() if "silent" in line]


def test_hub_is_away_for_a_while(site: Site) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    for node in (site.n1, site.n2):
        node.agent.allow(HUB_AWAY)
    site.daemon.kill9()
    # Without the hub an agent that starts knows its peers all the same.
    site.n1.agent.stop()
    site.n1.agent = site.n1.host.spawn([site.weft, "agent"], name="agent", allow=[HUB_AWAY])
    wait_for(lambda: site.n1.host.run([site.weft, "status"], check=False, quiet=True).rc == 0, 10,
             "the agent to answer")
    assert site.n1.peer_names() == {"n2"}
    assert site.n1.status()["hub"]["reachable"] is False
    assert site.n1.status()["peers"][0]["path"] == "none"
    site.start_hub()
    site.n1.agent.wait_line("the hub answers", 60)
    site.n1.reaches(far, within_s=60)


# ---- the end --------------------------------------------------------------------------------


def assert_nothing_left(node: Node, *but: str) -> None:
    assert not node.has_interface()
    wait_for(lambda: not node.pids("weft-wg") and not node.pids("weft"), 5, "all processes to end")
    left = node.host.run(["find", STATE, "/run/weft", "/run/wireguard", "-type", "f", "-o", "-type",
                          "s"], check=False, quiet=True).out.split()
    assert set(left) <= {f"{STATE}/lock", f"{STATE}/agent.log", *but}
    assert "10.42." not in node.host.run(["ip", "route", "show", "table", "all"], quiet=True).out
    assert "weft" not in node.host.run(["cat", "/etc/hosts"], quiet=True).out


def hide_tun(host: Host) -> None:
    host.run(["mount", "-t", "tmpfs", "none", "/dev/net"])


WITHOUT_NET_ADMIN = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]


@pytest.mark.parametrize("how", ["tun", "sockets", "capability", "module"])
def test_what_joining_needs_is_checked_before_the_token_is_used(site: Site, how: str) -> None:
    """The sentence names what is missing, and the token admits once it is there."""
    n1, token = site.n1, site.token()
    argv = [site.weft, "join", token, "--name", "n1", "--no-start", "--engine", "userspace"]
    if how == "tun":
        hide_tun(n1.host)
        done, word = n1.host.run(argv, check=False), "/dev/net/tun"
    elif how == "sockets":
        n1.host.run(["mkdir", "-p", "/run/wireguard"])
        n1.host.run(["mount", "-t", "tmpfs", "-o", "ro", "none", "/run/wireguard"])
        done, word = n1.host.run(argv, check=False), "sockets cannot be made in /run/wireguard"
        n1.host.run(["umount", "/run/wireguard"])
    elif how == "capability":
        done, word = n1.host.run([*WITHOUT_NET_ADMIN, *argv], check=False), "CAP_NET_ADMIN"
    else:
        done = n1.host.run([*argv[:-1], "kernel"], check=False)
        if done.rc == 0:
            pytest.skip("this kernel has WireGuard")
        word = "this kernel has no WireGuard"
    assert done.rc == 1 and word in done.err and "the token is not used" in done.err, done.err
    assert "n1" not in site.node_names() and not n1.has_interface()
    if how == "tun":
        n1.host.run(["umount", "/dev/net"])
    n1.join(token, "--engine", "userspace")


def test_a_data_plane_that_cannot_be_had_later(site: Site) -> None:
    """The agent says what is wrong, does not blame the hub, and pauses between its tries."""
    n1 = site.n1
    n1.join(site.token(), "--engine", "userspace")
    n1.agent.stop()
    for pid in n1.pids("weft-wg"):
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not n1.has_interface(), 5, "the interface to go")
    hide_tun(n1.host)
    agent = n1.host.spawn([site.weft, "agent"], name="agent", allow=[ENGINE_AWAY, HUB_AWAY])
    agent.wait_line("/dev/net/tun")
    fault = wait_for(lambda: n1.status()["self"]["fault"], 5, "the status to say it")
    assert "/dev/net/tun" in fault
    said = n1.host.run([site.weft, "status"], quiet=True).out
    assert "the interface is not as it should be" in said and "/dev/net/tun" in said
    n1.host.run(["umount", "/dev/net"])
    wait_for(lambda: n1.status()["self"]["fault"] == "", 40, "the fault to be over")
    agent.wait_line("the hub answers")


def test_leave(site: Site) -> None:
    site.both_join()
    said = site.n2.run("leave").out
    assert said == "Left the network default; the interface weft0 is gone.\n"
    assert site.n2.agent.wait() == 0
    assert_nothing_left(site.n2)
    assert site.node_names() == {"hub", "n1"} or "n2" not in site.node_names()
    wait_for(lambda: site.n1.peer_names() == set(), 5, "n1 to hear that n2 is gone")
    again = site.n2.run("leave", check=False)
    assert again.rc == 1
    assert "has not joined" in again.err
    site.n2.join(site.token())


def test_leave_without_agent(site: Site) -> None:
    site.n1.join(site.token())
    site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "could not be told" not in said
    assert_nothing_left(site.n1)
    assert "n1" not in site.node_names()


@pytest.mark.parametrize("agent_runs", [True, False], ids=["agent", "no agent"])
def test_leave_without_hub(site: Site, agent_runs: bool) -> None:
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    site.lab.link("n1").down()
    if not agent_runs:
        site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "The hub could not be told" in said
    assert "weft node rm" in said
    assert_nothing_left(site.n1)


@pytest.mark.parametrize("agent_runs", [True, False], ids=["agent", "no agent"])
def test_leave_with_a_broken_tunnel(site: Site, agent_runs: bool) -> None:
    """The hub is told by its public door, and the name is free again."""
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    nft = ["nft", "add table inet broken; add chain inet broken out { type filter hook output "
           'priority 0; }; add rule inet broken out oifname "weft0" drop']
    site.n1.host.run(nft)
    if not agent_runs:
        site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "could not be told" not in said, said
    assert_nothing_left(site.n1)
    assert "n1" not in site.node_names()
    site.n1.host.run(["nft", "delete", "table", "inet", "broken"])
    site.n1.join(site.token())


def test_leave_where_the_names_cannot_be_removed(site: Site) -> None:
    """It has left all the same, and says what stays behind."""
    site.n1.join(site.token())
    hosts = site.n1.host
    wait_for(lambda: "# weft begin default/n1" in hosts.run(["cat", "/etc/hosts"], quiet=True).out,
             10, "the names")
    hosts.run(["mount", "--bind", "/etc", "/etc"])
    hosts.run(["mount", "-o", "remount,bind,ro", "/etc"])
    said = site.n1.run("leave").out
    assert said.startswith("Left the network default; the interface weft0 is gone.\n"), said
    assert 'still in /etc/hosts, between "# weft begin default/n1/' in said
    assert "Read-only file system" in said
    assert site.n1.agent.wait() == 0
    assert not site.n1.has_interface()
    assert "n1" not in site.node_names()
    assert site.n1.run("leave", check=False).err.startswith("weft leave: this machine has not")


def test_removed_by_the_hub(site: Site) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.reaches(far, within_s=5)
    start = time.monotonic()
    site.hub.run([site.weft, "node", "rm", "n2"])
    wait_for(lambda: not site.n2.has_interface() and site.n1.peer_names() == set(), 2,
             "n2 to be cut off everywhere")
    print(f"FIGURE cut off everywhere {time.monotonic() - start:.2f} s after the command began "
          "(to be below 2)")
    assert not site.n1.ping(far)
    site.n2.agent.wait_line("the hub has removed this node")
    assert site.n2.agent.wait() == 0
    word = f"{STATE}/removed.json"
    assert site.n2.host.run(["test", "-e", word], check=False).rc == 0
    assert_nothing_left(site.n2, word)
    # Whoever asks is told, until it joins again.
    removed = r'this node, "n2", was removed from the network default by its hub on 20\S+ \S+ UTC: '
    for command in ("status", "leave", "agent"):
        result = site.n2.run(command, check=False)
        assert result.rc == 1 and re.search(removed, result.err), result.err
    said = site.n2.run("join", site.token(), "--no-start", "--name", "n3").out
    assert re.search(r"^n3 has joined", said) and re.search("^Before, " + removed, said, re.M)
    assert site.n2.host.run(["test", "-e", word], check=False).rc == 1
    assert "was removed" not in site.n2.run("status", check=False).err


# ---- state files ----------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["node.json", "snapshot.json"])
def test_damaged_file_is_named_and_kept(site: Site, file: str) -> None:
    site.n1.join(site.token())
    site.n1.agent.stop()
    path = f"{STATE}/{file}"
    half = site.n1.host.run(["sh", "-c", f"head -c 150 {path}"], quiet=True).out
    site.n1.host.run(["sh", "-c", f"cat > {path}"], stdin=half, quiet=True)
    agent = site.n1.host.spawn([site.weft, "agent"], name="agent", allow=[path])
    agent.wait_line(rf"{path} is damaged: ")
    if file == "node.json":
        assert agent.wait() == 1
        refused = site.n1.run("join", site.token(), check=False)
        assert refused.rc == 1
        assert f"{path} is damaged" in refused.err
    else:
        # The node is known without it, and the hub tells the rest.
        agent.wait_line("the hub answers")
        agent.stop()
    assert site.n1.host.run(["cat", path], quiet=True).out == half


def test_full_disk(site: Site) -> None:
    """A join that cannot keep its key does not enrol; it succeeds once there is room."""
    site.n1.host.run(["mkdir", "-p", STATE])
    site.n1.host.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=20", "none", STATE])
    site.n1.host.run(["sh", "-c", f"head -c 4096 /dev/zero > {STATE}/ballast"])
    token = site.token()
    refused = site.n1.run("join", token, "--name", "n1", check=False)
    assert refused.rc == 1
    assert "No space left on device" in refused.err
    assert STATE in refused.err
    assert "n1" not in site.node_names()
    site.n1.host.run(["mount", "-o", "remount,size=1m", STATE])
    site.n1.join(token)
