"""The pods of deploy/kubernetes: hub, agents and a probe, with the rights of their manifests.

      hub        203.0.113.10
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12: an agent each, and a probe at n1
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from lab import Lab, wait_for
from lab.support import ROOT
from lab.support.agents import HUB_AWAY
from lab.support.container import Image
from lab.support.pinging import can_ping
from lab.support.pod import Pod
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
BASE = ROOT / "deploy/kubernetes/base"
NET_BIND_SERVICE, NET_ADMIN = 1 << 10, 1 << 12
NET_RAW = 1 << 13


def pod_of(name: str) -> dict:
    for item in yaml.safe_load_all((BASE / f"{name}.yaml").read_text()):
        if item["kind"] in ("DaemonSet", "StatefulSet"):
            return item["spec"]["template"]["spec"]
    raise AssertionError(f"{name}.yaml makes no pods")


def rights_of(pid: int) -> tuple[set[str], int, int]:
    """Users, effective and bounding capabilities of a process."""
    said = dict(re.findall(r"^(\w+):\s*(.*)$", Path(f"/proc/{pid}/status").read_text(),
                           re.MULTILINE))
    return set(said["Uid"].split()), int(said["CapEff"], 16), int(said["CapBnd"], 16)


def found_by_probe(hub: Pod) -> tuple[str, str]:
    """What the probe of n1 has reported of n2: through the tunnel, and beside it."""
    said = json.loads(hub.run("get", "MeshEdge", "n1--n2").out)
    found = said.get("status", {}).get("probe/n1", {})
    return found.get("tunnel", ""), found.get("underlay", "")


def test_hub_agents_and_a_probe(image: Image, tmp_path: Path) -> None:
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    with Lab.from_text(TOPOLOGY) as lab:
        hub = Pod(image, lab.host("hub"), tmp_path / "hub", pod_of("hub"), {},
                  WEFT_PUBLIC="203.0.113.10")
        hub.start().wait_line("hub is up", 30)
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "token").write_text(hub.run("token", "new", "--uses", "2").out)
        agents = []
        for name in ("n1", "n2"):
            disk = {"state": tmp_path / f"{name}-disk", "token": secret}
            agents.append(Pod(image, lab.host(name), tmp_path / name, pod_of("agent"), disk))
            agents[-1].start(allow=[HUB_AWAY]).wait_line("the hub answers", 30)
            agents[-1].run("status")  # what the readiness probe asks
        # Agents answer DNS.
        for pod, rights in ((hub, NET_ADMIN), *((a, NET_ADMIN | NET_BIND_SERVICE) for a in agents)):
            assert rights_of(pod.pid()) == ({"0"}, rights, rights), pod.name
        address = json.loads(agents[1].run("status", "--json").out)["self"]["address4"]
        wait_for(lambda: can_ping(lab.host("n1"), address), 20, "n2 to answer the host n1")

        probe = Pod(image, lab.host("n1"), tmp_path / "probe", pod_of("probe"),
                    {"state": tmp_path / "n1-disk"})
        probe.start().wait_line("n2 is reached over ipv4", 30)
        assert rights_of(probe.pid()) == ({"0"}, NET_RAW, NET_RAW)
        # It tells the hub what it finds, through the tunnel and beside it.
        wait_for(lambda: found_by_probe(hub) == ("reached", "reached"), 40,
                 "the hub to hear from the probe that n1 reaches n2")

        # The pod is replaced, and its token is gone: the host is the same node as before.
        agents[0].kill()
        (secret / "token").unlink()
        agents[0].start(allow=[HUB_AWAY]).wait_line("the hub answers", 30)
        wait_for(lambda: can_ping(lab.host("n1"), address), 20, "n2 to answer again")
        for pod in (probe, *agents, hub):
            pod.kill()
