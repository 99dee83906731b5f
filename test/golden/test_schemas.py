"""The schemas in docs/schema: that they are schemas, that each command has one, what they catch.

What the programs print is held against them wherever a test asks for it, see lab/schemas.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.support import schemas
from test_golden import HERE, helps

jsonschema = pytest.importorskip("jsonschema", reason="python3-jsonschema is not installed")


def every() -> Iterator[tuple[str, Path, dict]]:
    for name in schemas.names():
        path = schemas.FOLDER / f"{name}.json"
        yield name, path, schemas.load(path)


def walk(schema: object, at: str = "") -> Iterator[tuple[str, dict]]:
    """Each object of a schema, with where it is."""
    if isinstance(schema, dict):
        yield at, schema
        for key, value in schema.items():
            yield from walk(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from walk(value, f"{at}/{index}")


def test_are_schemas() -> None:
    """Every file is one, says which draft it is, and refers to what is there."""
    for name, path, schema in every():
        assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"], name
        jsonschema.Draft202012Validator.check_schema(schema)
        for _, part in walk(schema):
            if "$ref" in part:
                schemas.target(path, part["$ref"])


def test_say_what_a_field_is() -> None:
    """Every field has words, and its type or the schema of its own; room is left for more."""
    for name, path, schema in every():
        assert schema.get("title"), name
        for at, part in walk(schema):
            for field, said in part.get("properties", {}).items():
                if at.endswith("/if"):
                    continue
                about = [p for _, p in schemas.parts(path, said)]
                assert any("description" in p for p in about), f"{name}{at}: {field} has no words"
                assert any(p.keys() & {"type", "const", "oneOf"} for p in about), \
                    f"{name}{at}: {field} has no type"
            assert part.get("additionalProperties") is not False, f"{name}{at}: no room for more"
            unknown = set(part.get("required", [])) if "properties" in part else set()
            assert unknown <= part.get("properties", {}).keys(), f"{name}{at} requires {unknown}"


def test_each_command_has_one(weft: Path) -> None:
    """Each command that prints JSON has a schema, and each schema at the top is of a command."""
    wanted = set()
    for name, text in helps(weft).items():
        command = name.removeprefix("help-")
        if "  --json " in text or command in schemas.ALWAYS_JSON or ", json" in text:
            wanted.add(command)
    have = {name for name in schemas.names() if "/" not in name}
    assert wanted - have == set(), "these commands print JSON and have no schema in docs/schema"
    assert have - wanted == set(), "these schemas are of no command that prints JSON"


def test_each_is_told_of() -> None:
    """The list in docs/schema/README.md is that of the files; what no command prints is reached."""
    document = (schemas.FOLDER / "README.md").read_text()
    for name in schemas.names():
        assert f"]({name}.json)" in document, f"docs/schema/README.md does not name {name}.json"
    answers = set(schemas.ANSWERS.values())
    for name, path, schema in every():
        answers |= {schemas.target(path, part["$ref"])[0] for _, part in walk(schema)
                    if "$ref" in part}
    told = {"api/error", "api/join-token", "api/left"}
    for name, path, _ in every():
        if name.startswith("api/"):
            assert name in answers | told or path in answers, f"{name} is what nobody answers"


def test_snapshots() -> None:
    """Those from which render's texts are made, by hand as they are."""
    for path in HERE.glob("render-*.json"):
        snapshot = json.loads(path.read_text())
        assert [e for e in schemas.errors("api/snapshot", snapshot) if "required" not in e] == []


def test_objects() -> None:
    """The golden object of each kind (src/core/mesh/object/test-object.c) is as its schema says."""
    titles = {schema["title"] for name, _, schema in every() if name.startswith("api/")}
    for path in sorted((HERE / "objects").glob("*.json")):
        golden = json.loads(path.read_text())
        assert golden["kind"] == path.stem
        assert path.stem in titles, f"no schema in docs/schema/api has the title {path.stem}"
        assert schemas.errors("get", golden) == []
        for page in "docs/API.md", "man/weft-admin.1", "test/golden/help-get.txt":
            assert path.stem in (HERE.parent.parent / page).read_text(), f"{page} lacks {path.stem}"


