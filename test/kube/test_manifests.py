"""What deploy/kubernetes asks of a cluster, and that a cluster takes it.

The first tests need no cluster: nothing is privileged, each container has the capabilities that it
is known to need and no other, each role the verbs that its program uses, and each policy selects
pods. The last ones ask a real API server, and hold what is made of kustomize's files here against
what kustomize makes of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from .cluster import TOOL, Cluster
from .manifests import FOLDER, OVERLAYS, identity, pod_of, resolve

CAPABILITIES = {"hub": ["NET_ADMIN"], "agent": ["NET_ADMIN", "NET_BIND_SERVICE"],
                "probe": ["NET_RAW"]}
# Folders and devices of the host, by container; True: only to be read.
HOST_PATHS = {"hub": {"/dev/net/tun": False},
              "agent": {"/dev/net/tun": False, "/var/lib/weft": False, "/run/weft": False},
              "probe": {"/var/lib/weft": True}}
KINDS = ("networks", "nodes", "meshedges", "rules")
HUB = {"weft.dev": {"records": {"get", "list", "watch", "create", "update", "delete"},
                    **{kind: {"list", "watch", "create", "patch", "delete"} for kind in KINDS},
                    **{f"{kind}/status": {"patch"} for kind in KINDS}},
       "coordination.k8s.io": {"leases": {"create"}, "leases weft-hub": {"get", "update"}},
       "": {"events": {"create"}}}
AGENT = {"weft.dev": {kind: {"list", "watch"} for kind in KINDS}}
# Examples of kinds that other projects add to a cluster.
OPERATORS_EXAMPLES = {"jobset.yaml", "pytorchjob.yaml", "trainjob.yaml"}
# Who may do what, by overlay and ServiceAccount. Who is not here may do nothing.
RULES = {"several-hubs": {"weft-hub": HUB},
         "agents-from-cluster": {"weft-hub": HUB, "weft-agent": AGENT}}
PORTS = {("UDP", 51820), ("TCP", 8443), ("UDP", 8443)}


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def items(overlay: str) -> list[dict]:
    return resolve(f"overlays/{overlay}")


def of_kind(items: list[dict], kind: str) -> dict[str, dict]:
    return {item["metadata"]["name"]: item for item in items if item["kind"] == kind}


def pods(items: list[dict]) -> dict[str, dict]:
    """The pods' specs by the name of their only container."""
    found = {}
    for item in items:
        pod = pod_of(item)
        if pod:
            assert not pod.get("initContainers")
            [container] = pod["containers"]
            found[container["name"]] = item
    return found


def test_all_parts_are_there(items: list[dict]) -> None:
    assert pods(items).keys() == CAPABILITIES.keys()
    assert {identity(item) for item in items} >= {
        ("Namespace", "weft"), ("Service", "weft-hub"), ("StatefulSet", "weft-hub"),
        ("DaemonSet", "weft-agent"), ("DaemonSet", "weft-probe"), ("ConfigMap", "weft-hub")}
    for item in items:
        if item["kind"] != "Namespace":
            assert item["metadata"]["namespace"] == "weft", identity(item)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_no_container_has_more_than_it_needs(items: list[dict], name: str) -> None:
    pod = pod_of(pods(items)[name])
    security = pod["containers"][0]["securityContext"]
    assert security == {
        "runAsUser": 0, "runAsGroup": 0, "privileged": False, "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": CAPABILITIES[name]}}
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert not pod.keys() & {"hostPID", "hostIPC", "shareProcessNamespace"}
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    shared = {volume["hostPath"]["path"]: mounts[volume["name"]].get("readOnly", False)
              for volume in pod["volumes"] if "hostPath" in volume}
    assert shared == HOST_PATHS[name]


@pytest.mark.parametrize("name", CAPABILITIES)
def test_pods_are_on_the_hosts_network(items: list[dict], name: str) -> None:
    """And find the cluster's names from there; and hosts with GPUs, which carry taints, too."""
    pod = pod_of(pods(items)[name])
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_selectors_select_their_pods(items: list[dict]) -> None:
    for item in pods(items).values():
        assert item["spec"]["selector"]["matchLabels"] == \
            item["spec"]["template"]["metadata"]["labels"]
    labels = pods(items)["hub"]["spec"]["template"]["metadata"]["labels"]
    service = of_kind(items, "Service")["weft-hub"]["spec"]
    assert service["selector"] == labels
    container = pod_of(pods(items)["hub"])["containers"][0]
    named = {port["name"]: (port["protocol"], port["containerPort"]) for port in container["ports"]}
    assert set(named.values()) == PORTS
    for port in service["ports"]:
        assert named[port["targetPort"]] == (port["protocol"], port["port"])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        # To start a hub again helps against no store that refuses what is to be written.
        query = "" if probe == "readinessProbe" else "?live=1"
        assert container[probe]["httpGet"] == {"path": f"/v1/health{query}", "port": "api",
                                               "scheme": "HTTPS"}


