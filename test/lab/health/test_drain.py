"""weft health: a machine that fails three checks is drained by its hook, by a share of the network.

      hub        203.0.113.10
       |
     [ wan ]
     |  |  |
    n1 n2 n3     each with a disk of its own for its state, which can be filled
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, Result, wait_for
from lab.support import ROOT
from lab.support.agents import STATE, AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
HOOKS = ROOT / "deploy/health"
FULL = "WEFT-STATE-002"
# What agents may say whose disk is full, and whose hub is away.
ANY = [".*"]


class Members(Site):
    def __init__(self, lab: Lab, weft: Path, folder: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        for name in NODES:
            lab.host(name).run(["mkdir", "-p", STATE], quiet=True)
            lab.host(name).run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", STATE])
        self.join(*NODES, allow=dict.fromkeys(NODES, ANY))
        self.said = folder / "said"
        self.hook = folder / "hook"
        self.hook.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >>{self.said}\necho >>{self.said}\n')
        self.hook.chmod(0o755)

    def start_hub(self) -> None:
        super().start_hub()
        self.daemon.allow("is drained: ")

    def check(self, name: str, *words: str) -> dict:
        done = self.try_check(name, "--drain", "--hook", str(self.hook), *words)
        return json.loads(done.out)

    def try_check(self, name: str, *words: str) -> Result:
        return self.nodes[name].run("health", "--json", *words, check=False)

    def calls(self) -> list[str]:
        """What the hooks were called with since it was asked last."""
        text = self.said.read_text() if self.said.exists() else ""
        self.said.unlink(missing_ok=True)
        return text.splitlines()

    def found(self) -> set[tuple[str, str]]:
        answer = json.loads(self.hub.run([self.weft, "get", "findings", "--json"], quiet=True).out)
        return {(one["code"], one["subject"]) for one in answer["findings"]
                if one["code"].startswith("WEFT-HEALTH")}

    def wait_found(self, *found: tuple[str, str]) -> None:
        wait_for(lambda: self.found() == set(found), 30, f"{found} to be found")

    def audit(self) -> list[str]:
        lines = self.hub.run([self.weft, "audit", "--json"], quiet=True).out.splitlines()
        return [f"{one['actor']} {one['operation']}" for one in map(json.loads, lines)
                if one.get("object", "").startswith("node/") and "drain" in one["operation"]]

    def share(self, percent: int) -> None:
        self.hub.run([self.weft, "network", "set", "default", "--drain-share", percent])


def fill(node: AgentNode) -> None:
    node.host.run(["fallocate", "-l", "20M", f"{STATE}/fill"])


def mend(node: AgentNode) -> None:
    node.host.run(["rm", f"{STATE}/fill"])


@pytest.fixture(scope="module", name="site")
def fixture_site(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Members(lab, weft, tmp_path_factory.mktemp("drain"))


def test_three_failures_drain_by_the_share(site: Members) -> None:
    """Dry run first; then one of three nodes and no more; and back again."""
    n1, n2 = site.nodes["n1"], site.nodes["n2"]
    assert site.try_check("n1").rc == 0
    jobs = [site.nodes[name].host.spawn(
        [site.weft, "run", "--nnodes", 2, "--job", "train", "--", "sleep", 1000], name="run")
        for name in ("n1", "n3")]
    fill(n1)
    looked = site.try_check("n1")
    assert looked.rc == 2
    said = json.loads(looked.out)
    assert (said["verdict"], said["codes"], said["failed"]) == ("failed", FULL, 0), said

    # Dry run: it is said what would be done, and nothing is.
    assert [site.check("n1")["done"] for _ in range(2)] == ["", ""]
    assert site.found() == set()
    said = site.check("n1")
    assert said["dryRun"] and not said["drained"] and said["failed"] == 3, said
    assert "network default drains no node" in said["done"], said
    assert f"{site.hook} drain n1 default" in said["done"], said
    site.wait_found(("WEFT-HEALTH-001", "n1"))
    assert site.audit() == [f"node:default/n1 drain, dry run, {FULL}"]
    assert site.calls() == []

    # One of three is 33 %.
    site.share(34)
    said = site.check("n1")
    assert said["drained"] and not said["dryRun"], said
    [call] = site.calls()
    assert call.startswith(f"drain|n1|default|{FULL}: ") and call.endswith(f"|{FULL}|"), call
    site.wait_found(("WEFT-HEALTH-001", "n1"), ("WEFT-HEALTH-002", "n1"))
    assert site.audit()[-1] == f"node:default/n1 drain {FULL}"
    node = json.loads(site.hub.run([site.weft, "get", "Node", "n1"]).out)
    assert node["spec"]["drained"].startswith(f"{FULL}: "), node
    site.check("n1")
    assert site.calls() == []
    # The node itself knows, and so does the job that runs on it.
    wait_for(lambda: "WEFT-HEALTH-002" in n1.run("status").out, 20, "n1 to know that it is drained")
    for job in jobs:
        job.wait_line("node n1 of the job train.1 fails its health check, and is drained", 30)
    assert f"    DRAINED n1: {FULL}" in site.hub.run([site.weft, "jobs"]).out

    # A second one is refused by the share; its checks are made by one process.
    fill(n2)
    again = n2.host.spawn([site.weft, "health", "--drain", "--every", "1s", "--hook", site.hook],
                          name="health")
    again.wait_line("1 of the 3 nodes of network default are drained", 30)
    assert site.audit()[-1] == f"node:default/n2 drain, above the share, {FULL}"
    site.wait_found(("WEFT-HEALTH-001", "n1"), ("WEFT-HEALTH-002", "n1"), ("WEFT-HEALTH-001", "n2"))
    assert site.calls() == []

    # The first is well again, which makes place for the second.
    mend(n1)
    assert [site.check("n1")["drained"] for _ in range(3)] == [True, True, False]
    again.wait_line("n2 is drained: ", 30)
    calls = site.calls()
    assert calls[0] == "undrain|n1|default|||" and calls[1].startswith("drain|n2|default|"), calls
    assert "node:default/n1 undrain" in site.audit()
    mend(n2)
    again.wait_line("n2 is well again", 30)
    site.wait_found()
    assert site.calls() == ["undrain|n2|default|||"]
    again.stop()
    for job in jobs:
        job.stop()


def test_a_hub_that_is_away_drains_nobody(site: Members) -> None:
    """Neither because it is away, nor while it is."""
    site.share(100)
    site.daemon.stop()
    wait_for(lambda: "WEFT-HUB-003" in site.nodes["n3"].run("status").out, 60,
             "the hub to be missed")
    assert [site.check("n3")["verdict"] for _ in range(3)] == ["ok"] * 3
    fill(site.nodes["n3"])
    said = [site.check("n3") for _ in range(3)][-1]
    assert (said["verdict"], said["drained"]) == ("failed", False), said
    assert "since the hub was not asked" in said["done"], said
    assert site.calls() == []
    site.start_hub()
    wait_for(lambda: site.check("n3")["drained"], 60, "the hub to be asked")
    mend(site.nodes["n3"])
    wait_for(lambda: not site.check("n3")["drained"], 60, "n3 to be given back")


# ---- the hooks that are shipped ---------------------------------------------------------------


def call_hook(name: str, folder: Path, program: str, answers: str, *words: str) -> list[str]:
    """Call it with a stand-in of the scheduler's program; what that was told to change."""
    said = folder / "told"
    stand_in = folder / program
    stand_in.write_text(f'#!/bin/sh\ncase $* in\n{answers}\n*) echo "$*" >>{said} ;;\nesac\n')
    stand_in.chmod(0o755)
    subprocess.run([HOOKS / name, *words], check=True, env={
        **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WEFT_SLURM_NODE": "g7",
        "WEFT_KUBERNETES_NODE": "g7"})
    text = said.read_text() if said.exists() else ""
    said.unlink(missing_ok=True)
    return text.splitlines()


