"""What goes through the hub's APIs: enrolment, watches, reports, administration."""

from __future__ import annotations

import base64
import json
import stat
import time
from datetime import datetime

import pytest
from lab import wait_for

from .hub import CIDR4, SIGNERS, Hub, Watch, member_call, new_key, plain_call, proof_of, put_of

pytestmark = pytest.mark.namespaces


def join(hub, lab, name, host, network="default", **fields):
    status, answer = hub.enrol(lab.host(host), hub.secret(network), name=name, **fields)
    assert status == 200, answer
    return answer


def test_enrolment(hub, lab):
    snapshot = join(hub, lab, "gpu-1", "a", labels={"gpu": "h100"}, engine="userspace")
    assert snapshot["type"] == "snapshot" and snapshot["self"] == "gpu-1"
    assert snapshot["network"]["spec"]["cidr4"] == "10.42.0.0/16"
    nodes = {node["metadata"]["name"]: node["spec"] for node in snapshot["nodes"]}
    assert nodes.keys() == {"hub", "gpu-1"}
    assert nodes["gpu-1"]["address4"] == "10.42.0.2"
    assert nodes["gpu-1"]["labels"] == {"gpu": "h100"}
    assert nodes["hub"]["hub"] == {"endpoints": ["192.0.2.1:51820"], "apiPort": 8443,
                                   "tlsPin": hub.pin}
    assert hub.nodes()["gpu-1"]["status"]["engine"] == "userspace"


def test_a_lost_answer_costs_nothing(hub, lab):
    """To the machine that has the key. To others a public key and a token tell nothing."""
    a = lab.host("a")
    secret, key = hub.secret(uses=9), new_key()
    status, first = hub.enrol(a, secret, publicKey=key)
    assert status == 200
    status, answer = hub.enrol(a, secret, publicKey=key)
    assert status == 409 and "does not prove" in answer["error"]
    assert first["self"] not in answer["error"]
    body = json.dumps({"secret": secret, "publicKey": key})
    for forged, expected in ((False, 200), (True, 401)):
        proof = SIGNERS[a].sign("POST", "/v1/enrol", body.encode() + b" " * forged)
        status, again = hub.public(a, "POST", "/v1/enrol", body, "-H", f"Authorization: {proof}")
        assert status == expected, again
        assert forged or again["self"] == first["self"]
    assert len(hub.nodes()) == 2


def watch_for_a_moment(a):
    watch = Watch(a)
    watch.wait('"type":"snapshot"')
    watch.daemon.stop()


USES = {
    "a watch": watch_for_a_moment,
    "a report": lambda a: member_call(a, "PUT", "/v1/status", {"node": {"version": "1"}}),
    "a job": lambda a: member_call(a, "GET", "/v1/jobs"),
}


@pytest.mark.parametrize("use", USES)
def test_a_use_of_a_token_comes_back_only_unused(hub, lab, use):
    """Not from a machine that has done something else than enrol when it leaves."""
    a, secret = lab.host("a"), hub.secret()
    assert hub.enrol(a, secret, name="n")[0] == 200
    USES[use](a)
    assert hub.leave_by_key(a, "n")[0] == 204
    status, answer = hub.enrol(a, secret, name="n")
    assert status == 401 and "is used up" in answer["error"]


def test_a_machine_that_leaves_by_the_overlay_has_used_its_token(hub, lab):
    a, secret = lab.host("a"), hub.secret()
    assert hub.enrol(a, secret, name="n")[0] == 200
    assert member_call(a, "POST", "/v1/leave")[0] == 204
    assert hub.enrol(a, secret, name="n")[0] == 401


def test_a_token_comes_back_sixteen_times(hub, lab):
    """From machines that did nothing. One that is silent here may still speak to its peers."""
    a, secret = lab.host("a"), hub.secret()
    for _ in range(17):
        assert hub.enrol(a, secret, name="n")[0] == 200
        assert hub.leave_by_key(a, "n")[0] == 204
    assert hub.enrol(a, secret, name="n")[0] == 401


