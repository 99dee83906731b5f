"""Faults, one at a time: each is found by its code, of the right subject and direction, and nothing
else that is as grave; and it is over after the mend.

The network is that of net.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode

from .net import ALLOWED, QUARTET, Net, cut, fault

pytestmark = pytest.mark.namespaces


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        yield Net(lab, weft)


def events(net: Net) -> list[tuple[str, str, str]]:
    return [(e["type"], e["code"], e["object"]) for e in net.get("events")["events"]
            if "code" in e]


def test_a_machine_that_is_cut_off(net: Net) -> None:
    with fault(net, "WEFT-NODE-001", "c", 30) as found:
        net.lab.link("c").down()
        said = found()
        assert said["severity"] == "critical" and said["about"] == "node"
        assert "no probe that reports reaches it" in said["text"]
        # Of what is dead there is no number.
        row = next(e for e in net.get("edges")["edges"] if e["name"] == "a--c")
        assert row["state"] == "agent-silent" and row["why"].startswith("c is down, or cut off")
        assert row["status"]["probe/c"]["stale"] is True
        for part in ("probe/a", "probe/c"):
            assert row["status"][part]["tunnel"] != "reached"
            assert "tunnelRttMs" not in row["status"][part]
        text = net.site.hub.run([net.site.weft, "get", "findings"], quiet=True).out
        assert re.search(r"critical +WEFT-NODE-001 +c +\d+ s +c has acknowledged nothing", text)
        assert "-> Start the machine" in text
        metrics = net.site.hub.run(["curl", "-s", "--unix-socket", "/run/weft/hub.sock",
                                    "http://hub/v1/metrics"], quiet=True).out
        assert ('weft_finding{network="default",code="WEFT-NODE-001",severity="critical",'
                'subject="c"} 1') in metrics
        assert ('weft_findings{network="default",code="WEFT-NODE-001",severity="critical"} 1'
                ) in metrics
        net.lab.link("c").up()
    assert ("Found", "WEFT-NODE-001", "c") in events(net)
    assert ("Gone", "WEFT-NODE-001", "c") in events(net)
    text = net.site.hub.run([net.site.weft, "get", "findings"], quiet=True).out
    assert text == "nothing is wrong, as far as is known\n"


def test_a_probe_that_is_stopped(net: Net) -> None:
    with fault(net, "WEFT-PROBE-001", "b", 30) as found:
        os.kill(net.probes["b"].pid, signal.SIGSTOP)
        found()
        row = next(e for e in net.get("edges")["edges"] if e["name"] == "a--b")
        assert row["status"]["probe/b"]["tunnel"] == "unknown"
        assert "tunnelRttMs" not in row["status"]["probe/b"]
        os.kill(net.probes["b"].pid, signal.SIGCONT)


@pytest.mark.parametrize(("frm", "to"), [("b", "a"), ("a", "b")])
def test_one_way_that_is_cut(net: Net, frm: str, to: str) -> None:
    with fault(net, "WEFT-ONEWAY-001", f"{frm}>{to}", 30, over_s=60) as found:
        cut(net, frm, to, True)
        said = found()
        assert said["about"] == "way"
        assert f"UDP from {frm} does not arrive at {to}" in said["text"]
        cut(net, frm, to, False)


def pin(net: Net, keys: dict[str, str]) -> None:
    body = {"kind": "MeshEdge", "metadata": {"name": "a--b"},
            "spec": {"nodes": ["a", "b"], "publicKeys": keys}}
    net.site.hub.run([net.site.weft, "apply", "-f", "-"], stdin=json.dumps(body), quiet=True)


def test_a_key_that_is_pinned_wrongly(net: Net) -> None:
    with fault(net, "WEFT-KEY-001", "a--b", 10) as found:
        pin(net, {"b": net.nodes["a"].status()["self"]["publicKey"]})
        assert "another public key is pinned for b" in found()["text"]
        # Each end says so as well, and what follows is not found.
        wait_for(lambda: net.nodes["a"].peers()["b"]["path"] == "none", 10, "a to refuse b")
        pin(net, {})


def test_an_agent_that_cannot_apply(net: Net) -> None:
    socket = "/run/wireguard/weft0.sock"
    with fault(net, "WEFT-APPLY-001", "b", 60) as found:
        net.lab.host("b").run(["mv", socket, "/run/wireguard/away"], quiet=True)
        said = found()
        assert said["text"].startswith("The agent of b cannot apply what the network says: ")
        net.lab.host("b").run(["mv", "/run/wireguard/away", socket], quiet=True)


def test_an_agent_that_is_stopped(net: Net) -> None:
    agent = net.nodes["b"].agent
    assert agent
    with fault(net, "WEFT-NODE-002", "b", 110) as found:
        os.kill(agent.pid, signal.SIGSTOP)
        assert "while its WireGuard still has a session with the hub" in found()["text"]
        os.kill(agent.pid, signal.SIGCONT)


def test_one_that_has_never_converged(net: Net) -> None:
    d = AgentNode(net.lab.host("d"), net.site.weft)
    with fault(net, "WEFT-NODE-003", "d", 110) as found:
        d.host.run([net.site.weft, "join", net.site.token(), "--name", "d", "--no-start"],
                   quiet=True)
        assert found()["text"] == "The agent of d has never been heard."
        d.start(allow=ALLOWED)
