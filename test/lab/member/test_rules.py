"""Rules say who may reach which ports of whom, and both ends enforce them: by the kernel's packet
filter, or, where there is none, by the data plane itself.

      hub        203.0.113.10
       |
     [ wan ]
     |  |  |
    n1 n2 n3     203.0.113.11 to .13; n2 has the label role=gpu
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.enforcing import KINDS, Enforcing
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
NODES = ("n1", "n2", "n3")
# Answers each connection with a word; two ports of all addresses.
SERVER = """
import socketserver, threading
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"here")
for port in (2200, 2300):
    server = socketserver.ThreadingTCPServer(("0.0.0.0", port), Answer)
    threading.Thread(target=server.serve_forever).start()
print("it listens", flush=True)
"""
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2) as s:
    assert s.recv(4) == b"here"
"""


class Network:
    def __init__(self, lab: Lab, weft: Path, enforcing: Enforcing) -> None:
        self.lab = lab
        self.weft = weft
        self.enforcing = enforcing
        self.site = Site(lab, weft, versions=(4,), wrap=enforcing.wrap)
        words = {name: list(enforcing.words) for name in NODES}
        words["n2"] += ["--label", "role=gpu"]
        self.site.join(*NODES, words=words)
        for name in NODES:
            lab.host(name).spawn(["/usr/bin/python3", "-c", SERVER], name="server").wait_line(
                "it listens")

    def rule(self, *words: str, check: bool = True):
        return self.site.hub.run([self.weft, "rule", *words], check=check, quiet=True)

    def reaches(self, frm: str, to: str, port: int) -> bool:
        address = self.site.nodes[to].address()
        return self.lab.host(frm).run(["/usr/bin/python3", "-c", CLIENT, address, str(port)],
                                      check=False, quiet=True).rc == 0

    def pings(self, frm: str, to: str) -> bool:
        return self.site.nodes[frm].can_ping(self.site.nodes[to].address())

    def remove_all(self) -> None:
        for rule in json.loads(self.rule("ls", "--json").out)["rules"]:
            self.rule("rm", rule["metadata"]["name"])

    def wait(self, frm: str, to: str, port: int, wanted: bool) -> None:
        wait_for(lambda: self.reaches(frm, to, port) == wanted, 10,
                 f"{frm} {'to reach' if wanted else 'not to reach'} {to}:{port}")


@pytest.fixture(scope="module", params=KINDS)
def module_net(weft: Path, request: pytest.FixtureRequest) -> Iterator[Network]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Network(lab, weft, Enforcing(request.param))


@pytest.fixture
def net(module_net: Network) -> Iterator[Network]:
    yield module_net
    module_net.remove_all()
    module_net.wait("n1", "n3", 2300, True)


def test_without_rules_all_reach_all(net: Network) -> None:
    assert all(net.reaches(a, b, 2200) for a in NODES for b in NODES if a != b)
    assert not net.enforcing.is_on(net.lab.host("n1"))
    assert net.rule("test", "n1", "n2:22").out == "allowed: the network has no rules\n"


def test_the_first_rule_is_thought_about(net: Network) -> None:
    refused = net.rule("add", "ssh", "--from", "members", "--to", "role=gpu", "--allow", "tcp/2200",
                       check=False)
    assert refused.rc != 0
    assert "n1 > n3\n" in refused.err and "n1 > n2\n" not in refused.err
    assert "say --yes" in refused.err
    assert net.reaches("n1", "n3", 2200)


def test_who_reaches_which_port(net: Network) -> None:
    net.rule("add", "ssh", "--from", "members", "--to", "role=gpu", "--allow", "tcp/2200", "--yes")
    net.wait("n1", "n3", 2200, False)
    assert net.reaches("n1", "n2", 2200)
    assert not net.reaches("n1", "n2", 2300)
    assert not net.reaches("n2", "n1", 2200)
    assert not net.pings("n1", "n2")
    assert net.rule("test", "n1", "n2:2200").out == (
        "allowed by the rule ssh\n"
        "enforced by n1, where it is sent, and by n2, where it arrives\n")
    tested = net.rule("test", "n1", "n2:2300", check=False)
    assert (tested.rc, tested.out.splitlines()[0]) == (3, "refused: none of the 1 rules allows it")
    net.rule("add", "ping", "--from", "node:n1", "--to", "node:n2", "--allow", "icmp")
    wait_for(lambda: net.pings("n1", "n2"), 10, "pings to pass")
    # In fragments, too.
    assert net.site.nodes["n1"].can_ping(net.site.nodes["n2"].address(), "-s", "4000")
    assert not net.pings("n2", "n1")
    # The agents are heard all the while.
    assert net.site.hub_nodes().keys() >= set(NODES)
    net.rule("rm", "ssh")
    net.wait("n1", "n2", 2200, False)


