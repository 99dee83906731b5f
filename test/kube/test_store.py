"""The store in Kubernetes: the contract of every store, and what only this one can promise."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab.support.ports import free_ports

from .cluster import ROOT, Cluster

NAMESPACES = 20  # as many as the contract has tests, or more
SECONDS = 20     # of hubs that write while the server comes and goes
LINEAR_RUNS = 15  # of hubs whose histories are checked, unless WEFT_RUNS says otherwise
CALM_S = float(os.environ.get("WEFT_CALM", "2"))  # between two disturbances, and half of it more
RUN_S = 300 + int(os.environ.get("WEFT_SECONDS", "0"))  # most time of a program
SERVER = "kube-apiserver"


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
                          stderr=subprocess.STDOUT, timeout=RUN_S, env=os.environ | env)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_contract(cluster: Cluster, programs: Path) -> None:
    for number in range(NAMESPACES):
        cluster.namespace(f"store-{number}")
    said = run(cluster, programs / "test-store")
    assert "[  PASSED  ] 16 test(s)." in said
    # A text that no hub has written is not taken for one.
    assert cluster.kubectl("get", "-n", "store-0", "records.weft.dev", "floor").code == 0


class Disturbance:
    """Programs of the cluster stand still for a moment, or die and are started again, by a seed."""

    def __init__(self, cluster: Cluster, seed: int, paused: tuple[str, ...],
                 killed: tuple[str, ...]) -> None:
        self.cluster, self.rng = cluster, random.Random(seed)
        self.choices = ([(self.pause, name) for name in paused] +
                        [(self.kill, name) for name in killed])
        self.is_over = threading.Event()
        self.done: list[str] = []
        self.thread = threading.Thread(target=self.run)

    def pause(self, name: str) -> None:
        """One time in eight it is for longer than a request waits."""
        self.cluster.signal(signal.SIGSTOP, name)
        self.is_over.wait(self.rng.random() * (7 if self.rng.random() < 0.125 else 2))
        self.cluster.signal(signal.SIGCONT, name)

    def kill(self, name: str) -> None:
        self.cluster.kill(name)
        self.cluster.restart()

    def run(self) -> None:
        while not self.is_over.wait(CALM_S * (1 + self.rng.random() / 2)):
            what, name = self.rng.choice(self.choices)
            what(name)
            self.done.append(f"{what.__name__} {name}")

    def __enter__(self) -> Disturbance:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join()

    def said(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(Counter(self.done).items()))


def test_hubs_and_a_server_that_dies(cluster: Cluster, programs: Path) -> None:
    """No acknowledged write is lost, and none is done twice."""
    for name in ("hubs", "cut", "slept", "large"):
        cluster.namespace(name)
    if cluster.variant == "modern":
        # Two servers and their aggregation take too long to come back for more than the rest.
        print(run(cluster, programs / "test-store-kubernetes"))
        return
    said = run(cluster, programs / "test-store-kubernetes", WEFT_TEST_ONLY="!test_two_hubs")
    with Disturbance(cluster, 7, (SERVER,), (SERVER,)):
        said += run(cluster, programs / "test-store-kubernetes", WEFT_TEST_ONLY="test_two_hubs",
                    WEFT_TEST_SECONDS=str(SECONDS))
    print(said)


@contextmanager
def plain_proxy(cluster: Cluster) -> Iterator[str]:
    """Where the API server can be asked without TLS, with the administrator's rights."""
    with subprocess.Popen([cluster.bin / "kubectl", "--kubeconfig", cluster.kubeconfig(), "proxy",
                           "--port=0"], text=True, stdout=subprocess.PIPE) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def test_linear(cluster: Cluster, programs: Path) -> None:
    """What several hubs are answered is linearizable, whatever dies, stands still or is lost."""
    cluster.namespace("linear")
    seed = int(os.environ.get("WEFT_SEED", "1"))
    # The server of custom resources takes too long to come back: there it only stands still.
    paused, killed = ((SERVER, "apiextensions", "etcd"), ()) if cluster.variant == "modern" else (
        (SERVER, "etcd"), (SERVER, "etcd"))
    with (plain_proxy(cluster) as proxy,
          Disturbance(cluster, seed, paused, killed) as disturbance):
        said = run(cluster, programs / "test-store-kubernetes-linear", WEFT_TEST_KUBE_PROXY=proxy,
                   WEFT_RUNS=os.environ.get("WEFT_RUNS", str(LINEAR_RUNS)))
    assert "[  PASSED  ] 1 test(s)." in said, said
    print(said, f"FIGURE meanwhile: {disturbance.said()}")


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
    **dict.fromkeys(("networks.weft.dev", "nodes.weft.dev", "meshedges.weft.dev",
                     "rules.weft.dev"),
                    {"list", "watch", "create", "patch", "delete"}),
    **dict.fromkeys(("networks.weft.dev/status", "nodes.weft.dev/status",
                     "meshedges.weft.dev/status", "rules.weft.dev/status"), {"patch"}),
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
