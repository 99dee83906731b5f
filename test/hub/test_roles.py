"""Who may administer from afar: admin tokens, their roles, networks, ends and removal."""

from __future__ import annotations

import itertools
import json
import os
import re
import sqlite3
import sys
from pathlib import Path

import pytest
from lab import wait_for

from .hub import Hub

pytestmark = pytest.mark.namespaces

ROLES = ["viewer", "operator", "admin"]


def new_token(hub, name: str, role: str, **fields: object) -> str:
    status, answer = hub.admin("POST", "/v1/admin-tokens", {"name": name, "role": role} | fields)
    assert status == 201, answer
    assert answer["role"] == role and answer["token"].startswith("weft-admin1.")
    return answer["token"]


def ask(hub: Hub, token: str, method: str, path: str, body: object = None,
        host: str = "c") -> tuple[int, object]:
    """Through the public API, with an admin token."""
    return hub.public(hub.lab.host(host), method, path, body, bearer=token)


def admin_routes(hub) -> list[dict]:
    routes = hub.admin("GET", "/v1/routes")[1]["routes"]
    return [r for r in routes if "admin" in r["doors"] and "public" not in r["doors"]]


def path_of(route: dict, network: str) -> str:
    """With names that nobody has, so that nothing happens when it is let in."""
    path = route["path"].replace("{network}", network)
    path = path.replace("{kind=Network}", "Network").replace("{kind}", "Node")
    return path.replace("{name}", "nobody").replace("{id}", "0" * 12)


def test_every_route_with_every_role(hub):
    """Whatever the program's own table of routes holds, each role meets exactly what it states."""
    tokens = {role: new_token(hub, role, role) for role in ROLES}
    scoped = {role: new_token(hub, f"{role}-here", role, network="default") for role in ROLES}
    routes = admin_routes(hub)
    assert len(routes) > 15
    for route, role in itertools.product(routes, ROLES):
        assert route["role"] in ROLES, route
        allowed = ROLES.index(role) >= ROLES.index(route["role"])
        method, path = route["method"], path_of(route, "nowhere")
        status, answer = ask(hub, tokens[role], method, path)
        assert (status == 403) == (not allowed), (route, role, status, answer)
        if not allowed:
            assert f'role "{route["role"]}"' in answer["error"]
            assert f'admin:{role} has role "{role}"' in answer["error"]
        # For one network: its own, what is filtered, and nothing else.
        status, answer = ask(hub, scoped[role], method, path)
        assert (status == 403) == (not allowed or route["scope"] != "filtered"), (route, role)
        if allowed and route["scope"] != "filtered":
            assert 'is for network "default" only' in answer["error"]
        if route["scope"] == "network" and (method, path_of(route, "default")) != (
                "DELETE", "/v1/networks/default"):
            status, answer = ask(hub, scoped[role], method, path_of(route, "default"))
            assert (status == 403) == (not allowed), (route, role, status, answer)
    for route in routes:
        status, answer = ask(hub, "", route["method"], path_of(route, "nowhere"))
        assert status == 401 and f'role "{route["role"]}"' in answer["error"], route


def test_the_document_has_every_route(hub):
    """docs/API.md names each call of the admin API with its role, and no other."""
    table = (Path(__file__).parents[2] / "docs/API.md").read_text().split("## Admin API")[1]
    rows = re.findall(r"^\| `(\S+) (\S+)` \| (\w+) \|", table, re.MULTILINE)
    assert sorted(rows) == sorted((r["method"], r["path"], r["role"]) for r in admin_routes(hub))


