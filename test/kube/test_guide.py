"""Every command of docs/KUBERNETES.md, typed in its order on a real API server.

The server has no controllers and no kubelet: what a DaemonSet's controller would report is written
here, and what is typed into pods is run by the tests that ELSEWHERE names. Only names of hosts and
of namespaces that there are already are replaced. A command without a rule fails the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab.support.pages import Command, commands

from .cluster import ROOT, Cluster
from .manifests import resolve

PAGE = ROOT / "docs/KUBERNETES.md"
AGENT = "/apis/apps/v1/namespaces/weft/daemonsets/weft-agent"
# What other tests run: the command, the test, and a line of that test which shows it.
ELSEWHERE = [
    (r"kubectl exec -n weft weft-hub-0 -- weft token new .*", "test/lab/shipped/test_pods.py",
     r'hub\.run\("token", "new"'),
    (r"kubectl exec -n weft daemonset/weft-agent -- weft status", "test/lab/shipped/test_pods.py",
     r'run\("status"\)'),
    (r"kubectl exec -n weft weft-hub-0 -- weft nodes", "test/lab/member/test_subnets.py",
     r'hub\(site, "nodes"\)'),
    (r'kubectl exec -n weft weft-hub-0 -- weft node set .*', "test/kube/test_nodes.py",
     r'"pod-cidrs"'),
    (r"kubectl get nodes -o jsonpath=.*", "test/kube/test_nodes.py", r'"pod-cidrs"'),
    (r"weft join TOKEN --no-masquerade", "test/kube/test_nodes.py", r'"--no-masquerade"'),
    (r"weft join --foreground --from kubernetes:", "test/lab/shipped/test_pods.py",
     r'pod_of\("agent"\)'),
    (r"weft status --json", "test/lab/support/agents.py", r'"status", "--json"'),
    (r"kubectl get --raw /api/v1/nodes/gpu-1/proxy/healthz", "test/kube/test_nodes.py",
     r"/proxy/healthz"),
    (r"kubectl apply -k deploy/kubernetes/overlays/several-hubs", "test/kube/test_manifests.py",
     r"def test_the_server_takes_it"),
    (r"weft hub up --store 'kubernetes:\?namespace=weft' \.\.\.", "test/kube/test_store.py",
     r'"hub", "up"'),
    (r"kubectl apply -f deploy/kubernetes/crds\.yaml", "test/kube/cluster.py",
     r'"apply", "--validate=false", "-f", CRDS'),
    (r"kubectl apply -f deploy/kubernetes/edge-policy\.yaml", "test/kube/test_writers.py",
     r'load\(FOLDER / "edge-policy.yaml"\)'),
    (r"weft agent --edges-to 'kubernetes:\?.*'", "test/kube/test_writers.py",
     r'"--edges-to", url\('),
    (r"kubectl wait --for=condition=Stale=false .*", "test/kube/test_writers.py",
     r'"wait", "--for=condition=Stale=false"'),
]
# Named in a sentence, without what they would need to be run.
MENTIONED = re.compile(r"kubectl( logs| apply -k| delete -k| apply --dry-run=server)?|"
                       r"kubectl get -o yaml --show-managed-fields|(weft|make)( [a-z]+)*( FULL=1)?")


@dataclass
class Typist:
    """Somebody at a shell in the root of the source, with a kubeconfig."""
    cluster: Cluster
    folder: Path
    namespace: str = "weft"  # the last one that was made

    def type(self, text: str) -> str:
        (self.folder / "bin").mkdir(exist_ok=True)
        link = self.folder / "bin/kubectl"
        if not link.exists():
            link.symlink_to(self.cluster.bin / "kubectl")
        deploy = self.folder / "deploy"
        if not deploy.exists():
            deploy.symlink_to(ROOT / "deploy")
        done = subprocess.run(["sh", "-ec", text], cwd=self.folder, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=os.environ | {"HOME": str(self.folder),
                                                "KUBECONFIG": str(self.cluster.kubeconfig()),
                                                "PATH": f"{link.parent}:{os.environ['PATH']}"})
        assert done.returncode == 0, f"$ {text}\n{done.stdout}"
        return done.stdout


def node(t: Typist, text: str) -> None:
    t.cluster.must("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node",
                                               "metadata": {"name": "gpu-9"}})
    t.type(text.replace("HOST", "gpu-9"))
    assert t.cluster.get("node", "gpu-9")["metadata"]["labels"]["weft.dev/hub"] == "true"


def install(t: Typist, text: str) -> None:
    """kubectl 1.20 has a kustomize inside that is too old, as the page says: what a current one
    makes, and test_manifests.py holds against it, is applied."""
    items = resolve(text.removeprefix("kubectl apply -k deploy/kubernetes/"))
    said = t.cluster.must("apply", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "List", "items": items}).out
    for made in ("statefulset.apps/weft-hub", "daemonset.apps/weft-agent",
                 "daemonset.apps/weft-probe", "networkpolicy.networking.k8s.io/weft-default"):
        assert made in said


def secret(t: Typist, text: str) -> None:
    (t.folder / "token").write_text("weft1.example")
    t.type(text)
    made = t.cluster.get("secret", "-n", "weft", "weft-token")
    pod = t.cluster.get("daemonset", "-n", "weft", "weft-agent")["spec"]["template"]["spec"]
    [name] = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v]
    assert (list(made["data"]), name) == (["token"], "weft-token")
    assert not (t.folder / "token").exists()


def rollout(t: Typist, text: str) -> None:
    """What the controller of DaemonSets would say when all its pods are ready."""
    shown = t.cluster.must("get", "--raw", AGENT).json()
    shown["status"] = {"observedGeneration": shown["metadata"]["generation"],
                       **dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled",
                                        "numberAvailable", "numberReady",
                                        "updatedNumberScheduled"), 1), "numberMisscheduled": 0}
    t.cluster.must("replace", "--raw", f"{AGENT}/status", "-f", "-", stdin=shown)
    assert "successfully rolled out" in t.type(text)


def another_namespace(t: Typist, text: str) -> None:
    """The page comes to the same name by several ways; here the namespace is there already."""
    t.namespace = f"weft-{len(t.cluster.get('namespaces')['items'])}"
    t.type(re.sub(r"\bweft$", t.namespace, text))


def label(t: Typist, text: str) -> None:
    """Of a namespace that is new, for Helm; the overlays' own has it already."""
    t.type(text.replace(" weft ", f" {t.namespace} "))
    labels = t.cluster.get("namespace", t.namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def role(t: Typist, text: str) -> None:
    assert "role.rbac.authorization.k8s.io/weft-hub" in t.type(text)


def look(t: Typist, text: str) -> None:
    t.type(text)


def release(t: Typist, text: str) -> None:
    """An edge that a hub held, and that may go."""
    name = "default.gpu-1--gpu-2"
    t.cluster.must("apply", "-n", "weft", "-f", "-", stdin={
        "apiVersion": "weft.dev/v1alpha1", "kind": "MeshEdge",
        "metadata": {"name": name, "finalizers": ["weft.dev/hub"]},
        "spec": {"nodes": ["gpu-1", "gpu-2"]}})
    t.cluster.must("delete", "-n", "weft", "wedge", name, "--wait=false")
    assert t.cluster.kubectl("get", "-n", "weft", "wedge", name).code == 0
    t.type(text.replace("NAME", f"{name} -n weft"))
    assert t.cluster.kubectl("get", "-n", "weft", "wedge", name).code != 0


RULES: list[tuple[str, Callable[[Typist, str], None]]] = [
    (r"kubectl label node HOST .*", node),
    (r"kubectl apply -k deploy/kubernetes/overlays/one-hub", install),
    (r"kubectl create secret .*", secret),
    (r"kubectl rollout status .*", rollout),
    (r"kubectl create namespace weft", another_namespace),
    (r"kubectl label namespace weft .*", label),
    (r"kubectl apply -n weft -f .*hub-role\.yaml", role),
    (r"kubectl get nodes -o wide|kubectl get records\.weft\.dev -n weft -o yaml", look),
    (r"kubectl patch wedge NAME .*", release),
]


def find(command: Command) -> Callable[[Typist, str], None] | None:
    """What to do with it; None: it is run elsewhere, or only named."""
    for pattern, act in RULES:
        if re.fullmatch(pattern, command.text):
            return act
    for pattern, path, proof in ELSEWHERE:
        if re.fullmatch(pattern, command.text.removesuffix("; done")):
            assert re.search(proof, (ROOT / path).read_text()), f"{path} does not run {command}"
            return None
    assert command.inline and MENTIONED.fullmatch(command.text), f"no test runs {command}"
    return None


def test_each_command_has_a_rule() -> None:
    """Without a cluster: a command that nobody runs is found."""
    all_of_them = list(commands(PAGE))
    assert len([find(command) for command in all_of_them]) > 30
    for pattern, _ in RULES:
        assert any(re.fullmatch(pattern, command.text) for command in all_of_them), pattern
    with pytest.raises(AssertionError, match="no test runs"):
        find(Command("KUBERNETES.md", 1, "kubectl get everything", "", False, ""))


# Kinds of Kubernetes' own are served by the same server in both variants.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_every_command(cluster: Cluster, tmp_path: Path) -> None:
    typist = Typist(cluster, tmp_path)
    n = 0
    for command in commands(PAGE):
        act = find(command)
        if act:
            act(typist, command.text)
            n += 1
    assert n >= len(RULES)
