"""Agents and probes that write their own parts of MeshEdges, each with an account of its own.

      hub      203.0.113.10   keeps all in the cluster, and shows it there
       |
     [ wan ]
      |   |
     n1   n2   203.0.113.11, .12: agents with --edges-to kubernetes:; n1 has a probe with that, too

Each reaches the API server at a port of its own host. Who may write which part is said three times:
a Role lets an account write into the status of edges and nowhere else, a policy lets it write its
own part alone, and where there is no such policy the hub sets aside what is another's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY, AgentNode, Site
from lab.support.network.process import Daemon
from lab.support.topologies import one_switch

from .cluster import SERVER_AWAY, Cluster
from .manifests import FOLDER, load
from .policies import Enforcing
from .test_agents import fixture_socket, reach_api  # noqa: F401
from .test_resources import Hub, fixture_live, until  # noqa: F401

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
EDGE = "default.n1--n2"
UNWRITTEN = "parts of edges are not written to the cluster"
COMPONENTS = FOLDER / "components"
GROUPS = ["system:serviceaccounts", "system:authenticated"]


def part(path: str, every: int = 300) -> dict:
    """What an agent writes of its edge."""
    return {"path": path, "everySeconds": every,
            "observedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def body(edge: str, status: dict) -> dict:
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge", "metadata": {"name": edge},
            "status": status}


def account(cluster: Cluster, namespace: str, name: str, folder: Path) -> Path:
    """A kubeconfig with a token of that ServiceAccount."""
    said = cluster.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600}}, "admintoken")
    text = cluster.kubeconfig().read_text().replace("admintoken", said["status"]["token"])
    path = folder / f"{name}.kubeconfig"
    path.write_text(text)
    path.chmod(0o644)
    return path


def give_roles(cluster: Cluster, namespace: str) -> None:
    """The accounts and their Roles, as the component makes them."""
    for name in ("weft-agent", "weft-probe"):
        cluster.must("create", "-n", namespace, "serviceaccount", name)
    for item in load(COMPONENTS / "edge-writers/roles.yaml"):
        for subject in item.get("subjects", []):
            subject["namespace"] = namespace
        cluster.must("apply", "-n", namespace, "-f", "-", stdin=item)


# ---- the Role ------------------------------------------------------------------------------------

def test_what_the_accounts_may_do(cluster: Cluster, namespace: str) -> None:
    """By the server's own word: the status of edges, by a patch, and nothing else of ours."""
    give_roles(cluster, namespace)
    for name in ("weft-agent", "weft-probe"):
        said = cluster.must("auth", "can-i", "--list", "-n", namespace, "--no-headers", "--as",
                            f"system:serviceaccount:{namespace}:{name}").out
        rows = [line.split() for line in said.splitlines() if ".weft.dev" in line]
        assert [(row[0], row[-1]) for row in rows] == [("meshedges.weft.dev/status", "[patch]")]


# ---- the policy ----------------------------------------------------------------------------------

@pytest.fixture(scope="module", name="enforcing")
def fixture_enforcing(cluster: Cluster) -> Iterator[Enforcing]:
    if cluster.variant != "modern":
        pytest.skip("Kubernetes 1.20 has no ValidatingAdmissionPolicy")
    made = Enforcing(cluster, load(FOLDER / "edge-policy.yaml"))
    try:
        made.wait_ready()
        yield made
    finally:
        made.stop()


@dataclass
class Writer:
    """Somebody who applies a part of an edge's status, as its field manager."""
    server: Enforcing
    namespace: str
    user: str
    groups: list[str]
    node: str | None = None

    def write(self, edge: str, manager: str, status: dict) -> tuple[int, str]:
        path = (f"/apis/weft.dev/v1alpha1/namespaces/{self.namespace}/meshedges/{edge}/status"
                f"?force=true&fieldManager={manager.replace('/', '%2F')}")
        code, said = self.server.ask("PATCH", path, self.user, self.groups, self.node,
                                     body(edge, status))
        return code, said.get("message", "")

    def write_part(self, edge: str, name: str) -> tuple[int, str]:
        return self.write(edge, name, {name: part("lan")})