def test_sentences_of_tokens(hub, lab):
    a = lab.host("a")
    used = hub.secret()
    assert hub.enrol(a, used, name="one")[0] == 200
    status, answer = hub.enrol(a, used)
    assert status == 401 and "is used up" in answer["error"]
    assert "weft token new --network default" in answer["error"]
    status, answer = hub.enrol(a, "A" * 43)
    assert status == 401 and "does not know this token" in answer["error"]
    short = hub.secret(ttlSeconds=1, uses=100)
    status, answer = wait_for(
        lambda: (said := hub.enrol(a, short))[0] == 401 and said, 10, "the token to expire")
    assert "expired" in answer["error"]
    status, answer = hub.enrol(a, hub.secret(), name="one")
    assert status == 409 and '"one" already' in answer["error"]
    hub.run("network", "add", "short-lived")
    gone = hub.secret("short-lived")
    hub.run("network", "rm", "short-lived")
    status, answer = hub.enrol(a, gone)
    assert status == 410 and '"short-lived"' in answer["error"]
    status, answer = hub.enrol(a, hub.secret(), name="two--dashes")
    assert status == 400 and '"two--dashes"' in answer["error"]


def test_failures_are_limited_by_address(hub, lab):
    def status() -> int:
        return hub.enrol(lab.host("a"), "A" * 43)[0]

    assert [status() for _ in range(10)] == [401] * 10
    wait_for(lambda: status() == 429, 5, "the hub to have enough of it")
    assert hub.enrol(lab.host("b"), "A" * 43)[0] == 401


def test_a_full_network(hub, lab):
    hub.run("network", "add", "tiny", "--cidr4", "10.9.0.0/30")
    secret = hub.secret("tiny", uses=9)
    assert hub.enrol(lab.host("a"), secret)[0] == 200
    status, answer = hub.enrol(lab.host("a"), secret)
    assert status == 507 and "no address left" in answer["error"]


def test_watch(hub, lab):
    join(hub, lab, "a", "a")
    watch = Watch(lab.host("a"))
    assert watch.wait('"type":"snapshot"')["self"] == "a"
    assert watch.names() == {"hub", "a"}
    join(hub, lab, "b", "b")
    event = watch.wait(put_of("b"))
    assert event["object"]["spec"]["address4"] == "10.42.0.3"
    other = Watch(lab.host("b"))
    other.wait('"type":"snapshot"')
    assert hub.nodes()["b"]["reachable"] is True

    hub.run("node", "rm", "b")
    assert watch.wait('"type":"delete"')["name"] == "b"
    assert "administrator" in other.wait('"type":"removed"')["reason"]
    assert other.daemon.wait() == 0
    status, answer = member_call(lab.host("b"), "GET", "/v1/watch")
    assert status == 403 and "10.42.0.3" in answer["error"]
    watch.wait('"type":"heartbeat"')


def without_times(status: dict) -> dict:
    """Its parts, each of which says that it was observed just now."""
    for name, part in status.items():
        if name.startswith("agent/"):
            observed = datetime.fromisoformat(part.pop("observedAt")).timestamp()
            assert abs(observed - time.time()) < 30
    return status


