"""The audit log: who changed what, in the same commit; who was refused; join tokens by their id."""

from __future__ import annotations

import json
import random
import threading
import time

import pytest
from lab import wait_for

from .hub import Hub, member_call

pytestmark = pytest.mark.namespaces


def entries(hub, **query: object) -> list[dict]:
    """The newest of the log, in order."""
    text = "&".join(f"{name}={value}" for name, value in ({"limit": 1000} | query).items())
    status, answer = hub.admin("GET", f"/v1/audit?{text}")
    assert status == 200, answer
    return answer["entries"]


def changes(hub, **query: object) -> list[tuple[str, str, str]]:
    return [(e["actor"], e["operation"], e.get("object", ""))
            for e in entries(hub, **query) if e["answer"] == "done"]


def admin_token(hub, name: str, role: str, **fields: object) -> str:
    return hub.admin("POST", "/v1/admin-tokens", {"name": name, "role": role} | fields)[1]["token"]


def id_of_the_only_token(hub) -> str:
    tokens = hub.admin("GET", "/v1/networks/default/tokens")[1]["tokens"]
    assert len(tokens) == 1
    return tokens[0]["id"]


def test_who_did_what(hub, lab):
    """Each kind of actor, and each kind of object."""
    a = lab.host("a")
    assert hub.enrol(a, hub.secret(), name="gpu-1")[0] == 200
    join = id_of_the_only_token(hub)
    assert hub.enrol(lab.host("b"), hub.secret(), name="gpu-2")[0] == 200
    hub.run("edge", "set", "gpu-1", "gpu-2", "--path", "relay")
    bearer = admin_token(hub, "ci", "operator")
    assert hub.public(lab.host("c"), "DELETE", "/v1/networks/default/nodes/gpu-2",
                      bearer=bearer)[0] == 204
    assert hub.leave_by_key(a, "gpu-1")[0] == 204
    hub.run("admin", "rotate")
    hub.run("admin", "rm", "ci")
    told = changes(hub)
    assert told[0] == ("hub", "create", "network/default")
    assert told[1] == ("uid:0", "create", f"token/{join}")
    assert told[2] == (f"join:{join}", "create", "node/default/gpu-1")
    assert told[5:] == [
        ("uid:0", "create", "edge/default/gpu-1--gpu-2"),
        ("uid:0", "create", "admin/ci"),
        ("admin:ci", "remove", "node/default/gpu-2"),
        ("node:default/gpu-1", "remove", "node/default/gpu-1"),
        # It has done nothing but enrol, so its token admits once more.
        ("node:default/gpu-1", "change", f"token/{join}"),
        ("uid:0", "change", "file/admin.token"),
        ("uid:0", "remove", "admin/ci")]
    by_ci = next(e for e in entries(hub) if e["actor"] == "admin:ci")
    assert by_ci["from"] == "192.0.2.4" and by_ci["network"] == "default"
    assert by_ci["oldRevision"] > 0 and "newRevision" not in by_ci
    assert abs(by_ci["time"] - time.time()) < 60


def test_nothing_secret(hub, lab):
    """No secret of a token, nor its hash, is in the log."""
    secret, bearer = hub.secret(), admin_token(hub, "ci", "viewer")
    assert hub.enrol(lab.host("a"), secret, name="gpu-1")[0] == 200
    wrong = "weft-admin1." + "B" * 43
    assert hub.public(lab.host("a"), "GET", "/v1/networks", bearer=wrong)[0] == 401
    told = wait_for(lambda: (t := json.dumps(entries(hub))) if '"refused"' in
                    (t := json.dumps(entries(hub))) else None, 30, "the refusal to be written")
    for word in (secret, bearer, bearer.removeprefix("weft-admin1."), wrong, "B" * 43):
        assert word not in told
    assert not [e for e in entries(hub) if len(e.get("object", "")) > 60]


