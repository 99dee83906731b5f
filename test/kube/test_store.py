"""The store in Kubernetes: the contract of every store, and what only this one can promise."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from .cluster import ROOT, Cluster, free_ports

NAMESPACES = 20  # as many as the contract has tests, or more
SECONDS = 20     # of hubs that write while the server comes and goes


@pytest.fixture(name="programs")
def fixture_programs(weft: Path) -> Path:
    """The folder of the unit tests' programs."""
    folder = weft.parent / "src"
    if not (folder / "test-store").exists():
        pytest.skip(f"{folder}/test-store is not built")
    return folder


def run(cluster: Cluster, program: Path, **env: str) -> str:
    env |= {"WEFT_TEST_KUBECONFIG": str(cluster.kubeconfig())}
    done = subprocess.run([program], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300, env=os.environ | env)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_contract(cluster: Cluster, programs: Path) -> None:
    for number in range(NAMESPACES):
        cluster.namespace(f"store-{number}")
    said = run(cluster, programs / "test-store")
    assert "[  PASSED  ] 15 test(s)." in said
    # A text that no hub has written is not taken for one.
    assert cluster.kubectl("get", "-n", "store-0", "records.weft.dev", "floor").code == 0


def disturb(cluster: Cluster, is_over: threading.Event) -> None:
    """The server stands still for a moment, or dies and is started again."""
    rng = random.Random(7)
    while not is_over.wait(2 + rng.random()):
        if rng.random() < 0.5:
            os.kill(cluster.pid, signal.SIGSTOP)
            is_over.wait(rng.random() * 2)
            os.kill(cluster.pid, signal.SIGCONT)
        else:
            cluster.kill()
            cluster.restart()


def test_hubs_and_a_server_that_dies(cluster: Cluster, programs: Path) -> None:
    """No acknowledged write is lost, and none is done twice."""
    for name in ("hubs", "cut", "slept", "large"):
        cluster.namespace(name)
    if cluster.variant == "modern":
        # Two servers and their aggregation take too long to come back for more than the rest.
        print(run(cluster, programs / "test-store-kubernetes"))
        return
    is_over = threading.Event()
    thread = threading.Thread(target=disturb, args=(cluster, is_over))
    said = run(cluster, programs / "test-store-kubernetes", WEFT_TEST_ONLY="!test_two_hubs")
    thread.start()
    try:
        said += run(cluster, programs / "test-store-kubernetes", WEFT_TEST_ONLY="test_two_hubs",
                    WEFT_TEST_SECONDS=str(SECONDS))
    finally:
        is_over.set()
        thread.join()
    print(said)


def hub(cluster: Cluster, weft: Path, folder: Path, namespace: str, user: str) -> subprocess.Popen:
    """A hub whose store is that namespace. It says what it is on standard output."""
    ports = free_ports(2)
    url = f"kubernetes:?namespace={namespace}&kubeconfig={cluster.kubeconfig(user)}"
    return subprocess.Popen([weft, "hub", "up", "--state", folder / "hub", "--store", url,
                             "--socket", folder / "hub.sock", "--public", "192.0.2.1",
                             "--listen", f":{ports}", "--api", f"127.0.0.1:{ports + 1}",
                             "--no-dataplane"], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def end(process: subprocess.Popen) -> str:
    process.terminate()
    return process.communicate(timeout=30)[0]


def wait_up(process: subprocess.Popen) -> str:
    said = ""
    for line in process.stdout:
        said += line
        if "hub is up" in line:
            return line
    raise AssertionError(said)


def test_forbidden(cluster: Cluster, namespace: str, weft: Path, tmp_path: Path) -> None:
    """Who may not read the records is told so by the server's own words."""
    process = hub(cluster, weft, tmp_path, namespace, "plain")
    said = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    assert 'answers 403' in said
    assert 'User "plain" cannot get resource "records"' in said


VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
# What the Role gives for each resource, and nothing else.
ROLE = {
    "records.weft.dev": {"get", "list", "watch", "create", "update", "delete"},
    **dict.fromkeys(("networks.weft.dev", "nodes.weft.dev", "meshedges.weft.dev"),
                    {"list", "watch", "create", "patch", "delete"}),
    **dict.fromkeys(("networks.weft.dev/status", "meshedges.weft.dev/status"), {"patch"}),
    "leases.coordination.k8s.io": {"create"},
    "leases.coordination.k8s.io/weft-hub": {"get", "update", "create"},
    "events": {"create"},
    **dict.fromkeys(("secrets", "pods", "roles.rbac.authorization.k8s.io"), set()),
}


def may(cluster: Cluster, namespace: str, verb: str, what: str) -> bool:
    """Asks the API server, in the form that "kubectl auth can-i" has."""
    resource, _, rest = what.partition("/")
    resource, _, group = resource.partition(".")
    about = {"namespace": namespace, "verb": verb, "resource": resource, "group": group}
    about |= {"subresource": rest} if rest == "status" else {"name": rest} if rest else {}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
              "spec": {"resourceAttributes": about}}
    return cluster.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review,
                        token="plaintoken")["status"]["allowed"]


def test_a_hub_with_the_role_that_we_ship(cluster: Cluster, namespace: str, weft: Path,
                                          tmp_path: Path) -> None:
    """It starts, writes, and starts again upon what it wrote; and may do nothing else."""
    cluster.must("apply", "-n", namespace, "-f",
                 ROOT / "deploy/kubernetes/overlays/several-hubs/hub-role.yaml")
    cluster.must("create", "-n", namespace, "rolebinding", "plain", "--role=weft-hub",
                 "--user=plain")
    for what, allowed in ROLE.items():
        assert {verb for verb in VERBS if may(cluster, namespace, verb, what)} == allowed, what
    assert cluster.kubectl("get", "-n", "default", "records.weft.dev", user="plain").code != 0
    process = hub(cluster, weft, tmp_path, namespace, "plain")
    first = wait_up(process)
    weft_add = subprocess.run([weft, "network", "add", "second", "--cidr4", "10.9.0.0/16",
                               "--socket", tmp_path / "hub.sock"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert weft_add.returncode == 0, weft_add.stdout
    end(process)
    process = hub(cluster, weft, tmp_path, namespace, "plain")
    again = wait_up(process)
    assert "second (10.9.0.0/16" in again
    assert "second" not in first
    end(process)
