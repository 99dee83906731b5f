"""What dies around a node, or is damaged, and that the node goes on or is made whole."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from interop.wgpeer import WgPeer
from lab import wait_for
from lab.support.agents import ENGINE_AWAY, HUB_AWAY, STATE, AgentNode
from lab.support.pinging import Pings

from .conftest import Pair, hide_tun, hold_port

pytestmark = pytest.mark.namespaces


def without_loss(node: AgentNode, address: str, meanwhile: Callable[[], None]) -> None:
    """Not one packet is lost while something happens."""
    ping = node.host.spawn(["ping", "-i", "0.05", "-W", "2", address], name="ping")
    ping.wait_line(r"icmp_seq=5 ")
    meanwhile()
    before = len(ping.lines())
    wait_for(lambda: len(ping.lines()) >= before + 10, 10, "more answers")
    ping.kill9()
    answered = [int(n) for n in re.findall(r"icmp_seq=(\d+) ", "\n".join(ping.lines()))]
    assert answered == list(range(1, len(answered) + 1))


def is_direct(node: AgentNode, peer: str) -> bool:
    return node.peers()[peer]["path"] in ("lan", "direct")


def test_traffic_goes_on_without_the_agent(site: Pair) -> None:
    """Nor is anything lost at its start: what the data plane uses and has heard is kept."""
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    for node, peer in ((site.n1, "n2"), (site.n2, "n1")):
        wait_for(lambda: is_direct(node, peer), 20, "the direct path")
    # An agent that is killed writes nothing; what it has not written, the next one does not know.
    wait_for(lambda: '"n2"' in site.n1.host.run(["cat", f"{STATE}/snapshot.json"], check=False,
                                                quiet=True).out, 20, "n2 to be on the disk")
    data_plane = site.n1.pids("weft-wg")
    pings = Pings(site.n1.host, far)
    without_loss(site.n1, far, site.n1.agent.kill9)

    def start() -> None:
        site.n1.start()
        wait_for(lambda: is_direct(site.n1, "n2"), 20, "the direct path")
        assert not [line for line in site.n1.agent.lines() if "which is not its path" in line]

    without_loss(site.n1, far, start)
    site.n1.agent.stop()
    without_loss(site.n1, far, start)
    pings.wait_more()
    pings.stop()
    gap = pings.longest_gap_s()
    print(f"FIGURE agent started, stopped, started: no answer for {gap:.2f} s (to be below 0.1)")
    assert site.n1.pids("weft-wg") == data_plane
    # It takes the interface over as it is; only where peers are reached may be set anew.
    changed = [int(n) for n in re.findall(r"applied to weft0: (\d+) change",
                                          "\n".join(site.n1.agent.lines()))]
    assert max(changed) < 4, "as many as make an interface"


def test_probe_sees_what_agents_do_not_tell(site: Pair) -> None:
    site.both_join()

    def look() -> tuple[int, dict[str, tuple[str, str]]]:
        done = site.n1.run("probe", "--once", "--json", check=False)
        members = json.loads(done.out)["members"]
        return done.rc, {m["name"]: (m["ipv4"]["state"], m["ipv6"]["state"]) for m in members}

    everybody = {name: ("reached", "reached") for name in ("hub", "n2")}
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached")
    # It needs no key, and does not look at it.
    site.n1.host.run(["mv", f"{STATE}/node.json", "/run/node.json"])
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached without the key")
    site.n1.host.run(["mv", "/run/node.json", f"{STATE}/node.json"])
    refused = site.n1.run("probe", "--metrics", "/nowhere/probe.prom", check=False)
    assert refused.rc == 1 and "metrics are not written: " in refused.err, refused
    refused = site.n1.run("probe", "--metrics", "overlay:80", check=False)
    assert refused.rc != 0 and "is not from 1024 to 65535" in refused.err, refused
    metrics = "/var/lib/weft/probe.prom"
    probe = site.n1.host.spawn([site.weft, "probe", "--metrics", metrics], name="probe",
                               allow=["n2 does not answer"])
    probe.wait_line("n2 is reached over ipv6")
    for node in (site.n1, site.n2):
        node.agent.kill9()
    # The tunnel does not need the agents.
    wait_for(lambda: look() == (0, everybody), 10, "all to be reached without agents")

    for pid in site.n2.pids("weft-wg"):
        os.kill(pid, signal.SIGKILL)
    probe.wait_line("n2 does not answer over ipv4: ")
    wait_for(lambda: look() == (3, everybody | {"n2": ("silent", "silent")}), 10, "n2 to be lost")
    assert re.search(r"^n2 +no answer +100.0 % +no answer ", site.n1.run(
        "probe", "--once", check=False).out, re.MULTILINE)
    wait_for(lambda: 'weft_probe_reached{node="n2",family="ipv4"} 0\n' in
             site.n1.host.run(["cat", metrics], quiet=True).out, 10, "the metrics to say so")
    # What does not answer has no round trip.
    assert 'weft_probe_rtt_seconds{node="n2",family="ipv4"}' not in site.n1.host.run(
        ["cat", metrics], quiet=True).out
    for node in (site.n1, site.n2):
        node.start()
    wait_for(lambda: sum("n2 is reached over ipv4" in line for line in probe.lines()) >= 2, 20,
             "n2 to answer again")
    probe.stop()


def test_data_plane_comes_back(site: Pair) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    for _ in range(2):
        [pid] = site.n1.pids("weft-wg")
        site.n1.agent.allow(ENGINE_AWAY)
        os.kill(pid, 9)
        wait_for(lambda old=pid: site.n1.pids("weft-wg") not in ([], [old]), 10, "a new data plane")
        site.n1.insist_ping(far, within_s=10)


@pytest.mark.parametrize("how", ["machine restarted", "link down and up"])
def test_a_port_that_another_program_took_meanwhile(site: Pair, how: str) -> None:
    """Who has it is named, the agent goes on trying, and says when it has it."""
    n1 = site.n1
    n1.join(site.token(), "--listen", "51999")
    site.n2.join(site.token())
    far = site.n2.address()
    n1.insist_ping(far, within_s=5)
    [pid] = n1.pids("weft-wg")
    if how == "machine restarted":
        n1.agent.stop()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not n1.pids("weft-wg"), 10, "the data plane to be gone")
        n1.host.run(["ip", "link", "delete", "weft0"], check=False)
    else:
        n1.agent.allow(ENGINE_AWAY)
        n1.agent.allow(HUB_AWAY)
        # Nobody sets it up again until the port is taken.
        os.kill(n1.agent.pid, signal.SIGSTOP)
        n1.host.run(["ip", "link", "set", "weft0", "down"])
        wait_for(lambda: ":51999 " not in n1.host.run(["ss", "-uanH"], quiet=True).out, 10,
                 "the port to be let go")
    holder = hold_port(n1.host, 51999)
    if how == "machine restarted":
        n1.agent = n1.host.spawn([n1.weft, "agent"], name="agent", allow=[ENGINE_AWAY, HUB_AWAY])
    else:
        os.kill(n1.agent.pid, signal.SIGCONT)
    # The agent is not root, and sees whose program it is.
    taken = "UDP port 51999 is in use already (EADDRINUSE): a process of user 0 "
    n1.agent.wait_line(re.escape(taken), 30)
    wait_for(lambda: taken in n1.status()["self"]["fault"], 10, "the status to name it")
    said = n1.run("status").out
    assert taken in said and "this node takes 51999 as soon as it is free" in said, said
    preflight = n1.run("preflight", "--quick", check=False)
    assert preflight.rc == 3 and f"interface: the interface of n1 is not as it should be: {taken}" \
        in preflight.out, preflight
    assert "blocked" not in said + preflight.out + "\n".join(n1.agent.lines())
    holder.kill9()
    holder.wait()
    n1.agent.wait_line("UDP port 51999 is free again, and weft0 listens on it", 30)
    n1.insist_ping(far, within_s=20)
    assert n1.status()["self"]["fault"] == ""


@pytest.mark.parametrize("damage", [
    "ip link delete weft0", "ip address flush dev weft0", "ip link set weft0 down",
    "ip link set weft0 mtu 1300", "wg set weft0 private-key /dev/null",
], ids=["link deleted", "addresses flushed", "link down", "MTU changed", "key removed"])
def test_interface_is_made_whole(site: Pair, damage: str) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    site.n1.agent.allow(ENGINE_AWAY)
    site.n1.host.run(damage.split())
    # What no event tells of is found by the next regular look.
    wait_for(lambda: site.n1.can_ping(far) and "mtu 1440" in site.n1.link_text(), 50,
             "the interface to be whole")


def wg(site: Pair, *words: str) -> str:
    return site.n1.host.run(["wg", *words], quiet=True).out.strip()


def test_a_peer_that_somebody_added_is_removed_and_said(site: Pair) -> None:
    site.both_join()
    stranger = "c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vyc3RyYW5nZXI="
    site.n1.agent.allow("1 peer of weft0 that neither the hub nor this agent had added")
    before = wg(site, "show", "weft0", "peers")
    wg(site, "set", "weft0", "peer", stranger, "allowed-ips", "10.99.0.0/16")
    site.n1.agent.wait_line(f"was removed, the last with the public key {stranger}", 20)
    assert wg(site, "show", "weft0", "peers") == before
    said = site.n1.status()["self"]["foreignPeers"]
    assert (said["removed"], said["last"]) == (1, stranger)
    metrics = site.n1.host.run(["curl", "-s", "--unix-socket", "/run/weft/agent.sock",
                                "http://weft/v1/metrics"], quiet=True).out
    assert "weft_agent_foreign_peers_removed_total 1\n" in metrics
    assert re.search(r'weft_agent_pass_seconds_count\{result="changed"\} [1-9]', metrics)


def test_an_interface_that_somebody_else_made_is_left_alone(site: Pair) -> None:
    """The agent says that another WireGuard has our name; `weft leave` does not touch it either."""
    site.both_join()
    site.n1.agent.stop()
    site.n1.run("agent", "--take-down")
    other = WgPeer.userspace(site.n1.host, [site.weft, "wg"], "weft0")
    other.configure(["10.98.0.1/24"])
    wg(site, "set", "weft0", "peer", "c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vyc3RyYW5nZXI=")

    def look() -> tuple[str, str]:
        return wg(site, "showconf", "weft0"), site.n1.host.run(["ip", "address", "show", "weft0"],
                                                               quiet=True).out

    before = look()
    agent = site.n1.host.spawn([site.weft, "agent"], name="agent", allow=[ENGINE_AWAY, HUB_AWAY])
    agent.wait_line("with the public key .*, which is not this node's, was made by somebody else",
                    20)
    wait_for(lambda: (site.n1.status()["self"]["retry"] or {}).get("failures", 0) >= 2, 20,
             "it to be tried again")
    assert "was made by somebody else: it is left alone" in site.n1.status()["self"]["fault"]
    assert look() == before
    site.n1.run("leave")
    assert look() == before


def test_peers_that_were_led_astray(site: Pair) -> None:
    """As after copies of their packets came first from elsewhere: WireGuard sends all of it there.

    Both are, so that neither is found again by what the other sends of its own accord.
    """
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    keys = [(node, node.status()["peers"][0]["publicKey"]) for node in (site.n1, site.n2)]

    # What one sends before it is led astray itself would lead the other back.
    def are_astray() -> bool:
        for node, key in keys:
            node.host.run(["wg", "set", "weft0", "peer", key, "endpoint", "203.0.113.99:9"])
        return not site.n1.can_ping(far)

    wait_for(are_astray, 10, "both to send elsewhere")
    site.n1.insist_ping(far, within_s=5)


def test_a_silent_hub_is_not_said_to_answer(site: Pair) -> None:
    """Long before it counts as away, which takes three heartbeats."""
    site.n1.join(site.token())
    site.n1.agent.allow(HUB_AWAY)
    start = time.monotonic()
    site.daemon.kill9()
    said = wait_for(lambda: (t := site.n1.host.run([site.weft, "status"], quiet=True).out)
                    and "silent for " in t and t, 20, "the status to say it")
    assert ": answers" not in said
    took = time.monotonic() - start
    print(f"FIGURE a dead hub is said to be silent after {took:.1f} s (to be below 10)")
    hub = site.n1.status()["hub"]
    assert hub["reachable"] and 7 <= hub["silentSeconds"] <= took + 8


def test_a_hub_that_is_there_is_not_called_silent(site: Pair) -> None:
    """Between two heartbeats nobody speaks, but for the kernels."""
    site.n1.join(site.token())
    watch = site.n1.host.spawn([site.weft, "status", "--watch"], name="watch")
    wait_for(lambda: sum("weft0" in line for line in watch.lines()) > 11, 30, "eleven looks")
    assert not [line for line in watch.lines() if "silent" in line]


def test_hub_is_away_for_a_while(site: Pair) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    for node in (site.n1, site.n2):
        node.agent.allow(HUB_AWAY)
    site.daemon.kill9()
    # Without the hub an agent that starts knows its peers all the same, and finds the way to them.
    site.n1.agent.stop()
    site.n1.agent = site.n1.host.spawn([site.weft, "agent"], name="agent", allow=[HUB_AWAY])
    wait_for(lambda: site.n1.host.run([site.weft, "status"], check=False, quiet=True).rc == 0, 10,
             "the agent to answer")
    assert site.n1.peer_names() == {"n2"}
    assert site.n1.status()["hub"]["reachable"] is False
    # Until it has, there is none: nobody relays.
    seen = []
    wait_for(lambda: seen.append(site.n1.status()["peers"][0]["path"]) or seen[-1] == "direct", 20,
             "the direct path")
    assert set(seen) <= {"none", "direct"}
    site.n1.insist_ping(far, within_s=5)
    site.start_hub()
    site.n1.agent.wait_line("the hub answers", 60)
    site.n1.insist_ping(far, within_s=60)
    # n2 goes on where it was, and is told which run of the hub this is; n1's agent began anew.
    ask = 'curl -sk -H "Authorization: Bearer $(cat /var/lib/weft/hub/admin.token)"'
    wait_for(lambda: "weft_watches_resumed_total 1\n" in site.hub.run(
        ["sh", "-c", f"{ask} https://127.0.0.1:8443/v1/metrics"], quiet=True).out,
        60, "n2 to go on with its watch")


def test_a_data_plane_that_cannot_be_had_later(site: Pair) -> None:
    """The agent says what is wrong, does not blame the hub, and pauses between its tries."""
    n1 = site.n1
    n1.join(site.token(), "--engine", "userspace")
    n1.agent.stop()
    for pid in n1.pids("weft-wg"):
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not n1.has_interface(), 5, "the interface to go")
    hide_tun(n1.host)
    agent = n1.host.spawn([site.weft, "agent"], name="agent", allow=[ENGINE_AWAY, HUB_AWAY])
    agent.wait_line("/dev/net/tun")
    fault = wait_for(lambda: n1.status()["self"]["fault"], 5, "the status to say it")
    assert "/dev/net/tun" in fault
    said = n1.host.run([site.weft, "status"], quiet=True).out
    assert "the interface is not as it should be" in said and "/dev/net/tun" in said
    n1.host.run(["umount", "/dev/net"])
    wait_for(lambda: n1.status()["self"]["fault"] == "", 40, "the fault to be over")
    agent.wait_line("the hub answers")


def test_daemons_that_stand_still(site: Pair) -> None:
    """They are not said to have ended; and of a change it is said that it may be made yet."""
    site.n1.join(site.token(), allow=[HUB_AWAY, "UDP to the hub fails"])
    still = "was asked, and no answer came: it stands still"
    agent = f"the agent on /run/weft/agent.sock {still}"
    hub = f"the hub at /run/weft/hub.sock {still}"
    unknown = "; whether it has done what was asked is not known\n"
    asked = [(site.n1.host, ["status"], agent), (site.n1.host, ["leave"], agent),
             (site.hub, ["nodes"], hub), (site.hub, ["network", "add", "late"], hub)]
    for daemon in (site.n1.agent, site.daemon):
        os.kill(daemon.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(4) as pool:  # Some wait for half a minute.
        answers = list(pool.map(lambda one: one[0].run([site.weft, *one[1]], check=False), asked))
    for daemon in (site.n1.agent, site.daemon):
        os.kill(daemon.pid, signal.SIGCONT)
    for (_, words, sentence), said in zip(asked, answers):
        assert said.rc == 1 and sentence in said.err, said.err
        assert said.err.endswith(unknown) == ("add" in words)
    wait_for(lambda: site.n1.run("status", check=False).rc == 0, 10, "the agent to answer again")
    assert site.hub.run([site.weft, "network", "ls"]).rc == 0
