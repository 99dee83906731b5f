"""What is said about edges: who may say it, what is kept of it, and how the hub shows it.

The members here are the test: they enrol, and report what a good agent, an older one or a bad one
would.
"""

from __future__ import annotations

import json
import re
import time

import pytest

from .hub import member_call
from .test_doors import join

EDGES = "/v1/networks/default/edges"
EVENTS = "/v1/networks/default/events"


@pytest.fixture
def members(hub, lab):
    """Two nodes, a and b, that have agents: they say a version."""
    hosts = {}
    for name in "ab":
        join(hub, lab, name, name)
        hosts[name] = lab.host(name)
        assert report(hosts[name], node={"engine": "kernel", "version": "0.1.0"},
                      applied={"revision": 5}) == (204, None)
    return hosts


def report(host, **body: object) -> tuple[int, object]:
    return member_call(host, "PUT", "/v1/status", body)


def edge(hub) -> dict:
    """The row of a--b, as the hub has it."""
    [row] = [e for e in hub.admin("GET", EDGES)[1]["edges"] if e["name"] == "a--b"]
    return row


def events(hub) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]) for e in hub.admin("GET", EVENTS)[1]["events"]]


def metric(hub, name: str) -> float:
    [line] = [line for line in hub.metrics().splitlines() if line.startswith(name + " ")]
    return float(line.split()[-1])


def test_a_member_writes_its_own_parts_only(hub, members):
    a, b = members["a"], members["b"]
    for kind in ("agent", "probe"):
        said = {"path": "direct"} if kind == "agent" else {"tunnel": "reached"}
        status, answer = report(a, owner=f"{kind}/b", edges={"a": said})
        assert status == 403
        assert answer["error"] == (f'"{kind}/b" is written by node "b" and by nobody else, and '
                                   'this is "a"')
        # A node that is not there is nobody's, either.
        assert report(a, owner=f"{kind}/zz", edges={"b": said})[0] == 403
    for wrong in ("hub", "hub/a", "agent", "agent/", "agent/..", "/a", "agent/a/b", 7):
        assert report(a, owner=wrong, edges={"b": {}})[0] == 400, wrong
    assert report(a, owner="probe/a", node={"version": "9"})[0] == 400
    # Nothing of all that was taken.
    assert hub.admin("GET", EDGES)[1]["edges"] == []

    assert report(a, owner="agent/a", edges={"b": {"path": "direct"}}) == (204, None)
    assert report(b, owner="probe/b", edges={"a": {"tunnel": "reached"}}) == (204, None)
    status = edge(hub)["status"]
    assert status["agent/a"]["path"] == "direct"
    assert status["probe/b"]["tunnel"] == "reached"
    assert "probe/a" not in status
    # An administrator's object with a status changes nothing of it.
    path = "/v1/networks/default/objects/MeshEdge/a--b"
    _, given = hub.admin("GET", path)
    given["status"]["agent/a"]["path"] = "relay"
    assert hub.admin("PUT", path, given)[0] == 200
    assert edge(hub)["status"]["agent/a"]["path"] == "direct"
    # A node is no peer of itself.
    assert report(a, edges={"a": {"path": "lan"}, "b": {"path": "relay"}})[0] == 204
    assert [e["name"] for e in hub.admin("GET", EDGES)[1]["edges"]] == ["a--b"]