def test_policies(items: list[dict]) -> None:
    """Nothing is open but what a policy opens, and each of them selects one kind of pods."""
    policies = of_kind(items, "NetworkPolicy")
    default = policies.pop("weft-default")["spec"]
    assert default == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    chosen = {name: [container for container, item in pods(items).items()
                     if item["spec"]["template"]["metadata"]["labels"] ==
                     policy["spec"]["podSelector"]["matchLabels"]]
              for name, policy in policies.items()}
    assert chosen == {f"weft-{name}": [name] for name in CAPABILITIES}
    for policy in policies.values():
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    [rule] = policies["weft-hub"]["spec"]["ingress"]
    assert {(port["protocol"], port["port"]) for port in rule["ports"]} == PORTS
    assert rule.keys() == {"ports"}, "the hub's ports are open to everybody"
    assert "ingress" not in policies["weft-probe"]["spec"]


def test_roles(items: list[dict], overlay: str) -> None:
    """Each account may do what is listed above, and has a token only where it may do something."""
    roles = of_kind(items, "Role")
    found: dict[str, dict] = {}
    for binding in of_kind(items, "RoleBinding").values():
        [subject] = binding["subjects"]
        assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", "weft")
        assert subject["name"] not in found
        rules: dict = {}
        for rule in roles.pop(binding["roleRef"]["name"])["rules"]:
            assert rule.keys() - {"resourceNames"} == {"apiGroups", "resources", "verbs"}
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    words = [resource, *rule.get("resourceNames", [])]
                    rules.setdefault(group, {})[" ".join(words)] = set(rule["verbs"])
        found[subject["name"]] = rules
    assert not roles, "a role that nobody has"
    assert not of_kind(items, "ClusterRole")
    assert found == RULES.get(overlay, {})
    for item in pods(items).values():
        pod = pod_of(item)
        assert pod["automountServiceAccountToken"] is (pod["serviceAccountName"] in found)
    for account in of_kind(items, "ServiceAccount").values():
        assert account["automountServiceAccountToken"] is False


@pytest.mark.parametrize("overlay", ["several-hubs", "agents-from-cluster"])
def test_writers_of_their_own_parts(overlay: str) -> None:
    """Each has a token, an argument, and the right to write into the status of edges, no more."""
    items = resolve(f"overlays/{overlay}", "edge-writers")
    rules = {item["metadata"]["name"]: item["rules"] for item in items if item["kind"] == "Role"}
    for name in ("agent", "probe"):
        pod = pod_of(pods(items)[name])
        assert pod["automountServiceAccountToken"] is True
        assert pod["containers"][0]["args"][-2:] == ["--edges-to", "kubernetes:"]
        assert rules[f"weft-{name}-edges"] == [{
            "apiGroups": ["weft.dev"], "resources": ["meshedges/status"], "verbs": ["patch"]}]
        binding = of_kind(items, "RoleBinding")[f"weft-{name}-edges"]
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": f"weft-{name}", "namespace": "weft"}]
        assert binding["roleRef"]["name"] == f"weft-{name}-edges"


