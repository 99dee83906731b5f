"""The objects of deploy/kubernetes, as kustomize makes them, without kustomize.

Only what our files use is understood here: `resources`, `namespace`, `images`, and `patches` of
operations (RFC 6902) on one object. Anything else is an error. test_manifests.py holds the result
against the real programs' where there are any.
"""

from __future__ import annotations

import copy
from pathlib import Path

import yaml

from .cluster import ROOT

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())
UNDERSTOOD = {"apiVersion", "kind", "resources", "namespace", "images", "patches"}
IN_COMPONENTS = {"apiVersion", "kind", "resources", "patches"}
CLUSTER_SCOPED = {"Namespace"}


def identity(item: dict) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def pod_of(item: dict) -> dict | None:
    """The pod's spec in an object that makes pods."""
    if item["kind"] in ("DaemonSet", "StatefulSet", "Deployment", "Job"):
        return item["spec"]["template"]["spec"]
    return item["spec"] if item["kind"] == "Pod" else None


def resolve(name: str, *components: str) -> list[dict]:
    """What `kubectl kustomize deploy/kubernetes/NAME` prints, with these components in its file;
    order does not matter."""
    items = _resolve(FOLDER / name)
    for component in components:
        _add_component(items, FOLDER / "components" / component)
    return items


def _add_component(items: list[dict], folder: Path) -> None:
    wish = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert wish.keys() <= IN_COMPONENTS, wish.keys() - IN_COMPONENTS
    for entry in wish["resources"]:
        for item in load(folder / entry):
            _set_namespace(item, "weft")
            items.append(item)
    _patch_all(items, wish, folder)


def _resolve(folder: Path) -> list[dict]:
    wish = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert wish.keys() <= UNDERSTOOD, wish.keys() - UNDERSTOOD
    items: list[dict] = []
    for entry in wish["resources"]:
        path = folder / entry
        items += _resolve(path) if path.is_dir() else load(path)
    for item in items:
        _set_namespace(item, wish["namespace"])
    _patch_all(items, wish, folder)
    for image in wish.get("images", []):
        for item in items:
            for container in (pod_of(item) or {}).get("containers", []):
                if container["image"] == image["name"]:
                    container["image"] = f"{image['newName']}:{image['newTag']}"
    names = [identity(item) for item in items]
    assert len(names) == len(set(names)), f"an object is there twice: {names}"
    return items


def load(path: Path) -> list[dict]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


def _set_namespace(item: dict, namespace: str) -> None:
    if item["kind"] not in CLUSTER_SCOPED:
        item["metadata"]["namespace"] = namespace
    for subject in item.get("subjects", []):
        if subject["kind"] == "ServiceAccount":
            subject["namespace"] = namespace


def _patch_all(items: list[dict], wish: dict, folder: Path) -> None:
    for patch in wish.get("patches", []):
        found = [item for item in items
                 if identity(item) == (patch["target"]["kind"], patch["target"]["name"])]
        assert len(found) == 1, patch
        for operation in yaml.safe_load((folder / patch["path"]).read_text()):
            _patch(found[0], operation)


def _patch(item: dict, operation: dict) -> None:
    *path, last = operation["path"].lstrip("/").split("/")
    place: object = item
    for step in path:
        place = place[int(step)] if isinstance(place, list) else place[step]
    assert operation["op"] in ("add", "replace"), operation
    value = copy.deepcopy(operation["value"])
    if isinstance(place, list) and operation["op"] == "add":
        place.insert(len(place) if last == "-" else int(last), value)
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        assert operation["op"] == "add" or last in place, f"there is no {operation['path']}"
        place[last] = value