def test_reports_say_what_is_different(hub, members):
    a = members["a"]
    # In the middle of a run that this hub has not heard of.
    status, answer = report(a, run=7, number=4, edges={"b": {"path": "direct"}})
    assert status == 409 and "begin anew" in answer["error"]
    assert hub.admin("GET", EDGES)[1]["edges"] == []
    begin = {"run": 7, "number": 5, "begins": True, "ends": True}
    assert report(a, **begin, edges={"b": {"path": "direct"}}) == (200, {"number": 5})
    assert report(a, run=7, number=6, edges={}) == (200, {"number": 6})
    assert edge(hub)["state"] == "direct"
    # Its answer was lost, so it comes again, with more in it.
    assert report(a, run=7, number=6, edges={"b": {"path": "lan"}}) == (200, {"number": 6})
    assert edge(hub)["state"] == "lan"
    # One was lost.
    assert report(a, run=7, number=8, edges={"b": None})[0] == 409
    assert edge(hub)["state"] == "lan"
    assert report(a, run=7, number=7, edges={"b": None}) == (200, {"number": 7})
    assert hub.admin("GET", EDGES)[1]["edges"] == []
    # All anew, in two: what neither names is forgotten at the end of the second.
    assert report(a, **begin, edges={"b": {"path": "relay"}})[0] == 200
    assert report(a, run=9, number=1, begins=True, edges={})[0] == 200
    assert edge(hub)["state"] == "relay"
    assert report(a, run=9, number=2, ends=True, edges={})[0] == 200
    assert hub.admin("GET", EDGES)[1]["edges"] == []

    assert report(a, **begin, edges={"b": {"path": "relay", "alarm": True}})[0] == 200
    hub.daemon.stop()
    hub.start()
    # What was said is on the disk, and who goes on is asked for all of it.
    assert edge(hub)["status"]["agent/a"]["alarm"] is True
    assert report(a, run=7, number=6, edges={})[0] == 409


def test_an_edge_that_fell_from_direct(hub, members):
    a = members["a"]
    assert report(a, edges={"b": {"path": "direct"}})[0] == 204
    assert edge(hub)["state"] == "direct" and not edge(hub)["trouble"]
    assert metric(hub, 'weft_edge_ends{network="default",path="direct"}') == 1
    assert report(a, edges={"b": {"path": "relay"}})[0] == 204
    row = edge(hub)
    assert row["state"] == "fell-back" and row["trouble"]
    assert row["why"] == "a had a direct path to b and has lost it: now it is relay"
    assert row["status"]["agent/a"]["fellAt"] > 1_700_000_000
    assert metric(hub, 'weft_edge_ends_fallen{network="default"}') == 1
    assert ("FellBack", "a--b") in events(hub)
    # A new agent, or a new hub, does not make it one that never was direct.
    assert report(a, run=3, number=1, begins=True, ends=True,
                  edges={"b": {"path": "relay"}})[0] == 200
    assert edge(hub)["state"] == "fell-back"
    hub.daemon.stop()
    hub.start()
    assert edge(hub)["state"] == "fell-back"
    # Who asks for the relay has not lost anything.
    hub.run("edge", "set", "a", "b", "--path", "relay")
    assert edge(hub)["state"] == "relay"
    hub.run("edge", "set", "a", "b", "--path", "auto")
    assert report(a, edges={"b": {"path": "lan"}})[0] == 204
    assert edge(hub)["state"] == "lan"
    assert ("DirectAgain", "a--b") in events(hub)


def test_an_agent_that_fails(hub, members):
    a = members["a"]
    assert report(a, applied={"revision": 6, "error": "the engine refuses the peer"})[0] == 204
    row = edge(hub)
    assert row["state"] == "failing"
    assert row["why"] == "a cannot apply it: the engine refuses the peer"
    assert row["status"]["agent/a"]["applied"] == {
        "revision": 6, "engine": "kernel", "error": "the engine refuses the peer"}
    assert metric(hub, 'weft_agents_failing{network="default"}') == 1
    out = hub.run("get", "edges").out
    assert "failing" in out and "a cannot apply it: the engine refuses the peer" in out
    assert report(a, applied={"revision": 7})[0] == 204
    assert hub.admin("GET", EDGES)[1]["edges"] == []
    assert events(hub) == [("Failing", "a"), ("Applied", "a")]
    assert "the engine refuses the peer" in hub.run("get", "events").out
    # Of one edge only.
    assert report(a, edges={"b": {"path": "none", "error": "no such key"}})[0] == 204
    assert edge(hub)["state"] == "failing"
    assert metric(hub, 'weft_edge_ends_failing{network="default"}') == 1