def test_what_a_role_does(hub, lab):
    """One thing that each role may do, done."""
    viewer, operator = new_token(hub, "eyes", "viewer"), new_token(hub, "hands", "operator")
    assert ask(hub, viewer, "GET", "/v1/networks/default/nodes")[0] == 200
    status, answer = ask(hub, operator, "POST", "/v1/networks/default/tokens", {})
    assert status == 201 and answer["token"].startswith("weft1.")
    status, answer = ask(hub, operator, "POST", "/v1/networks", {"name": "more"})
    assert status == 403 and 'needs an admin token of role "admin"' in answer["error"]
    # An object of kind Network is a network, whatever other objects the role may change.
    network = hub.admin("GET", "/v1/networks/default/objects/Network/default")[1]
    network["spec"]["mtu"] = 1400
    path = "/v1/networks/default/objects/Network/default"
    assert ask(hub, operator, "PUT", path, network)[0] == 403
    assert ask(hub, new_token(hub, "all", "admin"), "PUT", path, network)[0] == 200


def test_one_network_only(hub):
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    token = new_token(hub, "guest", "admin", network="other")
    networks = ask(hub, token, "GET", "/v1/networks")[1]["networks"]
    assert [n["metadata"]["name"] for n in networks] == ["other"]
    assert ask(hub, token, "GET", "/v1/networks/default/nodes")[0] == 403
    assert ask(hub, token, "DELETE", "/v1/networks/default")[0] == 403
    # A network that was made again under the name is another one.
    assert ask(hub, token, "GET", "/v1/networks/other/nodes")[0] == 200
    hub.run("network", "rm", "other")
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    assert ask(hub, token, "GET", "/v1/networks/other/nodes")[0] == 401
    status, answer = hub.admin("POST", "/v1/admin-tokens",
                               {"name": "x", "role": "viewer", "network": "nowhere"})
    assert status == 404 and '"nowhere"' in answer["error"]


def test_the_end_of_a_token(hub):
    token = new_token(hub, "short", "viewer", ttlSeconds=2)
    assert ask(hub, token, "GET", "/v1/networks")[0] == 200
    status, answer = wait_for(
        lambda: (said := ask(hub, token, "GET", "/v1/networks"))[0] == 401 and said, 10,
        "the token to expire")
    assert "admin:short has expired" in answer["error"]
    # A restart does not bring it back.
    hub.restart()
    assert ask(hub, token, "GET", "/v1/networks")[0] == 401


# A request that is complete only once somebody opens the pipe: its answer's first line.
HALF = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
tls = context.wrap_socket(socket.create_connection(("192.0.2.1", 8443), timeout=20))
tls.sendall(b"GET /v1/networks HTTP/1.1\\r\\nHost: hub\\r\\nAuthorization: Bearer " +
            sys.argv[1].encode() + b"\\r\\n")
