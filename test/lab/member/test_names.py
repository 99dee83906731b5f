"""The names of nodes in the hosts files of others: never in the place of something else.

    hub        203.0.113.10       hub2      203.0.113.20
     |                             |
   [            wan                 ]
    |            |            |
   a1           a2        localhost    .11, .12, .13; machines whose names are no node's
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support import PROGRAMS
from lab.support.agents import codes_of
from lab.support.topologies import one_switch

from .conftest import hold_port

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch(
    "wan", "203.0.113", {"hub": 10, "hub2": 20, "a1": 11, "a2": 12, "localhost": 13})


class Node:
    """A machine in a network, with a state and an interface of that network's own."""

    def __init__(self, host: Host, weft: Path, interface: str = "weft0") -> None:
        self.host = host
        self.weft = weft
        self.interface = interface
        self.places = ["--state", f"/var/lib/weft/{interface}", "--socket",
                       f"/run/weft-{interface}.sock"]

    def join(self, token: str, *words: str, allow: Iterable[str] = ()) -> None:
        self.host.run([self.weft, "join", token, "--no-start", "--interface", self.interface,
                       *words, *self.places])
        agent = self.host.spawn([self.weft, "agent", *self.places], name=f"agent-{self.interface}",
                                allow=allow)
        agent.wait_line("the hub answers")

    def status(self) -> dict:
        return json.loads(self.host.run(
            [self.weft, "status", "--json", *self.places[2:]], quiet=True).out)

    def address(self) -> str:
        return self.status()["self"]["address4"]

    def found(self) -> set[tuple[str, str]]:
        return codes_of(self.status()["findings"], "note")

    def left_out(self) -> dict[str, str]:
        return {item["name"]: item["why"] for item in self.status()["namesLeftOut"]}


def leads(host: Host, name: str) -> str:
    """Where a program of that machine would connect to; "" for nowhere."""
    found = host.run(["getent", "ahostsv4", name], check=False, quiet=True).out
    return found.split(" ")[0]


def wait_leads(host: Host, name: str, address: str, within_s: float = 15) -> None:
    wait_for(lambda: leads(host, name) == address, within_s,
             f"{name} to be {address} on {host.name}")


class Site:
    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        for name, cidr in (("hub", "10.42.0.0/16"), ("hub2", "10.43.0.0/16")):
            host = lab.host(name)
            hub = host.spawn([weft, "hub", "up", "--public", host.address(), "--cidr4", cidr],
                             name=name)
            hub.wait_line("weft hub is up")
        self.a1 = Node(lab.host("a1"), weft)
        self.a2 = Node(lab.host("a2"), weft)

    def token(self, hub: str = "hub") -> str:
        return self.lab.host(hub).run([self.weft, "token", "new"]).out.strip()


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft)


def test_reserved_names_are_refused(site: Site) -> None:
    """And cost no use of the token; a machine that is called so gets a name from the hub."""
    host = site.lab.host("localhost")
    token = site.token()
    for name in ("localhost", "registry", "hub", "ip6-localhost"):
        refused = host.run([site.weft, "join", token, "--no-start", "--name", name], check=False)
        assert refused.rc == 2
        assert f'node name "{name}" is reserved' in refused.err
    site.a1.join(site.token(), "--name", "gpu-1")
    node = Node(host, site.weft)
    node.join(token)
    name = node.status()["self"]["name"]
    assert name.startswith("node-")
    wait_leads(site.a1.host, f"{name}.default.weft", node.address())
    assert leads(site.a1.host, "localhost") == "127.0.0.1"


def test_names_lead_there_once_join_returns(site: Site) -> None:
    """Bare ones, too, for which the resolver has to be asked first."""
    site.a1.join(site.token(), "--name", "gpu-1")
    host = site.a2.host
    host.run([site.weft, "join", site.token(), "--name", "gpu-2", *site.a2.places])
    assert leads(host, "gpu-1") == site.a1.address()
    assert host.run(["ping", "-c1", "-W5", "gpu-1"]).rc == 0
    assert site.a2.status()["namesPending"] is False
    host.run([site.weft, "leave", *site.a2.places])


def test_a_read_only_file(site: Site) -> None:
    """The status says why no name is in it, and who leaves is not told of names that are not."""
    host = site.a1.host
    host.run(["sh", "-c", "mount --bind /etc/hosts /etc/hosts && "
              "mount -o remount,ro,bind /etc/hosts"])
    before = host.run(["cat", "/etc/hosts"], quiet=True).out
    host.run([site.weft, "join", site.token(), "--name", "gpu-1", "--no-start", *site.a1.places])
    agent = host.spawn([site.weft, "agent", *site.a1.places[:4]], name="agent",
                       allow=["names are not kept"])
    agent.wait_line("the hub answers")
    wait_for(lambda: "/etc/hosts" in site.a1.status().get("namesFailure", ""), 15,
             "the status to say that names cannot be written")
    said = host.run([site.weft, "status", *site.a1.places[2:]]).out
    assert "the nodes' names are not written to the hosts file" in said
    assert "Read-only file system" in said
    left = host.run([site.weft, "leave", *site.a1.places]).out
    assert "Left the network default" in left and "names" not in left
    assert host.run(["cat", "/etc/hosts"], quiet=True).out == before