TOKEN = {"id": "0a1b", "network": "default", "expires": 1790000000, "usesLeft": 1,
         "ephemeral": False, "relay": False}
NODE = {"kind": "Node", "metadata": {"name": "gpu-1", "network": "default", "resourceVersion": 9},
        "spec": {"publicKey": 43 * "A" + "=", "address4": "10.42.0.2", "address6": "fd00::2",
                 "labels": {"gpu": "h100"}, "island": "", "ephemeral": False}}


@pytest.mark.parametrize("wrong, said", [
    ({"uses": 1}, "uses is not in the schema"),  # a field that nobody was told of
    ({"usesLeft": None}, "None is not of type 'integer'"),
    ({"usesLeft": -1}, "less than the minimum"),
    ({"network": "Not a name"}, "does not match"),
])
def test_finds(wrong: dict, said: str) -> None:
    assert schemas.errors("token-ls", {"tokens": [TOKEN]}) == []
    found = schemas.errors("token-ls", {"tokens": [{**TOKEN, **wrong}]})
    assert len(found) == 1
    assert said in found[0]


def test_finds_what_is_gone() -> None:
    """A field that was renamed is one that is missing and one that is unknown."""
    token = {("uses" if field == "usesLeft" else field): value for field, value in TOKEN.items()}
    assert sorted(schemas.errors("token-ls", {"tokens": [token]})) == [
        "token-ls.tokens[0].uses is not in the schema",
        "token-ls.tokens[0]: 'usesLeft' is a required property"]


def test_finds_in_what_is_referred_to() -> None:
    listed = {"nodes": [{**NODE, "alarms": 0, "reachable": True}]}
    assert schemas.errors("nodes", listed) == []
    assert schemas.errors("get", NODE) == []
    wrong = copy.deepcopy(listed)
    wrong["nodes"][0]["spec"]["labels"]["gpu"] = 1
    wrong["nodes"][0]["spec"]["address4"] = "10.42.0"
    wrong["nodes"][0]["spec"]["colour"] = "red"
    assert len(schemas.errors("nodes", wrong)) == 3


def test_knows_commands() -> None:
    """Which command lines print what."""
    assert schemas.schema_of(["weft", "token", "ls", "--json"])[0] == "token-ls"
    assert schemas.schema_of(["prlimit", "/x/weft", "status", "--json"])[0] == "status"
    assert schemas.schema_of(["weft", "get", "Node", "a"])[0] == "get"
    assert schemas.schema_of(["weft", "env", "--format", "json"])[0] == "env"
    assert schemas.schema_of(["iperf3", "--json"]) is None
    assert schemas.schema_of(["weft", "status"]) is None
    with pytest.raises(schemas.SchemaError, match="has no schema"):
        schemas.check_output(["weft", "wobble", "--json"], "{}")
    with pytest.raises(schemas.SchemaError, match="count"):
        schemas.check_output(["weft", "audit", "--json"], json.dumps({
            "id": "1", "time": 1, "actor": "hub", "operation": "x", "answer": "refused",
            "status": 403, "why": "x", "firstTime": 1}) + "\n")


def test_knows_answers() -> None:
    node = {**NODE, "kind": "Nodes"}
    for call in ("/v1/networks/x/objects/Node/gpu-1", "/v1/networks/x/objects/Node/gpu-1?a=b"):
        schemas.check_answer("GET", call, 200, NODE)
        with pytest.raises(schemas.SchemaError):
            schemas.check_answer("GET", call, 200, node)
    schemas.check_answer("DELETE", "/v1/networks/x", 204, None)
    with pytest.raises(schemas.SchemaError, match="error"):
        schemas.check_answer("GET", "/v1/anything", 404, {"err": "no"})
