"""Where UDP is blocked the same datagrams go in TLS, and back to UDP when that is let through.

                    hub           far
                     |             |
                [ net 198.51.100.0/24 ]       the internet
                 |           |       |
                 a           b     proxy      a, b: NATs that can block UDP; an HTTP proxy
                 |           |       |
              [lan-a]     [lan-b]  [lan-c]    nobody on lan-c has another way out than the proxy
                 n1          n2      n3
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support import PROGRAMS
from lab.support.pinging import can_ping

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch net 198.51.100.0/24
switch lan-a 10.1.0.0/24 gateway=a
switch lan-b 10.2.0.0/24 gateway=b
switch lan-c 10.3.0.0/24
host hub
host proxy
nat  a port-restricted out=net udp=blocked
nat  b port-restricted out=net
host n1
host n2
host n3
link hub   net 198.51.100.10
link proxy net 198.51.100.40
link a     net 198.51.100.20 delay=5ms rate=100mbit
link b     net 198.51.100.30
link a lan-a 10.1.0.1
link b lan-b 10.2.0.1
link proxy lan-c 10.3.0.1
link n1 lan-a 10.1.0.11
link n2 lan-b 10.2.0.12
link n3 lan-c 10.3.0.13
"""
PROXY = PROGRAMS / "connect_proxy.py"
BLOCKED = "UDP to the hub at 198.51.100.10:51820 is blocked"
BULK_BYTES = 16 << 20


class Node:
    """A host of the lab that joins; its agent is started by the join."""

    def __init__(self, host: Host, weft: Path) -> None:
        self.host = host
        self.weft = weft

    def join(self, token: str, **env: str) -> str:
        return self.host.run([self.weft, "join", token, "--name", self.host.name], env=env,
                             timeout_s=40).out

    def status(self) -> dict:
        return json.loads(self.host.run([self.weft, "status", "--json"], quiet=True).out)

    def path_to(self, name: str) -> str:
        return next((p["path"] for p in self.status()["peers"] if p["name"] == name), "unknown")

    def address(self) -> str:
        return self.status()["self"]["address4"]

    def can_ping(self, address: str, size: int = 56) -> bool:
        return can_ping(self.host, address, "-Mdo", "-s", size)

    def reaches(self, other: Node, within_s: float, size: int = 56) -> float:
        """Seconds until an echo comes back."""
        address = other.address()
        start = time.monotonic()
        wait_for(lambda: self.can_ping(address, size), within_s,
                 f"{self.host.name} to reach {other.host.name} with {size} bytes")
        return time.monotonic() - start


class Site:
    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.hub = lab.host("hub")
        self.start_hub()
        self.n1 = Node(lab.host("n1"), weft)
        self.n2 = Node(lab.host("n2"), weft)
        self.n3 = Node(lab.host("n3"), weft)

    def start_hub(self) -> None:
        self.daemon = self.hub.spawn([self.weft, "hub", "up", "--public", self.hub.address(),
                                      "--cidr4", "10.42.0.0/16"], name="hub")
        wait_for(lambda: self.hub.run([self.weft, "nodes"], check=False, quiet=True).rc == 0, 20,
                 "the hub to answer")

    def token(self) -> str:
        return self.hub.run([self.weft, "token", "new"]).out.strip()

    def metric(self, name: str) -> float:
        text = self.hub.run(["curl", "-s", "--unix-socket", "/run/weft/hub.sock",
                             "http://hub/v1/metrics"], quiet=True).out
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if line.split("{")[0].split(" ")[0] == name)


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        yield site
        for node in (site.n1, site.n2, site.n3):
            node.host.run([weft, "leave"], check=False)


def test_join_where_udp_is_blocked(site: Site) -> None:
    """One command, as anywhere; the status says what is the matter and what would mend it."""
    site.n2.join(site.token())
    start = time.monotonic()
    said = site.n1.join(site.token())
    print(f"FIGURE join with UDP blocked: {time.monotonic() - start:.1f} s")
    assert f"The hub answers in TLS: {BLOCKED}" in said and "127.0.0.1" not in said
    wait_for(lambda: site.n1.status()["hub"]["reachable"], 10, "the hub to be heard by n1")
    status = site.n1.status()
    assert status["hub"]["udp"] is False
    assert BLOCKED in status["hub"]["why"]
    assert "hub hub in TLS: answers" in site.n1.host.run([site.n1.weft, "status"]).out
    took = site.n1.reaches(site.n2, 10)
    print(f"FIGURE first packet after join: {took:.2f} s")
    site.n1.reaches(site.n2, 10, 1120 - 28)  # what is sent where nothing is measured
    wait_for(lambda: site.n1.path_to("n2") == "stream", 5, "the status to say stream")
    [peer] = site.n1.status()["peers"]
    assert BLOCKED in peer["why"]
    assert "let UDP port 51820 out here, and in at the hub" in peer["why"]
    assert site.n2.path_to("n1") in ("relay", "direct")
    wait_for(lambda: "UDP is blocked at n1: allow UDP out" in site.n2.status()["peers"][0]["why"],
             20, "n2 to say whose UDP it is")
    assert site.metric("weft_streams") == 1
    # The hub's machine has an end of its own of each stream, which is of no use to anybody.
    said = site.hub.run([site.weft, "nodes"]).out
    assert re.search(r"^n1 .* 198\.51\.100\.\d+:\d+ in TLS$", said, re.MULTILINE), said
    assert "127.87." not in said


