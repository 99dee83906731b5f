"""Edges as the hub knows them, with real agents: applied, failing, fallen, pinned.

    hub ── [ wan ] ──┬── a
                     └── b
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

TRIO = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host a no-v6
link a wan 203.0.113.21
host b no-v6
link b wan 203.0.113.22
"""


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TRIO, capture=False) as lab:
        yield Site(lab, weft)


def ask(site: Site, *words: str) -> dict:
    return json.loads(site.hub.run([site.weft, "get", *words, "--json"], quiet=True).out)


def edge(site: Site) -> dict:
    rows = [e for e in ask(site, "edges")["edges"] if e["name"] == "a--b"]
    return rows[0] if rows else {"state": "not listed", "why": "", "status": {}}


def wait_state(site: Site, *wanted: str, within_s: float = 30) -> dict:
    wait_for(lambda: edge(site)["state"] in wanted, within_s,
             f"a--b to be {' or '.join(wanted)}")
    return edge(site)


def events(site: Site) -> list[str]:
    return [e["type"] for e in ask(site, "events")["events"] if e["object"] in ("a--b", "a", "b")]


def pin(site: Site, **spec: object) -> None:
    body = {"kind": "MeshEdge", "metadata": {"name": "a--b"}, "spec": {"nodes": ["a", "b"], **spec}}
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(body))


def cut(site: Site, on: bool) -> None:
    """UDP from one node to the other is dropped; what goes to the hub is not."""
    table = ("table inet cut {\nchain cut {\ntype filter hook prerouting priority -300\n"
             "ip saddr 203.0.113.22 meta l4proto udp drop\n}\n}\n")
    argv = ["nft", "-f", "-"] if on else ["nft", "delete", "table", "inet", "cut"]
    site.lab.host("a").run(argv, stdin=table if on else None, quiet=True)


def test_an_edge_falls_and_comes_back(site: Site) -> None:
    a, b = site.join("a", "b")
    a.reaches(b)
    row = wait_state(site, "lan", "direct")
    said = row["status"]["agent/a"]
    assert said["endpoint"] == "203.0.113.22:" + said["endpoint"].rpartition(":")[2]
    assert said["publicKey"] == b.status()["self"]["publicKey"]
    assert said["applied"]["revision"] > 0 and "error" not in said["applied"]
    cut(site, True)
    row = wait_state(site, "fell-back", within_s=60)
    assert "and has lost it: now it is relay" in row["why"]
    assert "FellBack" in events(site)
    cut(site, False)
    wait_state(site, "lan", "direct", within_s=150)
    assert "DirectAgain" in events(site)


def test_a_pinned_key_and_a_pinned_endpoint(site: Site) -> None:
    a, b = site.join("a", "b")
    a.reaches(b)
    wait_state(site, "lan", "direct")
    pin(site, publicKeys={"b": a.status()["self"]["publicKey"]})
    row = wait_state(site, "refused")
    assert "another public key is pinned for b than it has" in row["why"]
    wait_for(lambda: a.peers()["b"]["path"] == "none", 10, "a to refuse b")
    assert "the edge pins another public key" in a.peers()["b"]["why"]
    assert not a.can_ping(b.address(), "-c", "1", "-W", "1")
    # Each end says so as well, and no part says that it talks.
    wait_for(lambda: "error" in edge(site)["status"].get("agent/a", {}), 20, "a to say so")

    port = {n.name: listen_port(n) for n in (a, b)}
    pin(site, endpoints={"a": f"203.0.113.21:{port['a']}", "b": f"203.0.113.22:{port['b']}"},
        publicKeys={"b": b.status()["self"]["publicKey"]})
    a.reaches(b)
    wait_for(lambda: a.peers()["b"]["path"] == "direct", 10, "the pinned endpoint to be used")
    assert a.peers()["b"]["endpoint"] == f"203.0.113.22:{port['b']}"
    wait_state(site, "direct")
    # Nobody is there, and it is not looked for elsewhere.
    pin(site, endpoints={"a": "203.0.113.21:9", "b": "203.0.113.22:9"})
    wait_for(lambda: not a.can_ping(b.address(), "-c", "1", "-W", "1"), 20,
             "what is sent to go nowhere")


def listen_port(node) -> int:
    """Where its engine listens, as wg(8) shows it."""
    return int(node.host.run(["wg", "show", "weft0", "listen-port"], quiet=True).out)


def test_agents_that_stop(site: Site) -> None:
    a, b = site.join("a", "b")
    a.reaches(b)
    wait_state(site, "lan", "direct")
    b.agent.stop()
    row = wait_state(site, "agent-silent", within_s=150)
    assert row["why"].startswith("the agent of b has not been heard for ")
    wait_for(lambda: "AgentSilent" in events(site), 30, "the event")
    metrics = site.hub.run(["curl", "-s", "--unix-socket", "/run/weft/hub.sock",
                            "http://hub/v1/metrics"], quiet=True).out
    assert 'weft_agents_silent{network="default"} 1' in metrics
    b.start()
    wait_state(site, "lan", "direct", within_s=60)
    wait_for(lambda: "AgentHeard" in events(site), 30, "the event")


