"""Kubelets behind NATs: the control plane reaches them, and their pods each other, over the mesh.

    hub ── [ wan ] ──┬── nat-a ── [ lan-a ] ── gpu-1 ─ ─ pods 10.244.1.0/24
     cp ── [ wan ]   └── nat-b ── [ lan-b ] ── gpu-2 ─ ─ pods 10.244.2.0/24

cp is the control plane: kube-apiserver and etcd. A kubelet's Node has its address in the overlay,
and so has the API server. Nothing but Weft leads from cp to port 10250 of gpu-1 and gpu-2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.network.process import Result
from lab.support.pages import blocks

from .cluster import TOOL, has_kubelet, is_built, programs
from .kubelet import IMAGE, Kubelet, has_cgroups, make_image

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host cp
link cp wan 203.0.113.11
nat nat-a port-restricted out=wan
link nat-a wan 203.0.113.21
switch lan-a 192.168.1.0/24 gateway=nat-a
link nat-a lan-a 192.168.1.1
host gpu-1
link gpu-1 lan-a 192.168.1.11
nat nat-b port-restricted out=wan
link nat-b wan 203.0.113.22
switch lan-b 192.168.1.0/24 gateway=nat-b
link nat-b lan-b 192.168.1.1
host gpu-2
link gpu-2 lan-b 192.168.1.11
"""
PODS = {"gpu-1": "10.244.1.0/24", "gpu-2": "10.244.2.0/24"}
PAGE = "this is a pod\n"  # of the image
PORT = 6443


@dataclass
class ControlPlane:
    """kube-apiserver on the host cp, at its address in the overlay."""
    node: AgentNode
    folder: Path
    address: str
    controllers: bool = False  # and the scheduler
    is_asked: bool = False  # by pods, as the Service "kubernetes": at its own port, with tokens

    def start(self) -> None:
        flags = (f"--bind-address 0.0.0.0 --advertise-address {self.address} "
                 "--kubelet-preferred-address-types InternalIP")
        if not self.is_asked:
            flags += " --disable-admission-plugins ServiceAccount"
        self.node.host.run([TOOL, "start", self.folder], timeout_s=120,
                           env=os.environ | {"KUBE_PORT": str(443 if self.is_asked else PORT),
                                             "KUBE_FLAGS": flags,
                                             "KUBE_CONTROLLERS": str(int(self.controllers))})
        text = (self.folder / "admin.kubeconfig").read_text()
        self.kubeconfig.write_text(text.replace("127.0.0.1", self.address))
        self.kubeconfig.chmod(0o600)

    def stop(self) -> None:
        self.node.host.run([TOOL, "stop", self.folder], timeout_s=60)

    @property
    def kubeconfig(self) -> Path:
        """As admin's, by way of the overlay: the server's certificate is for that address."""
        return self.folder / "overlay.kubeconfig"

    def kubectl(self, *words: object, check: bool = True, stdin: object = None) -> Result:
        return self.node.host.run(
            [programs() / "kubectl", "--kubeconfig", self.kubeconfig, *words],
            check=check, stdin=json.dumps(stdin) if stdin else None, quiet=not check,
            env={"HOME": str(self.folder)})

    def give_block(self, name: str) -> None:
        """What a cluster's controller does when a Node is new."""
        wait_for(lambda: self.kubectl("get", "node", name, check=False).rc == 0, 30,
                 f"the kubelet of {name} to register")
        self.kubectl("patch", "node", name, "-p", json.dumps(
            {"spec": {"podCIDR": PODS[name], "podCIDRs": [PODS[name]]}}))

    def make_pod(self, name: str, node: str) -> None:
        """One that says hello, and serves a page at port 8080."""
        script = "echo hello from $HOSTNAME; exec /bin/busybox httpd -f -vv -p 8080 -h /www"
        self.kubectl("create", "-f", "-", stdin={
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "automountServiceAccountToken": False,
                     "terminationGracePeriodSeconds": 0, "dnsPolicy": "Default",
                     "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "web", "image": IMAGE, "imagePullPolicy": "Never",
                                     "command": ["/bin/busybox", "sh", "-c", script]}]}})

    def address_of(self, pod: str) -> str:
        self.kubectl("wait", "--for", "condition=Ready", "--timeout", "60s", f"pod/{pod}")
        return self.kubectl("get", "pod", pod, "-o", "jsonpath={.status.podIP}").out

    def inside(self, pod: str, *words: object) -> Result:
        return self.kubectl("exec", pod, "--", "/bin/busybox", *words, check=False)

    def fetches(self, pod: str, address: str) -> bool:
        """Has it got the page of the pod at that address? wget -T of this busybox crashes."""
        url = f"http://{address}:8080/"
        return self.inside(pod, "timeout", "3", "/bin/busybox", "wget", "-qO-", url).out == PAGE


