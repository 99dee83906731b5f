"""Networks, Nodes and MeshEdges as resources: what the hub shows, and what people wish there."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from .cluster import ROOT, Answer, Cluster
from .test_store import end, hub, wait_up

LIMIT_S = 30
NUMBERS = count(1)
EDGE = "default.gpu-1--gpu-2"


def until(is_so: Callable[[], object], what: str) -> object:
    """What @is_so returns, as soon as it is true."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return found


@dataclass
class Hub:
    """A hub of a namespace, with the Role that we ship, and two nodes."""
    cluster: Cluster
    namespace: str
    weft: Path
    folder: Path
    process: subprocess.Popen

    def run(self, *args: object) -> str:
        done = subprocess.run([self.weft, *map(str, args), "--socket", self.folder / "hub.sock"],
                              check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"weft {args}: {done.stdout}"
        return done.stdout

    def holds(self, text: str, *what: object) -> bool:
        """Does the hub have that object, with that text in it?"""
        done = subprocess.run([self.weft, "get", *map(str, what), "--socket",
                               self.folder / "hub.sock"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.returncode == 0 and text in done.stdout

    def kubectl(self, *args: object, stdin: object = None) -> Answer:
        return self.cluster.kubectl(*args, "-n", self.namespace, stdin=stdin)

    def must(self, *args: object, stdin: object = None) -> Answer:
        return self.cluster.must(*args, "-n", self.namespace, stdin=stdin)

    def get(self, kind: str, name: str) -> dict:
        """With all fields, those of ownership too; empty: there is none."""
        path = f"/apis/weft.dev/v1alpha1/namespaces/{self.namespace}/{kind}/{name}"
        answer = self.cluster.kubectl("get", "--raw", path)
        return answer.json() if answer.code == 0 else {}

    def accepted(self, kind: str, name: str) -> tuple[str, str]:
        """Status and message of that condition, if it is of the present spec."""
        found = self.get(kind, name)
        for one in found.get("status", {}).get("conditions", []):
            if (one["type"] == "Accepted" and
                    one["observedGeneration"] == found["metadata"]["generation"]):
                return one["status"], one.get("message", "")
        return "", ""

    def edge_is(self, status: str) -> bool:
        return self.accepted("meshedges", EDGE)[0] == status

    def uid(self, kind: str, name: str) -> str:
        return self.get(kind, name).get("metadata", {}).get("uid", "")

    def events(self) -> list[tuple[str, str, str]]:
        found = self.must("get", "events", "-o", "json").json()["items"]
        return [(one["involvedObject"]["name"], one["reason"], one["message"]) for one in found]

    def metric(self, name: str) -> float:
        text = subprocess.run(["curl", "-s", "--unix-socket", self.folder / "hub.sock",
                               "http://hub/v1/metrics"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)


@pytest.fixture(name="oldest")
def fixture_oldest(live: Hub) -> Hub:
    """What is the same for all versions is tried on one."""
    if live.cluster.variant != "1.20":
        pytest.skip("tried on Kubernetes 1.20")
    return live


@pytest.fixture(scope="module", name="live")
def fixture_live(cluster: Cluster, weft: Path,
                 tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    namespace = cluster.namespace(f"live-{next(NUMBERS)}")
    cluster.must("apply", "-n", namespace, "-f",
                 ROOT / "deploy/kubernetes/overlays/several-hubs/hub-role.yaml")
    cluster.must("create", "-n", namespace, "rolebinding", "plain", "--role=weft-hub",
                 "--user=plain")
    folder = tmp_path_factory.mktemp("live")
    process = hub(cluster, weft, folder, namespace, "plain")
    wait_up(process)
    made = Hub(cluster, namespace, weft, folder, process)
    for name in ("gpu-1", "gpu-2"):
        made.run("node", "add", name, "--new-key")
    until(lambda: made.accepted("nodes", "default.gpu-2")[0] == "True", "no resource of a node")
    yield made
    end(process)


def edge(path: str, nodes: tuple[str, str] = ("gpu-1", "gpu-2")) -> dict:
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge",
            "metadata": {"name": f"default.{nodes[0]}--{nodes[1]}"},
            "spec": {"nodes": list(nodes), "path": path}}


def owners(resource: dict) -> dict[str, dict]:
    """What each field manager owns."""
    return {one["manager"]: one["fieldsV1"] for one in resource["metadata"]["managedFields"]}


def test_what_the_hub_has_is_shown(live: Hub) -> None:
    network = live.get("networks", "default")
    assert network["spec"]["cidr4"] == "10.77.0.0/16"
    node = live.get("nodes", "default.gpu-1")
    held = json.loads(live.run("get", "Node", "gpu-1"))
    assert {**node["spec"], "labels": {}, "island": ""} == held["spec"]
    assert "f:spec" in owners(node)["weft-hub"]
    assert "f:engine" in owners(node)["agent/gpu-1"]["f:status"]
    assert "f:conditions" in owners(node)["weft-hub-status"]["f:status"]
    row = next(line for line in live.must("get", "nodes.weft.dev").out.splitlines()
               if line.startswith("default.hub"))
    assert row.split()[-3:-1] == ["True", "True"]  # READY, ACCEPTED


def test_wishes(live: Hub) -> None:
    """What is applied, patched and deleted becomes the hub's, or stays with the hub's sentence."""
    live.must("apply", "-f", "-", stdin=edge("relay"))
    until(lambda: live.edge_is("True"), "not accepted")
    assert '"relay"' in live.run("get", "MeshEdge", "gpu-1--gpu-2")
    assert "kubernetes:claimed:kubectl-client-side-apply  create edge/" in live.run("audit")
    live.must("patch", "nodes.weft.dev", "default.gpu-1", "--type=merge", "-p",
              '{"spec": {"labels": {"gpu": "h100"}}}')
    until(lambda: live.holds('"h100"', "Node", "gpu-1"), "the hub has no such label")
    # Refused: the text stays, and the hub's own is as it was.
    live.must("patch", "nodes.weft.dev", "default.gpu-2", "--type=merge", "-p",
              '{"spec": {"routes": ["10.77.0.0/24"]}}')
    words = "route 10.77.0.0/24 overlaps 10.77.0.0/16"
    until(lambda: words in live.accepted("nodes", "default.gpu-2")[1], "no refusal")
    assert live.accepted("nodes", "default.gpu-2")[0] == "False"
    assert live.get("nodes", "default.gpu-2")["spec"]["routes"] == ["10.77.0.0/24"]
    assert "routes" not in live.run("get", "Node", "gpu-2")
    until(lambda: any(name == "default.gpu-2" and words in text
                      for name, _, text in live.events()), "no event")
    # And taken back.
    live.must("patch", "nodes.weft.dev", "default.gpu-2", "--type=merge", "-p",
              '{"spec": {"routes": null}}')
    until(lambda: live.accepted("nodes", "default.gpu-2")[0] == "True", "still refused")


def test_rules(live: Hub) -> None:
    """A rule that is applied is the hub's, a wrong one is refused in words, its own are shown."""
    rule = {"apiVersion": "weft.dev/v1alpha1", "kind": "Rule", "metadata": {"name": "default.ssh"},
            "spec": {"from": ["members"], "to": ["role=gpu"], "allow": ["tcp/22"]}}
    live.must("apply", "-f", "-", stdin=rule)
    until(lambda: live.holds('"tcp/22"', "Rule", "ssh"), "the hub has no such rule")
    until(lambda: live.accepted("rules", "default.ssh")[0] == "True", "not accepted")
    live.must("patch", "rules.weft.dev", "default.ssh", "--type=merge", "-p",
              '{"spec": {"from": ["gpu"]}}')
    words = '"gpu" is none of members, hub'
    until(lambda: words in live.accepted("rules", "default.ssh")[1], "no refusal")
    assert live.holds('"members"', "Rule", "ssh")
    live.run("rule", "add", "ping", "--from", "hub", "--to", "members", "--allow", "icmp")
    until(lambda: live.get("rules", "default.ping").get("spec", {}).get("allow") == ["icmp"],
          "what the hub has is not shown")
    live.run("rule", "rm", "ping")
    until(lambda: not live.get("rules", "default.ping"), "what the hub removed is still shown")
    live.must("delete", "rules.weft.dev", "default.ssh")
    until(lambda: not json.loads(live.run("rule", "ls", "--json"))["rules"], "the rule stays")


def test_what_is_missing_may_come(oldest: Hub) -> None:
    """An edge of a node that is not there is kept, and is no edge of the hub."""
    oldest.must("apply", "-f", "-", stdin=edge("off", ("gpu-1", "gpu-7")))
    name = "default.gpu-1--gpu-7"
    until(lambda: 'has no node "gpu-7"' in oldest.accepted("meshedges", name)[1], "no refusal")
    oldest.must("delete", "meshedges.weft.dev", name)


def test_conflict(oldest: Hub) -> None:
    """A field that a person owns is not taken; both see it."""
    oldest.must("apply", "-f", "-", stdin=edge("relay"))
    until(lambda: oldest.holds('"relay"', "MeshEdge", "gpu-1--gpu-2"), "not applied")
    until(lambda: oldest.edge_is("True"), "not accepted")
    oldest.run("edge", "set", "gpu-1", "gpu-2", "--path", "direct")
    until(lambda: oldest.edge_is("False"), "no conflict")
    words = oldest.accepted("meshedges", EDGE)[1]
    assert "kubectl-client-side-apply" in words
    assert ".spec.path" in words
    assert oldest.get("meshedges", EDGE)["spec"]["path"] == "relay"
    assert '"direct"' in oldest.run("get", "MeshEdge", "gpu-1--gpu-2")
    until(lambda: any(reason == "Conflict" for _, reason, _ in oldest.events()), "no event")
    # The person gives in.
    oldest.must("apply", "-f", "-", stdin=edge("direct"))
    until(lambda: oldest.edge_is("True"), "conflict stays")


def test_ownership_by_server_side_apply(live: Hub) -> None:
    """Who applies a field of the hub's is told whose it is, and may take it."""
    given = {"apiVersion": "weft.dev/v1alpha1", "kind": "Network", "metadata": {"name": "default"},
             "spec": {"topology": "mesh"}}
    apply = ["apply", "--server-side", "--validate=false", "--field-manager=alice", "-f", "-"]
    answer = live.kubectl(*apply, stdin=given)
    assert answer.code != 0
    assert '"weft-hub"' in answer.err
    live.must(*apply, "--force-conflicts", stdin=given)
    until(lambda: live.holds('"mesh"', "Network", "default"), "not applied")
    until(lambda: live.accepted("networks", "default")[0] == "True", "not accepted")
    assert "f:topology" in owners(live.get("networks", "default"))["alice"]["f:spec"]
    # Neither side writes without a reason.
    before = live.get("networks", "default")["metadata"]["resourceVersion"]
    live.run("network", "add", "third", "--cidr4", "10.11.0.0/16")
    until(lambda: live.accepted("networks", "third")[0] == "True", "the next one is not shown")
    assert live.get("networks", "default")["metadata"]["resourceVersion"] == before
    live.run("network", "rm", "third")
    until(lambda: not live.get("networks", "third"), "what the hub removed is still shown")


def test_delete(oldest: Hub) -> None:
    oldest.must("apply", "-f", "-", stdin=edge("off"))
    until(lambda: oldest.holds('"off"', "MeshEdge", "gpu-1--gpu-2"), "not applied")
    oldest.must("delete", "meshedges.weft.dev", EDGE)
    assert "remove edge/default/gpu-1--gpu-2" in oldest.run("audit")
    # What the hub does not remove is there again.
    before = oldest.uid("nodes", "default.hub")
    oldest.must("delete", "nodes.weft.dev", "default.hub")
    until(lambda: oldest.uid("nodes", "default.hub") not in ("", before),
          "the hub's node is not shown again")
    until(lambda: any("is the hub itself" in text for _, _, text in oldest.events()), "no event")


def test_dry_run(oldest: Hub) -> None:
    """The API server checks what it can; nothing is written, and the hub is not asked."""
    answer = oldest.kubectl("apply", "--dry-run=server", "-f", "-", stdin=edge("scenic"))
    assert answer.code != 0
    oldest.must("apply", "--dry-run=server", "-f", "-", stdin=edge("relay"))
    assert not oldest.get("meshedges", EDGE)


def test_a_watch_that_is_too_old(oldest: Hub) -> None:
    """410: what the hub's watches would go on from is not there any more; nothing is lost."""
    before = oldest.get("networks", "default")["metadata"]["resourceVersion"]
    oldest.process.send_signal(signal.SIGSTOP)
    oldest.must("patch", "nodes.weft.dev", "default.gpu-1", "--type=merge", "-p",
                '{"spec": {"island": "rack-7"}}')
    for number in range(3):
        oldest.must("annotate", "networks.weft.dev", "default", f"note={number}", "--overwrite")
    # A server that has just begun remembers nothing of before.
    oldest.cluster.kill()
    oldest.cluster.restart()
    oldest.cluster.wait_served()
    path = f"/apis/weft.dev/v1alpha1/namespaces/{oldest.namespace}/networks?watch=true"
    said = oldest.cluster.must(
        "get", "--raw", f"{path}&resourceVersion={before}&timeoutSeconds=1").out
    oldest.process.send_signal(signal.SIGCONT)
    assert '"code":410' in said
    until(lambda: oldest.holds('"rack-7"', "Node", "gpu-1"), "the wish is lost")
    until(lambda: oldest.accepted("nodes", "default.gpu-1")[0] == "True", "not accepted")


def test_one_hub_writes_at_a_time(oldest: Hub, tmp_path: Path) -> None:
    """Another hub of the store waits; it goes on when the first one has ended."""
    # The networks' keys are files of each hub's own.
    subprocess.run(["cp", "-r", oldest.folder / "hub", tmp_path / "hub"], check=True)
    second = hub(oldest.cluster, oldest.weft, tmp_path, oldest.namespace, "plain")
    wait_up(second)
    other = Hub(oldest.cluster, oldest.namespace, oldest.weft, tmp_path, second)
    lease = oldest.must("get", "lease", "weft-hub", "-o", "json").json()
    assert oldest.metric("weft_kubernetes_leading") == 1
    assert other.metric("weft_kubernetes_leading") == 0
    end(oldest.process)
    # What people wish while nobody leads is not lost.
    oldest.must("apply", "-f", "-", stdin=edge("off"))
    try:
        until(lambda: other.edge_is("True"),
              "nobody does what was wished")
        assert '"off"' in other.run("get", "MeshEdge", "gpu-1--gpu-2")
        assert other.metric("weft_kubernetes_leading") == 1
        after = oldest.must("get", "lease", "weft-hub", "-o", "json").json()
        assert after["spec"]["holderIdentity"] != lease["spec"]["holderIdentity"]
    finally:
        end(second)
