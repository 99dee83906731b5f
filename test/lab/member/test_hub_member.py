"""The hub's own machine is a member as well: it joins by one command, runs jobs, and leaves.

      hub        203.0.113.10: the hub, and from the join on the node "box"
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import Daemon, wait_for
from lab.support.agents import HUB_AWAY, AgentNode

from .conftest import Pair

pytestmark = pytest.mark.namespaces

TORCH = Path("/usr/lib/python3/dist-packages/torch")

# Meets, and adds up ones over both nodes.
SCRIPT = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
print(f"rank {dist.get_rank()} of world {int(ones.item())}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def join_box(site: Pair) -> AgentNode:
    box = AgentNode(site.hub, site.weft)
    box.name = "box"
    box.join(site.token(), allow=[HUB_AWAY, "UDP to the hub fails"])
    return box


def check_both_ways(site: Pair, box: AgentNode) -> None:
    """The member on the hub's machine, the hub itself and n1 all answer each other."""
    for version in (4, 6):
        box.reaches(site.n1, version=version)
        site.n1.reaches(box, version=version)
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    assert network["spec"]["cidr4"] == "10.42.0.0/16"
    for hub in ("10.42.0.1", f"{box.address(6).rpartition('::')[0]}::1"):
        for node in (box, site.n1):
            node.insist_ping(hub)


def test_it_joins_by_one_command_and_leaves(site: Pair) -> None:
    site.n1.join(site.token())
    before = site.hub.run(["ip", "-o", "address", "show", "dev", "weft-default"]).out
    alone = site.hub.run([site.weft, "status"], check=False)
    assert alone.rc == 1 and "weft hub status" in alone.err
    said = site.hub.run([site.weft, "join", site.token(), "--name", "box"]).out
    assert "box has joined the network default" in said
    assert "The hub at 203.0.113.10:51820 answers" in said
    box = AgentNode(site.hub, site.weft)
    wait_for(lambda: box.peer_names() == {"n1"}, 10, "the hub's machine to hear of n1")
    check_both_ways(site, box)
    # Programs of the machine are the member, and what the hub says is the hub's.
    assert f" src {box.address()}" in site.hub.run(["ip", "route", "get", site.n1.address()]).out \
        or "dev weft0" in site.hub.run(["ip", "route", "get", site.n1.address()]).out
    assert "dev weft-default" in site.hub.run(
        ["ip", "route", "get", site.n1.address(), "from", "10.42.0.1"]).out
    assert "hub.default.weft" in site.hub.run(["cat", "/etc/hosts"]).out
    clean = site.n1.run("preflight", check=False)
    assert clean.rc == 0, clean.out + clean.err
    clean = box.run("preflight", check=False)
    assert clean.rc == 0, clean.out + clean.err
    site.hub.run([site.weft, "leave"])
    assert site.node_names() == {"hub", "n1"}
    assert not box.has_interface()
    assert site.hub.run(["ip", "-o", "address", "show", "dev", "weft-default"]).out == before
    wait_for(lambda: site.n1.can_ping("10.42.0.1"), 10, "n1 to reach the hub")
    assert site.hub.run(["ping", "-c1", "-W3", site.n1.address()], check=False).rc == 0
    # And once more, with what the first time has left behind.
    site.hub.run([site.weft, "join", site.token(), "--name", "box"])
    check_both_ways(site, box)
    site.hub.run([site.weft, "leave"])


@pytest.mark.parametrize("kind", ["bridge", "WireGuard"])
def test_a_hub_may_not_call_any_interface_its_own(site: Pair, kind: str) -> None:
    """This one serves none, and says that a stranger's of its name is its own: a LAN, or another
    WireGuard. Where the network's block is in use there, the join is refused as for anybody."""
    site.daemon.stop()
    site.hub.run(["ip", "link", "delete", "weft-default"], check=False)
    if kind == "bridge":
        site.hub.run(["ip", "link", "add", "weft-default", "type", "bridge"])
    else:
        site.hub.spawn([site.weft, "wg", "-f", "weft-default"], name="wg")
        wait_for(lambda: site.hub.run(["wg", "show", "weft-default"], check=False, quiet=True).rc
                 == 0, 10, "the WireGuard")
        site.hub.run(["wg", "set", "weft-default", "private-key", "/dev/stdin"],
                     stdin=site.hub.run(["wg", "genkey"]).out)
    site.hub.run(["ip", "address", "add", "10.42.0.1/16", "dev", "weft-default"])
    site.hub.run(["ip", "link", "set", "weft-default", "up"])
    site.words = ["--no-dataplane"]
    site.start_hub()
    refused = site.hub.run([site.weft, "join", site.token(), "--name", "box", "--no-start"],
                           check=False)
    assert refused.rc == 1, refused.out
    assert "the network \"default\" cannot be joined here" in refused.err
    assert "of weft-default" in refused.err and "the token is not used" in refused.err
    assert "box" not in site.node_names()