def test_policy(enforcing: Enforcing, cluster: Cluster, namespace: str) -> None:
    """An account writes the part of its kind, of its pod's host, in edges of that host."""
    give_roles(cluster, namespace)
    for a, b in (("n1", "n2"), ("n2", "n3")):
        cluster.must("apply", "-n", namespace, "-f", "-", stdin={
            "apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge",
            "metadata": {"name": f"default.{a}--{b}"}, "spec": {"nodes": [a, b]}})

    def writer(name: str, node: str | None) -> Writer:
        user = f"system:serviceaccount:{namespace}:{name}"
        return Writer(enforcing, namespace, user,
                      [*GROUPS, f"system:serviceaccounts:{namespace}"], node)

    agent, probe = writer("weft-agent", "n1"), writer("weft-probe", "n1")
    admin = Writer(enforcing, namespace, "admin", ["system:masters"])
    # Roles and policies are read by the servers a moment after they were made.
    for who, name in ((agent, "agent/n1"), (probe, "probe/n1")):
        until = time.monotonic() + 10
        while (said := who.write_part(EDGE, name)) != (200, ""):
            assert time.monotonic() < until, said
    wait_for(lambda: "may write parts" in agent.write_part(EDGE, "probe/n1")[1], 60,
             "the policy to hold")
    assert admin.write(EDGE, "agent/n2", {"agent/n2": part("lan")}) == (200, "")
    refused = [
        (agent, EDGE, "probe/n1", "may write parts agent/NAME alone, and not probe/n1"),
        (probe, EDGE, "agent/n1", "may write parts probe/NAME alone, and not agent/n1"),
        (agent, EDGE, "hub", "may write parts agent/NAME alone, and not hub"),
        (agent, EDGE, "agent/n2",
         "a pod on n1 may write the part agent/n1 alone, and not agent/n2"),
        (agent, "default.n2--n3", "agent/n1", "n1 is no end of the edge default.n2--n3"),
    ]
    for who, edge, name, words in refused:
        # Another path: what changes nothing is no write.
        code, said = who.write(edge, name, {name: part("relay")})
        assert (code, words in said) == (403, True), (name, said)
    # To take another one's part away is to write it, and so it is under another manager's name.
    code, said = agent.write(EDGE, "agent/n2", {})
    assert (code, "and not agent/n2" in said) == (403, True), said
    code, said = agent.write(EDGE, "agent/n1", {"agent/n1": part("lan"), "agent/n2": part("relay")})
    assert (code, "and not agent/n2" in said) == (403, True), said
    # A node is called as its host, without the domain; a token that names no host is no pod's.
    assert writer("weft-agent", "n1.example.org").write_part(EDGE, "agent/n1") == (200, "")
    code, said = writer("weft-agent", None).write(EDGE, "agent/n1", {"agent/n1": part("relay")})
    assert (code, "names no host" in said) == (403, True), said
    # Nobody else is meant: what others may do their Roles say.
    assert admin.write(EDGE, "weft-hub-status", {"hub": {"state": "lan"}}) == (200, "")


# ---- the hub -------------------------------------------------------------------------------------

