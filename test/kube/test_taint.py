"""The hook of `weft health --drain` for Kubernetes, at a real API server."""

from __future__ import annotations

import os
import subprocess

from .cluster import ROOT, Cluster

HOOK = ROOT / "deploy/health/kubernetes-taint"
OURS = {"key": "weft.dev/unhealthy", "value": "WEFT-DISK-002", "effect": "NoSchedule"}
OTHER = {"key": "other", "value": "x", "effect": "NoSchedule"}


def call(cluster: Cluster, *words: str) -> None:
    subprocess.run([HOOK, *words], check=True, timeout=60, env=cluster.env | {
        "PATH": f"{cluster.bin}:{os.environ['PATH']}", "HOME": str(cluster.folder),
        "KUBECONFIG": str(cluster.kubeconfig()), "WEFT_KUBERNETES_NODE": "gpu-7"})


def test_a_node_is_tainted_and_given_back(cluster: Cluster) -> None:
    """Each is done once, however often it is asked for, and what is another one's stays."""
    cluster.must("create", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7"},
        "spec": {"taints": [OTHER]}})

    def taints() -> list[dict]:
        found = [taint for taint in cluster.get("nodes", "gpu-7")["spec"].get("taints", [])
                 if not taint["key"].startswith("node.kubernetes.io/")]
        return sorted(({key: taint[key] for key in OURS} for taint in found),
                      key=lambda taint: taint["key"])

    try:
        for _ in range(2):
            call(cluster, "drain", "n1", "default", "it is full", "WEFT-DISK-002,WEFT-NIC-002")
            assert taints() == [OTHER, OURS]
        for _ in range(2):
            call(cluster, "undrain", "n1", "default", "", "")
            assert taints() == [OTHER]
    finally:
        cluster.must("delete", "nodes", "gpu-7")
