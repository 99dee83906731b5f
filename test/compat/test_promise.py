"""What the schemas of the last release say, today's say too: nothing is renamed or taken back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from lab.support import schemas

from .release import ROOT, last_release


def broken(old: object, new: object, at: str = "") -> Iterator[str]:
    """Sentences about what somebody may rely on by `old`, and not by `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    for field in old.get("properties", {}):
        if field not in new.get("properties", {}):
            yield f"{at}.{field} is gone"
    for field in set(old.get("required", [])) - set(new.get("required", [])):
        yield f"{at}.{field} may be absent now"
    for word in ("type", "const", "$ref", "format"):
        if old.get(word) != new.get(word):
            yield f"{at}: {word} was {old.get(word)} and is {new.get(word)}"
    for value in set(map(str, old.get("enum", []))) - set(map(str, new.get("enum", []))):
        yield f"{at}: the value {value} is gone"
    for field, part in old.get("properties", {}).items():
        yield from broken(part, new.get("properties", {}).get(field), f"{at}.{field}")
    for word in ("items", "additionalProperties"):
        yield from broken(old.get(word), new.get(word), f"{at}[]")
    for word in ("oneOf", "anyOf", "allOf"):
        for index, part in enumerate(old.get(word, [])):
            others = new.get(word, [])
            yield from broken(part, others[index] if index < len(others) else {}, f"{at}|{index}")
    for name, part in old.get("$defs", {}).items():
        yield from broken(part, new.get("$defs", {}).get(name, {}), f"{at}#{name}")


def of_the_last_release() -> dict[str, dict]:
    commit = last_release().commit

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            pytest.skip("the last release is not in this tree's git history")
        return done.stdout

    paths = [path for path in git("ls-tree", "-r", "--name-only", commit, "docs/schema/").split()
             if path.endswith(".json")]
    if not paths:
        pytest.skip(f"{last_release().version} had no schemas yet")
    return {path: json.loads(git("show", f"{commit}:{path}")) for path in paths}


def test_nothing_is_taken_back() -> None:
    found = []
    for path, old in of_the_last_release().items():
        new = ROOT / path
        found += broken(old, schemas.load(new), path) if new.exists() else [f"{path} is gone"]
    assert found == []


def test_finds() -> None:
    old = {"properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a"]}
    more = {"properties": {**old["properties"], "c": {}, "b": {"enum": ["x", "y", "z"]}},
            "required": ["a", "c"]}
    assert list(broken(old, more)) == []
    assert list(broken(more, old)) == [".c is gone", ".c may be absent now",
                                       ".b: the value z is gone"]
    less = {"properties": {"a": {"type": ["integer", "null"]}}}
    assert len(list(broken(old, less))) == 3
    deep = {"oneOf": [{"items": old}]}
    assert list(broken(deep, {"oneOf": [{"items": {**old, "required": []}}]})) == [
        "|0[].a may be absent now"]
