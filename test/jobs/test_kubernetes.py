"""The examples of jobs in deploy/kubernetes/examples: what their operators take, and what is typed.

schemas/kubernetes.json has the schemas of the operators' custom resource definitions, of the
releases that it names, without words, defaults and status; that of a pod's template is there once.
No operator runs here.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes/examples"
SCHEMAS = json.loads((Path(__file__).parent / "schemas/kubernetes.json").read_text())
KINDS = {"jobset": ["JobSet"], "pytorchjob": ["PyTorchJob"],
         "trainjob": ["TrainingRuntime", "TrainJob"]}


def strict(schema: object) -> object:
    """As an API server with strict validation: what is not named is refused."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {key: ({name: strict(part) for name, part in value.items()} if key == "properties"
                  else strict(value)) for key, value in schema.items()}
    if "properties" in made and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


def validate(item: dict) -> None:
    schema = copy.deepcopy(SCHEMAS["kinds"][f"{item['apiVersion']} {item['kind']}"])
    schema["properties"]["metadata"] = {"properties": {
        "name": {"type": "string"}, "labels": {"additionalProperties": {"type": "string"}}}}
    pod = copy.deepcopy(SCHEMAS["pod"])
    pod["properties"]["metadata"] = {"properties": {
        "labels": {"additionalProperties": {"type": "string"}}}}
    jsonschema.validate(item, {**strict(schema), "pod": strict(pod)})


def items_of(name: str) -> list[dict]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def pods_of(part: object) -> list[dict]:
    if isinstance(part, list):
        return [pod for each in part for pod in pods_of(each)]
    if not isinstance(part, dict):
        return []
    if "containers" in part:
        return [part]
    return pods_of(list(part.values()))


@pytest.mark.parametrize("name", KINDS)
def test_operators_take_it(name: str) -> None:
    items = items_of(name)
    assert [item["kind"] for item in items] == KINDS[name]
    for item in items:
        validate(item)
    [pod, *_] = pods_of(items)
    for change in ({"hostNetworks": True}, {"containers": [{"image": 7}]}):
        pod.update(change)
        with pytest.raises(jsonschema.ValidationError):
            for item in items:
                validate(item)
        for key in change:
            del pod[key]


@pytest.mark.parametrize("name", KINDS)
def test_pods_are_of_their_machine(name: str, weft: Path) -> None:
    """One a machine, on its network, with the agent's folder; nothing of root's rights."""
    told = subprocess.run([weft, "run", "--help"], capture_output=True, text=True,
                          check=True).stdout
    pods = pods_of(items_of(name))
    assert pods
    for pod in pods:
        assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        [apart] = pod["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"]
        assert apart["topologyKey"] == "kubernetes.io/hostname"
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "privileged": False, "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]}}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
        assert volumes["agent"]["hostPath"]["path"] == "/run/weft"
        words = container["command"]
        begin = words.index("weft")
        assert words[begin:begin + 2] == ["weft", "run"]
        for word in words[begin + 2:words.index("--")]:
            assert not word.startswith("--") or re.search(rf"^\s+{word}\b", told, re.M), word
        if name != "jobset":
            # Or weft run would leave the meeting to Kubeflow, see run.c, meets_by_itself().
            assert words[:begin].count("-u") >= 2 and "PET_MASTER_ADDR" in words[:begin]