def test_reports(hub, lab):
    join(hub, lab, "a", "a")
    join(hub, lab, "b", "b")
    a, b = lab.host("a"), lab.host("b")
    watch = Watch(b)
    watch.wait('"type":"snapshot"')
    node = {"engine": "kernel", "version": "0.1.0", "candidates": [
        {"type": "host", "endpoint": "192.0.2.2:7"}]}
    report = {"node": node, "edges": {"b": {"path": "relay"}, "nobody": {"path": "relay"}}}
    assert member_call(a, "PUT", "/v1/status", report)[0] == 204
    told = watch.wait(put_of("a"))["object"]["status"]
    # Nothing but what a peer needs.
    assert told == {"candidates": [{"type": "host", "endpoint": "192.0.2.2:7"}]}

    def count_puts() -> int:
        return len([e for e in watch.events() if e["type"] == "put"])

    n_puts = count_puts()
    node["version"] = "0.2.0"
    assert member_call(a, "PUT", "/v1/status", report)[0] == 204
    node["aead"] = {"aes256gcm": 2900}
    assert member_call(a, "PUT", "/v1/status", report)[0] == 204
    # The first of the two woke nobody.
    assert watch.wait(put_of("a") + '.*"aead"')["object"]["status"]["aead"] == node["aead"]
    assert count_puts() == n_puts + 1
    assert hub.nodes()["a"]["status"]["version"] == "0.2.0"

    _, edge = hub.admin("GET", "/v1/networks/default/objects/MeshEdge/a--b")
    assert without_times(edge["status"]) == {"agent/a": {"path": "relay"}, "hub": {
        "state": "never-applied", "why": "the agent of b has never been heard"}}
    assert member_call(b, "PUT", "/v1/status", {"edges": {"a": {"path": "direct"}}})[0] == 204
    _, edges = hub.admin("GET", "/v1/networks/default/objects/MeshEdge")
    assert [e["metadata"]["name"] for e in edges["items"]] == ["a--b"]
    assert without_times(edges["items"][0]["status"]) == {
        "agent/a": {"path": "relay"}, "agent/b": {"path": "direct"},
        "hub": {"state": "relay", "why": ""}}


def test_a_report_that_others_could_not_take(hub, lab):
    """Its sender is told why, nobody else hears of it, and what it said before stays."""
    join(hub, lab, "a", "a")
    join(hub, lab, "b", "b")
    watch = Watch(lab.host("b"))
    watch.wait('"type":"snapshot"')
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    for node, word in [
            ({"candidates": [1]}, "not a JSON object"),
            ({"candidates": [{"type": "host", "endpoint": "nowhere"}]}, "endpoint"),
            ({"paths": {"relays": 1}}, "relays"), ({"paths": {"portStep": 40000}}, "portStep"),
            ({"aead": {"aes256gcm": -1}}, "aes256gcm"),
            ({"paths": {"unknown": deep}}, "more than")]:
        status, answer = member_call(lab.host("a"), "PUT", "/v1/status", {"node": node})
        assert status == 400 and word in answer["error"], (node, answer)
    good = {"candidates": [{"type": "host", "endpoint": "192.0.2.2:7"}], "paths": {"newer": 1}}
    assert member_call(lab.host("a"), "PUT", "/v1/status", {"node": good})[0] == 204
    assert watch.wait(put_of("a"))["object"]["status"] == good
    assert len([e for e in watch.events() if e["type"] == "put"]) == 1


def test_the_members_api_over_ipv6(hub, lab):
    spec = {n["metadata"]["name"]: n["spec"] for n in join(hub, lab, "a", "a")["nodes"]}
    for host, name in (("hub", "hub"), ("a", "a")):
        on = ["sysctl", "-qw", "net/ipv6/conf/weft-default/disable_ipv6=0"]
        lab.host(host).run(on)
        lab.host(host).run(["ip", "addr", "add", spec[name]["address6"] + "/64", "dev",
                            "weft-default", "nodad"])
    url = f"http://[{spec['hub']['address6']}]:8443/v1/watch"
    assert Watch(lab.host("a"), url).wait('"type":"snapshot"')["self"] == "a"


def test_leave(hub, lab):
    join(hub, lab, "a", "a")
    assert member_call(lab.host("a"), "POST", "/v1/leave") == (204, None)
    assert hub.nodes().keys() == {"hub"}
    assert member_call(lab.host("a"), "POST", "/v1/leave")[0] == 403


WRITES = [("PUT", "/v1/status", {"node": {}}), ("POST", "/v1/leave", None),
          ("PUT", "/v1/drain", {"failed": 0, "everySeconds": 300}),
          ("POST", "/v1/jobs/train/rendezvous", None),
          ("DELETE", "/v1/jobs/train/rendezvous", None)]
READS = [("GET", path, None) for path in (
    "/v1/watch", "/v1/jobs", "/v1/jobs/default/rendezvous", "/v1/heard/" + "0" * 24)]


