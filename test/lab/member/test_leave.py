"""A node leaves, or is removed by its hub, and nothing of it stays."""

from __future__ import annotations

import re
import time

import pytest
from lab import wait_for
from lab.support.agents import HUB_AWAY, STATE, AgentNode

from .conftest import Pair

pytestmark = pytest.mark.namespaces


def assert_nothing_left(node: AgentNode, *but: str) -> None:
    assert not node.has_interface()
    wait_for(lambda: not node.pids("weft-wg") and not node.pids("weft"), 5, "all processes to end")
    left = node.host.run(["find", STATE, "/run/weft", "/run/wireguard", "-type", "f", "-o", "-type",
                          "s"], check=False, quiet=True).out.split()
    assert set(left) <= {f"{STATE}/lock", f"{STATE}/agent.log", *but}
    assert "10.42." not in node.host.run(["ip", "route", "show", "table", "all"], quiet=True).out
    assert "weft" not in node.host.run(["cat", "/etc/hosts"], quiet=True).out


def test_leave(site: Pair) -> None:
    site.both_join()
    said = site.n2.run("leave").out
    assert said == "Left the network default; the interface weft0 is gone.\n"
    assert site.n2.agent.wait() == 0
    assert_nothing_left(site.n2)
    assert site.node_names() == {"hub", "n1"} or "n2" not in site.node_names()
    wait_for(lambda: site.n1.peer_names() == set(), 5, "n1 to hear that n2 is gone")
    again = site.n2.run("leave", check=False)
    assert again.rc == 1
    assert "has not joined" in again.err
    site.n2.join(site.token())


def test_leave_names_the_state_of_a_relay(site: Pair) -> None:
    """A relay's state is where a hub's is, and not where leave looks."""
    relay = "/var/lib/weft/hub"
    site.n1.host.run(["mkdir", "-p", relay])
    assert relay not in site.n1.run("leave", check=False).err
    site.n1.host.run(["touch", f"{relay}/node.json"])
    refused = site.n1.run("leave", check=False)
    assert refused.rc == 1 and f"weft leave --state {relay}" in refused.err, refused


def test_leave_without_agent(site: Pair) -> None:
    site.n1.join(site.token())
    site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "could not be told" not in said
    assert_nothing_left(site.n1)
    assert "n1" not in site.node_names()


@pytest.mark.parametrize("agent_runs", [True, False], ids=["agent", "no agent"])
def test_leave_without_hub(site: Pair, agent_runs: bool) -> None:
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    site.lab.link("n1").down()
    if not agent_runs:
        site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "The hub could not be told" in said
    assert '"weft node rm n1" removes the node there' in said
    assert_nothing_left(site.n1)


@pytest.mark.parametrize("agent_runs", [True, False], ids=["agent", "no agent"])
def test_leave_with_a_broken_tunnel(site: Pair, agent_runs: bool) -> None:
    """The hub is told by its public API, and the name is free again."""
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    nft = ["nft", "add table inet broken; add chain inet broken out { type filter hook output "
           'priority 0; }; add rule inet broken out oifname "weft0" drop']
    site.n1.host.run(nft)
    if not agent_runs:
        site.n1.agent.kill9()
    said = site.n1.run("leave").out
    assert "could not be told" not in said, said
    assert_nothing_left(site.n1)
    assert "n1" not in site.node_names()
    site.n1.host.run(["nft", "delete", "table", "inet", "broken"])
    site.n1.join(site.token())


def test_leave_where_the_names_cannot_be_removed(site: Pair) -> None:
    """It has left all the same, and says what stays behind."""
    site.n1.join(site.token())
    hosts = site.n1.host
    wait_for(lambda: "# weft begin default/n1" in hosts.run(["cat", "/etc/hosts"], quiet=True).out,
             10, "the names")
    hosts.run(["mount", "--bind", "/etc", "/etc"])
    hosts.run(["mount", "-o", "remount,bind,ro", "/etc"])
    said = site.n1.run("leave").out
    assert said.startswith("Left the network default; the interface weft0 is gone.\n"), said
    assert 'still in /etc/hosts, between "# weft begin default/n1/' in said
    assert "Read-only file system" in said
    assert site.n1.agent.wait() == 0
    assert not site.n1.has_interface()
    assert "n1" not in site.node_names()
    assert site.n1.run("leave", check=False).err.startswith("weft leave: this machine has not")


def test_removed_by_the_hub(site: Pair) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    start = time.monotonic()
    site.hub.run([site.weft, "node", "rm", "n2"])
    wait_for(lambda: not site.n2.has_interface() and site.n1.peer_names() == set(), 2,
             "n2 to be cut off everywhere")
    print(f"FIGURE cut off everywhere {time.monotonic() - start:.2f} s after the command began "
          "(to be below 2)")
    assert not site.n1.can_ping(far)
    site.n2.agent.wait_line("the hub has removed this node")
    assert site.n2.agent.wait() == 0
    word = f"{STATE}/removed.json"
    assert site.n2.host.run(["test", "-e", word], check=False).rc == 0
    assert_nothing_left(site.n2, word)
    # Whoever asks is told, until it joins again.
    removed = r'this node, "n2", was removed from the network default by its hub on 20\S+ \S+ UTC: '
    for command in ("status", "agent"):
        result = site.n2.run(command, check=False)
        assert result.rc == 1 and re.search(removed, result.err), result.err
    assert re.search("^Already left; .*" + removed, site.n2.run("leave").out)
    said = site.n2.run("join", site.token(), "--no-start", "--name", "n3").out
    assert re.search(r"^n3 has joined", said) and re.search("^Before, " + removed, said, re.M)
    assert site.n2.host.run(["test", "-e", word], check=False).rc == 1
    assert "was removed" not in site.n2.run("status", check=False).err


def test_removed_while_its_agent_was_away(site: Pair) -> None:
    """Nobody could tell it, and the hub does not speak to strangers; it says so in TLS."""
    site.both_join()
    site.n2.agent.kill9()
    site.hub.run([site.weft, "node", "rm", "n2"])
    site.n2.agent = site.n2.host.spawn([site.weft, "agent"], name="agent",
                                       allow=[HUB_AWAY, "UDP to the hub fails, and so does TLS"])
    why = (': UDP to it fails, and so does TLS: a stream is for members, and the request '
           'proves no membership of a network "default": a node that is told this was removed')
    wait_for(lambda: why in site.n2.run("status", check=False).out, 60,
             "n2 to say that it is no member")
    assert "proves no membership" in site.n2.status()["hub"]["tlsFailure"]
    site.n2.run("leave")
    assert site.n2.agent.wait() == 0
    site.n2.join(site.token())
    assert "tlsFailure" not in site.n2.status()["hub"]


def test_a_probe_outlives_leave_and_join(site: Pair) -> None:
    """It reports again, as the node that the machine is now, which has another key."""
    site.both_join()
    probe = site.n1.host.spawn([site.weft, "probe", "--report"], name="probe", allow=[""])

    def is_told_by(name: str) -> bool:
        shown = site.hub.run([site.weft, "get", "MeshEdge", f"n2--{name}" if name > "n2" else
                              f"{name}--n2"], check=False, quiet=True)
        return f'"probe/{name}"' in shown.out

    wait_for(lambda: is_told_by("n1"), 60, "the probe to have reported")
    site.n1.run("leave")
    site.n1.name = "n9"
    site.n1.join(site.token())
    probe.wait_line("this machine has joined anew: the hub is told as n9", 60)
    wait_for(lambda: is_told_by("n9"), 60, "the probe to report as n9")
    assert probe.running
    probe.stop()