def test_refusals(hub, lab):
    """Who knocks and may not come in is told of, counted together."""
    a = lab.host("a")
    eyes = admin_token(hub, "eyes", "viewer")
    for _ in range(5):
        assert hub.public(a, "GET", "/v1/networks")[0] == 401
    assert hub.public(a, "DELETE", "/v1/networks/default", bearer=eyes)[0] == 403
    assert hub.enrol(a, "A" * 43)[0] == 401
    assert hub.public(a, "GET", "/v1/nothing")[0] == 404

    def refused() -> list[dict]:
        return [e for e in entries(hub) if e["answer"] == "refused"]

    told = wait_for(refused, 30, "the refusals to be written")
    assert [(e["actor"], e["status"], e["operation"], e["count"]) for e in told] == [
        ("stranger", 401, "GET /v1/networks", 5),
        ("admin:eyes", 403, "DELETE /v1/networks/{network}", 1),
        ("stranger", 401, "POST /v1/enrol", 1)]
    assert all(e["from"] == "192.0.2.2" and e["why"] for e in told)
    assert told[1]["network"] == "default"
    # Those that wait are not lost at an orderly end.
    assert hub.public(a, "GET", "/v1/metrics")[0] == 401
    assert hub.daemon.stop() == 0
    hub.start()
    assert refused()[-1]["operation"] == "GET /v1/metrics"


class Churning(threading.Thread):
    """Nodes come and go and edges change, all the time, until told to stop."""

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub, self.n, self.stopping = hub, 0, threading.Event()
        self.secret = hub.secret(uses=100000, ttlSeconds=3600)

    def run(self) -> None:
        a = self.hub.lab.host("a")
        while not self.stopping.is_set():
            self.n += 1
            names = [f"n-{self.n}-a", f"n-{self.n}-b"]
            for name in names:
                self.hub.enrol(a, self.secret, name=name)
            edge = {"kind": "MeshEdge", "metadata": {"name": "--".join(names)},
                    "spec": {"nodes": names, "path": "relay"}}
            for method, path, body in [
                    ("PUT", f"/v1/networks/default/objects/MeshEdge/{'--'.join(names)}", edge),
                    ("DELETE", f"/v1/networks/default/nodes/{names[self.n % 2]}", None)]:
                try:
                    self.hub.admin(method, path, body)
                except OSError:
                    break  # the hub is being killed


def state_of(hub) -> dict[str, int]:
    """The revision of every node and edge."""
    nodes = {f"node/default/{name}": node["metadata"]["resourceVersion"]
             for name, node in hub.nodes().items() if name != "hub"}
    items = hub.admin("GET", "/v1/networks/default/objects/MeshEdge")[1]["items"]
    return nodes | {f"edge/default/{e['metadata']['name']}": e["metadata"]["resourceVersion"]
                    for e in items}


def is_edge_of(name: str, node: str) -> bool:
    return name.startswith("edge/") and node in name.removeprefix("edge/default/").split("--")


def replay(hub) -> dict[str, int]:
    """The same, from the log alone; every entry must go on where the last one ended."""
    known: dict[str, int] = {}
    before = ""
    told: list[dict] = []
    while True:
        place = f"&before={before}" if before else ""
        _, answer = hub.admin("GET", f"/v1/audit?limit=1000{place}")
        told = answer["entries"] + told
        before = answer.get("previous", "")
        if not before:
            break
    for e in told:
        name = e.get("object", "")
        if e["answer"] != "done" or not name.startswith(("node/", "edge/")):
            continue
        assert known.get(name, 0) == e.get("oldRevision", 0), e
        assert e["operation"] == ("remove" if "newRevision" not in e else
                                  "change" if "oldRevision" in e else "create"), e
        known[name] = e.get("newRevision", 0)
        if e["operation"] == "remove" and name.startswith("node/"):
            node = name.removeprefix("node/default/")
            known = {k: v for k, v in known.items() if not is_edge_of(k, node)}
    return {name: revision for name, revision in known.items() if revision}