def test_either_may_start_first(site: Pair) -> None:
    """The hub ends and starts beside the member's interface, and the agent beside the hub's."""
    site.n1.join(site.token(), allow=[HUB_AWAY, "UDP to the hub fails"])
    box = join_box(site)
    check_both_ways(site, box)
    for end in ("stop", "kill9"):
        wait_for(lambda: box.peers()["n1"]["path"] in ("lan", "direct"), 20,
                 "a path that leads past the hub")
        getattr(site.daemon, end)()
        # Sessions of members live without a hub.
        box.reaches(site.n1)
        site.start_hub()
        wait_for(lambda: box.status()["hub"]["reachable"] and site.n1.status()["hub"]["reachable"],
                 60, "both to reach the hub again")
        check_both_ways(site, box)
        assert "collides" not in "\n".join(site.daemon.lines())
    box.agent.stop()
    site.hub.run(["ip", "link", "delete", "weft0"])
    site.n1.insist_ping("10.42.0.1")
    box.start([HUB_AWAY])
    check_both_ways(site, box)


# Of curl: nobody listens, or it is hung up on.
REFUSED = (7, 52, 56)


def knock(site: Pair, address: str) -> int:
    """A user of the hub's machine, who is no member himself, asks for what is in the jobs."""
    return site.hub.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl",
                         "-s", "-m", "20", f"http://{address}:2379/version"], check=False,
                        quiet=True).rc


def test_users_of_the_machine_come_to_the_jobs_of_its_networks_alone(site: Pair) -> None:
    """They are what users of any member are, while the machine is one, and nobody elsewhere."""
    site.hub.run([site.weft, "network", "add", "second", "--cidr4", "10.43.0.0/16"])
    wait_for(lambda: "10.43.0.1" in site.hub.run(["ip", "-o", "address"], quiet=True).out, 10,
             "the second network to be served")
    assert knock(site, "10.42.0.1") in REFUSED and knock(site, "10.43.0.1") in REFUSED
    box = join_box(site)
    wait_for(lambda: knock(site, "10.42.0.1") == 0, 20, "a user of the member to come to jobs")
    assert knock(site, "10.43.0.1") in REFUSED
    # A hub that starts anew knows it as soon as the member has reported.
    site.daemon.stop()
    site.start_hub()
    wait_for(lambda: knock(site, "10.42.0.1") == 0, 60, "him to come again")
    assert knock(site, "10.43.0.1") in REFUSED
    box.agent.stop()
    site.hub.run([site.weft, "node", "rm", "box"])
    wait_for(lambda: knock(site, "10.42.0.1") in REFUSED, 10, "him to be kept out again")


@pytest.mark.skipif(not TORCH.exists(), reason="python3-torch is not installed")
def test_it_runs_a_job(site: Pair, tmp_path: Path) -> None:
    """One rank on the hub's machine and one on n1, who meet at the hub."""
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    site.n1.join(site.token())
    box = join_box(site)

    def start(host_node: AgentNode, job: str, words: list[object]) -> Daemon:
        return host_node.host.spawn(
            [site.weft, "run", "--nnodes", "2", "--job", job, "--", *words], name=f"job-{job}",
            env={"OMP_NUM_THREADS": "1"}, allow=[""])

    for job, words in (("launched", ["torchrun", script]), ("plain", ["/usr/bin/python3", script])):
        jobs = [start(node, job, words) for node in (box, site.n1)]
        wait_for(lambda js=jobs: not any(each.running for each in js), 120, f"{job} to end")
        for each in jobs:
            text = "\n".join(each.lines())
            assert each.rc == 0, text
            assert "of world 2" in text