@dataclass
class Mesh:
    site: Site
    plane: ControlPlane
    nodes: list[AgentNode]


@pytest.fixture(name="mesh")
def fixture_mesh(weft: Path, tmp_path: Path) -> Iterator[Mesh]:
    if not is_built("1.20") or not has_kubelet():
        pytest.skip('there is no kubelet: "KUBE_KUBELET=1 make kube" builds it once')
    if not has_cgroups():
        pytest.skip("the kubelet of 1.20 needs cgroups of version 1 at /sys/fs/cgroup")
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        keep = ["--no-masquerade"]
        cp, *nodes = site.join("cp", *PODS, words=dict.fromkeys(PODS, keep))
        plane = ControlPlane(cp, tmp_path / "plane", cp.address())
        kubelets: list[Kubelet] = []
        try:
            plane.start()
            image = make_image(tmp_path)
            for node in nodes:
                kubelets.append(Kubelet(node.host, tmp_path / node.name, image))
                kubelets[-1].start(plane.kubeconfig, node.address())
            for node in nodes:
                plane.give_block(node.name)
            yield Mesh(site, plane, nodes)
        finally:
            for kubelet in kubelets:
                kubelet.stop()
            plane.stop()


def admit(mesh: Mesh) -> None:
    """The loop of KUBERNETES.md, line by line; what it runs in the hub's pod runs on the hub."""
    lines = blocks("KUBERNETES.md", "sh")["pod-cidrs"]
    loop, inner = lines.split("kubectl exec -n weft weft-hub-0 -- ")
    asked = loop[loop.index("jsonpath='") + len("jsonpath='"):].split("'")[0]
    for row in mesh.plane.kubectl("get", "nodes", "-o", f"jsonpath={asked}").out.splitlines():
        node, cidr = row.split()
        words = inner.split(";")[0].replace('"$node"', node).replace('"$cidr"', cidr).split()
        mesh.site.hub.run([mesh.site.weft, *words[1:]])


def test_kubelets_and_pods_over_the_mesh(mesh: Mesh) -> None:
    plane, (n1, n2) = mesh.plane, mesh.nodes
    for node in mesh.nodes:
        plane.make_pod(f"web-{node.name}", node.name)
    pod1, pod2 = (plane.address_of(f"web-{node.name}") for node in mesh.nodes)
    assert pod1.startswith("10.244.1.") and pod2.startswith("10.244.2.")

    # The API server reaches port 10250 of both: their addresses are the overlay's.
    for node in mesh.nodes:
        name = f"web-{node.name}"
        shown = plane.kubectl("get", "node", node.name, "-o", "jsonpath={.status.addresses}").out
        assert {"type": "InternalIP", "address": node.address()} in json.loads(shown)
        assert not plane.node.can_ping("192.168.1.11")
        assert plane.kubectl("logs", name).out.startswith(f"hello from {name}")
        assert plane.inside(name, "hostname").out.strip() == name
        assert plane.kubectl("get", "--raw",
                             f"/api/v1/nodes/{node.name}/proxy/healthz").out == "ok"

    # Before the hub has admitted a Node's pods, nobody is led to them, and nobody takes what they
    # send: a node may send from its own addresses, and from subnets that the hub gave it.
    assert n1.status()["routes"] == []
    assert plane.fetches("web-gpu-1", pod1)
    assert not plane.fetches("web-gpu-1", pod2)
    assert plane.inside("web-gpu-1", "ping", "-c", "1", "-W", "1", n2.address()).rc != 0

    admit(mesh)
    assert mesh.site.hub_nodes()["gpu-1"]["spec"]["routes"] == [PODS["gpu-1"]]
    wait_for(lambda: plane.fetches("web-gpu-1", pod2), 20,
             "the pod of gpu-2 to answer the pod of gpu-1")
    assert plane.fetches("web-gpu-2", pod1)
    assert plane.inside("web-gpu-1", "ping", "-c", "1", "-W", "5", n2.address()).rc == 0
    assert plane.inside("web-gpu-1", "ping", "-c", "1", "-W", "5", pod2).rc == 0
    # Pods see who has sent, and not its node.
    assert f"{pod1}]" in plane.kubectl("logs", "web-gpu-2").out

    # A block that is another node's is refused, and nothing has changed for anybody.
    refused = mesh.site.hub.run([mesh.site.weft, "node", "set", "gpu-2", "--route", PODS["gpu-2"],
                                 "--route", "10.244.1.128/25"], check=False)
    assert refused.rc != 0
    assert "10.244.1.128/25 overlaps 10.244.1.0/24" in refused.err
    assert {one["route"]: one["node"] for one in n1.status()["routes"]} == \
        {PODS["gpu-2"]: "gpu-2"}
    print("paths:", {name: peer["path"] for name, peer in n1.peers().items()})
