"""deploy/kubernetes in a cluster with controllers and a scheduler: they make the pods.

      hub       203.0.113.10: the control plane, and a kubelet with the hub's pod
       |
     [ wan ]
      |   |
   gpu-1 gpu-2  203.0.113.11, .12: a kubelet each

All objects of overlays/one-hub are made, and a volume on the hub's host; nothing else is made here.
The DaemonSets make pods on each host, the StatefulSet makes the hub's and its claim, the claim is
bound, and all of them are replaced by a rolling update as `kubectl apply` begins one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.pinging import Pings, can_ping
from lab.support.topologies import one_switch

from .shipped import (HUB_LABEL, Pods, need_kubelets, plane_on, running, unanswered,
                      volume)

pytestmark = pytest.mark.namespaces

HOSTS = {"hub": 10, "gpu-1": 11, "gpu-2": 12}
AGENTS = ("gpu-1", "gpu-2")


@pytest.fixture(name="made")
def fixture_made(weft: Path, tmp_path: Path) -> Iterator[tuple[Lab, Pods]]:
    need_kubelets(controllers=True)
    with Lab.from_text(one_switch("wan", "203.0.113", HOSTS), capture=False) as lab:
        plane = plane_on(lab, weft, tmp_path, "hub", controllers=True)
        labels = {name: HUB_LABEL if name == "hub" else "" for name in HOSTS}
        with running(lab, weft, tmp_path, plane, "one-hub", labels) as made:
            made.items["ConfigMap", "weft-hub"]["data"]["public"] = plane.address
            made.plane.kubectl("create", "-f", "-", stdin=volume(
                "hub-state", tmp_path / "volume", "state-weft-hub-0", "hub"))
            made.apply_all()
            yield lab, made


def test_controllers_make_and_replace_all(made: tuple[Lab, Pods]) -> None:
    lab, made = made
    made.wait_rolled_out("statefulset/weft-hub")
    assert made.claims() == {"state-weft-hub-0": ("Bound", "hub-state")}
    assert set(made.pods("hub")) == {"hub"}
    token = made.inside("weft-hub-0", "token", "new", "--uses", 1000, "--ttl", "24h").strip()
    made.kubectl("create", "secret", "generic", "weft-token", f"--from-literal=token={token}")
    made.wait_rolled_out("daemonset/weft-agent")
    # Not beside the hub, which is a node itself.
    assert set(made.pods("agent")) == set(AGENTS)
    before = {name: made.status(name)["self"] for name in AGENTS}
    host, address = lab.host("gpu-1"), before["gpu-2"]["address4"]
    wait_for(lambda: can_ping(host, address), 60, "gpu-2 to answer gpu-1")
    wait_for(lambda: made.is_direct("gpu-1", "gpu-2"), 120, "a direct path from gpu-1 to gpu-2")

    # The hub is replaced, and has what it had: its volume is the same. Its nodes go on meanwhile.
    old = made.pods("hub")["hub"]["metadata"]["uid"]
    pings = Pings(host, address)
    pings.wait_more()
    made.change("statefulset/weft-hub")
    made.wait_rolled_out("statefulset/weft-hub")
    pings.wait_more()
    pings.stop()
    assert unanswered(pings) == []
    assert made.pods("hub")["hub"]["metadata"]["uid"] != old
    assert made.claims() == {"state-weft-hub-0": ("Bound", "hub-state")}
    known = made.inside("weft-hub-0", "nodes")
    assert all(name in known for name in AGENTS), known

    # Agents are replaced one host at a time, and are who they were; the edge is there again.
    old_pods = {name: pod["metadata"]["uid"] for name, pod in made.pods("agent").items()}
    made.kubectl("delete", "secret", "weft-token")
    made.change("daemonset/weft-agent")
    made.wait_rolled_out("daemonset/weft-agent")
    assert all(pod["metadata"]["uid"] != old_pods[name]
               for name, pod in made.pods("agent").items())
    after = {name: made.status(name)["self"] for name in AGENTS}
    for name in AGENTS:
        assert after[name]["publicKey"] == before[name]["publicKey"]
        assert after[name]["address4"] == before[name]["address4"]
    wait_for(lambda: can_ping(host, address), 60, "gpu-2 to answer gpu-1 again")
    wait_for(lambda: can_ping(lab.host("gpu-2"), before["gpu-1"]["address4"]), 60,
             "gpu-1 to answer gpu-2 again")
