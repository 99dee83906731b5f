"""Programs of this version and of the last release in one network, and either one as the hub.

           hub                one test module's hub is the old one, the other's the new one
            |
    [ net 198.51.100.0/24 ]
      |     |        |
      a     b        n        a runs the last release, b this version
                     |
                  [ lan ]     n lets no UDP through
                     c        runs what the hub does not
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab
from lab.support import schemas
from lab.support.agents import AgentNode, Site

from .release import ROOT

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch net 198.51.100.0/24
switch lan 10.1.0.0/24 gateway=n
host hub
host a
host b
nat n port-restricted out=net udp=blocked
host c
link hub net 198.51.100.10
link a net 198.51.100.11
link b net 198.51.100.12
link n net 198.51.100.20
link n lan 10.1.0.1
link c lan 10.1.0.11
"""
STEPS = 20
ROUTE = "10.9.0.0/24"  # that b asks for
BLOCKED = "UDP to the hub"
TORCH = Path("/usr/lib/python3/dist-packages/torch")


class Mixed(Site):
    """A hub of one version, with a, b and c; see above."""

    def __init__(self, lab: Lab, old: Path, new: Path, hub: str) -> None:
        self.old, self.new = old, new
        self.programs = {"hub": old if hub == "old" else new, "a": old, "b": new,
                         "c": new if hub == "old" else old}
        super().__init__(lab, self.programs["hub"])
        for name in ("a", "b", "c"):
            # The tokens are the old program's for the new hub, and the other way about.
            token = self.hub.run([self.other("hub"), "token", "new"], quiet=True).out.strip()
            node = AgentNode(lab.host(name), self.programs[name])
            # What a hub of before does not know it ignores.
            words = ["--route", ROUTE] if name == "b" else []
            node.join(token, *words, allow=[BLOCKED] if name == "c" else [])
            self.nodes[name] = node

    def other(self, name: str) -> Path:
        """The version that the machine does not run."""
        return self.new if self.programs[name] == self.old else self.old


@pytest.fixture(scope="module", params=["old", "new"])
def site(request: pytest.FixtureRequest, weft: Path, old: Path) -> Iterator[Mixed]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Mixed(lab, old, weft, request.param)


def test_paths(site: Mixed) -> None:
    """They find the paths to each other that two of a kind would, and the way in TLS, too."""
    site.wait_paths({("a", "b"): {"lan", "direct"}, ("a", "c"): {"stream", "relay"},
                     ("b", "c"): {"stream", "relay"}}, 30)
    assert site.nodes["c"].status()["hub"]["udp"] is False
    site.all_reach([("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")])


def test_relay(site: Mixed) -> None:
    site.hub.run([site.other("hub"), "edge", "set", "a", "b", "--path", "relay"])
    site.wait_paths({("a", "b"): {"relay"}}, 20)
    site.all_reach([("a", "b"), ("b", "a")])
    site.hub.run([site.other("hub"), "edge", "set", "a", "b", "--path", "auto"])
    site.wait_paths({("a", "b"): {"lan", "direct"}}, 30)


def ask(host: Host, program: Path, name: str, *words: str) -> object:
    """The JSON of a command, which has no field that today's schema does not know."""
    done = host.run([program, *words])
    assert schemas.unnamed(name, json.loads(done.out)) == []
    return json.loads(done.out)


def test_commands_of_the_hub(site: Mixed) -> None:
    """The other version's, through the hub's socket."""
    hub, other = site.hub, site.other("hub")
    assert {n["metadata"]["name"] for n in ask(hub, other, "nodes", "nodes", "--json")["nodes"]} \
        == {"hub", "a", "b", "c"}
    hub.run([other, "network", "add", "second", "--cidr4", "10.99.0.0/16"])
    assert [n["metadata"]["name"] for n in
            ask(hub, other, "network-ls", "network", "ls", "--json")["networks"]] == [
        "default", "second"]
    hub.run([other, "network", "rm", "second"])
    made = ask(hub, other, "admin-new", "admin", "new", "ci", "--role", "viewer", "--json")
    assert made["token"].startswith("weft-admin1.")
    assert len(ask(hub, other, "admin-ls", "admin", "ls", "--json")["adminTokens"]) == 1
    hub.run([other, "admin", "rm", "ci"])
    hub.run([other, "token", "new", "--ttl", "5m"])
    tokens = ask(hub, other, "token-ls", "token", "ls", "--json")["tokens"]
    unused = [t["id"] for t in tokens if t["usesLeft"] > 0]
    assert len(unused) == 1
    hub.run([other, "token", "rm", *unused])
    ask(hub, other, "jobs", "jobs", "--json")
    for line in hub.run([other, "audit", "--json"]).out.splitlines():
        assert schemas.unnamed("audit", json.loads(line)) == []
    network = ask(hub, other, "get", "get", "Network", "default")
    hub.run([other, "apply", "-f", "-"], stdin=json.dumps(network))
    assert ask(hub, other, "get", "get", "Node", "a")["spec"]["publicKey"] in \
        hub.run([other, "render", "b"]).out
    hub.run([other, "node", "set", "a", "--relay", "no"])