def test_another_program_of_the_machine_is_not_the_node(hub, lab):
    """It has the node's address, and not its key."""
    join(hub, lab, "a", "a")
    a = lab.host("a")
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    for method, path, body in WRITES + READS:
        status, answer = plain_call(a, method, path, body, before=nobody)
        assert status == 401 and "does not prove" in answer["error"], (method, path)
    assert plain_call(a, "GET", "/v1/health", None, before=nobody)[0] == 200
    assert hub.nodes().keys() == {"hub", "a"}


def test_a_proof_is_good_for_one_request(hub, lab):
    join(hub, lab, "a", "a")
    a = lab.host("a")
    assert member_call(a, "PUT", "/v1/status", {"node": {}})[0] == 204
    proof = proof_of(a, "POST", "/v1/jobs/train/rendezvous")
    assert plain_call(a, "POST", "/v1/leave", None, *proof)[0] == 401
    assert plain_call(a, "POST", "/v1/jobs/train/rendezvous", {"x": 1}, *proof)[0] == 401
    assert plain_call(a, "POST", "/v1/jobs/train/rendezvous", None, *proof)[0] == 200
    assert plain_call(a, "POST", "/v1/jobs/train/rendezvous", None, *proof)[0] == 401
    # Another node's, and one of before the hub was started anew.
    join(hub, lab, "b", "b")
    old = proof_of(a, "POST", "/v1/leave")
    assert plain_call(lab.host("b"), "POST", "/v1/leave", None, *old)[0] == 401
    hub.restart()
    assert plain_call(a, "POST", "/v1/leave", None, *old)[0] == 401
    assert hub.nodes().keys() == {"hub", "a", "b"}
    assert member_call(a, "POST", "/v1/leave")[0] == 204


def test_proofs_that_overtake_each_other(hub, lab):
    join(hub, lab, "a", "a")
    a = lab.host("a")
    assert member_call(a, "GET", "/v1/jobs")[0] == 200
    proofs = [proof_of(a, "GET", "/v1/jobs") for _ in range(5)]
    for proof in reversed(proofs):
        assert plain_call(a, "GET", "/v1/jobs", None, *proof)[0] == 200
    assert plain_call(a, "GET", "/v1/jobs", None, *proofs[2])[0] == 401


def test_web_pages_are_refused(hub, lab):
    """With the best of proofs: what a browser adds is enough to be refused."""
    join(hub, lab, "a", "a")
    a = lab.host("a")
    assert member_call(a, "GET", "/v1/jobs")[0] == 200
    for header, words in (("Origin: http://evil.example", "web page"), ("Origin: null", "web page"),
                          ("Host: evil.example:8443", "evil.example"),
                          ("Host: hub", '"Host: hub"')):
        proof = proof_of(a, "POST", "/v1/leave")
        status, answer = plain_call(a, "POST", "/v1/leave", None, *proof, "-H", header)
        assert status == 403 and words in answer["error"], (header, answer)
        argv = ["curl", "-s", "-w", "\n%{http_code}", "--unix-socket", hub.socket, "-H", header,
                "http://hub/v1/networks"]
        text, _, status = lab.host("hub").run(argv).out.rpartition("\n")
        assert int(status) == (200 if header == "Host: hub" else 403), (header, text)
    bearer = (hub.state / "admin.token").read_text().strip()
    assert hub.public(a, "GET", "/v1/networks", bearer=bearer)[0] == 200
    status, _ = hub.public(a, "GET", "/v1/networks", None, "-H", "Origin: null", bearer=bearer)
    assert status == 403
    assert hub.nodes().keys() == {"hub", "a"}


