"""The address map: torchrun announces private addresses, and they work, with no tunnel.

        hub 198.51.100.10
         |
     [hubnet]--core--[wan-a]--a--[lan-a]--n1   10.1.0.11, in the internet 203.0.113.11
                 |
                 +---[wan-b]--b--[lan-b]--n2   10.2.0.12, in the internet 192.0.2.12

a and b translate one to one, as a cloud's internet gateway does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import ROOT
from lab.support.pinging import can_ping

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch hubnet 198.51.100.0/24 gateway=core
switch wan-a 203.0.113.0/24 gateway=core
switch wan-b 192.0.2.0/24 gateway=core
switch lan-a 10.1.0.0/24 gateway=a
switch lan-b 10.2.0.0/24 gateway=b
router core
router a
router b
host hub
host n1
host n2
link core hubnet 198.51.100.1
link core wan-a 203.0.113.1
link core wan-b 192.0.2.1
link hub hubnet 198.51.100.10
link a wan-a 203.0.113.11
link a lan-a 10.1.0.1
link b wan-b 192.0.2.12
link b lan-b 10.2.0.1
link n1 lan-a 10.1.0.11
link n2 lan-b 10.2.0.12
"""
GATEWAYS = {"a": ("203.0.113.11", "10.1.0.11"), "b": ("192.0.2.12", "10.2.0.12")}
NODES = {"n1": "a", "n2": "b"}
RULES = """
table ip one_to_one {{
  chain in  {{ type nat hook prerouting priority -100; ip daddr {public} dnat to {private}; }}
  chain out {{ type nat hook postrouting priority 100; ip saddr {private} snat to {public}; }}
  # The internet knows no private addresses.
  chain wall {{ type filter hook forward priority 0;
               oifname "wan-*" ip daddr 10.0.0.0/8 drop; }}
}}
"""


class Site:
    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        for name, (public, private) in GATEWAYS.items():
            lab.host(name).run(["nft", "-f", "-"],
                               stdin=RULES.format(public=public, private=private))
        hub = lab.host("hub")
        hub.spawn([weft, "hub", "up", "--public", hub.address()],
                  name="hub").wait_line("weft hub is up")
        for name, gateway in NODES.items():
            public, private = GATEWAYS[gateway]
            token = hub.run([weft, "token", "new"], quiet=True).out.strip()
            lab.host(name).run([weft, "join", token, "--name", name, "--no-start",
                                "--label", f"public-address={public}",
                                "--label", f"private-address={private}"])
            lab.host(name).spawn([weft, "agent"], name="agent").wait_line("the hub answers")

    def map(self, name: str) -> dict:
        host = self.lab.host(name)
        return json.loads(host.run([self.weft, "addrmap", "--json"], quiet=True).out)

    def tables(self, name: str) -> str:
        return self.lab.host(name).run(["nft", "list", "tables"], quiet=True).out


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site(lab, weft)


def reaches(site: Site, name: str, address: str) -> bool:
    return can_ping(site.lab.host(name), address)


@pytest.mark.skipif(not os.path.exists("/usr/lib/python3/dist-packages/torch"),
                    reason="python3-torch is not installed")
def test_torchrun_on_private_addresses(site: Site) -> None:
    wait_for(lambda: site.map("n1")["map"], 5, "n1 to hear of n2")
    assert site.map("n1")["map"] == [
        {"node": "n2", "private": "10.2.0.12", "public": "192.0.2.12"}]
    assert not reaches(site, "n1", "10.2.0.12")
    keepers = [site.lab.host(name).spawn([site.weft, "addrmap", "--period", "1s"], name="addrmap",
                                         allow=["UNENCRYPTED"]) for name in NODES]
    for keeper in keepers:
        keeper.wait_line("warning: .* UNENCRYPTED and UNAUTHENTICATED")
    wait_for(lambda: reaches(site, "n1", "10.2.0.12"), 10, "n1 to reach n2's private address")

    jobs = []
    for rank, name in enumerate(NODES):
        env = {"GLOO_SOCKET_IFNAME": f"lan-{NODES[name]}", "OMP_NUM_THREADS": "1",
               "PET_REDIRECTS": "9:1", "PET_TEE": "9:1"}
        jobs.append(site.lab.host(name).spawn(
            ["torchrun", "--nnodes", 2, "--node_rank", rank, "--master_addr", "10.1.0.11",
             ROOT / "examples/train_ddp.py", "--steps", 30], name="job", env=env, allow=[""]))
    wait_for(lambda: not any(job.running for job in jobs), 120, "the job to end")
    assert [job.rc for job in jobs] == [0, 0], "\n".join(jobs[0].lines() + jobs[1].lines())
    assert any('"world": 2' in line for line in jobs[0].lines())

    # Nothing of it went through the tunnel.
    status = json.loads(site.lab.host("n1").run([site.weft, "status", "--json"]).out)
    assert sum(peer["txBytes"] for peer in status["peers"]) < 10_000

    keepers[0].stop()
    assert keepers[0].wait() == 0
    assert "weft_addrmap" not in site.tables("n1")
    keepers[1].kill9()
    assert "weft_addrmap" in site.tables("n2")
    site.lab.host("n2").run([site.weft, "addrmap", "--remove"])
    assert "weft_addrmap" not in site.tables("n2")


def test_it_follows_and_says_what_it_leaves_out(site: Site) -> None:
    keeper = site.lab.host("n1").spawn([site.weft, "addrmap", "--period", "1s"], name="addrmap",
                                       allow=["UNENCRYPTED"])
    keeper.wait_line("n2: 10.2.0.12 leads to 192.0.2.12")
    site.lab.host("n2").run([site.weft, "leave"])
    wait_for(lambda: "10.2.0.12" not in site.lab.host("n1").run(
        ["nft", "list", "table", "ip", "weft_addrmap"], quiet=True).out, 10, "n2 to be forgotten")
    token = site.lab.host("hub").run([site.weft, "token", "new"], quiet=True).out.strip()
    site.lab.host("n2").run([site.weft, "join", token, "--name", "n2", "--no-start",
                             "--label", "public-address=192.0.2.12",
                             "--label", "private-address=10.1.0.11"])
    keeper.wait_line(r"n2 is left out: its private address 10\.1\.0\.11 is that of n1, too", 15)
    keeper.stop()
    nobody = site.lab.host("hub").run([site.weft, "addrmap"], check=False)
    assert nobody.rc == 1
    assert "no agent" in nobody.err