def test_what_the_hub_leaves_alone(live: Hub) -> None:
    """A part that its writer writes stays, though the hub hears nothing of it; another one does not
    count, and one that is old is taken away."""
    name = "default.gpu-1--gpu-2"
    path = f"/apis/weft.dev/v1alpha1/namespaces/{live.namespace}/meshedges/{name}/status"

    def write(manager: str, status: dict) -> None:
        live.cluster.patch(f"{path}?force=true&fieldManager={manager.replace('/', '%2F')}",
                           body(name, status))

    def shown(key: str) -> dict:
        return live.get("meshedges", name).get("status", {}).get(key, {})

    def stale() -> tuple[str, str]:
        return next(((one["status"], one.get("message", "")) for one in shown("conditions") or []
                     if one["type"] == "Stale"), ("", ""))

    live.must("apply", "-f", "-", stdin={
        "apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge", "metadata": {"name": name},
        "spec": {"nodes": ["gpu-1", "gpu-2"]}})
    until(lambda: stale() == ("False", ""), "no condition")
    write("agent/gpu-1", {"agent/gpu-1": part("lan")})
    write("agent/gpu-2", {"agent/gpu-2": part("lan") | {"observedAt": "2026-01-01T00:00:00Z"}})
    until(lambda: not shown("agent/gpu-2"), "what is old stays")
    # Something else is written of the edge, and the part is left alone all the same.
    live.run("edge", "set", "gpu-1", "gpu-2", "--path", "off")
    until(lambda: shown("hub").get("state") == "off", "the hub's part is old")
    assert shown("agent/gpu-1")["path"] == "lan"
    assert shown("agent/gpu-1")["everySeconds"] == 300
    assert stale() == ("False", "")
    # Of somebody else, and of a node that is no end.
    write("mallory", {"probe/gpu-1": {"tunnel": "reached"} | part("lan")})
    write("agent/gpu-9", {"agent/gpu-9": part("lan")})
    for words in ('"mallory" has written it', "its node is no end of the edge"):
        until(lambda words=words: any(reason == "SetAside" and words in text
                                      for _, reason, text in live.events()), words)
    until(lambda: not shown("agent/gpu-9"), "the part of no end stays")


# ---- the programs --------------------------------------------------------------------------------

@dataclass
class Written:
    """Two nodes that write their parts, and the namespace."""
    site: Site
    cluster: Cluster
    namespace: str
    nodes: list[AgentNode]
    probe: Daemon

    def edge(self) -> dict:
        path = f"/apis/weft.dev/v1alpha1/namespaces/{self.namespace}/meshedges/{EDGE}"
        answer = self.cluster.kubectl("get", "--raw", path)
        return answer.json() if answer.code == 0 else {}

    def part(self, name: str) -> dict:
        return self.edge().get("status", {}).get(name, {})

    def is_own(self, name: str) -> bool:
        """Does its writer write it, with all that it is to have?"""
        found = self.edge()
        owners = {one["manager"] for one in found.get("metadata", {}).get("managedFields", [])
                  if f"f:{name}" in one["fieldsV1"].get("f:status", {})}
        said = found.get("status", {}).get(name, {})
        return said.get("everySeconds") == 300 and "observedAt" in said and owners == {name}

    def condition(self, kind: str) -> tuple[str, str]:
        for one in self.edge().get("status", {}).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one.get("message", "")
        return "", ""

    def set_path(self, path: str) -> None:
        self.cluster.must("apply", "-n", self.namespace, "-f", "-", stdin={
            "apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge", "metadata": {"name": EDGE},
            "spec": {"nodes": ["n1", "n2"], "path": path}})

    def events(self) -> list[tuple[str, str]]:
        found = self.cluster.get("-n", self.namespace, "events")["items"]
        return [(one["reason"], one["message"]) for one in found]

    def findings(self, node: AgentNode) -> list[str]:
        return [one["code"] for one in node.status()["findings"]]

    def apply_status(self, manager: str, status: dict) -> None:
        """As an administrator who forces it."""
        path = f"/apis/weft.dev/v1alpha1/namespaces/{self.namespace}/meshedges/{EDGE}/status"
        self.cluster.patch(f"{path}?force=true&fieldManager={manager}", body(EDGE, status))