def test_kill_9_leaves_no_change_without_its_entry(hub):
    """After each crash the log, played from its start, gives exactly what the store holds."""
    rng = random.Random(11)
    churn = Churning(hub)
    churn.start()
    try:
        for _ in range(8):
            before = churn.n
            wait_for(lambda n=before: churn.n >= n + 2, 20, "nodes to come and go")
            time.sleep(rng.uniform(0, 0.2))  # the moment of the crash is the point
            hub.daemon.kill9()
            hub.start()
    finally:
        churn.stopping.set()
        churn.join()
    hub.restart()
    state = state_of(hub)
    # A round leaves a node; between two crashes one is whole at least.
    assert len(state) >= 8 and replay(hub) == state


def test_bounded_by_age(lab, weft, tmp_path):
    hub = Hub(lab, weft, tmp_path).start("--audit-age", "2s")
    hub.secret()
    assert changes(hub)
    wait_for(lambda: not changes(hub), 30, "the entries to be too old")
    hub.run("network", "add", "later")
    assert ("uid:0", "create", "network/later") in changes(hub)


def test_who_may_read(hub, lab):
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    hub.secret()
    eyes = admin_token(hub, "eyes", "viewer")
    guest = admin_token(hub, "guest", "viewer", network="other")
    c = lab.host("c")
    assert len(hub.public(c, "GET", "/v1/audit", bearer=eyes)[1]["entries"]) == 5
    told = hub.public(c, "GET", "/v1/audit", bearer=guest)[1]["entries"]
    assert {e["object"] for e in told} == {"network/other", "admin/guest"}
    status, answer = hub.public(c, "GET", "/v1/audit?network=default", bearer=guest)
    assert status == 403 and 'for network "other" only' in answer["error"]
    assert hub.public(c, "GET", "/v1/audit")[0] == 401
    for bad in ("limit=0", "limit=1001", "after=7", "before=x", "since=-1", "network=A"):
        assert hub.admin("GET", f"/v1/audit?{bad}")[0] == 400, bad


def test_a_copied_node_is_told_of_once(hub, lab):
    """Also of a member that makes up runs; the entry is the network's."""
    a = lab.host("a")
    hub.enrol(a, hub.secret(), name="gpu-1")
    told = []
    for i, run in enumerate((1, 2, 1, 2, 3, 4, 5, 6, 11, 12, 11, 12, 13, 14, 15, 16)):
        report = {"run": run, "number": i + 1, "begins": True}
        status, answer = member_call(a, "PUT", "/v1/status", report)
        assert status == 200, answer
        told.append(answer.get("copy"))
    assert told[:3] == [None] * 3
    assert told[3]["isCopy"] is False and "another machine" in told[3]["why"]
    copied = ("node:default/gpu-1", "copy", "node/default/gpu-1")
    wait_for(lambda: copied in changes(hub, network="default"), 30, "the entry to be written")
    assert changes(hub).count(copied) == 1
    _, answer = hub.admin("GET", "/v1/networks/default/events")
    assert [e["type"] for e in answer["events"] if "Copied" in e["type"]] == ["NodeCopied"]
    hub.daemon.allow("two machines are this node")
    assert not [line for line in hub.daemon.lines() if "one machine again" in line]


def test_the_command(hub, lab, weft, tmp_path):
    for i in range(5):
        hub.run("network", "add", f"n-{i}", "--cidr4", "10.50.0.0/16")
    lines = hub.run("audit", "--limit", "2").out.splitlines()
    assert len(lines) == 2 and "uid:0  create network/n-4  0 -> " in lines[1]
    told = [json.loads(line) for line in hub.run("audit", "--json").out.splitlines()]
    assert [e["object"] for e in told][-5:] == [f"network/n-{i}" for i in range(5)]
    assert hub.run("audit", "--network", "n-3").out.count("\n") == 1
    assert hub.run("audit", "--since", "1h").out.count("\n") == 6

    # Following, with a token that ends meanwhile.
    file = tmp_path / "token"
    file.write_text(admin_token(hub, "eyes", "viewer"))
    follower = lab.host("c").spawn(
        [weft, "audit", "-f", "--limit", "1", "--hub", "192.0.2.1:8443", "--pin", hub.pin,
         "--admin-token-file", file], name="follower")
    follower.wait_line("create admin/eyes")
    hub.run("network", "rm", "n-0")
    follower.wait_line("uid:0  remove network/n-0")
    hub.run("admin", "rm", "eyes")
    follower.wait_line("does not know this admin token")
    assert follower.wait() == 1