def test_a_rule_for_all_leaves_all_as_it_was(net: Network) -> None:
    net.rule("add", "all", "--from", "members", "--to", "members,hub", "--allow", "any", "--yes")
    wait_for(lambda: net.enforcing.is_on(net.lab.host("n1")), 10, "the rule to be there")
    assert all(net.reaches(a, b, 2300) for a in NODES for b in NODES if a != b)


def test_each_end_refuses_by_itself(net: Network) -> None:
    """Who does not enforce the rules as a sender is refused by who gets it."""
    net.rule("add", "ssh", "--from", "members", "--to", "role=gpu", "--allow", "tcp/2200", "--yes")
    net.wait("n1", "n3", 2200, False)
    n1, n3 = net.lab.host("n1"), net.lab.host("n3")
    source = net.site.nodes["n1"].address()

    # Its agent may have put them again meanwhile.
    def is_refused_there() -> bool:
        net.enforcing.stop(n1)
        assert not net.reaches("n1", "n3", 2200)
        return net.enforcing.has_refused(n3, source)

    wait_for(is_refused_there, 30, "n3 to refuse what n1 sends")


def test_what_is_refused_is_counted_and_told(net: Network) -> None:
    net.rule("add", "ssh", "--from", "members", "--to", "role=gpu", "--allow", "tcp/2200", "--yes")
    net.wait("n1", "n2", 2300, False)
    assert net.reaches("n1", "n2", 2200) and not net.reaches("n2", "n3", 2300)

    def events() -> list[str]:
        said = net.site.hub.run([net.weft, "get", "events", "--json"], quiet=True).out
        return [e["text"] for e in json.loads(said)["events"] if e["type"] == "Refused"]

    def has(start: str, end: str) -> bool:
        return any(e.startswith(start) and e.endswith(end) for e in events())

    # Who sends refuses first.
    wait_for(lambda: has("n1 refused ", " from n1 to n2, tcp/2300: no rule allows them") or
             has("n1 refused ", " from n1 to n2, tcp/2300: no rule allows it"), 40, "an event")
    wait_for(lambda: any("from n2 to n3, tcp/2300" in e for e in events()), 40, "another event")

    def counts() -> dict:
        return json.loads(net.rule("ls", "--json").out)["counts"]

    # The rule names n1 and n2, and lets one of their ports in; none names n3 as a destination.
    def are_there() -> bool:
        have = counts()
        return min(have["refused"], have["rules"][0]["passed"], have["rules"][0]["refused"]) >= 1

    wait_for(are_there, 90, "what was let in and refused to be reported")
    listed = net.rule("ls").out
    assert listed.splitlines()[0].split()[-3:] == ["LET", "IN", "REFUSED"]
    assert "refused between others, which no rule names: " in listed
    # The same connections again are no new events.
    n_events, n_refused = len(events()), counts()["rules"][0]["refused"]
    assert not net.reaches("n1", "n2", 2300)
    wait_for(lambda: counts()["rules"][0]["refused"] > n_refused, 90, "the next to be counted")
    assert len(events()) == n_events
    metrics = net.site.hub.run(
        ["curl", "-s", "--unix-socket", "/run/weft/hub.sock", "http://hub/v1/metrics"], check=False,
        quiet=True).out
    assert 'weft_rule_passed_total{network="default",rule="ssh"} ' in metrics


