"""A hub that was broken into says of known peers what is not so, and is not believed.

The hub's own program runs, with its WireGuard; what members ask of it on the overlay is answered by
another program in its place. --trust-after stands for the ten minutes of the default, which
src/core/mesh/keys/test-first-sight.c has.
"""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path

import pytest
from lab import wait_for
from lab.support.agents import HUB_AWAY, AgentNode

from .conftest import Pair
from .test_lying_hub import LEAD_ASTRAY, told

pytestmark = pytest.mark.namespaces

PROGRAM = Path(__file__).parents[1] / "support/programs/breached_hub.py"
HELD_S = 20
# What an agent says of it, and of the stand-in's end.
SAID = (HUB_AWAY, "UDP to the hub fails", "similar lines suppressed", "the hub's stream",
        "the hub's events", "report", "is known under another", "is not as the hub wants it")


def a_key(first: int) -> str:
    """Of nobody who runs here."""
    return base64.b64encode(bytes([first]) + bytes(30) + bytes([1])).decode()


def trusted(node: AgentNode) -> dict[str, dict]:
    """What the node knows of its peers, by name."""
    answer = json.loads(node.host.run([node.weft, "trust", "--json"], quiet=True).out)
    return {peer["name"]: peer for peer in answer["peers"]}


class Breach:
    """n1 and n2 have joined, and somebody is in their hub."""

    def __init__(self, site: Pair, tmp_path: Path) -> None:
        self.site = site
        for node in (site.n1, site.n2):
            node.options = ["--trust-after", f"{HELD_S}s"]
            node.join(site.token(), allow=SAID)
        wait_for(lambda: site.n1.peer_names() == {"n2"} and site.n2.peer_names() == {"n1"}, 20,
                 "the two to hear of each other")
        site.n1.reaches(site.n2)
        self.told = {node.address(): told(node) for node in (site.n1, site.n2)}
        self.addresses = {node.name: node.address() for node in (site.n1, site.n2)}
        self.script = tmp_path / "script"
        self.script.write_text("", encoding="utf-8")
        self.n_said = 0
        kept = tmp_path / "told.json"
        kept.write_text(json.dumps(self.told), encoding="utf-8")
        site.hub.run(["nft", "-f", "-"], stdin=LEAD_ASTRAY)
        self.hub = site.hub.spawn(["/usr/bin/python3", PROGRAM, 9443, kept, self.script],
                                  name="breached")
        self.hub.wait_line("^in the hub's place", 20)
        site.daemon.stop()
        site.start_hub()

    def node(self, name: str) -> dict:
        """As the hub had it."""
        nodes = self.told[self.addresses["n1"]]["nodes"]
        return copy.deepcopy(next(one for one in nodes if one["metadata"]["name"] == name))

    def say(self, *events: dict) -> None:
        """To all, and wait until n1 was told."""
        revision = self.told[self.addresses["n1"]]["revision"]
        with self.script.open("a", encoding="utf-8") as script:
            for event in events:
                self.n_said += 1
                script.write(json.dumps(event | {"revision": revision + self.n_said}) + "\n")
            self.n_said += 1
            script.write(json.dumps({"say": f"word {self.n_said}"}) + "\n")
        self.hub.wait_line(f"word {self.n_said} to {self.addresses['n1']}", 60)

    def put(self, node: dict) -> None:
        self.say({"type": "put", "object": node})


def test_a_hub_that_was_broken_into(site: Pair, tmp_path: Path) -> None:
    breach = Breach(site, tmp_path)
    n1, n2 = site.n1, site.n2
    true_key = trusted(n1)["n2"]["publicKey"]

    # A node of its own: it is taken, and shown with the time since when it is known.
    added = breach.node("n2")
    added["metadata"]["name"] = "mallory"
    added["spec"] |= {"publicKey": a_key(7), "address4": "10.42.0.77",
                      "address6": added["spec"]["address6"].rsplit(":", 1)[0] + ":77"}
    added.pop("status", None)
    breach.put(added)
    wait_for(lambda: "mallory" in n1.peer_names(), 10, "the new node to be taken")
    assert trusted(n1)["mallory"]["state"] == "known"
    assert trusted(n1)["mallory"]["seenAt"] >= trusted(n1)["n2"]["seenAt"]

    # The key of a peer that answers: refused and named, and the two go on.
    other_key = breach.node("n2")
    other_key["spec"]["publicKey"] = a_key(8)
    breach.put(other_key)
    wait_for(lambda: ("WEFT-TRUST-001", "n1--n2") in n1.found("critical"), 30,
             "n1 to say that the hub is not believed")
    assert trusted(n1)["n2"]["publicKey"] == true_key
    assert trusted(n1)["n2"]["offeredKey"] == a_key(8)
    shown = n1.run("trust").out
    assert true_key in shown and f"another key, key {a_key(8)}" in shown
    assert "is not believed" in n1.run("doctor", check=False).out
    n1.reaches(n2)

    # Its address.
    other_address = breach.node("n2")
    other_address["spec"]["address4"] = "10.42.0.99"
    breach.put(other_address)
    wait_for(lambda: trusted(n1)["n2"].get("change") == "address", 10, "n1 to be told")
    assert n1.peers()["n2"]["address4"] == breach.addresses["n2"]
    # Somebody new who has it already.
    taker = copy.deepcopy(added)
    taker["metadata"]["name"] = "taker"
    taker["spec"] |= {"publicKey": a_key(9), "address4": breach.addresses["n2"]}
    breach.put(taker)
    wait_for(lambda: ("WEFT-TRUST-001", "n1--taker") in n1.found("critical"), 10,
             "n1 to refuse who takes n2's address")
    assert "taker" not in n1.peer_names()
    n1.reaches(n2)

    # Another hub: it is taken, and shown.
    hub = breach.node("hub")
    hub["metadata"]["name"] = "hub-b"
    hub["spec"] |= {"publicKey": a_key(10), "address4": "10.42.0.88",
                    "address6": hub["spec"]["address6"].rsplit(":", 1)[0] + ":88"}
    breach.put(hub)
    wait_for(lambda: ("WEFT-TRUST-004", "hub-b--n1") in n1.found("note"), 10,
             "n1 to say that there is another hub")

    # What it takes back is forgotten.
    breach.put(breach.node("n2"))
    wait_for(lambda: trusted(n1)["n2"]["state"] == "known", 10, "n1 to have no doubt any more")
    assert ("WEFT-TRUST-001", "n1--n2") not in n1.found("critical")

    # A peer that is silent: taken after a while, and shown until somebody trusts it.
    n2.agent.allow("")
    site.lab.link("n2").down()
    breach.put(other_key)
    wait_for(lambda: ("WEFT-TRUST-002", "n1--n2") in n1.found("warning"), 10, "n1 to wait")
    assert trusted(n1)["n2"]["publicKey"] == true_key
    wait_for(lambda: trusted(n1)["n2"]["publicKey"] == a_key(8), 3 * HELD_S,
             "n1 to believe it, since n2 was silent")
    assert ("WEFT-TRUST-003", "n1--n2") in n1.found("warning")
    n1.run("trust", "n2")
    wait_for(lambda: ("WEFT-TRUST-003", "n1--n2") not in n1.found("warning"), 10,
             "what is trusted to be shown no more")

    # The agent's end does not make it forget who it knows.
    n1.agent.stop()
    n1.start(SAID)
    assert trusted(n1)["n2"]["publicKey"] == a_key(8)