print("half is sent", flush=True)
open(sys.argv[2]).read()
tls.sendall(b"\\r\\n")
print(tls.recv(4096).split(b"\\r\\n")[0].decode(), flush=True)
"""


def test_removal_counts_at_once(hub, lab, tmp_path):
    """Also for a connection that is open: what it asks after the removal is refused."""
    token, pipe = new_token(hub, "gone", "admin"), tmp_path / "pipe"
    os.mkfifo(pipe)
    half = lab.host("c").spawn([sys.executable, "-c", HALF, token, pipe], name="half")
    half.wait_line("half is sent")
    assert hub.admin("DELETE", "/v1/admin-tokens/gone")[0] == 204
    pipe.write_text("go on")
    half.wait_line("HTTP/1.1 401 ")
    assert ask(hub, token, "GET", "/v1/networks")[0] == 401
    assert hub.admin("DELETE", "/v1/admin-tokens/gone")[0] == 404
    hub.restart()
    assert ask(hub, token, "GET", "/v1/networks")[0] == 401


def test_tokens_survive_and_are_not_in_the_store(hub):
    token = new_token(hub, "kept", "operator")
    hub.restart()
    assert ask(hub, token, "GET", "/v1/networks")[0] == 200
    listed = hub.admin("GET", "/v1/admin-tokens")[1]["adminTokens"]
    assert [t["name"] for t in listed] == ["kept"]
    assert listed[0]["createdBy"] == "uid:0" and listed[0]["lastUsed"] >= listed[0]["created"]
    assert hub.daemon.stop() == 0
    secret = token.removeprefix("weft-admin1.").encode()
    for file in hub.state.rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), file


def test_a_damaged_record_opens_nothing(hub):
    """One bit, and it is set aside, named and counted; the others open as before."""
    good, bad = new_token(hub, "good", "viewer"), new_token(hub, "bad", "viewer")
    assert hub.daemon.stop() == 0
    with sqlite3.connect(hub.state / "hub.db") as db:
        db.execute("UPDATE item SET value = replace(value, 'viewer', 'admin') "
                   "WHERE key = 'admin/bad'")
    db.close()
    hub.start()
    hub.daemon.allow("admin/bad")
    assert ask(hub, good, "GET", "/v1/networks")[0] == 200
    assert ask(hub, bad, "GET", "/v1/networks")[0] == 401
    assert "weft_damaged_records 1" in hub.metrics()
    hub.run("admin", "rm", "bad")
    assert "weft_damaged_records 0" in hub.metrics()
    new_token(hub, "bad", "viewer")


def test_names_and_bounds(hub):
    def make(**fields: object) -> tuple[int, object]:
        return hub.admin("POST", "/v1/admin-tokens", {"name": "n", "role": "viewer"} | fields)

    assert make()[0] == 201
    status, answer = make()
    assert status == 409 and 'admin token "n" already' in answer["error"]
    for fields in ({"name": "Bad Name"}, {"role": "root"}, {"ttlSeconds": 0}, {"more": 1},
                   {"ttlSeconds": 10**9}, {"name": "x" * 64}):
        status, answer = make(**fields)
        assert status == 400 and answer["error"], fields
    for i in range(255):
        assert make(name=f"n-{i}")[0] == 201
    status, answer = make(name="one-too-many")
    assert status == 409 and "there are 256 admin tokens" in answer["error"]


def test_guesses_are_limited_by_address(hub):
    token = new_token(hub, "good", "viewer")
    guess = "weft-admin1." + "A" * 43
    assert [ask(hub, guess, "GET", "/v1/networks", host="a")[0] for _ in range(10)] == [401] * 10
    wait_for(lambda: ask(hub, guess, "GET", "/v1/networks", host="a")[0] == 429, 5,
             "the hub to have enough of it")
    # From there not even a good one is looked at; from elsewhere it is.
    assert ask(hub, token, "GET", "/v1/networks", host="a")[0] == 429
    assert ask(hub, token, "GET", "/v1/networks", host="b")[0] == 200


def test_the_file(hub):
    """The token of the file has role admin, and is replaced by a word."""
    path = hub.state / "admin.token"
    old = path.read_text()
    assert ask(hub, old, "GET", "/v1/admin-tokens")[0] == 200
    assert str(path) in hub.run("admin", "rotate").out
    new = path.read_text()
    assert new != old and path.stat().st_mode & 0o777 == 0o600
    assert ask(hub, old, "GET", "/v1/admin-tokens")[0] == 401
    assert ask(hub, new, "GET", "/v1/admin-tokens")[0] == 200
    hub.restart()
    assert ask(hub, new, "GET", "/v1/admin-tokens")[0] == 200


def test_commands(hub, lab, weft, tmp_path):
    token = hub.run("admin", "new", "ci", "--role", "operator", "--ttl", "7d").out.strip()
    file = tmp_path / "token"
    file.write_text(token + "\n")
    listed = hub.run("admin", "ls").out.splitlines()
    assert listed[1].split()[:3] == ["ci", "operator", "all"]
    assert json.loads(hub.run("admin", "ls", "--json").out)["adminTokens"][0]["name"] == "ci"
    far = [weft, "nodes", "--hub", "192.0.2.1:8443", "--pin", hub.pin, "--admin-token-file", file]
    assert "hub" in lab.host("c").run(far).out
    refused = lab.host("c").run([weft, "network", "rm", "default", *far[2:]], check=False)
    assert refused.rc == 1 and 'needs an admin token of role "admin"' in refused.err
    hub.run("admin", "rm", "ci")
    gone = lab.host("c").run(far, check=False)
    assert gone.rc == 1 and "does not know this admin token" in gone.err
