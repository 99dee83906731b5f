"""The pods of deploy/kubernetes, run by kubelets: a hub, and an agent and a probe on two hosts.

      hub       203.0.113.10: the control plane, and a kubelet with the hub's pod
       |
     [ wan ]
      |   |
   gpu-1 gpu-2  203.0.113.11, .12: a kubelet each, with the pods of an agent and of a probe

All objects of overlays/one-hub are made. There is no scheduler and there are no controllers, so
each pod is made here from its DaemonSet's or StatefulSet's template, with the name of its Node, and
the hub's volume is an empty one in place of a claim. Nothing else of a pod is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.topologies import one_switch

from .shipped import HUB_LABEL, Pods, need_kubelets, plane_on, running

pytestmark = pytest.mark.namespaces

HOSTS = {"hub": 10, "gpu-1": 11, "gpu-2": 12}
AGENTS = ("gpu-1", "gpu-2")
NET_BIND_SERVICE, NET_ADMIN = 1 << 10, 1 << 12
NET_RAW = 1 << 13


@pytest.fixture(name="pods")
def fixture_pods(weft: Path, tmp_path: Path) -> Iterator[tuple[Lab, Pods]]:
    need_kubelets()
    with Lab.from_text(one_switch("wan", "203.0.113", HOSTS), capture=False) as lab:
        plane = plane_on(lab, weft, tmp_path, "hub")
        labels = {name: HUB_LABEL if name == "hub" else "" for name in HOSTS}
        with running(lab, weft, tmp_path, plane, "one-hub", labels) as made:
            made.items["ConfigMap", "weft-hub"]["data"]["public"] = plane.address
            yield lab, made


def rights_of(lab: Lab, host: str, pattern: str) -> dict[str, str]:
    """What the kernel says of the process with such a command line."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
             for pid in lab.host(host).pids("weft")}
    pid = next((pid for pid, line in lines.items() if re.search(pattern, line)), None)
    assert pid, f"no {pattern} among {lines}"
    return dict(re.findall(r"^(\w+):\s*(.*)$", Path(f"/proc/{pid}/status").read_text(),
                           re.MULTILINE))


def check_rights(lab: Lab, host: str, words: str, capabilities: int) -> None:
    said = rights_of(lab, host, words)
    assert (int(said["CapBnd"], 16), int(said["CapEff"], 16) & ~capabilities) == (capabilities, 0)
    assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2")


def test_kubelets_run_a_hub_agents_and_probes(pods: tuple[Lab, Pods]) -> None:
    lab, made = pods
    made.apply_all()
    made.make_pod("StatefulSet", "weft-hub", "weft-hub-0", "hub")
    made.wait_ready("weft-hub-0")
    token = made.inside("weft-hub-0", "token", "new", "--uses", 1000, "--ttl", "24h").strip()
    made.kubectl("create", "secret", "generic", "weft-token", f"--from-literal=token={token}")
    for name in AGENTS:
        made.make_pod("DaemonSet", "weft-agent", f"weft-agent-{name}", name)
    made.wait_ready(*(f"weft-agent-{name}" for name in AGENTS))
    for name in AGENTS:
        made.make_pod("DaemonSet", "weft-probe", f"weft-probe-{name}", name)

    # The hosts reach each other over what their pods have made.
    selves = {name: json.loads(made.inside(f"weft-agent-{name}", "status", "--json"))["self"]
              for name in AGENTS}
    assert [selves[name]["name"] for name in AGENTS] == list(AGENTS)
    wait_for(lambda: lab.host("gpu-1").run(
        ["ping", "-c", "1", "-W", "1", selves["gpu-2"]["address4"]], check=False,
        quiet=True).rc == 0, 30, "gpu-2 to answer gpu-1")

    # And so say the probes, who tell the hub.
    def found() -> tuple[str, str]:
        edge = made.kubectl("exec", "weft-hub-0", "--", "weft", "get", "MeshEdge", "gpu-1--gpu-2",
                            check=False)
        status = json.loads(edge.out)["status"] if edge.rc == 0 else {}
        return tuple(status.get(f"probe/{name}", {}).get("tunnel", "") for name in AGENTS)
    wait_for(lambda: found() == ("reached", "reached"), 60, "both probes to report the edge")

    check_rights(lab, "hub", "hub up", NET_ADMIN)
    check_rights(lab, "gpu-1", r"join --foreground|weft agent", NET_ADMIN | NET_BIND_SERVICE)
    check_rights(lab, "gpu-1", "probe --report", NET_RAW)

    # An agent's pod that is made anew goes on as the same node, without the token.
    made.kubectl("delete", "secret", "weft-token")
    made.kubectl("delete", "pod", "weft-agent-gpu-1")
    made.make_pod("DaemonSet", "weft-agent", "weft-agent-gpu-1", "gpu-1")
    made.wait_ready("weft-agent-gpu-1")
    again = json.loads(made.inside("weft-agent-gpu-1", "status", "--json"))["self"]
    assert again["publicKey"] == selves["gpu-1"]["publicKey"]
