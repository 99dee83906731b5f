"""Agents that learn from the cluster who is in their network: `weft agent --from kubernetes:`.

      hub      203.0.113.10
       |
     [ wan ]
      | | |
     n1 n2 n3  203.0.113.11 to .13: agents; each reaches the API server at a port of its own host
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY, AgentNode, Site
from lab.support.pinging import can_ping
from lab.support.topologies import one_switch

from .cluster import Cluster
from .manifests import FOLDER, load

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
NOT_SHOWN = 'Node "n2" cannot be deleted from the view of "n2"'
API_AWAY = "the cluster does not say who is in the network"


class Shown:
    """What a hub shows in a namespace, written here by hand, in the hub's place."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def put(self, item: dict, revision: int) -> None:
        meta = item["metadata"]
        name = f"{meta['network']}.{meta['name']}" if "network" in meta else meta["name"]
        self.cluster.must("apply", "-n", self.namespace, "--server-side", "-f", "-", stdin={
            "apiVersion": "weft.dev/v1alpha1", "kind": item["kind"],
            "metadata": {"name": name, "annotations": {"weft.dev/revision": str(revision)}},
            # Empty texts do not come through the apply of this kubectl.
            "spec": {key: value for key, value in item["spec"].items() if value}})

    def delete(self, name: str) -> None:
        self.cluster.must("delete", "-n", self.namespace, "nodes.weft.dev", name)


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


def join(site: Site, name: str, cluster: Cluster, socket: Path) -> AgentNode:
    node = AgentNode(site.lab.host(name), site.weft)
    node.host.spawn(["socat", f"TCP-LISTEN:{cluster.port},bind=127.0.0.1,fork,reuseaddr",
                     f"UNIX-CONNECT:{socket}"], name="api")
    node.host.run([site.weft, "join", site.token(), "--name", name, "--no-start"], quiet=True)
    return node


def start(node: AgentNode, url: str) -> None:
    node.agent = node.host.spawn([node.weft, "agent", "--from", url], name="agent",
                                 allow=[HUB_AWAY, API_AWAY, NOT_SHOWN])


def has_peers(node: AgentNode, *names: str) -> Callable[[], bool]:
    return lambda: set(node.peers()) == set(names)


def kill(cluster: Cluster) -> None:
    os.kill(int((cluster.folder / "kube-apiserver.pid").read_text()), signal.SIGKILL)
    (cluster.folder / "kube-apiserver.pid").unlink()


# Two servers and their aggregation take too long to come back.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_agents_follow_the_cluster(cluster: Cluster, namespace: str, socket: Path, weft: Path,
                                   tmp_path: Path) -> None:
    for item in load(FOLDER / "overlays/agents-from-cluster/agent-role.yaml"):
        if item["kind"] == "Role":
            cluster.must("apply", "-n", namespace, "-f", "-", stdin=item)
    cluster.must("create", "-n", namespace, "rolebinding", "plain", "--role=weft-agent",
                 "--user=plain")
    url = f"kubernetes:?namespace={namespace}&kubeconfig={cluster.kubeconfig('plain')}"
    shown = Shown(cluster, namespace)
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft, versions=(4,))

        def show(kind: str, name: str, revision: int) -> None:
            shown.put(json.loads(site.hub.run([weft, "get", kind, name], quiet=True).out),
                      revision)

        n1, n2, n3 = (join(site, name, cluster, socket) for name in ("n1", "n2", "n3"))
        show("Network", "default", 1)
        for revision, name in enumerate(("hub", "n1", "n2"), 1):
            show("Node", name, revision)
        for node in (n1, n2, n3):
            start(node, url)
        n1.agent.wait_line("the cluster says who is in the network", 30)
        # n3 is a member of the hub's, but the cluster does not show it.
        wait_for(has_peers(n1, "n2"), 20, "n1 to have the peer n2 and no other")
        wait_for(lambda: can_ping(n1.host, n2.address()), 20, "n2 to answer n1")

        show("Node", "n3", 4)
        wait_for(has_peers(n1, "n2", "n3"), 20, "n1 to have the peer n3")
        wait_for(lambda: can_ping(n1.host, n3.address()), 20, "n3 to answer n1")
        address = n2.address()
        shown.delete("default.n2")
        wait_for(has_peers(n1, "n3"), 20, "n1 to have n2 no more")
        assert not can_ping(n1.host, address)

        kill(cluster)
        try:
            n1.agent.wait_line(API_AWAY, 20)
            assert has_peers(n1, "n3")()
            assert can_ping(n1.host, n3.address())
        finally:
            cluster.restart()
        shown.put({"kind": "MeshEdge", "metadata": {"network": "default", "name": "n1--n3"},
                   "spec": {"nodes": ["n1", "n3"], "path": "off"}}, 6)
        wait_for(lambda: not can_ping(n1.host, n3.address()), 20, "n1 and n3 to be kept apart")