def test_routes(site: Mixed) -> None:
    """A hub of before there were routes says that it has none; a member of before does not mind."""
    asked = site.hub.run([site.new, "node", "set", "b", "--route", ROUTE], check=False)
    if site.programs["hub"] == site.old:
        assert asked.rc == 1
        assert '"routes" is not a field of it' in asked.err
        return
    asked.check()
    site.hub.run([site.old, "node", "set", "b", "--relay", "no"])
    assert site.hub_nodes()["b"]["spec"]["routes"] == [ROUTE]
    site.all_reach([("a", "b"), ("b", "a"), ("c", "b")])
    site.hub.run([site.new, "node", "set", "b", "--no-route", "all"])


def test_commands_of_a_node(site: Mixed) -> None:
    """The other version's, through the agent's socket."""
    for name in ("a", "b"):
        host, other, peer = site.lab.host(name), site.other(name), "b" if name == "a" else "a"
        status = ask(host, other, "status", "status", "--json")
        assert {p["name"] for p in status["peers"]} == {"a", "b", "c"} - {name}
        assert ask(host, other, "paths", "paths", peer, "--json")["name"] == peer
        assert peer in host.run([other, "paths", peer]).out + host.run([other, "status"]).out
        assert "weft0" in host.run([other, "env"]).out
        found = ask(host, other, "probe", "probe", "--once", "--json")
        assert {m["name"] for m in found["members"]} == {"hub", "a", "b", "c"} - {name}


def test_measuring(site: Mixed) -> None:
    """Who asks and who is measured are of two versions."""
    for name, peer in (("a", "b"), ("b", "a")):
        host, program = site.lab.host(name), site.programs[name]
        report = json.loads(host.run(
            [program, "preflight", "--json", "--nodes", peer, "--force"], check=False,
            timeout_s=120).out)
        if (program, site.programs[peer]) == (site.old, site.new):
            # It cannot prove that it is the node; the newer one says so.
            assert "has to be proven with the node's key" in json.dumps(report["findings"])
            continue
        [pair] = report["pairs"]
        assert pair["oneStream"]["outBitsPerSecond"] > 0, report["findings"]
        assert all(way["reached"] for way in pair["ways"])
        bench = json.loads(host.run(
            [program, "bench", peer, "--ms", "100", "--no-underlay", "--allreduce", "1", "--force",
             "--json"], check=False, timeout_s=120).out)
        assert bench["summary"]["failures"] == 0
        assert bench["allReduce"]["ring"]["done"]


@pytest.mark.skipif(not TORCH.exists(), reason="python3-torch is not installed")
def test_job(site: Mixed) -> None:
    """One is started by `weft run` of the last release, the other by this one's."""
    env = {"OMP_NUM_THREADS": "1"}
    jobs = [site.lab.host(name).spawn(
        [site.programs[name], "run", "--nnodes", "2", "--job", "mixed", "torchrun",
         ROOT / "examples/train_ddp.py", "--steps", STEPS], name="job", env=env, allow=[""])
        for name in ("a", "b")]
    for job in jobs:
        assert job.wait(120) == 0, "\n".join(job.lines()[-30:])


def test_leave(site: Mixed) -> None:
    """The last, for who is gone is gone."""
    for name in ("a", "b"):
        site.lab.host(name).run([site.other(name), "leave"])
        assert name not in site.hub_nodes()
