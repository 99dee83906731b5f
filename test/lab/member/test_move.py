"""The hub gets another address, and its nodes find it again.

    hub            .10      where it is at first
    hub2           .20      and later: another machine, with what the first one kept
     |
   [ wan 203.0.113.0/24 ]
    |      |      |
   dns     a     n2         a: a NAT, so that a hub reaches n1 only when n1 has asked it there
   .53    .11    .12        n2: its UDP is blocked, so it speaks to the hub in TLS
           |
         [ lan ]
           n1
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support import PROGRAMS
from lab.support.agents import AgentNode

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
switch lan 10.1.0.0/24 gateway=a
nat a port-restricted out=wan
host hub
host hub2
host dns
host n1
host n2
link hub  wan 203.0.113.10
link hub2 wan 203.0.113.20
link dns  wan 203.0.113.53
link a    wan 203.0.113.11
link a    lan 10.1.0.1
link n1   lan 10.1.0.11
link n2   wan 203.0.113.12
"""
NAME = "hub.example.test"
NAME_SERVER = PROGRAMS / "name_server.py"
BLOCK_UDP = """
table inet blocked {
    chain out {
        type filter hook output priority 0;
        ip daddr 203.0.113.0/24 udp dport != 53 drop
    }
}
"""
# What nodes and hubs may say while there is no hub, and while its name leads to nobody.
AWAY = ["the hub does not answer", "UDP to the hub", "leads nowhere now", "is not looked up"]


class Site:
    """A hub that is called by what it is given, and two nodes."""

    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.copy = folder / "copy"
        self.names = folder / "names"
        self.lead_to(lab.host("hub"))
        server = lab.host("dns").spawn(["/usr/bin/python3", NAME_SERVER, f"@{self.names}"],
                                       name="names")
        server.wait_line("listening")
        for name in ("hub", "hub2", "n1", "n2"):
            lab.host(name).run(["sh", "-c", "printf 'nameserver %s\\noptions timeout:1\\n' "
                                f"{lab.host('dns').address()} > /etc/resolv.conf"], quiet=True)
        self.n1 = AgentNode(lab.host("n1"), weft)
        self.n2 = AgentNode(lab.host("n2"), weft)
        self.n2.host.run(["nft", "-f", "-"], stdin=BLOCK_UDP)

    def lead_to(self, host: Host) -> None:
        """The name leads there from now on; whole at each moment."""
        new = self.names.with_suffix(".new")
        new.write_text(f"{NAME}={host.address()}")
        new.rename(self.names)

    def start_hub(self, host: Host, public: str):
        daemon = host.spawn([self.weft, "hub", "up", "--public", public], name="hub", allow=AWAY)
        wait_for(lambda: host.run([self.weft, "nodes"], check=False, quiet=True).rc == 0, 20,
                 "the hub to answer")
        return daemon

    def join_both(self, hub: Host) -> None:
        token = hub.run([self.weft, "token", "new", "--uses", "2"], quiet=True).out.strip()
        for node in (self.n1, self.n2):
            node.join(token, allow=AWAY)
        wait_for(lambda: self.n2.status()["hub"]["why"] != "", 30, "n2 to speak in TLS")

    def move_state(self, old: Host, new: Host) -> None:
        old.run([self.weft, "hub", "backup", self.copy])
        new.run([self.weft, "hub", "restore", self.copy])

    def told(self, hub: Host) -> dict:
        """What members are told of the hub."""
        return json.loads(hub.run([self.weft, "get", "Node", "hub"], quiet=True).out)["spec"]["hub"]

    def is_heard(self, hub: Host, node: AgentNode) -> bool:
        answer = json.loads(hub.run([self.weft, "nodes", "--json"], quiet=True).out)
        return any(n["reachable"] for n in answer["nodes"] if n["metadata"]["name"] == node.name)

    def wait_return(self, hub: Host, since: float, what: str) -> None:
        """Both are heard by the hub there, and each by the way that it has."""
        for node in (self.n1, self.n2):
            wait_for(lambda n=node: self.is_heard(hub, n), 90, f"the hub to hear {node.name}")
            print(f"FIGURE {what}, {node.name} is back: {time.monotonic() - since:.1f} s")
            wait_for(lambda n=node: n.status()["hub"]["reachable"], 20,
                     f"{node.name} to hear the hub")
        self.n1.reaches(self.n2)
        assert self.n1.status()["hub"]["endpoint"] == f"{hub.address()}:51820"
        assert "UDP" in self.n2.status()["hub"]["why"]


