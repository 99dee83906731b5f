"""The JSON that programs print, held against the schemas in docs/schema.

    check_output(argv, out)           what `weft ... --json` has printed; other commands pass
    check_answer(method, path, status, body)    what the hub's API has answered
    errors("status", value)           sentences about what is wrong; none if it is as promised

A schema says what users may rely on, and leaves room for fields that are added later. What the
programs of this very version print has to be described in full, so here a field that its schema
does not name is an error, too.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from . import DOCS

FOLDER = DOCS / "schema"

# Commands that print JSON without being asked by --json.
ALWAYS_JSON = {"get"}
# Those that print an object a line; None: whenever they do, else unless the option is given.
LINES = {"audit": None, "probe": "--once"}

# The answers of the hub's calls, as they are in its routes; None: it has no JSON to answer with.
ANSWERS = {
    "GET /v1/health": "api/health",
    "POST /v1/enrol": "api/snapshot",
    "GET /v1/stream/{network}": None,
    "POST /v1/leave/{network}/{key}": None,
    "GET /v1/watch": "api/watch-event",  # each of its lines
    "PUT /v1/status": "api/report-taken",  # only to who numbers its reports
    "PUT /v1/drain": "api/drain",
    "GET /v1/heard/{transaction}": "api/heard",
    "GET /v1/wg": None,
    "POST /v1/leave": None,
    "GET /v1/jobs": "jobs",
    "GET /v1/jobs/{job}/rendezvous": "api/job",
    "POST /v1/jobs/{job}/rendezvous": "api/job",
    "PUT /v1/jobs/{job}/rendezvous": "api/job",
    "DELETE /v1/jobs/{job}/rendezvous": None,
    "POST /v1/jobs/{job}/nccl": None,
    "PUT /v1/jobs/{job}/samples": None,
    "GET /v1/networks": "network-ls",
    "POST /v1/networks": "network-add",
    "DELETE /v1/networks/{network}": None,
    "POST /v1/networks/{network}/tokens": "token-new",
    "GET /v1/networks/{network}/tokens": "token-ls",
    "DELETE /v1/networks/{network}/tokens/{id}": None,
    "GET /v1/networks/{network}/nodes": "nodes",
    "POST /v1/networks/{network}/nodes": "api/snapshot",
    "GET /v1/networks/{network}/jobs": "jobs",
    "GET /v1/networks/{network}/targets": "api/targets",
    "GET /v1/networks/{network}/traffic": "api/traffic",
    "GET /v1/networks/{network}/page": None,
    "GET /v1/networks/{network}/live": "api/live-event",  # the data of each event
    "DELETE /v1/networks/{network}/nodes/{name}": None,
    "GET /v1/networks/{network}/objects/{kind}": "get",
    "GET /v1/networks/{network}/objects/{kind}/{name}": "get",
    "PUT /v1/networks/{network}/objects/{kind=Network}/{name}": "get",
    "PUT /v1/networks/{network}/objects/{kind}/{name}": "get",
    "DELETE /v1/networks/{network}/objects/{kind=Network}/{name}": None,
    "DELETE /v1/networks/{network}/objects/{kind}/{name}": None,
    "GET /v1/networks/{network}/edges": "api/edge-list",
    "GET /v1/networks/{network}/edges/{name}/history": "api/edge-history",
    "GET /v1/networks/{network}/events": "api/event-list",
    "GET /v1/networks/{network}/findings": "api/finding-list",
    "GET /v1/networks/{network}/nat": "api/nat-list",
    "GET /v1/networks/{network}/snapshots/{name}": "api/snapshot",
    "GET /v1/admin-tokens": "admin-ls",
    "POST /v1/admin-tokens": "admin-new",
    "DELETE /v1/admin-tokens/{name}": None,
    "POST /v1/admin-token-file": "api/path",
    "POST /v1/backup": "api/path",
    "GET /v1/move": "hub-move",
    "PUT /v1/move": "hub-move",
    "GET /v1/audit": "api/audit-page",
    "GET /v1/routes": "api/route-list",
    "GET /web": None,
    "GET /web/": None,
    "GET /web/{file}": None,
    "POST /v1/web/login": "api/web-session",
    "POST /v1/web/logins": "api/web-login",
    "GET /v1/web/session": "api/web-session",
    "DELETE /v1/web/session": None,
    "GET /v1/metrics": None,
}


class SchemaError(AssertionError):
    """A program printed something else than docs/schema promises."""


@functools.cache
def names() -> tuple[str, ...]:
    """All schemas, as "status" and "api/node"."""
    return tuple(str(path.relative_to(FOLDER).with_suffix(""))
                 for path in sorted(FOLDER.rglob("*.json")))


@functools.cache
def load(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


_validators = threading.local()


def _validator(name: str):
    """One for each thread: where a $ref has led to is kept in it."""
    kept = vars(_validators)
    if name not in kept:
        kept[name] = _new_validator(name)
    return kept[name]


def _new_validator(name: str):
    try:
        import jsonschema
    except ImportError:
        raise SchemaError("JSON cannot be checked: install python3-jsonschema") from None
    path = FOLDER / f"{name}.json"
    resolver = jsonschema.RefResolver(
        path.as_uri(), load(path), handlers={"file": lambda uri: load(Path(uri[len("file://"):]))})
    return jsonschema.Draft202012Validator(
        load(path), resolver=resolver, format_checker=jsonschema.FormatChecker(["ipv4", "ipv6"]))


# ---- fields that no schema names --------------------------------------------------------------

def target(path: Path, reference: str) -> tuple[Path, dict]:
    """What a $ref in the schema file `path` points at: its file, and the part of it."""
    file, _, inside = reference.partition("#")
    where = (path.parent / file).resolve() if file else path
    part = load(where)
    for step in filter(None, inside.split("/")):
        part = part[step]
    return where, part


def parts(path: Path, schema: dict) -> Iterator[tuple[Path, dict]]:
    """The schema itself, and all that may say something about the same value."""
    yield path, schema
    if "$ref" in schema:
        yield from parts(*target(path, schema["$ref"]))
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, []):
            yield from parts(path, part)


def _unnamed(value: object, schemas: list[tuple[Path, dict]], at: str) -> Iterator[str]:
    known = [part for path, schema in schemas for part in parts(path, schema)]
    if isinstance(value, list):
        items = [(path, part["items"]) for path, part in known if "items" in part]
        for index, item in enumerate(value):
            yield from _unnamed(item, items, f"{at}[{index}]")
    if not isinstance(value, dict):
        return
    for field, inner in value.items():
        named = [(path, part["properties"][field]) for path, part in known
                 if field in part.get("properties", {})]
        others = [(path, part["additionalProperties"]) for path, part in known
                  if "additionalProperties" in part]
        if not named and any(schema is True for _, schema in others):
            continue  # anything goes, as what another version of a member reports
        if named or others:
            yield from _unnamed(inner, named or others, f"{at}.{field}")
        else:
            yield f"{at}.{field} is not in the schema"


def unnamed(name: str, value: object) -> list[str]:
    """Fields of a value that its schema does not name."""
    path = FOLDER / f"{name}.json"
    return list(_unnamed(value, [(path, load(path))], name))


# ---- checks -----------------------------------------------------------------------------------

def errors(name: str, value: object) -> list[str]:
    """What is wrong with a value, in sentences."""
    found = [f"{name}{error.json_path[1:]}: {error.message:.400}"
             for error in _validator(name).iter_errors(value)]
    return found + unnamed(name, value)


def check(name: str, value: object, what: str) -> None:
    found = errors(name, value)
    if found:
        raise SchemaError("\n".join([f"{what} is not what docs/schema/{name}.json says:", *found]))


def schema_of(argv: Sequence[object]) -> tuple[str, list[str]] | None:
    """The schema of what a command line prints, and its words; None if that is no JSON."""
    words = [str(word) for word in argv]
    place = next((i for i, word in enumerate(words) if os.path.basename(word) == "weft"), None)
    if place is None or "/compat/" in words[place]:  # a program of the last release, see compat
        return None
    words = words[place + 1:]
    for_people = {"edges", "events", "findings", "nat"}
    if words[:1] == ["get"] and for_people & set(words) and not wants_json(words):
        return None
    if "--help" in words or not (wants_json(words) or set(words[:1]) & ALWAYS_JSON):
        return None
    name = "-".join(words[:2])
    return (name if name in names() else words[0]), words


def wants_json(words: Iterable[str]) -> bool:
    return "--json" in words or "--format json" in " ".join(words) or "--format=json" in words


def check_output(argv: Sequence[object], out: str) -> None:
    """Raises SchemaError unless what the command printed is as its schema says."""
    found = schema_of(argv)
    if not found or not out.strip():
        return
    name, words = found
    if name not in names():
        raise SchemaError(f"`weft {' '.join(words)}` has no schema in docs/schema")
    is_lines = name in LINES and LINES[name] not in words
    for text in out.splitlines() if is_lines else [out]:
        check(name, json.loads(text), f"`weft {' '.join(words)}`")


@functools.cache
def _patterns() -> list[tuple[re.Pattern, str | None]]:
    """The rows of ANSWERS; in a path what is in braces is one word, with "=" one of those given."""
    def of(call: str) -> str:
        return re.sub(r"\{(\w+)(?:=(\w+))?\}", lambda m: m[2] or r"[^/ ]+", call)
    return [(re.compile(of(call)), name) for call, name in ANSWERS.items()]


def check_answer(method: str, path: str, status: int, body: object) -> None:
    """Raises SchemaError unless the body of an answer is as its schema says."""
    if body is None or 300 > status > 204:
        return
    call = f"{method} {path.partition('?')[0]}"
    name = "api/error" if status >= 400 else next(
        (name for pattern, name in _patterns() if pattern.fullmatch(call)), None)
    if name:
        check(name, body, f"the answer {status} to {call}")
