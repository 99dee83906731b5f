"""The custom resources: what the API server takes, refuses, fills in and prints."""

from __future__ import annotations

import json
import subprocess

import pytest

from .cluster import CRDS, ROOT, Cluster

KEY = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
SPECS = {
    "Network": ("default", {"cidr4": "10.77.0.0/16", "cidr6": "fd5a::/64"}),
    "Node": ("default.gpu-1", {"publicKey": KEY, "address4": "10.77.0.2", "address6": "fd5a::2"}),
    "MeshEdge": ("default.gpu-1--gpu-2", {"nodes": ["gpu-1", "gpu-2"]}),
    "Rule": ("default.ssh", {"from": ["members"], "to": ["role=gpu"], "allow": ["tcp/22"]}),
}


def made(kind: str, **spec: object) -> dict:
    name, fields = SPECS[kind]
    return {"apiVersion": "weft.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": fields | spec}


def named(kind: str, name: str) -> dict:
    return made(kind) | {"metadata": {"name": name}}


def golden(kind: str) -> dict:
    """The golden object of the kind, as a custom resource."""
    given = json.loads((ROOT / f"test/golden/objects/{kind}.json").read_text())
    return {"apiVersion": "weft.dev/v1alpha1", "kind": kind,
            "metadata": {"name": SPECS[kind][0]}, "spec": given["spec"]}


@pytest.mark.parametrize("kind", SPECS)
def test_every_field_is_kept(cluster: Cluster, namespace: str, kind: str) -> None:
    """Nothing of a spec is pruned, and its fields are the same when they come back."""
    wanted = golden(kind)
    cluster.must("apply", "-n", namespace, "-f", "-", stdin=wanted)
    got = cluster.get("-n", namespace, f"{kind.lower()}s.weft.dev", wanted["metadata"]["name"])
    assert got["spec"] == wanted["spec"]


@pytest.mark.parametrize("kind", SPECS)
def test_status_is_kept(cluster: Cluster, namespace: str, kind: str) -> None:
    """A status goes in by its subresource alone, whole."""
    given = json.loads((ROOT / f"test/golden/objects/{kind}.json").read_text())
    status = given.get("status", {"seen": True})
    cluster.must("apply", "-n", namespace, "-f", "-", stdin=golden(kind) | {"status": status})
    path = (f"/apis/weft.dev/v1alpha1/namespaces/{namespace}/{kind.lower()}s/"
            f"{SPECS[kind][0]}")
    got = cluster.must("get", "--raw", path).json()
    assert "status" not in got
    cluster.must("replace", "--raw", f"{path}/status", "-f", "-", stdin=got | {"status": status})
    assert cluster.must("get", "--raw", path).json()["status"] == status


def test_defaults(cluster: Cluster, namespace: str) -> None:
    """What an object of the API may leave out may be left out here."""
    for kind in SPECS:
        cluster.must("apply", "-n", namespace, "-f", "-", stdin=made(kind))
    network = cluster.get("-n", namespace, "networks.weft.dev", "default")["spec"]
    assert (network["topology"], network["mtu"], network["keepalive"]) == ("auto", 1420, "auto")
    assert cluster.get("-n", namespace, "wedge", "default.gpu-1--gpu-2")["spec"]["path"] == "auto"


REFUSED = [
    ("Network", made("Network", topology="ring"), "topology"),
    ("Network", made("Network", mtu=100), "mtu"),
    ("Network", made("Network", keepalive="often"), "keepalive"),
    ("Network", made("Network", keepalive=4000), "keepalive"),
    ("Network", named("Network", "a.b"), "metadata.name"),
    ("Node", made("Node", publicKey="short"), "publicKey"),
    ("Node", made("Node", address4="10.77.0"), "address4"),
    ("Node", made("Node", labels={"gpu": 1}), "labels"),
    ("Node", made("Node", routes=["10.9.0.0/24"] * 17), "routes"),
    ("Node", named("Node", "no-network"), "metadata.name"),
    ("MeshEdge", made("MeshEdge", path="scenic"), "path"),
    ("MeshEdge", made("MeshEdge", nodes=["gpu-1"]), "nodes"),
    ("MeshEdge", made("MeshEdge", nodes=["gpu-1", "G"]), "nodes"),
    ("Rule", made("Rule", allow=[]), "allow"),
    ("Rule", made("Rule", allow=["ssh"]), "allow"),
    ("Rule", made("Rule", to=["members"] * 513), "to"),
    ("Rule", named("Rule", "no-network"), "metadata.name"),
]


