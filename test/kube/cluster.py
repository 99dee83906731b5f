"""A real Kubernetes API server, which `make kube` has built; see tools/kube."""

from __future__ import annotations

import json
import os
import select
import signal
import ssl
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lab.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/kube"
CRDS = {"1.20": ROOT / "deploy/kubernetes/crds-before-1.25.yaml",
        "modern": ROOT / "deploy/kubernetes/crds.yaml"}
# What a hub complains of while the API server is away, or slow.
SERVER_AWAY = "the cluster|the API server|Kubernetes|the store has not said"


def variant_env(variant: str) -> dict[str, str]:
    return os.environ | {"KUBE_MODERN": "1" if variant == "modern" else "0"}


def is_built(variant: str) -> bool:
    return subprocess.run([TOOL, "have"], env=variant_env(variant), check=False).returncode == 0


def has_kubelet() -> bool:
    return subprocess.run([TOOL, "have"], env=os.environ | {"KUBE_KUBELET": "1"},
                          check=False).returncode == 0


def has_controllers() -> bool:
    return subprocess.run([TOOL, "have"], env=os.environ | {"KUBE_CONTROLLERS": "1"},
                          check=False).returncode == 0


def programs() -> Path:
    """The folder of what `make kube` has built."""
    said = subprocess.run([TOOL, "where"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return Path(said.strip()) / "bin"


@dataclass
class Answer:
    """What kubectl said."""
    code: int
    out: str
    err: str

    def json(self) -> dict:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Cluster:
    """An API server with Weft's custom resources. All that it keeps is in a folder."""

    def __init__(self, folder: Path, variant: str) -> None:
        self.folder, self.variant = folder, variant
        self.port = free_ports(6)
        self.env = variant_env(variant) | {"KUBE_PORT": str(self.port)}
        self.url = f"https://127.0.0.1:{self.port}"
        self.bin = programs()

    def start(self) -> Cluster:
        subprocess.run([TOOL, "start", self.folder], env=self.env, check=True)
        # kubectl 1.20 does not know of CEL; the server does.
        self.must("apply", "--validate=false", "-f", CRDS[self.variant])
        self.must("wait", "--for", "condition=Established", "--timeout", "60s", "crd", "--all")
        self.wait_served()
        return self

    def wait_served(self, limit_s: float = 60) -> None:
        """Established is not served yet: behind the aggregation it takes a moment more."""
        until = time.monotonic() + limit_s
        kinds = ",".join(f"{kind}.weft.dev" for kind in ("networks", "nodes", "meshedges",
                                                         "rules", "records"))
        while (answer := self.kubectl("get", kinds)).code != 0:
            assert time.monotonic() < until, answer.err
            time.sleep(0.2)

    def signal(self, number: int, name: str = "kube-apiserver") -> None:
        """To one of the cluster's programs."""
        os.kill(int((self.folder / f"{name}.pid").read_text()), number)

    def kill(self, name: str = "kube-apiserver") -> None:
        """It dies at once, and its port is free when this returns."""
        path = self.folder / f"{name}.pid"
        watch = os.pidfd_open(int(path.read_text()))
        self.signal(signal.SIGKILL, name)
        try:
            assert select.select([watch], [], [], 60)[0], f"{name} does not die"
        finally:
            os.close(watch)
        path.unlink()

    def restart(self) -> None:
        """What of it has died begins again, with all that it kept."""
        subprocess.run([TOOL, "start", self.folder], env=self.env, check=True)

    def stop(self) -> None:
        subprocess.run([TOOL, "stop", self.folder], env=self.env, check=True)

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.folder / f"{user}.kubeconfig"

    def kubectl(self, *args: object, user: str = "admin", stdin: object = None) -> Answer:
        """@stdin: an object, for `-f -`."""
        text = json.dumps(stdin) if stdin is not None else None
        done = subprocess.run([self.bin / "kubectl", "--kubeconfig", self.kubeconfig(user),
                               *map(str, args)], input=text, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              env=self.env | {"HOME": str(self.folder)})
        return Answer(done.returncode, done.stdout, done.stderr)

    def must(self, *args: object, user: str = "admin", stdin: object = None) -> Answer:
        answer = self.kubectl(*args, user=user, stdin=stdin)
        assert answer.code == 0, f"kubectl {args}: {answer.err}"
        return answer

    def get(self, *args: object) -> dict:
        return self.must("get", "-o", "json", *args).json()

    def post(self, path: str, body: dict, token: str) -> dict:
        """One request of whoever has that token, without kubectl."""
        return self._send("POST", path, body, token, "application/json")

    def patch(self, path: str, body: dict) -> dict:
        """A Server-Side Apply of the administrator's, without kubectl."""
        return self._send("PATCH", path, body, "admintoken", "application/apply-patch+yaml")

    def _send(self, method: str, path: str, body: dict, token: str, kind: str) -> dict:
        asked = urllib.request.Request(self.url + path, json.dumps(body).encode(), {
            "Authorization": f"Bearer {token}", "Content-Type": kind}, method=method)
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(asked, timeout=30, context=trust) as answer:
            return json.load(answer)

    def namespace(self, name: str) -> str:
        self.must("create", "namespace", name)
        return name