def test_an_edge_that_is_off(hub, lab):
    for name in "ab":
        join(hub, lab, name, name)
    watch = Watch(lab.host("a"))
    watch.wait('"type":"snapshot"')
    hub.run("edge", "set", "b", "a", "--path", "off")
    wait_for(lambda: watch.names() == {"hub", "a"}, 5, "b to vanish from a's view")
    _, snapshot = hub.admin("GET", "/v1/networks/default/snapshots/b")
    assert {n["metadata"]["name"] for n in snapshot["nodes"]} == {"hub", "b"}
    assert snapshot["edges"][0]["spec"] == {"nodes": ["a", "b"], "path": "off"}
    hub.run("edge", "set", "a", "b", "--path", "auto")
    wait_for(lambda: watch.names() == {"hub", "a", "b"}, 5, "b to come back")
    hub.run("edge", "set", "a", "b", "--path", "off")
    hub.run("node", "rm", "b")
    # The next machine of that name has nothing to do with what was said about the last one.
    join(hub, lab, "b", "b")
    wait_for(lambda: "b" in watch.names(), 5, "the new b")
    assert hub.admin("GET", "/v1/networks/default/objects/MeshEdge")[1]["items"] == []


def test_the_longest_names(hub, lab):
    names = "a" * 63, "b" * 63
    for name in names:
        join(hub, lab, name, "a")
    hub.run("edge", "set", *names, "--path", "relay")
    edge = json.loads(hub.run("get", "MeshEdge", "--".join(names)).out)
    assert edge["spec"] == {"nodes": list(names), "path": "relay"}
    hub.run("node", "rm", names[0])
    assert json.loads(hub.run("get", "MeshEdge").out)["items"] == []
    hub.run("network", "add", "n" * 63, "--cidr4", "10.90.0.0/24")
    hub.run("network", "rm", "n" * 63)


def test_the_other_network_is_invisible(hub, lab):
    hub.run("network", "add", "other", "--cidr4", "10.42.0.0/16")
    join(hub, lab, "a", "a")
    seen = join(hub, lab, "c", "c", network="other")
    # The same addresses, and still somebody else.
    assert {n["metadata"]["name"]: n["spec"]["address4"] for n in seen["nodes"]} == {
        "hub": "10.42.0.1", "c": "10.42.0.2"}
    assert [n["metadata"]["network"] for n in seen["nodes"]] == ["other", "other"]
    watches = {name: Watch(lab.host(name)) for name in "ac"}
    assert watches["a"].wait('"type":"snapshot"')["self"] == "a"
    assert watches["c"].wait('"type":"snapshot"')["self"] == "c"
    keys = {hub.nodes(net)["hub"]["spec"]["publicKey"] for net in ("default", "other")}
    assert len(keys) == 2
    report = {"node": {"candidates": []}, "edges": {"a": {"path": "relay"}}}
    assert member_call(lab.host("c"), "PUT", "/v1/status", report)[0] == 204
    watches["c"].wait(put_of("c"))
    report = {"node": {"candidates": [], "paths": {}}}
    assert member_call(lab.host("a"), "PUT", "/v1/status", report)[0] == 204
    watches["a"].wait(put_of("a"))
    assert '"other"' not in "\n".join(watches["a"].daemon.lines())
    assert '"default"' not in "\n".join(watches["c"].daemon.lines())
    assert hub.admin("GET", "/v1/networks/default/objects/MeshEdge")[1]["items"] == []

    hub.run("network", "rm", "other")
    assert "network was removed" in watches["c"].wait('"type":"removed"')["reason"]
    assert hub.nodes().keys() == {"hub", "a"}
    # Its name and its interface are free at once.
    hub.run("network", "add", "other", "--cidr4", "10.42.0.0/16")
    hub.run("network", "rm", "other")