REASON = "WEFT-DISK-002: it is full"
DRAIN = ("drain", "n1", "default", REASON, "WEFT-DISK-002,WEFT-NIC-002")
UNDRAIN = ("undrain", "n1", "default", "", "")


@pytest.mark.parametrize("state, words, told", [
    ("State=IDLE", DRAIN, [f"update NodeName=g7 State=DRAIN Reason=weft: {REASON}"]),
    ("State=IDLE+DRAIN", DRAIN, []),
    ("State=IDLE", UNDRAIN, []),
    (f"State=MIXED+DRAIN X=1 Reason=weft: {REASON} [root@now]", UNDRAIN,
     ["update NodeName=g7 State=RESUME"]),
    ("State=IDLE+DRAIN Reason=DRAIN by hand [root@now]", UNDRAIN, []),
    ("State=IDLE Reason=weft: DRAIN [root@now]", UNDRAIN, []),
])
def test_slurm(tmp_path: Path, state: str, words: tuple[str, ...], told: list[str]) -> None:
    """What an administrator has drained is left as it is."""
    answers = f'"--oneliner show node g7") echo "NodeName=g7 {state}" ;;'
    assert call_hook("slurm", tmp_path, "scontrol", answers, *words) == told


@pytest.mark.parametrize("taints, words, told", [
    ("", DRAIN, ["taint nodes g7 weft.dev/unhealthy=WEFT-DISK-002:NoSchedule --overwrite"]),
    ("other weft.dev/unhealthy", UNDRAIN, ["taint nodes g7 weft.dev/unhealthy-"]),
    ("other", UNDRAIN, []),
])
def test_kubernetes_taint(tmp_path: Path, taints: str, words: tuple[str, ...],
                          told: list[str]) -> None:
    answers = f'"get node g7"*) echo "{taints}" ;;'
    assert call_hook("kubernetes-taint", tmp_path, "kubectl", answers, *words) == told