def test_several_hubs() -> None:
    """Each on a host of its own, and they do not all end at once."""
    items = resolve("overlays/several-hubs")
    hub = pods(items)["hub"]["spec"]
    assert hub["replicas"] > 1
    [term] = pod_of(pods(items)["hub"])["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == hub["selector"]["matchLabels"]
    budget = of_kind(items, "PodDisruptionBudget")["weft-hub"]["spec"]
    assert budget == {"maxUnavailable": 1,
                      "selector": {"matchLabels": hub["selector"]["matchLabels"]}}


# ---- with the real programs ----------------------------------------------------------------------

def kustomize() -> list[str | Path]:
    """Kustomize of `make kube`, or a kubectl of this machine that has a current one inside."""
    where = subprocess.run([TOOL, "where"], check=True, text=True, stdout=subprocess.PIPE).stdout
    program = Path(where.strip()) / "bin/kustomize"
    if program.exists():
        return [program, "build"]
    if shutil.which("kubectl"):
        said = subprocess.run(["kubectl", "version", "--client"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if "Kustomize Version: v5" in said:
            return ["kubectl", "kustomize"]
    pytest.skip("there is no kustomize: \"KUBE_MODERN=1 make kube\" fetches it")


def test_kustomize_makes_the_same(items: list[dict], overlay: str) -> None:
    text = subprocess.run([*kustomize(), FOLDER / "overlays" / overlay], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    made = {identity(item): item for item in yaml.safe_load_all(text)}
    assert made == {identity(item): item for item in items}


def test_kustomize_makes_the_same_of_components(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    overlay = tmp_path / "kubernetes/overlays/several-hubs"
    with (overlay / "kustomization.yaml").open("a") as file:
        file.write("components: [../../components/edge-writers]\n")
    text = subprocess.run([*kustomize(), overlay], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    made = {identity(item): item for item in yaml.safe_load_all(text)}
    items = resolve("overlays/several-hubs", "edge-writers")
    assert made == {identity(item): item for item in items}


def charts() -> Path:
    program = Path(subprocess.run([TOOL, "where"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.strip()) / "bin/chart-render"
    if not program.exists():
        pytest.skip("no chart can be rendered: \"KUBE_RENDER=1 make kube\" builds what does it")
    return program


# The values that make of the chart what each overlay makes.
VALUES = {"one-hub": {}, "pod-cidrs": {"agent": {"masquerade": False}},
          "several-hubs": {"hub": {"store": "cluster", "replicas": 3}},
          "agents-from-cluster": {"hub": {"store": "cluster", "replicas": 3},
                                  "agent": {"from": "cluster"}}}
REFUSED = [{"hub": {"replicas": 2}}, {"hub": {"store": "etcd"}}, {"agent": {"from": "cluster"}},
           {"agent": {"engine": "fast"}}, {"agent": {"masquerade": "no"}},
           {"image": {"tag": "a b"}}, {"hub": {"storage": "1G"}},
           {"probe": {"period": "often"}}, {"relay": {}}, {"edges": {"writers": "nodes"}},
           {"hub": {"store": "cluster"}, "edges": {"writers": "people"}}]


def values_with(changes: dict) -> dict:
    values = yaml.safe_load((FOLDER / "chart/values.yaml").read_text())
    for part, fields in changes.items():
        values[part] = values.get(part, {}) | fields
    return values


def test_values_have_a_schema() -> None:
    schema = json.loads((FOLDER / "chart/values.schema.json").read_text())
    for changes in VALUES.values():
        jsonschema.validate(values_with(changes), schema)
    for changes in REFUSED:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values_with(changes), schema)


def render(folder: Path, changes: dict) -> list[dict]:
    """What the chart makes with these values over its own."""
    (folder / "values.json").write_text(json.dumps(changes))
    text = subprocess.run([charts(), FOLDER / "chart", folder / "values.json", "weft"],
                          check=True, text=True, stdout=subprocess.PIPE).stdout
    return [item for item in yaml.safe_load_all(text) if item]


# Another value for each that there is, and what shows it in the objects.
OTHERS = {
    "file": {"image.repository": ("reg.test/a", "reg.test/a:"), "image.tag": ("v7", ":v7"),
             "hub.public": ("hub.test:999", "hub.test:999"), "hub.storage": ("7Gi", "'7Gi'"),
             "hub.storageClass": ("fast-disks", "'storageClassName': 'fast-disks'"),
             "agent.engine": ("auto", "'--engine', 'auto'"),
             "agent.masquerade": (False, "--no-masquerade"),
             "agent.tokenSecret": ("other-token", "'secretName': 'other-token'"),
             "probe.period": ("77s", "'77s'")},
    "cluster": {"hub.store": ("cluster", "kubernetes:"), "hub.replicas": (5, "'replicas': 5"),
                "hub.domain": ("hubs.test", "hubs.test"),
                "agent.from": ("cluster", "'--from', 'kubernetes:'"),
                "edges.writers": ("nodes", "'--edges-to', 'kubernetes:'")},
}


# The chart is the same for all versions.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_every_value_is_used(cluster: Cluster, tmp_path: Path) -> None:
    """Each value that is set shows, and not without being set; and the server takes the result."""
    values = yaml.safe_load((FOLDER / "chart/values.yaml").read_text())
    assert {f"{part}.{name}" for part, names in values.items() for name in names} == \
        {name for others in OTHERS.values() for name in others}
    schema = json.loads((FOLDER / "chart/values.schema.json").read_text())
    cluster.kubectl("create", "namespace", "weft")
    before = str(render(tmp_path, {}))
    for others in OTHERS.values():
        changes: dict = {}
        for name, (value, shown) in others.items():
            part, _, field = name.partition(".")
            changes.setdefault(part, {})[field] = value
            assert shown not in before, name
        jsonschema.validate(values_with(changes), schema)
        made = render(tmp_path, changes)
        for name, (_, shown) in others.items():
            assert shown in str(made), name
        for item in made:
            item["metadata"]["namespace"] = "weft"
        said = cluster.must("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin={
            "apiVersion": "v1", "kind": "List", "items": [for_server(item) for item in made]}).out
        assert said.count("(server dry run)") == len(made)


def test_the_chart_makes_the_same(items: list[dict], overlay: str, tmp_path: Path) -> None:
    """Helm and kustomize give the same objects. Helm makes the namespace by itself."""
    made = render(tmp_path, VALUES[overlay])
    for item in made:
        item["metadata"]["namespace"] = "weft"
    assert len(made) == len(items) - 1
    assert {identity(item): item for item in made} == \
        {identity(item): item for item in items if item["kind"] != "Namespace"}


def test_the_chart_makes_the_same_writers(tmp_path: Path) -> None:
    made = render(tmp_path, VALUES["agents-from-cluster"] | {"edges": {"writers": "nodes"}})
    for item in made:
        item["metadata"]["namespace"] = "weft"
    items = resolve("overlays/agents-from-cluster", "edge-writers")
    assert {identity(item): item for item in made} == \
        {identity(item): item for item in items if item["kind"] != "Namespace"}


def test_the_chart_has_the_definitions() -> None:
    assert (FOLDER / "chart/crds/crds.yaml").read_text() == (FOLDER / "crds.yaml").read_text()


def for_server(item: dict) -> dict:
    """Kubernetes 1.20 has budgets, with the same fields, in an older version of their group."""
    if item["kind"] == "PodDisruptionBudget":
        return item | {"apiVersion": "policy/v1beta1"}
    return item


# Kinds of Kubernetes' own are served by the same server in both variants.
@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_the_server_takes_it(cluster: Cluster, items: list[dict]) -> None:
    """Every object, by a dry run on the server: all fields known, and all values allowed."""
    cluster.kubectl("create", "namespace", "weft")
    said = cluster.must("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "List", "items": [for_server(item) for item in items]}).out
    assert said.count("(server dry run)") == len(items)


@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_the_server_takes_the_examples(cluster: Cluster) -> None:
    """Those of kinds that it knows; test/jobs holds the operators' kinds against their schemas."""
    examples = {path.name: path for path in (FOLDER / "examples").glob("*.yaml")}
    assert OPERATORS_EXAMPLES < set(examples)
    for name in sorted(set(examples) - OPERATORS_EXAMPLES):
        path = examples[name]
        said = cluster.must("apply", "--dry-run=server", "--validate=true", "-f", path).out
        assert "(server dry run)" in said


@pytest.mark.parametrize("cluster", ["1.20"], indirect=True)
def test_accounts_on_the_server(cluster: Cluster, items: list[dict], overlay: str) -> None:
    """What the accounts may do, by the server's own word."""
    cluster.kubectl("create", "namespace", "weft")
    mine = [item for item in items if item["kind"] in ("Role", "RoleBinding", "ServiceAccount")]
    cluster.must("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": mine})
    try:
        for account in of_kind(items, "ServiceAccount"):
            allowed = RULES.get(overlay, {}).get(account, {}).get("weft.dev", {})
            said = cluster.must("auth", "can-i", "--list", "-n", "weft", "--no-headers", "--as",
                                f"system:serviceaccount:weft:{account}").out
            rows = [line.split(None, 1) for line in said.splitlines() if ".weft.dev" in line]
            assert {name.replace(".weft.dev", ""): set(rest[rest.rindex("["):].strip("[]").split())
                    for name, rest in rows} == allowed
            assert "*.*" not in said
    finally:
        cluster.must("delete", "-n", "weft", "role,rolebinding", "--all")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_agents_stay_off_the_hosts_of_hubs(overlay: str) -> None:
    """A hub is a node there already, with the same block of addresses."""
    sets = [item for item in resolve(f"overlays/{overlay}") if item["kind"] == "DaemonSet"]
    assert len(sets) == 2
    for item in sets:
        rules = pod_of(item)["affinity"]["nodeAffinity"]
        terms = rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert [term["matchExpressions"] for term in terms] == [
            [{"key": "weft.dev/hub", "operator": "NotIn", "values": ["true"]}]]