def test_an_edge_that_was_never_applied(hub, lab):
    join(hub, lab, "a", "a")
    join(hub, lab, "b", "b")
    hub.run("edge", "set", "b", "a", "--path", "direct")
    assert edge(hub)["state"] == "never-applied"
    assert edge(hub)["why"] == "the agent of a has never been heard"
    for name in "ab":
        assert report(lab.host(name), node={"version": "0.1.0"}, applied={"revision": 0})[0] == 204
    assert edge(hub)["why"] == "the agent of a has never applied a snapshot"
    assert report(lab.host("a"), applied={"revision": 9})[0] == 204
    assert edge(hub)["why"] == "the agent of b has never applied a snapshot"
    assert report(lab.host("b"), applied={"revision": 9})[0] == 204
    assert edge(hub)["state"] == "idle"
    # An older agent does not say what it has applied: that is no trouble.
    join(hub, lab, "c", "a")
    assert {e["name"] for e in hub.admin("GET", EDGES)[1]["edges"] if e["trouble"]} == {
        "a--c", "b--c"}


def test_idle_edges(hub, members):
    """Each pair has a line: its state, since when, both directions, and why."""
    a, b = members["a"], members["b"]
    assert hub.admin("GET", EDGES)[1]["edges"] == []
    answer = hub.admin("GET", EDGES + "?idle=1")[1]
    [row] = answer["edges"]
    assert (row["name"], row["state"], row["trouble"]) == ("a--b", "idle", False)
    assert "since" not in row and answer["counts"] == {"idle": 1} and answer["leftOut"] == 0
    idle = r"^a--b +idle +- +- +- +- +- +- +- +- +the two have not spoken to each other yet$"
    for words in (("get", "edges"), ("edge", "ls")):
        assert re.search(idle, hub.run(*words).out, re.M)
    lost = {"lost": 96, "packets": 4800, "seconds": 60, "periods": 6}
    said = {"path": "relay", "handshakeAgeSeconds": 3}
    assert report(a, edges={"b": said | {"why": "its NAT maps by destination",
                                         "lossIn": lost | {"lost": 0}}})[0] == 204
    assert report(b, edges={"a": said | {"lossIn": lost}})[0] == 204
    row = edge(hub)
    assert abs(row["since"] - time.time()) < 60 and row["forSeconds"] < 60
    assert row["why"] == "a: its NAT maps by destination"
    out = hub.run("get", "edges").out
    assert re.search(r"^a--b +relay +\d+ s +relay, \d+ s +relay, \d+ s +- +- +2\.0 % +0\.0 % +- +"
                     r"a: its NAT maps by destination$", out, re.M), out
    shown = hub.run("top", "--once").out
    assert re.search(r"^a--b +relay +- +2\.0 % +0 % +- +- +\d+ s +a: its NAT", shown, re.M), shown
    rtt = {"p50Ms": 20.54, "p99Ms": 31, "jitterMs": 0.5, "samples": 90}
    for usual, words in (({}, "20.5 ms"), ({"usualMs": 19.8}, "20.5 ms, usually 19.8")):
        assert report(b, edges={"a": said | {"path": "direct", "rtt": rtt | usual}})[0] == 204
        assert re.search(rf"^a--b .* % +{re.escape(words)}  +a: its NAT maps by destination$",
                         hub.run("get", "edges").out, re.M)