@pytest.mark.parametrize(("kind", "given", "word"), REFUSED,
                         ids=[f"{kind}-{i}" for i, (kind, _, _) in enumerate(REFUSED)])
def test_refused(cluster: Cluster, namespace: str, kind: str, given: dict, word: str) -> None:
    # kubectl 1.20 asks for an API that current servers do not have before it dares a dry run.
    dry = ["--dry-run=server"] if cluster.variant == "1.20" else []
    answer = cluster.kubectl("create", "-n", namespace, *dry, "-f", "-", stdin=given)
    assert answer.code != 0, f"{kind} was taken: {given}"
    assert word in answer.err


BY_RULES = [
    (None, made("MeshEdge", nodes=["gpu-2", "gpu-1"]), "in byte order"),
    (None, named("MeshEdge", "default.gpu-1--gpu-3"), "NETWORK.A--B"),
    (None, made("Network", keyRotation=3600), "by the clock"),
    (made("Network"), made("Network", cidr4="10.78.0.0/16"), "fixed"),
    (made("Node"), made("Node", address4="10.77.0.9"), "fixed"),
    (made("Node"), made("Node", publicKey=KEY.replace("AQ", "Ag")), "fixed"),
]


@pytest.mark.parametrize(("before", "given", "words"), BY_RULES)
def test_refused_by_rules(cluster: Cluster, namespace: str, before: dict | None, given: dict,
                          words: str) -> None:
    """What only CEL can say, from 1.25 on; before, the hub says it."""
    if before:
        cluster.must("apply", "-n", namespace, "-f", "-", stdin=before)
    answer = cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=given)
    if cluster.variant == "1.20":
        assert answer.code == 0, answer.err
    else:
        assert answer.code != 0
        assert words in answer.err


def test_columns(cluster: Cluster, namespace: str) -> None:
    for kind in SPECS:
        cluster.must("apply", "-n", namespace, "-f", "-", stdin=golden(kind))
    head, row = cluster.must("get", "-n", namespace, "wnode").out.splitlines()
    assert head.split() == ["NAME", "IPV4", "IPV6", "ENGINE", "ISLAND", "READY", "ACCEPTED",
                            "AGE"]
    assert row.split()[:4] == ["default.gpu-1", "10.77.0.2", "fd5a::2", "rack-7"]
    head, row = cluster.must("get", "-n", namespace, "wedge").out.splitlines()
    assert row.split()[:2] == ["default.gpu-1--gpu-2", "relay"]
    # All kinds by one word.
    assert len(cluster.get("-n", namespace, "weft")["items"]) == len(SPECS)


def test_fields_have_owners(cluster: Cluster, namespace: str) -> None:
    """Two who apply the same field: the second one is told who has it."""
    apply = ["apply", "-n", namespace, "--server-side", "-f", "-"]
    cluster.must(*apply, "--field-manager=alice", stdin=made("MeshEdge", path="relay"))
    answer = cluster.kubectl(*apply, "--field-manager=bob", stdin=made("MeshEdge", path="direct"))
    assert answer.code != 0
    assert '"alice"' in answer.err
    assert ".spec.path" in answer.err


def test_made_from_the_table() -> None:
    """The files are what the table of kinds and docs/schema make of them."""
    for variant, path in CRDS.items():
        flags = ["--without-cel"] if variant == "1.20" else []
        text = subprocess.run([ROOT / "tools/gen-crds", *flags], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        assert path.read_text() == text, f"{path.name} is old: run \"make docs\""
