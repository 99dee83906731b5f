"""Who asks the hub: the node itself, or only something on its machine.

    hub        203.0.113.10
     |
   [ wan ]
    |   |
   n1   n2     203.0.113.11, .12; n1 has a container whose packets it translates
    |
   box         172.30.0.2
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.agents import HUB_AWAY, AgentNode, Site

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
switch bridge 172.30.0.0/24 gateway=n1
host hub
host n1
host n2
host box
link hub wan 203.0.113.10
link n1 wan 203.0.113.11
link n2 wan 203.0.113.12
link n1 bridge 172.30.0.1
link box bridge 172.30.0.2
"""
HUB = "http://10.42.0.1:8443"
AGENT = ["--unix-socket", "/run/weft/agent.sock"]
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def ask(host: Host, method: str, url: str, *more: str, before: tuple = ()) -> tuple[int, dict]:
    argv = [*before, "curl", "-s", "-m", "60", "-X", method, "-w", "\n%{http_code}", *more, url]
    text, _, status = host.run(argv, check=False, quiet=True).out.rpartition("\n")
    return int(status), json.loads(text) if text else {}


def ask_agent(node: AgentNode, method: str, path: str) -> tuple[int, dict]:
    return ask(node.host, method, f"http://localhost{path}", *AGENT)


def test_what_runs_on_a_node_is_not_the_node(site: Site) -> None:
    n1, n2 = site.join("n1", "n2")
    page = ["-H", "Origin: http://evil.example"]
    assert ask(n1.host, "POST", f"{HUB}/v1/leave", *page, before=NOBODY)[0] == 403
    rebound = ["-H", "Host: evil.example:8443"]
    assert ask(n1.host, "GET", f"{HUB}/v1/watch", *rebound, before=NOBODY)[0] == 403
    for method, path in (("POST", "/v1/leave"), ("PUT", "/v1/status"), ("GET", "/v1/watch"),
                         ("POST", "/v1/jobs/train/rendezvous")):
        status, answer = ask(n1.host, method, HUB + path, before=NOBODY)
        assert status == 401 and "does not prove" in answer["error"], (method, path)
    # Nor is root without the agent, nor a container behind the node's address.
    assert ask(n1.host, "POST", f"{HUB}/v1/leave")[0] == 401
    n1.host.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    n1.host.run(["nft", "-f", "-"], stdin="table ip box { chain out {\n"
                "type nat hook postrouting priority 100;\n"
                "ip saddr 172.30.0.0/24 oifname weft0 masquerade\n}\n}\n")
    box = site.lab.host("box")
    assert ask(box, "GET", f"{HUB}/v1/health")[0] == 200
    assert ask(box, "POST", f"{HUB}/v1/leave")[0] == 401
    assert site.hub_nodes().keys() == {"hub", "n1", "n2"}
    n1.reaches(n2)


def test_the_agent_signs_for_jobs(site: Site) -> None:
    [n1] = site.join("n1")
    status, answer = ask_agent(n1, "POST", "/v1/jobs/train/rendezvous")
    assert status == 200 and answer["job"] == "train" and answer["run"]
    status, again = ask_agent(n1, "GET", "/v1/jobs/train/rendezvous")
    assert status == 200 and again["run"] == answer["run"] and again["c10d"] == answer["c10d"]
    _, jobs = ask_agent(n1, "GET", "/v1/jobs")
    assert "train" in {job["job"] for job in jobs["jobs"]}
    status, refused = ask_agent(n1, "POST", "/v1/jobs/No_Name/rendezvous")
    assert status == 400 and "No_Name" in refused["error"]
    assert ask_agent(n1, "GET", "/v1/jobs/nothing/rendezvous")[0] == 404
    assert ask_agent(n1, "DELETE", "/v1/jobs/train/rendezvous") == (204, {})
    # More at once than the hub takes of one member; none is lost, and the watch goes on.
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda i: ask_agent(n1, "POST", f"/v1/jobs/j{i}/rendezvous")[0],
                             range(16)))
    assert made == [200] * 16
    assert n1.status()["hub"]["reachable"]


def test_a_hub_that_was_started_anew(site: Site) -> None:
    """It knows none of the proofs of before; the agent learns which it takes."""
    [n1] = site.join("n1", allow={"n1": [HUB_AWAY]})
    site.daemon.kill9()
    status, answer = ask_agent(n1, "GET", "/v1/jobs")
    assert status == 502 and answer["error"]
    site.start_hub()
    wait_for(lambda: ask_agent(n1, "POST", "/v1/jobs/train/rendezvous")[0] == 200, 30,
             "the agent to be believed again")
    n1.host.run([site.weft, "leave"])
    assert site.hub_nodes().keys() == {"hub"}


def test_leaving_without_the_agent_is_proven(site: Site) -> None:
    [n1] = site.join("n1")
    n1.agent.kill9()
    said = n1.host.run([site.weft, "leave"]).out
    assert "could not be told" not in said
    assert site.hub_nodes().keys() == {"hub"}