@pytest.fixture(name="written")
def fixture_written(cluster: Cluster, namespace: str, socket: Path, weft: Path,
                    tmp_path: Path) -> Iterator[Written]:
    give_roles(cluster, namespace)
    keys = {name: account(cluster, namespace, name, tmp_path)
            for name in ("weft-agent", "weft-probe")}

    def url(config: Path) -> str:
        return f"kubernetes:?namespace={namespace}&kubeconfig={config}"

    with Lab.from_text(TOPOLOGY) as lab:
        for name in ("hub", "n1", "n2"):
            reach_api(lab, name, cluster, socket)
        site = Site(lab, weft, "--store", url(cluster.kubeconfig()), versions=(4,))
        site.daemon.allow(f"{SERVER_AWAY}|is set aside")
        nodes = site.join("n1", "n2", options=["--edges-to", url(keys["weft-agent"])],
                          allow=dict.fromkeys(("n1", "n2"), [HUB_AWAY, UNWRITTEN]))
        probe = nodes[0].host.spawn(
            [weft, "probe", "--report", "--edges-to", url(keys["weft-probe"])], name="probe",
            allow=["does not answer", "the hub is not told"])
        yield Written(site, cluster, namespace, nodes, probe)


@pytest.mark.namespaces
# Kinds of Kubernetes' own are served by the same server in both variants, and a lab takes its time.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_each_writes_its_own_part(written: Written) -> None:
    n1 = written.nodes[0]
    written.set_path("auto")
    for name in ("agent/n1", "agent/n2", "probe/n1"):
        wait_for(lambda name=name: written.is_own(name), 120, f"{name} to be its writer's")
    wait_for(lambda: written.part("agent/n1").get("path") in ("lan", "direct"), 60,
             "n1 to say its path")
    wait_for(lambda: written.part("probe/n1").get("tunnel") == "reached", 60, "n1 to reach n2")
    assert written.part("agent/n1")["applied"]["engine"] == "userspace"
    written.cluster.must("wait", "--for=condition=Stale=false", "--timeout=30s", "-n",
                         written.namespace, f"meshedge.weft.dev/{EDGE}")
    wait_for(lambda: written.part("hub").get("state") in ("lan", "direct"), 30,
             "the hub's own part")

    # What has changed is written, with another time; and each part stays its writer's.
    before = written.part("agent/n1")["observedAt"]
    written.set_path("relay")
    wait_for(lambda: written.part("agent/n1").get("path") == "relay", 60, "n1 to say the new path")
    assert written.part("agent/n1")["observedAt"] > before
    wait_for(lambda: written.part("agent/n2").get("path") == "relay", 60, "n2 to say it as well")
    for name in ("agent/n1", "agent/n2", "probe/n1"):
        assert written.is_own(name)

    # Somebody else writes a part: the hub does not take it for n2's, and says so.
    written.apply_status("agent-n1", {"agent/n2": part("direct", 86400)})
    wait_for(lambda: any(reason == "SetAside" and '"agent-n1" has written it' in text
                         for reason, text in written.events()), 30, "the hub to set it aside")
    wait_for(lambda: written.part("agent/n2").get("path") == "relay", 30, "the hub to write it")
    assert written.part("agent/n2")["everySeconds"] in (0, 300)

    # Without its Role the agent says why it cannot write, by the server's words.
    written.cluster.must("delete", "-n", written.namespace, "rolebinding", "weft-agent-edges")
    written.set_path("auto")
    wait_for(lambda: "WEFT-KUBE-002" in written.findings(n1), 60, "n1 to find that it is refused")
    [found] = [one for one in n1.status()["findings"] if one["code"] == "WEFT-KUBE-002"]
    assert "the API server answers 403" in found["text"]
    assert written.part("probe/n1")["everySeconds"] == 300

    # A probe that has stopped: what it said is old, here and there.
    written.probe.stop()
    wait_for(lambda: written.condition("Stale") == ("True", "probe/n1: its writer is not heard"),
             60, "the part to be old")
    edges = json.loads(written.site.hub.run(
        [written.site.weft, "get", "edges", "--json"], quiet=True).out)["edges"]
    [mine] = [edge for edge in edges if edge["name"] == "n1--n2"]
    said: dict[str, Any] = mine["status"]["probe/n1"]
    assert said["stale"] is True
    assert "observedAt" in said