def test_what_the_file_has_stays(site: Site) -> None:
    """A bare name that another line has, and gets in once that line is gone."""
    host = site.a1.host
    host.run(["sh", "-c", "cp /etc/hosts /run/before; echo 192.0.2.9 GPU-2 >> /etc/hosts"])
    site.a1.join(site.token(), "--name", "gpu-1")
    site.a2.join(site.token(), "--name", "gpu-2")
    wait_leads(host, "gpu-2.default.weft", site.a2.address())
    assert leads(host, "gpu-2") == "192.0.2.9"
    wait_for(lambda: site.a1.left_out().get("gpu-2") == "another line of the hosts file has it",
             15, "the status to say so")
    said = host.run([site.weft, "status", *site.a1.places[2:]]).out
    assert 'the name "gpu-2" of node gpu-2 is left out of the hosts file' in said
    assert ("WEFT-NAME-001", "gpu-1") in site.a1.found()
    host.run(["cp", "/run/before", "/etc/hosts"])
    wait_leads(host, "gpu-2", site.a2.address())
    assert site.a1.left_out() == {}


def test_a_name_server_that_is_there_already(site: Site) -> None:
    """It has the port of all addresses, so names are not answered by DNS, and that is said."""
    holder = hold_port(site.a1.host, 53)
    site.a1.join(site.token(), "--name", "gpu-1", allow=["names"])
    wait_for(lambda: ("WEFT-NAME-003", "gpu-1") in site.a1.found(), 60, "it to be found")
    holder.stop()
    wait_for(lambda: ("WEFT-NAME-003", "gpu-1") not in site.a1.found(), 120, "it to be over")


def test_two_networks_of_one_name(site: Site) -> None:
    """Two hubs whose networks and nodes are called alike: a block each, and each leaves alone."""
    host = site.a1.host
    before = host.run(["cat", "/etc/hosts"]).out
    other = Node(host, site.weft, "weft1")
    site.a1.join(site.token("hub"), "--name", "gpu-1")
    other.join(site.token("hub2"), "--name", "gpu-1")
    site.a2.join(site.token("hub2"), "--name", "gpu-2")

    def blocks() -> int:
        return host.run(["cat", "/etc/hosts"], quiet=True).out.count("# weft begin default/gpu-1/")

    wait_for(lambda: blocks() == 2, 15, "a block of each network")
    wait_leads(host, "gpu-2", site.a2.address())
    assert site.a2.address().startswith("10.43.")
    # Somebody takes one away.
    block = host.run(["grep", "-o", "-m1", "default/gpu-1/.*", "/etc/hosts"]).out.strip()
    host.run(["sed", "-i", f"\\;begin {block};,\\;end {block};d", "/etc/hosts"])
    assert blocks() == 1
    wait_for(lambda: blocks() == 2, 15, "the block to be written again")
    host.run([site.weft, "leave", *site.a1.places])
    assert blocks() == 1
    assert leads(host, "gpu-2") == site.a2.address()
    host.run([site.weft, "leave", *other.places])
    assert host.run(["cat", "/etc/hosts"]).out == before


def test_what_the_resolver_knows_stays(site: Site) -> None:
    """Also when it begins to answer after the bare name was written."""
    host, server = site.a1.host, site.lab.host("hub2")
    script = PROGRAMS / "name_server.py"
    host.run(["sh", "-c", f"echo nameserver {server.address()} > /etc/resolv.conf"])
    site.a1.join(site.token(), "--name", "gpu-1")
    site.a2.join(site.token(), "--name", "gpu-2")
    # Nobody answers there yet.
    wait_leads(host, "gpu-2", site.a2.address())
    daemon = server.spawn(["/usr/bin/python3", script, "gpu-2=192.0.2.7", "minio-1=192.0.2.8"],
                          name="names")
    daemon.wait_line("listening")
    wait_leads(host, "gpu-2", "192.0.2.7", 45)
    assert leads(host, "gpu-2.default.weft") == site.a2.address()
    wait_for(lambda: "gpu-2" in site.a1.left_out(), 15, "the status to say so")
    assert "this machine's " in site.a1.left_out()["gpu-2"]
    # A name that the resolver knows already is not written at all.
    third = Node(site.lab.host("localhost"), site.weft)
    third.join(site.token(), "--name", "minio-1")
    wait_leads(host, "minio-1.default.weft", third.address())
    wait_for(lambda: site.a1.left_out().get("minio-1") ==
             "this machine's resolver leads it to 192.0.2.8", 15, "the status to say so")
    assert leads(host, "minio-1") == "192.0.2.8"


def test_machines_that_are_called_otherwise(site: Site) -> None:
    """Others know a machine by its own name as well, unless that is another node's, or claimed."""
    a1, a2 = site.a1.host, site.a2.host
    site.a1.join(site.token(), "--name", "gpu-1")
    site.a2.join(site.token(), "--name", "gpu-2")
    wait_leads(a2, "a1", site.a1.address())
    wait_leads(a1, "a2", site.a2.address())
    # One that poses as another machine takes the name from both, and a node keeps its own.
    for name in ("a1", "gpu-1", "registry"):
        third = Node(site.lab.host("localhost"), site.weft)
        third.host.run(["hostname", name])
        third.join(site.token(), "--name", "thief")
        wait_leads(a2, "thief.default.weft", third.address())
        wait_for(lambda n=name: n in site.a2.left_out(), 15, f"{name} to be left out")
        assert leads(a2, name) == (site.a1.address() if name == "gpu-1" else "")
        third.host.run([site.weft, "leave", *third.places])
        wait_leads(a2, "a1", site.a1.address())
