"""Agents that learn from the cluster who is in their network: `weft agent --from kubernetes:`.

      hub      203.0.113.10   keeps all in the cluster, and shows it there
       |
     [ wan ]
      | | |
     n1 n2 n3  203.0.113.11 to .13: agents, which read what the hub shows

Each reaches the API server at a port of its own host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY, AgentNode, Site
from lab.support.pinging import can_ping
from lab.support.topologies import one_switch

from .cluster import SERVER_AWAY, Cluster
from .manifests import FOLDER, load

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
STORE_SILENT = ": its store has not said for "
API_AWAY = "the cluster does not say who is in the network"
SITE = "10.9.0.0/24"   # behind n3
PART = "10.9.0.0/25"   # of it; n2 would take it from n3, if somebody let it
OTHER = "10.9.1.0/24"  # behind n3, later


@pytest.fixture(name="socket")
def fixture_socket(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A socket in the file system that leads to the API server from every network namespace."""
    path = tmp_path / "api.sock"
    process = subprocess.Popen(["socat", f"UNIX-LISTEN:{path},fork",
                                f"TCP:127.0.0.1:{cluster.port}"], stderr=subprocess.DEVNULL)
    try:
        wait_for(path.exists, 10, "socat to listen")
        yield path
    finally:
        process.terminate()
        process.wait()


@dataclass
class Members:
    """The agents of a site, and the namespace in which the hub shows them."""
    site: Site
    cluster: Cluster
    namespace: str
    nodes: list[AgentNode]

    def resource(self, kind: str, name: str) -> dict:
        return self.cluster.get("-n", self.namespace, f"{kind}.weft.dev", f"default.{name}")

    def accepted(self, kind: str, name: str) -> str:
        for one in self.resource(kind, name).get("status", {}).get("conditions", []):
            if one["type"] == "Accepted":
                return one["status"]
        return ""

    def wish_routes(self, name: str, *routes: str) -> None:
        self.cluster.must("patch", "-n", self.namespace, "nodes.weft.dev", f"default.{name}",
                          "--type=merge", "-p", json.dumps({"spec": {"routes": routes}}))


def reach_api(lab: Lab, name: str, cluster: Cluster, socket: Path) -> None:
    lab.host(name).spawn(["socat", f"TCP-LISTEN:{cluster.port},bind=127.0.0.1,fork,reuseaddr",
                          f"UNIX-CONNECT:{socket}"], name="api")


@pytest.fixture(name="members")
def fixture_members(cluster: Cluster, namespace: str, socket: Path, weft: Path) \
        -> Iterator[Members]:
    """A hub with its store in the cluster, and three agents that have the Role that we ship."""
    for item in load(FOLDER / "overlays/agents-from-cluster/agent-role.yaml"):
        if item["kind"] == "Role":
            cluster.must("apply", "-n", namespace, "-f", "-", stdin=item)
    cluster.must("create", "-n", namespace, "rolebinding", "plain", "--role=weft-agent",
                 "--user=plain")

    def url(user: str) -> str:
        return f"kubernetes:?namespace={namespace}&kubeconfig={cluster.kubeconfig(user)}"

    with Lab.from_text(TOPOLOGY) as lab:
        for name in ("hub", "n1", "n2", "n3"):
            reach_api(lab, name, cluster, socket)
        site = Site(lab, weft, "--store", url("admin"), versions=(4,))
        site.daemon.allow(SERVER_AWAY)
        nodes = [AgentNode(lab.host(name), weft) for name in ("n1", "n2", "n3")]
        for node in nodes:
            words = ("--route", SITE) if node.name == "n3" else ()
            node.host.run([weft, "join", site.token(*words), "--name", node.name, "--no-start",
                           *words], quiet=True)
            node.agent = node.host.spawn([weft, "agent", "--from", url("plain")], name="agent",
                                         allow=[HUB_AWAY, API_AWAY])
        yield Members(site, cluster, namespace, nodes)


def has_peers(node: AgentNode, *names: str) -> Callable[[], bool]:
    return lambda: set(node.peers()) == set(names)


def ways(node: AgentNode) -> dict[str, str]:
    """The subnets that it reaches, each with the node through which."""
    return {one["route"]: one["node"] for one in node.status()["routes"]}


# Two servers and their aggregation take too long to come back.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_agents_follow_what_the_hub_shows(members: Members) -> None:
    cluster, namespace, (n1, n2, n3) = members.cluster, members.namespace, members.nodes
    n1.agent.wait_line("the cluster says who is in the network", 30)
    wait_for(has_peers(n1, "n2", "n3"), 30, "n1 to have both others")
    for other in (n2, n3):
        wait_for(lambda other=other: can_ping(n1.host, other.address()), 20,
                 f"{other.name} to answer n1")
    wait_for(lambda: ways(n1) == {SITE: "n3"}, 20, "n1 to know the way to n3's subnet")
    assert "cluster: its API says who is in the network" in n1.run("status").out

    # An edit that no hub has judged changes nothing, and neither does one that it refuses.
    os.kill(members.site.daemon.pid, signal.SIGSTOP)
    try:
        members.wish_routes("n2", PART)
    finally:
        os.kill(members.site.daemon.pid, signal.SIGCONT)
    wait_for(lambda: members.accepted("nodes", "n2") == "False", 30, "the hub to refuse it")
    assert members.resource("nodes", "n2")["spec"]["routes"] == [PART]
    # One that it takes comes after it on the same watch; so n1 has read the other one, too.
    members.wish_routes("n3", SITE, OTHER)
    wait_for(lambda: OTHER in ways(n1), 20, "n1 to hear of another subnet of n3")
    assert ways(n1) == {SITE: "n3", OTHER: "n3"}
    members.wish_routes("n2")
    wait_for(lambda: members.accepted("nodes", "n2") == "True", 30, "the hub to take that back")

    # While the API is away, known peers stay, and the status says so.
    cluster.kill()
    try:
        # The line may be there already, from the agent's first moments.
        wait_for(lambda: not n1.status()["cluster"]["reachable"], 20, "n1 to miss the API")
        n1.agent.wait_line(API_AWAY, 20)
        said = n1.status()["cluster"]
        assert (said["reachable"], said["why"] != "") == (False, True)
        assert "the cluster's API does not answer for " in n1.run("status").out
        assert ("WEFT-KUBE-001", "n1") in n1.found()
        assert has_peers(n1, "n2", "n3")()
        assert can_ping(n1.host, n3.address())
        # The hub has its store there as well, and says so to its nodes.
        wait_for(lambda: STORE_SILENT in n1.run("status").out, 60,
                 "n1 to say that the hub's store is silent")
    finally:
        cluster.restart()
    wait_for(lambda: n1.status()["cluster"]["reachable"], 60, "the API to be heard again")
    wait_for(lambda: STORE_SILENT not in n1.run("status").out, 60,
             "the hub's store to be heard again")

    # What people wish by kubectl reaches the agents through the hub's word.
    cluster.must("apply", "-n", namespace, "-f", "-", stdin={
        "apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge",
        "metadata": {"name": "default.n1--n3"}, "spec": {"nodes": ["n1", "n3"], "path": "off"}})
    wait_for(lambda: not can_ping(n1.host, n3.address()), 30, "n1 and n3 to be kept apart")
    address = n2.address()
    cluster.must("delete", "-n", namespace, "nodes.weft.dev", "default.n2")
    wait_for(has_peers(n1, "n3"), 30, "n1 to have n2 no more")
    assert not can_ping(n1.host, address)
    assert n2.agent.wait(20) is not None