def test_an_engine_that_refuses(site: Site) -> None:
    """The data plane of b goes on, and takes no configuration any more: its socket is gone."""
    a, b = site.join("a", "b", allow={"b": ["is not as the hub wants it"]})
    a.reaches(b)
    wait_state(site, "lan", "direct")
    b.host.run(["rm", "/run/wireguard/weft0.sock"])
    row = wait_state(site, "failing", within_s=60)
    assert row["why"].startswith("b cannot apply it: ")
    assert row["status"]["agent/b"]["applied"]["error"] in row["why"]
    assert "Failing" in events(site)
    assert "b cannot apply it: " in site.hub.run([site.weft, "get", "edges"]).out


def drop_inside(site: Site, a: AgentNode) -> None:
    """b's kernel drops what comes from a through the tunnel; WireGuard and both agents are well."""
    drops = "".join(f"{family} saddr {a.address(version)} drop\n"
                    for family, version in (("ip", 4), ("ip6", 6)))
    site.lab.host("b").run(["nft", "-f", "-"], quiet=True, stdin=(
        "table inet dead {\nchain dead {\ntype filter hook input priority -300\n"
        f"{drops}}}\n}}\n"))


def test_probes_show_what_agents_do_not(site: Site) -> None:
    """The way that a firewall has cut, and a tunnel that is dead though its session is well."""
    a, b = site.join("a", "b")
    a.reaches(b)
    for node in (a, b):
        node.host.spawn([site.weft, "probe", "--report"], name="probe", allow=["does not answer"])

    def wait_said(what: str, **wanted: dict) -> None:
        def is_said() -> bool:
            said = edge(site)["status"]
            return all(said.get(f"probe/{node}", {}).get(name) == value
                       for node, fields in wanted.items() for name, value in fields.items())
        wait_for(is_said, 40, what)

    both = {"tunnel": "reached", "underlay": "reached", "underlayHeard": True}
    wait_said("both ways to be seen", a=both, b=both)
    said = edge(site)["status"]["probe/a"]
    assert said["underlayEndpoint"].startswith("203.0.113.22:")
    assert said["tunnelRttMs"] > 0 and said["underlayRttMs"] > 0

    # What b sends by UDP does not arrive at a: a's pings reach b, and their answers are lost.
    site.lab.host("b").run(["nft", "-f", "-"], quiet=True, stdin=(
        "table inet oneway {\nchain out {\ntype filter hook output priority -300\n"
        "ip daddr 203.0.113.21 meta l4proto udp drop\n}\n}\n"))
    wait_said("the way from b to a to be cut",
              a={"underlay": "silent", "underlayHeard": None},
              b={"underlay": "silent", "underlayHeard": True})
    row = next(line for line in site.hub.run([site.weft, "get", "edges"], quiet=True)
               .out.splitlines() if line.startswith("a--b"))
    assert re.search(r"\S+, UDP reached +\S+, UDP silent", row), row

    site.lab.host("b").run(["nft", "delete", "table", "inet", "oneway"], quiet=True)
    drop_inside(site, a)
    wait_said("the tunnel to be dead", a={"tunnel": "silent", "underlay": "reached"},
              b={"underlay": "reached"})
    row = wait_state(site, "unreached")
    assert "does not answer" in row["why"] and "but at its underlay endpoint it does" in row["why"]
    assert row["status"]["agent/a"]["handshakeAgeSeconds"] is not None
    assert "error" not in row["status"]["agent/a"]["applied"]


def mbit_per_s(src: AgentNode, dst: AgentNode, port: int) -> float:
    """What one TCP stream of a second brought from one node to the other."""
    dst.host.spawn(["iperf3", "--server", "--one-off", "--port", port])
    wait_for(lambda: dst.host.run(["ss", "-Hltn", f"sport = :{port}"], quiet=True).out, 10,
             "iperf3 to listen")
    said = src.host.run(["iperf3", "--client", dst.address(), "--port", port, "--json",
                         "--time", 1], quiet=True).out
    return json.loads(said)["end"]["sum_received"]["bits_per_second"] / 1e6