@pytest.fixture
def site(weft: Path, tmp_path: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft, tmp_path)


def test_with_a_name_nothing_has_to_be_done(site: Site) -> None:
    """Nodes look the name up when the hub is silent; the hub itself does so now and then."""
    old, new = site.lab.host("hub"), site.lab.host("hub2")
    daemon = site.start_hub(old, NAME)
    assert site.told(old)["names"] == [f"{NAME}:51820"]
    site.join_both(old)
    site.move_state(old, new)
    daemon.stop()
    site.start_hub(new, NAME)
    # Its name server has not heard of it yet.
    assert site.told(new)["endpoints"] == [f"{old.address()}:51820"]
    site.lead_to(new)
    start = time.monotonic()
    site.wait_return(new, start, "the hub's name leads elsewhere")
    wait_for(lambda: site.told(new)["endpoints"] == [f"{new.address()}:51820"], 60,
             "the hub to see where it is")


def test_without_a_name_nodes_are_told_before(site: Site) -> None:
    """Both keep the next address, also where the agent is started anew meanwhile."""
    old, new = site.lab.host("hub"), site.lab.host("hub2")
    daemon = site.start_hub(old, old.address())
    site.join_both(old)
    assert "no other place is announced" in old.run([site.weft, "hub", "move"]).out
    refused = old.run([site.weft, "hub", "move", "--public", "127.0.0.1"], check=False)
    assert refused.rc == 2 and "where no other machine reaches this one" in refused.err
    # A name that nobody would find the hub by, unless it is wanted.
    move = [site.weft, "hub", "move", "--public", "nowhere.invalid"]
    refused = old.run(move, check=False)
    assert refused.rc == 1 and '"nowhere.invalid:51820" leads nowhere yet' in refused.err
    assert "no other place is announced" in old.run([site.weft, "hub", "move"]).out
    assert "nowhere.invalid:51820" in old.run([*move, "--force"]).out
    old.run([site.weft, "hub", "move", "--cancel"])
    said = old.run([site.weft, "hub", "move", "--public", new.address()]).out
    assert f"it will be at {new.address()}:51820" in said and "2 of 2 nodes know it" in said
    endpoints = [f"{host.address()}:51820" for host in (old, new)]
    wait_for(lambda: site.told(old)["endpoints"] == endpoints, 10, "nodes to be told")
    # The old hub still remembers after it was started anew; so does an agent.
    daemon.stop()
    daemon = site.start_hub(old, old.address())
    assert site.told(old)["endpoints"] == endpoints
    wait_for(lambda: "2 of 2 nodes" in old.run([site.weft, "hub", "move"], quiet=True).out, 60,
             "both to be told")
    site.move_state(old, new)
    audit = old.run([site.weft, "audit"], quiet=True).out
    assert "file/move.json" in audit
    site.n1.agent.stop()
    daemon.stop()
    start = time.monotonic()
    site.start_hub(new, new.address())
    site.n1.start(AWAY)
    site.wait_return(new, start, "the hub is where it said it would be")
    assert site.told(new)["endpoints"] == endpoints[1:]


def test_an_announcement_is_taken_back(site: Site) -> None:
    hub, new = site.lab.host("hub"), site.lab.host("hub2")
    site.start_hub(hub, hub.address())
    hub.run([site.weft, "hub", "move", "--public", f"{new.address()}:7", "--public", NAME])
    answer = json.loads(hub.run([site.weft, "hub", "move", "--json"]).out)
    assert answer["next"] == [f"{new.address()}:7", f"{NAME}:51820"]
    wait_for(lambda: len(site.told(hub)["endpoints"]) == 2, 10, "the name to be looked up")
    assert site.told(hub)["names"] == [f"{NAME}:51820"]
    assert "no other place" in hub.run([site.weft, "hub", "move", "--cancel"]).out
    wait_for(lambda: site.told(hub)["endpoints"] == [f"{hub.address()}:51820"], 10,
             "nodes to be told")
    assert "names" not in site.told(hub)
