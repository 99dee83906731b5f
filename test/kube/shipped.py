"""The objects of deploy/kubernetes in a cluster of a lab: a control plane, and kubelets.

The control plane is on a host of the lab. Without controllers and a scheduler the pods are made
here, each of its DaemonSet's or StatefulSet's template. With them, they make the pods.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode
from lab.support.pinging import Pings

from .cluster import has_controllers, has_kubelet, is_built
from .kubelet import Kubelet, has_cgroups, make_image, make_weft_image
from .manifests import identity, resolve
from .test_nodes import ControlPlane

HUB_LABEL = "--node-labels=weft.dev/hub=true"
READY_S = 60
ROLLOUT = ("--timeout", "50s")  # of one look; it is looked at until it is done
ROLLOUT_S = 150


def need_kubelets(controllers: bool = False) -> None:
    """Skip what cannot be run here, and say why."""
    if controllers and not has_controllers():
        pytest.skip('there are no controllers: "KUBE_KUBELET=1 KUBE_CONTROLLERS=1 make kube" '
                    "builds them once")
    if not is_built("1.20") or not has_kubelet():
        pytest.skip('there is no kubelet: "KUBE_KUBELET=1 make kube" builds it once')
    if not has_cgroups():
        pytest.skip("the kubelet of 1.20 needs cgroups of version 1 at /sys/fs/cgroup")


class Pods:
    """The control plane, and what the overlay makes there."""

    def __init__(self, plane: ControlPlane, overlay: str) -> None:
        self.plane = plane
        self.items = {identity(item): item for item in resolve(f"overlays/{overlay}")}

    @property
    def image(self) -> str:
        template = self.items["DaemonSet", "weft-agent"]["spec"]["template"]
        return template["spec"]["containers"][0]["image"]

    def kubectl(self, *words: object, check: bool = True, stdin: object = None):
        return self.plane.kubectl("--namespace=weft", *words, check=check, stdin=stdin)

    def apply_all(self) -> None:
        for item in sorted(self.items.values(), key=lambda item: item["kind"] != "Namespace"):
            self.plane.kubectl("create", "-f", "-", stdin=item)

    def make_pod(self, kind: str, owner: str, name: str, node: str) -> None:
        """What a controller and the scheduler do."""
        item = self.items[kind, owner]
        template = copy.deepcopy(item["spec"]["template"])
        template["spec"]["nodeName"] = node
        for claim in item["spec"].get("volumeClaimTemplates", []):
            template["spec"]["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
        self.kubectl("create", "-f", "-", stdin={
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": template["metadata"] | {"name": name}})

    def wait_ready(self, *names: str) -> None:
        for name in names:
            found = self.kubectl("wait", "--for", "condition=Ready", "--timeout", f"{READY_S}s",
                                 f"pod/{name}", check=False)
            if found.rc != 0:
                raise AssertionError(self.kubectl("describe", "pod", name, check=False).out +
                                     self.kubectl("logs", name, check=False).out)

    def inside(self, pod: str, *words: object) -> str:
        return self.kubectl("exec", pod, "--", "weft", *words).out

    # ---- what controllers have made of it ----

    def pods(self, component: str) -> dict[str, dict]:
        """The pods that are not on their way out, by the host that each is on."""
        said = self.kubectl("get", "pods", "-l", f"app.kubernetes.io/component={component}", "-o",
                            "json").out
        return {item["spec"].get("nodeName", ""): item for item in json.loads(said)["items"]
                if "deletionTimestamp" not in item["metadata"]}

    def is_rolled_out(self, what: str) -> bool:
        return self.kubectl("rollout", "status", *ROLLOUT, what, check=False).rc == 0

    def wait_rolled_out(self, what: str) -> None:
        wait_for(lambda: self.is_rolled_out(what), ROLLOUT_S, f"the rollout of {what}")

    def change(self, what: str) -> None:
        """As `kubectl apply` of a new image does: the template is another one."""
        self.kubectl("rollout", "restart", what)

    def agent(self, host: str, *words: object) -> str:
        return self.inside(self.pods("agent")[host]["metadata"]["name"], *words)

    def status(self, host: str) -> dict:
        return json.loads(self.agent(host, "status", "--json"))

    def is_direct(self, host: str, other: str) -> bool:
        return any(peer["name"] == other and peer["path"] in ("lan", "direct")
                   for peer in self.status(host)["peers"])

    def claims(self) -> dict[str, tuple[str, str]]:
        """Of each claim whether it is bound, and to which volume."""
        said = json.loads(self.kubectl("get", "persistentvolumeclaims", "-o", "json").out)["items"]
        return {item["metadata"]["name"]: (item["status"]["phase"],
                                           item["spec"].get("volumeName", "")) for item in said}


def unanswered(pings: Pings) -> list[int]:
    """Those between the first answer and the last."""
    seen = [int(number) for line in pings.daemon.lines()
            for number in re.findall(r"icmp_seq=(\d+)", line)]
    return sorted(set(range(seen[0], seen[-1])) - set(seen))


def volume(name: str, folder: Path, claim: str, host: str) -> dict:
    """A volume on that host for that claim, as an administrator without a provisioner makes one."""
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
                     "claimRef": {"namespace": "weft", "name": claim},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                         {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}]}},
                     "persistentVolumeReclaimPolicy": "Retain"}}


@contextmanager
def running(lab: Lab, weft: Path, folder: Path, plane: ControlPlane, overlay: str,
            hosts: Mapping[str, str]) -> Iterator[Pods]:
    """The control plane runs, and a kubelet on each of the hosts, with a label: "" for none."""
    made = Pods(plane, overlay)
    kubelets: list[Kubelet] = []
    try:
        plane.start()
        images = [make_image(folder), make_weft_image(folder, weft, made.image)]
        for name, label in hosts.items():
            kubelets.append(Kubelet(lab.host(name), folder / name, *images))
            kubelets[-1].start(plane.kubeconfig, lab.host(name).address(),
                               *([label] if label else []))
        for name in hosts:
            wait_for(lambda name=name: made.kubectl("get", "node", name, check=False).rc == 0, 60,
                     f"the kubelet of {name} to register")
        yield made
    finally:
        if plane.controllers:
            made.kubectl("delete", "daemonsets,statefulsets", "--all", "--wait=false", check=False)
        for kubelet in kubelets:
            kubelet.stop()
        plane.stop()


def plane_on(lab: Lab, weft: Path, folder: Path, name: str, **options: object) -> ControlPlane:
    """A control plane on that host, at its address."""
    host = lab.host(name)
    return ControlPlane(AgentNode(host, weft), folder / "plane", host.address(), **options)
