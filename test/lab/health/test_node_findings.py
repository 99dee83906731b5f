"""What a node finds: a machine that is dead has no number, and only the cause is named.

      hub        203.0.113.10
       |
     [ wan ]
     |  |  |
    n1 n2 n3     n1 and n2 meet directly; between n1 and n3 UDP is dropped, so the hub relays
"""

from __future__ import annotations

import json
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import STATE, AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
RULES = "table inet {name} {{\nchain in {{\ntype filter hook input priority 0\n{rule}\n}}\n}}\n"
# What agents may say while machines are cut off.
ANY = [".*"]
# From a fault to the finding, and from the mend until it is gone.
BOUND_S = 30


class Members(Site):
    """Three nodes; those that send go on sending."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        for name, other in (("n1", 13), ("n3", 11)):
            drop = f"ip saddr 203.0.113.{other} meta l4proto udp drop"
            lab.host(name).run(["nft", "-f", "-"], stdin=RULES.format(name="apart", rule=drop))
        self.n1, self.n2, self.n3 = self.join("n1", "n2", "n3",
                                              allow=dict.fromkeys(("n1", "n2", "n3"), ANY))
        self.wait_well()

    def wait_well(self) -> None:
        """All reach n1 as they should, and nothing is found there but notes."""
        self.n1.reaches(self.n2, 60)
        self.n1.reaches(self.n3, 60)
        self.wait_paths({("n1", "n2"): {"direct", "lan"}, ("n1", "n3"): {"relay"}}, 60)
        wait_for(lambda: not grave(self.n1), 60, "nothing to be wrong")

    def cut(self, name: str) -> None:
        self.lab.link(name, "wan").down()

    def mend(self, name: str) -> None:
        self.lab.link(name, "wan").up()


@pytest.fixture(scope="module", name="site")
def fixture_site(weft: Path) -> Iterator[Members]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Members(lab, weft)


def grave(node: AgentNode) -> set[tuple[str, str]]:
    """Codes and subjects of all that is found but notes."""
    return {(one["code"], one["subject"]) for one in node.status()["findings"]
            if one["severity"] != "note"}


def is_dead(node: AgentNode, name: str) -> bool:
    """Nothing that is measured of it is shown, and since when it is silent is."""
    peer = node.peers()[name]
    return peer["silentSeconds"] is not None and \
        (peer["rttMs"], peer["leastRttMs"], peer["loss"]) == (None, None, None)


@pytest.mark.parametrize("name, path", [("n3", "relay"), ("n2", "relay")])
def test_a_machine_that_is_dead_has_no_number(site: Members, name: str, path: str) -> None:
    """Reached through a relay before, or directly: then it is relayed in vain."""
    dead = site.nodes[name]
    address = dead.address()
    wait_for(lambda: site.n1.peers()[name]["rttMs"] is not None, 60, "a round trip time")
    pings = site.n1.host.spawn(["ping", "-i", "0.5", address], name="ping")
    pings.wait_line("bytes from", 20)
    assert not is_dead(site.n1, name)
    site.cut(name)
    start = time.monotonic()
    wait_for(lambda: is_dead(site.n1, name), BOUND_S, f"n1 to know that {name} is dead")
    wait_for(lambda: grave(site.n1), BOUND_S, "that to be found")
    took = time.monotonic() - start
    print(f"FIGURE a machine that is dead is found so after {took:.1f} s (to be below {BOUND_S})")
    assert grave(site.n1) == {("WEFT-PEER-001", f"n1--{name}")}
    said = site.n1.run("status").out
    row = next(line for line in said.splitlines() if line.startswith(f"{name} "))
    assert f"{path} via hub, silent for " in row and " ms " not in row and "%" not in row, row
    assert f"critical  WEFT-PEER-001  n1--{name}, for " in said, said
    # Whoever looks at this node is told so by the exit status, too.
    assert site.n1.run("doctor", check=False).rc == 2
    site.mend(name)
    start = time.monotonic()
    wait_for(lambda: not is_dead(site.n1, name), BOUND_S, f"{name} to be back")
    wait_for(lambda: not grave(site.n1), BOUND_S, "the finding to go")
    took = time.monotonic() - start
    print(f"FIGURE that it is back is known after {took:.1f} s (to be below {BOUND_S})")
    pings.stop()
    site.wait_well()
    assert site.n1.run("doctor").rc == 0


def test_a_line_that_is_cut_is_ones_own(site: Members) -> None:
    """Then neither the hub nor any peer is blamed."""
    pings = site.n1.host.spawn(["ping", "-i", "0.5", site.n2.address()], name="ping")
    pings.wait_line("bytes from", 20)
    site.cut("n1")
    assert wait_for(lambda: grave(site.n1), BOUND_S, "something to be found") == \
        {("WEFT-LINE-001", "n1")}
    site.mend("n1")
    wait_for(lambda: not grave(site.n1), 60, "the line to be well")
    pings.stop()
    site.wait_well()


def test_a_hub_that_is_away_is_named_alone(site: Members) -> None:
    """Who is reached through it is not at fault; who is reached directly goes on."""
    pings = [site.n1.host.spawn(["ping", "-i", "0.5", node.address()], name="ping")
             for node in (site.n2, site.n3)]
    for ping in pings:
        ping.wait_line("bytes from", 20)
    site.daemon.kill9()
    wait_for(lambda: grave(site.n1) == {("WEFT-HUB-003", "hub")}, BOUND_S, "the hub to be named")
    assert site.n1.peers()["n3"]["rttMs"] is None
    assert site.n1.peers()["n2"]["rttMs"] is not None
    said = site.n1.run("doctor", check=False)
    assert said.rc == 2 and "WEFT-HUB-003" in said.out, said.out
    site.start_hub()
    wait_for(lambda: not grave(site.n1), 60, "the hub to be heard again")
    for ping in pings:
        ping.stop()
    site.wait_well()


def secrets_of(node: AgentNode, site: Members) -> list[str]:
    """Its private key, and a token that somebody has left where it is quoted."""
    state = json.loads(node.host.run(["cat", f"{STATE}/node.json"], quiet=True).out)
    return [state["privateKey"], site.token()]


def contents(path: str) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


@pytest.mark.parametrize("suffix", ["tar.gz", "tar"])
def test_a_report_has_no_secret(site: Members, tmp_path: Path, suffix: str) -> None:
    secrets = secrets_of(site.n2, site)
    path = str(tmp_path / f"report.{suffix}")
    # Quoted by what a program of the report shows of the machine.
    for number, secret in enumerate(secrets):
        site.n2.host.run(["ip", "link", "add", f"d{number}", "type", "bridge"], quiet=True)
        site.n2.host.run(["ip", "link", "set", f"d{number}", "alias", secret[:200]], quiet=True)
    assert site.n2.run("doctor", "--bundle", path).rc == 0
    report = contents(path)
    assert {"weft-doctor/status.json", "weft-doctor/doctor.json", "weft-doctor/paths/n1.json",
            "weft-doctor/interfaces.txt", "weft-doctor/routes.txt", "weft-doctor/versions.txt",
            "weft-doctor/log.txt"} <= report.keys()
    assert json.loads(report["weft-doctor/status.json"])["self"]["name"] == "n2"
    assert b"weft0" in report["weft-doctor/interfaces.txt"]
    assert report["weft-doctor/interfaces.txt"].count(b"[secret]") >= len(secrets)
    whole = b"".join(report.values())
    for secret in secrets:
        assert secret[:40].encode() not in whole
    # It is for its owner alone, and is not written over.
    assert Path(path).stat().st_mode & 0o777 == 0o600
    again = site.n2.run("doctor", "--bundle", path, check=False)
    assert again.rc == 1 and "File exists" in again.err
    for number in range(len(secrets)):
        site.n2.host.run(["ip", "link", "delete", f"d{number}"], quiet=True)


def codes(node: AgentNode, notes: bool = False) -> set[str]:
    """What weft doctor finds; its exit status is that of the gravest."""
    done = node.run("doctor", "--json", check=False)
    said = json.loads(done.out)
    assert done.rc == {"none": 0, "note": 0, "warning": 1, "critical": 2}[said["worst"]]
    return {one["code"] for one in said["findings"] if notes or one["severity"] != "note"}


def test_without_an_agent(site: Members) -> None:
    """The machine is looked at: interface, engine, and the ways to the hub."""
    n3 = site.n3
    n3.agent.kill9()
    assert codes(n3) == {"WEFT-NODE-005"}
    site.lab.host("n3").run(["ip", "link", "set", "weft0", "down"], quiet=True)
    assert codes(n3) == {"WEFT-NODE-005", "WEFT-LINK-001"}
    site.cut("n3")
    assert codes(n3) == {"WEFT-NODE-005", "WEFT-LINK-001", "WEFT-HUB-003"}
    site.mend("n3")
    drop = RULES.format(name="cut", rule="udp sport 51820 drop")
    n3.host.run(["nft", "-f", "-"], stdin=drop, quiet=True)
    assert codes(n3) == {"WEFT-NODE-005", "WEFT-LINK-001", "WEFT-UDP-001"}
    n3.host.run(["nft", "delete", "table", "inet", "cut"], quiet=True)
    n3.start(allow=ANY)
    site.wait_well()
    wait_for(lambda: codes(n3) == set(), 60, "nothing to be found")


def test_without_a_data_plane(site: Members) -> None:
    """One thing after the other is wrong with a machine on which no agent runs."""
    n3 = site.n3
    no_agent = {"WEFT-NODE-005"}
    n3.agent.kill9()
    n3.host.run(["nft", "-f", "-"], stdin=RULES.format(name="cut", rule="tcp sport 8443 drop"),
                quiet=True)
    assert codes(n3, notes=True) - {"WEFT-OFFLOAD-001"} == no_agent | {"WEFT-TLS-001"}
    n3.host.run(["nft", "delete", "table", "inet", "cut"], quiet=True)
    for pid in n3.pids("weft-wg") + n3.pids("weft"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not n3.has_interface(), 5, "the interface to go")
    assert codes(n3) == no_agent | {"WEFT-LINK-001"}
    n3.host.run(["sh", "-c", "ip link add weft0 type bridge && ip link set weft0 up"], quiet=True)
    assert codes(n3) == no_agent | {"WEFT-ENGINE-001"}
    n3.host.run(["ip", "link", "delete", "weft0"], quiet=True)
    n3.host.run(["sh", "-c", f"cp -a {STATE} /run/kept && mount -t tmpfs -o size=18m none {STATE} "
                 f"&& cp -a /run/kept/. {STATE} && dd if=/dev/zero of={STATE}/fill bs=1M count=3"],
                quiet=True)
    assert codes(n3) == no_agent | {"WEFT-LINK-001", "WEFT-STATE-002"}
    n3.host.run(["sh", "-c", f"rm {STATE}/fill && printf x | dd of={STATE}/node.json bs=1 "
                 "conv=notrunc"], quiet=True)
    assert codes(n3) == no_agent | {"WEFT-STATE-001"}
    n3.host.run(["umount", STATE], quiet=True)
    n3.start(allow=ANY)
    site.wait_well()