def test_probes(hub, members):
    a, b = members["a"], members["b"]
    said = {"tunnel": "reached", "tunnelRttMs": 1.5, "underlay": "reached",
            "underlayEndpoint": "192.0.2.3:51820"}
    assert report(a, owner="probe/a", edges={"b": said})[0] == 204
    assert report(a, owner="probe/a", edges={"b": {"tunnel": "silent", "underlay": "reached"}},
                  run=3, number=1, begins=True, ends=True)[0] == 200
    assert report(b, owner="probe/b", edges={"a": {"tunnel": "reached"}})[0] == 204
    assert report(a, edges={"b": {"path": "direct"}})[0] == 204
    row = edge(hub)
    assert row["state"] == "unreached"
    assert row["why"] == ("b does not answer a through the tunnel, but at its underlay endpoint it "
                          "does")
    assert row["status"]["probe/b"]["tunnel"] == "reached"
    assert metric(hub, 'weft_edge_ends_unreached{network="default"}') == 1
    assert report(a, owner="probe/a", run=3, number=2, edges={"b": said})[0] == 200
    assert edge(hub)["state"] == "direct"
    assert events(hub) == [("Unreached", "a--b"), ("ReachedAgain", "a--b")]


def test_what_is_pinned(hub, members):
    path = "/v1/networks/default/objects/MeshEdge/a--b"
    body = {"kind": "MeshEdge", "metadata": {"name": "a--b"},
            "spec": {"nodes": ["a", "b"], "endpoints": {"b": "192.0.2.3:51820"},
                     "publicKeys": {"a": hub.nodes()["a"]["spec"]["publicKey"]}}}
    status, written = hub.admin("PUT", path, body)
    assert status == 200 and written["spec"]["endpoints"] == {"b": "192.0.2.3:51820"}
    assert hub.admin("GET", path)[1]["spec"]["publicKeys"] == body["spec"]["publicKeys"]
    assert edge(hub)["state"] == "idle"
    body["spec"]["publicKeys"] = {"a": hub.nodes()["b"]["spec"]["publicKey"]}
    assert hub.admin("PUT", path, body)[0] == 200
    assert edge(hub)["state"] == "refused"
    assert edge(hub)["why"] == ("another public key is pinned for a than it has, so the two do not "
                                "talk")
    for field, value, words in [
            ("endpoints", {"c": "192.0.2.3:1"}, '"c" is neither of its nodes'),
            ("endpoints", {"a": "example.org:1"}, "the endpoint of \"a\""),
            ("endpoints", {"a": "192.0.2.3:0"}, "port"),
            ("endpoints", {"a": 5}, "not a string"),
            ("publicKeys", {"a": "AAAA"}, '"a"'),
            ("publicKeys", {"c": "AAAA"}, '"c" is neither of its nodes')]:
        bad = {**body, "spec": {"nodes": ["a", "b"], field: value}}
        status, answer = hub.admin("PUT", path, bad)
        assert status == 400 and words in answer["error"], (field, value, answer)
    bad = {**body, "spec": {"nodes": ["a", "b"], "path": "relay",
                            "endpoints": {"a": "192.0.2.2:7"}}}
    status, answer = hub.admin("PUT", path, bad)
    assert status == 400 and "no endpoint is used" in answer["error"]
    bad = {"kind": "MeshEdge", "metadata": {"name": "a--hub"},
           "spec": {"nodes": ["a", "hub"], "endpoints": {"hub": "192.0.2.1:7"}}}
    status, answer = hub.admin("PUT", path.replace("a--b", "a--hub"), bad)
    assert status == 400 and "weft hub move" in answer["error"]


def test_the_name_is_the_same_from_either_side(hub, members):
    hub.run("edge", "set", "b", "a", "--path", "direct")
    first = hub.admin("GET", "/v1/networks/default/objects/MeshEdge/a--b")[1]
    hub.run("edge", "set", "a", "b", "--path", "direct")
    items = json.loads(hub.run("get", "MeshEdge").out)["items"]
    assert [i["metadata"]["name"] for i in items] == ["a--b"]
    assert items[0]["spec"] == first["spec"]
    bad = {"kind": "MeshEdge", "metadata": {"name": "b--a"}, "spec": {"nodes": ["b", "a"]}}
    status, answer = hub.admin("PUT", "/v1/networks/default/objects/MeshEdge/b--a", bad)
    assert status == 400 and "byte order" in answer["error"]