def test_by_time(hub, lab):
    """A refusal is written some seconds later than it was made, behind changes that came after."""
    assert hub.enrol(lab.host("a"), "A" * 43)[0] == 401
    second = int(time.time())
    wait_for(lambda: int(time.time()) > second + 1, 5, "the clock to go on")
    hub.run("network", "add", "later", "--cidr4", "10.50.0.0/16")

    def lines() -> list[str]:
        return hub.run("audit").out.splitlines()

    wait_for(lambda: any("POST /v1/enrol" in line for line in lines()), 30,
             "the refusal to be written")
    where = {word: i for i, line in enumerate(lines())
             for word in ("POST /v1/enrol", "create network/later") if word in line}
    assert where["POST /v1/enrol"] < where["create network/later"]
    times = [line[:19] for line in lines()]
    assert times == sorted(times)


def test_spent_tokens_are_listed_when_asked_for(hub, lab):
    """They stay for a day, so that one sees where a node came from."""
    hub.secret(uses=3)
    assert hub.enrol(lab.host("a"), hub.secret(), name="gpu-1")[0] == 200
    listed = hub.run("token", "ls").out.splitlines()
    assert len(listed) == 3 and listed[-1] == "and 1 used up or expired, which --all prints"
    listed = hub.run("token", "ls", "--all").out.splitlines()
    assert len(listed) == 3 and "used up" not in listed[-1]
    assert len(json.loads(hub.run("token", "ls", "--json").out)["tokens"]) == 2


def test_join_tokens(hub, lab):
    """They are listed by an id that opens nothing, and end at once."""
    kept, gone = hub.secret(uses=3), hub.secret(ephemeral=True, relay=True)
    bearer = admin_token(hub, "ci", "operator")
    assert hub.enrol(lab.host("a"), kept, name="gpu-1")[0] == 200
    tokens = hub.admin("GET", "/v1/networks/default/tokens")[1]["tokens"]
    assert {t["usesLeft"] for t in tokens} == {2, 1}
    mine = next(t for t in tokens if t["ephemeral"])
    assert mine["relay"] and mine["createdBy"] == "uid:0" and mine["network"] == "default"
    assert mine["expires"] - mine["created"] == 3600
    assert kept not in json.dumps(tokens) and gone not in json.dumps(tokens)
    hub.restart()
    listed = hub.run("token", "ls").out
    assert "ephemeral,relay" in listed and mine["id"] in listed
    assert len(json.loads(hub.run("token", "ls", "--json").out)["tokens"]) == 2
    hub.run("token", "rm", mine["id"])
    status, answer = hub.enrol(lab.host("b"), gone)
    assert status == 401 and "does not know this token" in answer["error"]
    assert hub.enrol(lab.host("b"), kept, name="gpu-2")[0] == 200
    again = hub.run("token", "rm", mine["id"], check=False)
    assert again.rc == 1 and f'no join token "{mine["id"]}"' in again.err
    assert hub.run("token", "rm", "../x", check=False).rc == 2
    # By an operator from afar.
    other = id_of_the_only_token(hub)
    path = f"/v1/networks/default/tokens/{other}"
    assert hub.public(lab.host("c"), "DELETE", path, bearer=bearer)[0] == 204
    assert hub.enrol(lab.host("b"), kept)[0] == 401
    assert ("admin:ci", "remove", f"token/{other}") in changes(hub)
    # That of another network is none of this one's.
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    hub.secret("other")
    theirs = hub.admin("GET", "/v1/networks/other/tokens")[1]["tokens"][0]["id"]
    assert hub.admin("DELETE", f"/v1/networks/default/tokens/{theirs}")[0] == 404