def test_objects(hub, lab):
    join(hub, lab, "a", "a")
    watch = Watch(lab.host("a"))
    watch.wait('"type":"snapshot"')
    path = "/v1/networks/default/objects/Node/a"
    _, node = hub.admin("GET", path)
    node["spec"]["labels"] = {"rack": "7"}
    status, changed = hub.admin("PUT", path, node)
    assert status == 200 and changed["spec"]["labels"] == {"rack": "7"}
    status, answer = hub.admin("PUT", path, node)
    assert status == 409 and "somebody changed it meanwhile" in answer["error"]
    del node["metadata"]["resourceVersion"]
    node["spec"]["address4"] = "10.42.0.99"
    status, answer = hub.admin("PUT", path, node)
    assert status == 400 and "are fixed" in answer["error"]
    assert watch.wait(put_of("a"))["object"]["spec"]["labels"] == {"rack": "7"}

    path = "/v1/networks/default/objects/Network/default"
    _, network = hub.admin("GET", path)
    network["spec"]["keepalive"] = 25
    assert hub.admin("PUT", path, network)[0] == 200
    told = watch.wait('"type":"put".*"object":{"kind":"Network"')
    assert told["object"]["spec"]["keepalive"] == 25
    network["spec"]["cidr4"] = "10.43.0.0/16"
    del network["metadata"]["resourceVersion"]
    assert hub.admin("PUT", path, network)[0] == 400
    for wrong in ("Nod/a", "Node/zz", "MeshEdge/a--hub", "MeshEdge/a"):
        assert hub.admin("GET", f"/v1/networks/default/objects/{wrong}")[0] == 404
    assert hub.admin("GET", "/v1/networks/nowhere/nodes")[0] == 404


def test_apply(hub, lab, tmp_path):
    manifest = tmp_path / "net.yaml"
    manifest.write_text("""
kind: Network
metadata: {name: made}
spec: {cidr4: 10.77.0.0/24, cidr6: "fd77::/64", topology: hub, mtu: 1280, cipher: aes256gcm}
""")
    assert "applied" in hub.run("apply", "-f", str(manifest)).out
    _, answer = hub.admin("GET", "/v1/networks/made/objects/Network/made")
    assert answer["spec"] | {"mtu": 1280, "cipher": "aes256gcm"} == answer["spec"]
    hub.run("apply", "-f", str(manifest))
    assert "Network made: removed" in hub.run("delete", "Network", "made").out
    assert "no network" in hub.run("delete", "Network", "made", check=False).err


def test_apply_of_many(hub, lab, tmp_path):
    """A list as it was printed; what is there twice, or refused, is said with what became of it."""
    manifest = tmp_path / "many.json"
    made = [{"kind": "Network", "metadata": {"name": name},
             "spec": {"cidr4": "10.77.0.0/24", "cidr6": "fd77::/64"}}
            for name in ("m1", "m2", "m3")]
    manifest.write_text(json.dumps({"items": made}))
    said = hub.run("apply", "-f", str(manifest)).out
    assert said == "".join(f"Network m{i}: applied\n" for i in (1, 2, 3))
    manifest.write_text(hub.run("get", "networks", "--network", "m1").out)
    assert hub.run("apply", "-f", str(manifest)).out == "Network m1: applied\n"
    for name in ("m1", "m2"):
        hub.run("delete", "network", name)
    manifest.write_text(json.dumps({"items": made[:2] + made[:1]}))
    refused = hub.run("apply", "-f", str(manifest), check=False)
    assert refused.err == 'weft apply: Network "m1" is there twice; nothing is applied\n'
    assert hub.run("network", "ls", "--json").out.count('"m1"') == 0
    made[1]["spec"]["mtu"] = 7
    manifest.write_text("---\n" + "\n---\n".join(map(json.dumps, made)) + "\n---\n")
    refused = hub.run("apply", "-f", str(manifest), check=False)
    assert refused.rc == 1 and refused.out == "Network m1: applied\n"
    assert refused.err.endswith('weft apply: applied are 1 of 3 objects: that one is not, nor are '
                                'those after it\n'), refused.err
    manifest.write_text('{"metadata": {"name": "m1"}}')
    refused = hub.run("apply", "-f", str(manifest), check=False)
    assert 'an object has no "kind": it is one of Network, Node, MeshEdge' in refused.err


def test_delete(hub, lab):
    for name in "ab":
        hub.run("node", "add", name, "--public-key", new_key())
    hub.run("edge", "set", "a", "b", "--path", "off")
    assert "MeshEdge a--b: removed" in hub.run("delete", "MeshEdge", "a--b").out
    assert "no MeshEdge" in hub.run("delete", "MeshEdge", "a--b", check=False).err
    assert "Node a: removed" in hub.run("delete", "Node", "a").out
    assert "the hub itself" in hub.run("delete", "Node", "hub", check=False).err