def test_the_hub_is_one_end_like_another(net: Network) -> None:
    """Its API is never shut; its other ports are what the rules say."""
    hub = net.site.hub
    hub.spawn(["/usr/bin/python3", "-c", SERVER], name="server").wait_line("it listens")
    address = str(json.loads(net.site.hub.run(
        [net.weft, "get", "Node", "hub"], quiet=True).out)["spec"]["address4"])

    def reaches(port: int) -> bool:
        return net.lab.host("n1").run(["/usr/bin/python3", "-c", CLIENT, address, str(port)],
                                      check=False, quiet=True).rc == 0

    assert reaches(2200)
    net.rule("add", "store", "--from", "node:n1", "--to", "hub", "--allow", "tcp/2300", "--yes")
    wait_for(lambda: not reaches(2200), 10, "the hub's port to be shut")
    assert reaches(2300)
    assert net.site.nodes["n1"].can_ping(address)
    wait_for(lambda: net.enforcing.is_on(hub, "weft-default"), 10, "the hub to enforce it")

    # Who does not enforce anything itself is refused by the hub.
    def is_refused_there() -> bool:
        net.enforcing.stop(net.lab.host("n1"))
        assert not reaches(2200) and reaches(2300)
        return net.enforcing.has_refused(hub, net.site.nodes["n1"].address(), "weft-default")

    wait_for(is_refused_there, 30, "the hub to refuse what n1 sends")
    # Agents are heard all the while, and the rule is taken away by what the hub still serves.
    net.rule("rm", "store")
    wait_for(lambda: reaches(2200), 15, "the hub to be open again")
    wait_for(lambda: not net.enforcing.is_on(hub, "weft-default"), 10, "the hub to refuse nothing")


# Says a line each tenth of a second, and hears nothing.
TALKER = """
import socketserver, time
class Talk(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            self.request.sendall(b"still here\\n")
            time.sleep(0.1)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
server = Server(("0.0.0.0", 2400), Talk)
print("it listens", flush=True)
server.serve_forever()
"""
LISTENER = """
import socket, sys
with socket.create_connection((sys.argv[1], 2400), timeout=5) as s:
    s.settimeout(20)
    for line in s.makefile():
        print(line, end="", flush=True)
"""

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 2400), timeout=2).close()"


def test_what_has_begun_goes_on(net: Network) -> None:
    """Also when its rule is removed, and by nothing but answers; what begins does not."""
    net.lab.host("n2").spawn(["/usr/bin/python3", "-c", TALKER], name="talker").wait_line(
        "it listens")
    net.rule("add", "talk", "--from", "node:n1", "--to", "node:n2", "--allow", "tcp/2400", "--yes")
    wait_for(lambda: net.enforcing.is_on(net.lab.host("n2")), 10, "n2 to enforce it")
    address = net.site.nodes["n2"].address()
    listener = net.lab.host("n1").spawn(["/usr/bin/python3", "-c", LISTENER, address],
                                        name="listener")

    def heard() -> int:
        return sum("still here" in line for line in listener.lines())

    def goes_on(why: str) -> None:
        before = heard()
        wait_for(lambda: heard() > before + 5, 20, f"the connection to go on {why}")

    goes_on("at all")
    if net.enforcing.is_own:
        # The next process has heard of none, and there is traffic in one direction alone.
        for name in ("n1", "n2"):
            net.site.nodes[name].run("agent", "--renew-engine")
            goes_on(f"with another process on {name}")
            assert net.enforcing.is_on(net.lab.host(name))
    net.rule("add", "other", "--from", "node:n1", "--to", "node:n2", "--allow", "tcp/2300")
    net.rule("rm", "talk")
    net.wait("n1", "n2", 2300, True)
    wait_for(lambda: net.lab.host("n1").run(["/usr/bin/python3", "-c", CONNECT, address],
                                            check=False, quiet=True).rc != 0, 20,
             "no other one to begin")
    goes_on("without its rule")
    listener.stop()


def test_an_isolated_network(net: Network) -> None:
    network = json.loads(net.site.hub.run([net.weft, "get", "Network", "default"], quiet=True).out)
    network["spec"]["isolation"] = "strict"
    network["metadata"].pop("resourceVersion")
    net.site.hub.run([net.weft, "apply", "-f", "-"], stdin=json.dumps(network), quiet=True)
    net.wait("n1", "n2", 2200, False)
    network["spec"]["isolation"] = "open"
    net.site.hub.run([net.weft, "apply", "-f", "-"], stdin=json.dumps(network), quiet=True)
    net.wait("n1", "n2", 2200, True)


@pytest.mark.parametrize(("words", "said"), [
    (["--from", "gpu", "--to", "hub", "--allow", "any"], '"gpu" is none of members, hub'),
    (["--from", "hub", "--to", "hub", "--allow", "ssh"], '"ssh" is none of any, icmp, tcp, udp'),
    (["--from", "10.9.0.0/24", "--to", "hub", "--allow", "any"], "as a destination only"),
])
def test_what_is_refused(net: Network, words: list[str], said: str) -> None:
    done = net.rule("add", "x", *words, "--yes", check=False)
    assert done.rc != 0 and said in done.err