def test_a_rate_holds_and_is_lifted(site: Site) -> None:
    a, b = site.join("a", "b", words={name: ["--engine", "userspace"] for name in ("a", "b")})
    a.reaches(b)
    pin(site, rate="20Mbit/s")
    for end, peer in ((a, "b"), (b, "a")):
        wait_for(lambda end=end, peer=peer: end.peers()[peer]["rateBitsPerSecond"] == 20_000_000,
                 10, f"{end.name} to keep the rate")
    assert mbit_per_s(a, b, 5201) < 20
    assert "rates that are kept: to b 20Mbit\n" in a.run("status").out
    assert "kept to 20Mbit" in a.run("paths", "b").out
    # What is not named stays.
    site.hub.run([site.weft, "edge", "set", "b", "a", "--path", "direct"])
    spec = ask(site, "MeshEdge", "a--b")["spec"]
    assert (spec["path"], spec["rate"]) == ("direct", "20Mbit")
    site.hub.run([site.weft, "edge", "set", "a", "b", "--rate", "none"])
    wait_for(lambda: a.peers()["b"]["rateBitsPerSecond"] is None, 10, "the rate to be lifted")
    assert mbit_per_s(a, b, 5202) > 20

    said = site.hub.run([site.weft, "node", "set", "a", "--rate", "20Mbit", "--class-rate",
                         "bulk=5Mbit"]).out
    assert said == "node a of network default sends at most 20Mbit, bulk at most 5Mbit\n"
    wanted = {"bitsPerSecond": 20_000_000, "classes": {"bulk": 5_000_000}, "showsDscp": False,
              "why": ""}
    wait_for(lambda: a.status()["self"]["rates"] == wanted, 10, "a to keep its rates")
    assert mbit_per_s(a, b, 5203) < 20 < mbit_per_s(b, a, 5204)
    done = site.hub.run([site.weft, "node", "set", "a", "--rate", "1bit"], check=False)
    assert done.rc != 0 and '"rate" "1bit" is not from 100kbit to 1000Gbit' in done.err


def test_what_goes_to_the_hub_goes_first(site: Site) -> None:
    """Of any program, while the node has a rate: marked CS6, which is the first class."""
    (a,) = site.join("a", words={"a": ["--engine", "userspace"]})
    site.hub.run([site.weft, "node", "set", "a", "--rate", "50Mbit"])
    wait_for(lambda: a.status()["self"]["rates"]["bitsPerSecond"] == 50_000_000, 10,
             "a to keep its rate")
    hub = a.status()["hub"]
    capture = a.host.spawn(["tcpdump", "-lvnc", "12", "-i", "weft0", "tcp"])
    capture.wait_line("listening on")
    there = f"http://{hub['address4']}:{hub['apiPort']}/v1/health"

    def asked() -> bool:
        a.host.run(["curl", "-s", "--max-time", "2", there], check=False, quiet=True)
        return not capture.running
    wait_for(asked, 20, "tcpdump to have seen twelve packets")
    tos = [line.split("tos ")[1].split(",")[0] for line in capture.lines() if "tos " in line]
    assert len(tos) == 12 and set(tos) == {"0xc0"}, tos
    site.hub.run([site.weft, "node", "set", "a", "--rate", "none"])
    wait_for(lambda: "weft_class" not in a.host.run(["nft", "list", "tables"], quiet=True).out, 10,
             "the rules to be gone")


def outer_tos(site: Site, a: AgentNode, b: AgentNode) -> set[str]:
    """Of the datagrams to b while a pings it with EF."""
    capture = b.host.spawn(["tcpdump", "-lvnc", "3", "-i", "wan", "udp and greater 400 and src "
                            + a.host.address()])
    capture.wait_line("listening on")

    def pinged() -> bool:
        a.host.run(["ping", "-c1", "-W1", "-s", "500", "-Q", "0xb8", b.address()], check=False,
                   quiet=True)
        return not capture.running
    wait_for(pinged, 20, "tcpdump to have seen three datagrams")
    return {line.split("tos ")[1].split(",")[0] for line in capture.lines() if "tos " in line}


def test_dscp_is_shown_where_the_hub_says_so(site: Site) -> None:
    """Of one node, and of all nodes of the network; its end is the hub's to say as well."""
    a, b = site.join("a", "b")
    a.reaches(b)
    wait_state(site, "lan", "direct")
    shows = lambda node: node.status()["self"]["rates"]["showsDscp"]  # noqa: E731
    assert "0xb8" not in outer_tos(site, a, b)
    said = site.hub.run([site.weft, "node", "set", "a", "--show-dscp", "yes"]).out
    assert said == "node a of network default shows the DSCP of what it sends\n"
    wait_for(lambda: shows(a), 10, "a to show the DSCP")
    assert not shows(b)
    assert outer_tos(site, a, b) == {"0xb8"}
    assert "0xb8" not in outer_tos(site, b, a)
    assert "shows its DSCP outside the tunnel" in a.run("status").out
    site.hub.run([site.weft, "node", "set", "a", "--show-dscp", "no"])
    wait_for(lambda: not shows(a), 10, "a to hide the DSCP")
    network = ask(site, "Network", "default")
    network["spec"]["showDscp"] = True
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))
    wait_for(lambda: shows(a) and shows(b), 10, "both to show the DSCP")
    assert outer_tos(site, b, a) == {"0xb8"}
