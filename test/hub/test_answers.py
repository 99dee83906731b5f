"""What the hub answers, in JSON: every call and every command, held against docs/schema.

hub.run() and the calls do so for every other test too, see lab/schemas.py; here is what no other
test asks for, and that nothing is left out.
"""

from __future__ import annotations

from lab.support import schemas

from .hub import Hub, new_key


def test_every_call_is_known(hub: Hub) -> None:
    """The table that says which schema is whose has the hub's calls, and no others."""
    _, answer = hub.admin("GET", "/v1/routes")
    assert {f"{row['method']} {row['path']}" for row in answer["routes"]} == schemas.ANSWERS.keys()


def test_every_command(hub: Hub) -> None:
    """Each command about the hub that prints JSON does, and it is as promised."""
    hub.run("network", "add", "other", "--cidr4", "10.43.0.0/16", "--json")
    hub.run("token", "new", "--json", "--ephemeral", "--uses", "3")
    hub.run("admin", "new", "ci", "--role", "viewer", "--network", "other", "--json")
    host = hub.lab.host("a")
    assert hub.enrol(host, hub.secret(), name="a", labels={"gpu": "h100"})[0] == 200
    assert hub.enrol(hub.lab.host("b"), hub.secret(), name="b", publicKey=new_key())[0] == 200
    assert hub.public(host, "GET", "/v1/networks", bearer="weft-admin1.wrong")[0] == 401
    hub.run("edge", "set", "a", "b", "--path", "relay")
    for words in (["network", "ls"], ["token", "ls"], ["admin", "ls"], ["nodes"], ["jobs"],
                  ["audit"]):
        assert hub.run(*words, "--json").out.strip(), words
    for words in (["Network"], ["Network", "default"], ["Node"], ["Node", "a"], ["MeshEdge"],
                  ["MeshEdge", "a--b"]):
        assert hub.run("get", *words).out.strip(), words
    for path in ("/v1/health", "/v1/networks/default/snapshots/a", "/v1/audit?limit=2"):
        assert hub.admin("GET", path)[0] == 200, path
