"""overlays/several-hubs in a cluster with controllers and a scheduler: hubs are replaced.

      cp        203.0.113.9: the control plane
       |
     [ wan ] ── hub-1, hub-2, hub-3   203.0.113.11 to .13: a kubelet each, with the pod of a hub
       |
       └─────── gpu-1, gpu-2          203.0.113.21, .22: a kubelet each

All objects of the overlay and the definitions are made, and a volume on each hub's host, which
keeps that hub there. The hubs ask the API server as pods do, with the token of their ServiceAccount
at the address of the Service "kubernetes". Where a cluster has kube-proxy, and a name server, here
the hosts have a route and a file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.pinging import Pings, can_ping
from lab.support.topologies import one_switch

from .cluster import CRDS
from .shipped import (HUB_LABEL, READY_S, ROLLOUT_S, Pods, need_kubelets, plane_on, running,
                      unanswered, volume)

pytestmark = pytest.mark.namespaces

CONTROL = {"cp": 9}
HUBS = {"hub-1": 11, "hub-2": 12, "hub-3": 13}
AGENTS = {"gpu-1": 21, "gpu-2": 22}
API_SERVICE = "10.0.0.1"  # the first of tools/kube's addresses of Services
PODS = [f"weft-hub-{i}" for i in range(len(HUBS))]


def stand_in(lab: Lab, made: Pods) -> None:
    """What kube-proxy and a name server do in a cluster."""
    domain = made.items["ConfigMap", "weft-hub"]["data"]["domain"]
    names = "\n".join(f"{lab.host(host).address()} {pod}.{domain}"
                      for host, pod in zip(HUBS, PODS, strict=True))
    lab.host("cp").run(["ip", "address", "add", f"{API_SERVICE}/32", "dev", "lo"])
    for name in (*HUBS, *AGENTS):
        host = lab.host(name)
        host.run(["ip", "route", "add", API_SERVICE, "via", made.plane.address])
        host.run(["sh", "-c", 'echo "$1" >> /etc/hosts', "sh", names])


@pytest.fixture(name="made")
def fixture_made(weft: Path, tmp_path: Path) -> Iterator[tuple[Lab, Pods]]:
    need_kubelets(controllers=True)
    hosts = one_switch("wan", "203.0.113", CONTROL | HUBS | AGENTS)
    with Lab.from_text(hosts, capture=False) as lab:
        plane = plane_on(lab, weft, tmp_path, "cp", controllers=True, is_asked=True)
        labels = {name: HUB_LABEL if name in HUBS else "" for name in (*HUBS, *AGENTS)}
        with running(lab, weft, tmp_path, plane, "several-hubs", labels) as made:
            stand_in(lab, made)
            # The server of 1.20 does not have the version that every later one has.
            made.items["PodDisruptionBudget", "weft-hub"]["apiVersion"] = "policy/v1beta1"
            plane.kubectl("apply", "-f", CRDS["1.20"])
            plane.kubectl("wait", "--for", "condition=Established", "--timeout", "60s", "crd",
                          "--all")
            for host, pod in zip(HUBS, PODS, strict=True):
                plane.kubectl("create", "-f", "-", stdin=volume(
                    pod, tmp_path / f"volume-{pod}", f"state-{pod}", host))
            made.apply_all()
            yield lab, made


def is_ready(pod: dict) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True"
               for one in pod["status"].get("conditions", []))


def ready_hubs(made: Pods) -> list[str]:
    return [pod["metadata"]["name"] for pod in made.pods("hub").values() if is_ready(pod)]


def relays(lab: Lab, host: str, name: str) -> bool | None:
    """May that node relay, as the agent on @host was told?"""
    snapshot = json.loads(lab.host(host).run(
        ["curl", "-s", "--unix-socket", "/run/weft/agent.sock", "http://localhost/v1/snapshot"],
        quiet=True).out)
    return next((bool(node["spec"].get("relay")) for node in snapshot["nodes"]
                 if node["metadata"]["name"] == name), None)


def update_hubs(lab: Lab, made: Pods) -> tuple[int, int]:
    """Replace all hubs, and change something again and again meanwhile, of which each agent has to
    be told. How many changes that were, and how many while a hub was away."""
    n_changes = n_away = 0
    made.change("statefulset/weft-hub")
    until = time.monotonic() + len(PODS) * ROLLOUT_S
    while "rolling update complete" not in made.kubectl(
            "rollout", "status", "--watch=false", "statefulset/weft-hub").out:
        assert time.monotonic() < until, "the hubs are not replaced"
        ready = ready_hubs(made)
        # One after the other, and not before the last one is ready again.
        assert len(ready) >= len(PODS) - 1, ready
        wish = n_changes % 2 == 0
        set_it = made.kubectl("exec", ready[0], "--", "weft", "node", "set", "gpu-2", "--relay",
                              "yes" if wish else "no", check=False)
        if set_it.rc != 0:
            # It has been ended since.
            assert ready[0] not in ready_hubs(made), set_it.err
            continue
        for name in AGENTS:
            wait_for(lambda name=name, wish=wish: relays(lab, name, "gpu-2") is wish, READY_S,
                     f"{name} to be told of a change")
        n_changes += 1
        n_away += len(ready) < len(PODS)
    return n_changes, n_away


def test_hubs_are_replaced_one_by_one(made: tuple[Lab, Pods]) -> None:
    lab, made = made
    made.wait_rolled_out("statefulset/weft-hub")
    old = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in made.pods("hub").values()}
    assert sorted(old) == PODS
    assert made.claims() == {f"state-{pod}": ("Bound", pod) for pod in PODS}
    token = made.inside(PODS[0], "token", "new", "--uses", 1000, "--ttl", "24h").strip()
    made.kubectl("create", "secret", "generic", "weft-token", f"--from-literal=token={token}")
    made.wait_rolled_out("daemonset/weft-agent")
    assert set(made.pods("agent")) == set(AGENTS)
    host = lab.host("gpu-1")
    address = made.status("gpu-2")["self"]["address4"]
    wait_for(lambda: can_ping(host, address), 60, "gpu-2 to answer gpu-1")
    wait_for(lambda: made.is_direct("gpu-1", "gpu-2"), 120, "a direct path from gpu-1 to gpu-2")
    for name in AGENTS:
        wait_for(lambda name=name: sorted(
            hub["name"] for hub in made.status(name)["hubs"] if hub["reachable"]) == PODS, 120,
            f"{name} to reach all hubs")

    pings = Pings(host, address)
    pings.wait_more()
    n_changes, n_away = update_hubs(lab, made)
    pings.wait_more()
    pings.stop()
    print(f"FIGURE hubs replaced: {n_changes} changes told meanwhile, {n_away} of them while a hub "
          "was away")
    assert n_away > 0
    assert unanswered(pings) == []
    new = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in made.pods("hub").values()}
    assert sorted(new) == PODS
    assert not set(new.values()) & set(old.values())
    # All of them have what they had, and what was changed meanwhile; agents are served by one.
    for pod in PODS:
        nodes = {node["metadata"]["name"]: node for node in json.loads(
            made.inside(pod, "get", "Node"))["items"]}
        assert set(AGENTS) <= set(nodes)
        assert bool(nodes["gpu-2"]["spec"].get("relay")) is (n_changes % 2 == 1)
    for name in AGENTS:
        wait_for(lambda name=name: (hub := made.status(name)["hub"]) and hub["reachable"], 60,
                 f"{name} to be served")
