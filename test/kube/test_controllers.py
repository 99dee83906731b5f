"""deploy/kubernetes in a cluster with controllers and a scheduler: they make the pods.

      hub       203.0.113.10: the control plane, and a kubelet with the hub's pod
       |
     [ wan ]
      |   |
   gpu-1 gpu-2  203.0.113.11, .12: a kubelet each

All objects of overlays/one-hub are made, and a volume on the hub's host; nothing else is made here.
The DaemonSets make pods on each host, the StatefulSet makes the hub's and its claim, the claim is
bound, and all of them are replaced by a rolling update as `kubectl apply` begins one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode
from lab.support.pinging import Pings, can_ping
from lab.support.topologies import one_switch

from .cluster import has_controllers, has_kubelet, is_built
from .kubelet import Kubelet, has_cgroups, make_image, make_weft_image
from .test_nodes import ControlPlane
from .test_pods import HOSTS, Pods

pytestmark = pytest.mark.namespaces

AGENTS = ("gpu-1", "gpu-2")
HUB_LABEL = "--node-labels=weft.dev/hub=true"
ROLLOUT = ("--timeout", "50s")  # of one look; it is looked at until it is done
ROLLOUT_S = 150


class Controlled(Pods):
    """What the controllers have made of it."""

    def pods(self, component: str) -> dict[str, dict]:
        """The pods that are not on their way out, by the host that each is on."""
        said = self.kubectl("get", "pods", "-l", f"app.kubernetes.io/component={component}", "-o",
                            "json").out
        return {item["spec"].get("nodeName", ""): item for item in json.loads(said)["items"]
                if "deletionTimestamp" not in item["metadata"]}

    def wait_rolled_out(self, what: str) -> None:
        wait_for(lambda: self.kubectl("rollout", "status", *ROLLOUT, what, check=False).rc == 0,
                 ROLLOUT_S, f"the rollout of {what}")

    def change(self, what: str) -> None:
        """As `kubectl apply` of a new image does: the template is another one."""
        self.kubectl("rollout", "restart", what)

    def agent(self, host: str, *words: object) -> str:
        return self.inside(self.pods("agent")[host]["metadata"]["name"], *words)

    def selves(self) -> dict[str, dict]:
        return {host: json.loads(self.agent(host, "status", "--json"))["self"] for host in AGENTS}


def volume(folder: Path) -> dict:
    """A volume on the hub's host, as an administrator without a provisioner makes one."""
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "hub-state"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
                     "persistentVolumeReclaimPolicy": "Retain"}}


@pytest.fixture(name="made")
def fixture_made(weft: Path, tmp_path: Path) -> Iterator[tuple[Lab, Controlled]]:
    if not is_built("1.20") or not has_kubelet() or not has_controllers():
        pytest.skip('there are no controllers: "KUBE_KUBELET=1 KUBE_CONTROLLERS=1 make kube" '
                    "builds them once")
    if not has_cgroups():
        pytest.skip("the kubelet of 1.20 needs cgroups of version 1 at /sys/fs/cgroup")
    with Lab.from_text(one_switch("wan", "203.0.113", HOSTS), capture=False) as lab:
        host = lab.host("hub")
        made = Controlled(ControlPlane(AgentNode(host, weft), tmp_path / "plane", host.address(),
                                       controllers=True))
        kubelets: list[Kubelet] = []
        try:
            made.plane.start()
            images = [make_image(tmp_path), make_weft_image(tmp_path, weft, made.image)]
            for name in HOSTS:
                kubelets.append(Kubelet(lab.host(name), tmp_path / name, *images))
                kubelets[-1].start(made.plane.kubeconfig, lab.host(name).address(),
                                   *([HUB_LABEL] if name == "hub" else []))
            made.plane.kubectl("create", "-f", "-", stdin=volume(tmp_path / "volume"))
            made.apply_all()
            yield lab, made
        finally:
            made.kubectl("delete", "daemonsets,statefulsets", "--all", "--wait=false", check=False)
            for kubelet in kubelets:
                kubelet.stop()
            made.plane.stop()


def claims(made: Controlled) -> dict[str, tuple[str, str]]:
    """Of each claim whether it is bound, and to which volume."""
    said = json.loads(made.kubectl("get", "persistentvolumeclaims", "-o", "json").out)["items"]
    return {item["metadata"]["name"]: (item["status"]["phase"], item["spec"].get("volumeName", ""))
            for item in said}


def unanswered(pings: Pings) -> list[int]:
    """Those between the first answer and the last."""
    seen = [int(number) for line in pings.daemon.lines()
            for number in re.findall(r"icmp_seq=(\d+)", line)]
    return sorted(set(range(seen[0], seen[-1])) - set(seen))


def test_controllers_make_and_replace_all(made: tuple[Lab, Controlled]) -> None:
    lab, made = made
    made.wait_rolled_out("statefulset/weft-hub")
    assert claims(made) == {"state-weft-hub-0": ("Bound", "hub-state")}
    assert set(made.pods("hub")) == {"hub"}
    token = made.inside("weft-hub-0", "token", "new", "--uses", 1000, "--ttl", "24h").strip()
    made.kubectl("create", "secret", "generic", "weft-token", f"--from-literal=token={token}")
    made.wait_rolled_out("daemonset/weft-agent")
    # Not beside the hub, which is a node itself.
    assert set(made.pods("agent")) == set(AGENTS)
    before = made.selves()
    host, address = lab.host("gpu-1"), before["gpu-2"]["address4"]
    wait_for(lambda: can_ping(host, address), 60, "gpu-2 to answer gpu-1")
    wait_for(lambda: json.loads(made.agent("gpu-1", "status", "--json"))["peers"] and any(
        peer["name"] == "gpu-2" and peer["path"] in ("lan", "direct")
        for peer in json.loads(made.agent("gpu-1", "status", "--json"))["peers"]), 120,
        "a direct path from gpu-1 to gpu-2")

    # The hub is replaced, and has what it had: its volume is the same. Its nodes go on meanwhile.
    old = made.pods("hub")["hub"]["metadata"]["uid"]
    pings = Pings(host, address)
    pings.wait_more()
    made.change("statefulset/weft-hub")
    made.wait_rolled_out("statefulset/weft-hub")
    pings.wait_more()
    pings.stop()
    assert unanswered(pings) == []
    assert made.pods("hub")["hub"]["metadata"]["uid"] != old
    assert claims(made) == {"state-weft-hub-0": ("Bound", "hub-state")}
    known = made.inside("weft-hub-0", "nodes")
    assert all(name in known for name in AGENTS), known

    # Agents are replaced one host at a time, and are who they were; the edge is there again.
    old_pods = {name: pod["metadata"]["uid"] for name, pod in made.pods("agent").items()}
    made.kubectl("delete", "secret", "weft-token")
    made.change("daemonset/weft-agent")
    made.wait_rolled_out("daemonset/weft-agent")
    assert all(pod["metadata"]["uid"] != old_pods[name]
               for name, pod in made.pods("agent").items())
    after = made.selves()
    for name in AGENTS:
        assert after[name]["publicKey"] == before[name]["publicKey"]
        assert after[name]["address4"] == before[name]["address4"]
    wait_for(lambda: can_ping(host, address), 60, "gpu-2 to answer gpu-1 again")
    wait_for(lambda: can_ping(lab.host("gpu-2"), before["gpu-1"]["address4"]), 60,
             "gpu-1 to answer gpu-2 again")
