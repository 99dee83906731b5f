"""The state of a node is on two machines, as with a copied image: it is said, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import wait_for
from lab.support.agents import STATE

from .conftest import Pair

pytestmark = pytest.mark.namespaces

# Two machines with one key: packets, sessions and streams of each end in the middle.
ANY = [".*"]


def test_a_copied_node_is_named(site: Pair, tmp_path: Path) -> None:
    site.daemon.allow(".*")
    site.n1.join(site.token(), allow=ANY)
    assert "copies" not in site.hub_nodes()["n1"] and "copied" not in site.n1.status()
    image = tmp_path / "image.tar"
    site.n1.host.run(["tar", "-C", STATE, "-cf", image, "."])
    site.n2.host.run(["mkdir", "-p", STATE])
    site.n2.host.run(["tar", "-C", STATE, "-xf", image])
    site.n2.start(allow=ANY)
    wait_for(lambda: "copies" in site.hub_nodes()["n1"], 150, "the hub to see two machines")

    wait_for(lambda: ("WEFT-NODE-004", "n1") in site.found("critical"), 20, "it to be found")
    said = site.hub_nodes()["n1"]["copies"]
    assert {m["host"]: m["isCopy"] for m in said["machines"]} == {"n1": False, "n2": True}
    assert "203.0.113.12" in said["why"] and "remove /var/lib/weft/node" in said["why"]
    assert f"COPIED: n1: {said['why']}" in site.hub.run([site.weft, "nodes"]).out
    site.daemon.wait_line('node "n1" of network "default": two machines are this node', 5)
    wait_for(lambda: "this machine is the copy" in site.n2.status().get("copied", ""), 150,
             "the copy to be told")
    assert ": another machine (n1 at" in site.n2.run("status").out
    wait_for(lambda: "that one is the copy" in site.n1.status().get("copied", ""), 150,
             "the original to be told")
    entries = [json.loads(line) for line in
               site.hub.run([site.weft, "audit", "--json"]).out.splitlines()]
    assert [(entry["object"], entry["actor"]) for entry in entries
            if entry["operation"] == "copy"] == [("node/default/n1", "node:default/n1")]

    # What is said to do helps: the copy becomes a node of its own, and the original stays.
    site.n2.run("agent", "--take-down")
    site.n2.host.run(["rm", "-r", STATE])
    site.n2.join(site.token(), allow=ANY)
    wait_for(lambda: site.node_names() == {"hub", "n1", "n2"}, 20, "both to be nodes")
    wait_for(lambda: site.n1.peer_names() == {"n2"}, 60, "n1 to hear of n2")
    site.n1.insist_ping(site.n2.address(), within_s=60)
