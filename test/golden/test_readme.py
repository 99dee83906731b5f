"""Is each command of the README run by a test? See readme/rules.py."""

from __future__ import annotations

import re

import pytest
from lab.support import ROOT
from lab.support.pages import Command, blocks, commands
from readme.rules import ELSEWHERE, RULES, Elsewhere, Rule, find, is_mention

PAGES = ("README.md", "docs/TRAINING.md")
# The machine for which the commands below or in a sentence are, by its words.
PLACES = {"hub": r"hub's machine|[Oo]n the hub\b|the machine with the public address",
          "node": r"[Oo]n a node\b|[Oo]n each\b|on every node"}


def all_commands() -> list[Command]:
    return [command for page in PAGES for command in commands(ROOT / page)]


def place(command: Command, before: str) -> str:
    """Where the page says that it is typed; what it said before, if it says nothing anew."""
    text = f"{command.before}\n{command.comment}"
    last = {name: [m.start() for m in re.finditer(pattern, text)][-1:]
            for name, pattern in PLACES.items()}
    said = [(where[0], name) for name, where in last.items() if where]
    return max(said)[1] if said else before


@pytest.mark.parametrize("command", all_commands(), ids=str)
def test_has_a_rule(command: Command) -> None:
    assert find(command) or is_mention(command), \
        f"no test runs this command: {command} - add its rule to test/readme/rules.py"


@pytest.mark.parametrize("page", PAGES)
def test_says_where(page: str) -> None:
    """The sentence before a command names the machine on which its rule runs it."""
    where = ""
    for command in commands(ROOT / page):
        where = place(command, where)
        rule = find(command)
        if isinstance(rule, Rule) and rule.on and not is_mention(command):
            assert where == rule.on, \
                f"{command} is for the {rule.on}, and the page says {where or 'nothing'} before it"


@pytest.mark.parametrize("rule", ELSEWHERE, ids=lambda rule: rule.pattern.pattern)
def test_is_run_elsewhere(rule: Elsewhere) -> None:
    if not any(rule.pattern.fullmatch(command.text) for command in all_commands()):
        pytest.skip("no page has that command")
    text = (ROOT / rule.path).read_text(encoding="utf-8")
    assert re.search(rule.proof, text), f"{rule.path} does not run it: {rule.proof} is not in it"


def test_same_as_in_the_recipe() -> None:
    """The line for cron, which lab/member/test_stock.py takes from the recipe."""
    [line] = [c.text for c in commands(ROOT / "README.md") if c.text.startswith("* * ")]
    assert line + "\n" == blocks("recipes/stock-wireguard.md", "cron")["sync"]


def test_finds_what_is_missing() -> None:
    """A command that nobody runs, and one that is only named."""
    command = Command("README.md", 1, "weft nodes --colour", "", False, "")
    assert find(command) is None and not is_mention(command)
    named = Command("README.md", 1, "weft token new", "", True, "")
    assert is_mention(named)
    assert {rule.on for rule in RULES} == {"hub", "node", ""}