def test_udp_comes_back(site: Site) -> None:
    site.lab.nat("a").block_udp(False)
    start = time.monotonic()
    wait_for(lambda: site.n1.status()["hub"]["udp"], 30, "n1 to take UDP again")
    print(f"FIGURE back on UDP after {time.monotonic() - start:.1f} s")
    site.n1.reaches(site.n2, 10)
    wait_for(lambda: site.n1.path_to("n2") != "stream", 5, "the status to say so")
    wait_for(lambda: site.metric("weft_streams") == 0, 10, "the stream to be closed")


def test_udp_is_blocked_for_both(site: Site) -> None:
    """In the middle of their life; each goes to its own stream."""
    for nat in ("a", "b"):
        site.lab.nat(nat).block_udp()
    start = time.monotonic()
    for node in (site.n1, site.n2):
        wait_for(lambda node=node: not node.status()["hub"]["udp"], 40, "UDP to be given up")
    site.n1.reaches(site.n2, 20)
    print(f"FIGURE from UDP to streams, both ends: {time.monotonic() - start:.1f} s")
    wait_for(lambda: site.metric("weft_streams") == 2, 5, "two streams")
    site.n2.reaches(site.n1, 10, 1120 - 28)


def test_the_hub_restarts_with_streams_open(site: Site) -> None:
    site.daemon.kill9()
    site.start_hub()
    took = site.n1.reaches(site.n2, 40)
    print(f"FIGURE traffic over streams again, from the hub's answer: {took:.1f} s")
    assert site.metric("weft_streams") == 2


def test_through_a_proxy(site: Site) -> None:
    """Nothing else leads out: enrolment and stream go through it, as the environment says."""
    proxy = site.lab.host("proxy").spawn(
        [sys.executable, PROXY, "10.3.0.1", 3128, "me:secret"], name="proxy")
    proxy.wait_line("proxy is up")
    refused = site.n3.host.run([site.weft, "join", site.token(), "--proxy", "http://10.3.0.1:3128"],
                               check=False, timeout_s=40)
    assert refused.rc == 1 and "through the proxy 10.3.0.1:3128" in refused.err
    site.n3.join(site.token(), https_proxy="http://me:secret@10.3.0.1:3128")
    assert proxy.wait_line("connected to 198.51.100.10:8443")
    site.n3.reaches(site.n2, 15)
    why = site.n3.status()["hub"]["why"]
    assert "through the proxy 10.3.0.1:3128" in why and "secret" not in why
    log = site.n3.host.run(["cat", "/var/lib/weft/node/agent.log"], quiet=True).out
    assert "secret" not in log


def carries(client: Host, address: str) -> str:
    """A bulk transfer by TCP to an iperf3 server, which ends when all is sent; gives its rate."""
    said = client.run(["iperf3", "-c", address, "-n", BULK_BYTES, "-J"], quiet=True, timeout_s=60)
    end = json.loads(said.out)["end"]["sum_received"]
    assert end["bytes"] > BULK_BYTES / 2
    return f"{end['bits_per_second'] / 1e6:.0f} Mbit/s"


def test_bulk(site: Site) -> None:
    """Bulk data passes in a stream, through the relay, and by UDP to the hub, a peer like any
    other. How fast each is beside the others, test/bench/paths.py tells."""
    site.hub.run([site.weft, "edge", "set", "n1", "n2", "--path", "relay"])
    for host in (site.hub, site.n2.host):
        host.spawn(["iperf3", "-s", "--forceflush"], name="iperf3").wait_line("Server listening")
    assert not site.n1.status()["hub"]["udp"]
    stream = carries(site.n1.host, "10.42.0.1")
    for nat in ("a", "b"):
        site.lab.nat(nat).block_udp(False)
    for node in (site.n1, site.n2):
        wait_for(lambda node=node: node.status()["hub"]["udp"], 60, "UDP to be taken again")
    site.n1.reaches(site.n2, 20)
    wait_for(lambda: site.n1.can_ping("10.42.0.1"), 10, "the hub to answer")
    direct = carries(site.n1.host, "10.42.0.1")
    relay = carries(site.n1.host, site.n2.address())
    print(f"FIGURE line of 100 Mbit/s: direct {direct}, relay {relay}, stream {stream}")