def test_administration_from_afar(hub, lab):
    a = lab.host("a")
    argv = [hub.weft, "nodes", "--json", "--hub", "192.0.2.1:8443", "--pin", hub.pin,
            "--admin-token-file", hub.state / "admin.token"]
    assert [n["metadata"]["name"] for n in json.loads(a.run(argv).out)["nodes"]] == ["hub"]
    argv[argv.index(hub.pin)] = new_key()
    assert "key that is pinned" in a.run(argv, check=False).err
    assert hub.public(a, "GET", "/v1/networks")[0] == 401
    assert member_call(a, "GET", "/v1/networks")[0] == 403


def test_files_are_private(hub):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in hub.state.rglob("*")}
    assert modes.pop("tls.crt") == 0o644
    assert modes.pop("keys") == 0o700
    assert modes and set(modes.values()) == {0o600}
    assert stat.S_IMODE(hub.socket.stat().st_mode) == 0o600


def test_metrics(hub, lab):
    join(hub, lab, "a", "a")
    text = lab.host("hub").run(
        ["curl", "-s", "--unix-socket", hub.socket, "http://hub/v1/metrics"]).out
    assert 'weft_nodes{network="default"} 2\n' in text
    assert "weft_enrolments_total 1\n" in text


def test_a_second_hub_is_refused(hub, lab):
    second = lab.host("hub").run(hub.argv("--api", ":8444"), check=False)
    assert second.rc == 1 and str(hub.state / "hub.db") in second.err


def test_without_a_hub_the_sentence_says_how_to_start_one(hub):
    hub.daemon.stop()
    assert 'start it with "weft hub up"' in hub.run("nodes", check=False).err


def test_the_first_network(lab, weft, tmp_path):
    """Its defaults; and what is said at a later start and changes nothing is warned of."""
    hub = Hub(lab, weft, tmp_path)
    argv = [word for word in hub.argv() if word not in CIDR4]
    lab.host("hub").spawn(argv, name="plain").wait_line(r"hub is up: .*default \(10.77.0.0/16")
    networks = hub.admin("GET", "/v1/networks")[1]["networks"]
    assert [n["spec"]["cidr4"] for n in networks] == ["10.77.0.0/16"]


def test_a_later_start_with_another_network(hub):
    assert hub.daemon.stop() == 0
    hub.start("--network", "other", "--cidr4", "10.50.0.0/16")
    hub.daemon.allow("is for the first start only")
    hub.daemon.wait_line(r"--network other is for the first start only.*weft network add other")
    assert hub.daemon.stop() == 0
    hub.start("--cidr4", "10.50.0.0/16")
    hub.daemon.allow("is for the first start only")
    hub.daemon.wait_line(
        r'--cidr4 10.50.0.0/16 is for the first start only: network "default" has 10.42.0.0/16')
    networks = hub.admin("GET", "/v1/networks")[1]["networks"]
    assert [n["metadata"]["name"] for n in networks] == ["default"]


def test_leave_by_the_public_api_needs_the_key(hub, lab):
    """A stranger who has the public key, or guesses names, removes nobody and learns nothing."""
    join(hub, lab, "a", "a")
    key = base64.b64decode(hub.nodes()["a"]["spec"]["publicKey"]).hex()
    c = lab.host("c")
    told = {json.dumps(hub.public(c, "POST", path)[1]["error"]) for path in [
        f"/v1/leave/default/{key}", f"/v1/leave/default/{'0' * 64}", "/v1/leave/default/x",
        f"/v1/leave/nowhere/{key}"]}
    assert told == {'"the request does not prove that it comes from a node with that key"'}
    assert hub.public(c, "POST", f"/v1/leave/default/{key}", bearer="Weft x")[0] == 401
    assert "a" in hub.nodes()
