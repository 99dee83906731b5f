"""As much of Terraform's language as a check of deploy/terraform needs: blocks and arguments.

Expressions stay text. What is not understood is an error, and never passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

HEAD = re.compile(r'([A-Za-z_][\w-]*)((?:\s+(?:"[^"]*"|[A-Za-z_][\w-]*))*)\s*\{')
ARGUMENT = re.compile(r"([A-Za-z_][\w-]*)\s*=(?!=)[ \t]*")
PAIRS = {"{": "}", "[": "]", "(": ")"}


@dataclass
class Body:
    """What stands between braces."""

    arguments: dict[str, str] = field(default_factory=dict)
    blocks: list[tuple[str, list[str], Body]] = field(default_factory=list)

    def of(self, kind: str) -> list[tuple[list[str], Body]]:
        return [(labels, body) for name, labels, body in self.blocks if name == kind]


class Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self.at = text, name, 0

    def fail(self, what: str) -> None:
        line = self.text.count("\n", 0, self.at) + 1
        raise ValueError(f"{self.name}:{line}: {what}")

    def skip(self) -> None:
        """Over white space and comments."""
        found = re.compile(r"(?:\s|#[^\n]*|//[^\n]*)*").match(self.text, self.at)
        self.at = found.end()

    def string(self) -> None:
        """Over a quoted string, in which ${...} may hold others."""
        self.at += 1
        while self.text[self.at] != '"':
            if self.text[self.at] == "\n":
                self.fail("a string without an end")
            if self.text.startswith("${", self.at):
                self.at += 1
                self.group()
            else:
                self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1

    def group(self) -> None:
        """Over what is in brackets."""
        end = PAIRS[self.text[self.at]]
        self.at += 1
        while self.text[self.at] != end:
            self.element()
            if self.at >= len(self.text):
                self.fail(f"no {end}")
        self.at += 1

    def element(self) -> None:
        c = self.text[self.at]
        if c == '"':
            self.string()
        elif c in PAIRS:
            self.group()
        elif c in ")]}":
            self.fail(f"{c} too many")
        elif c == "#":
            self.skip()
        else:
            self.at += 1

    def expression(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in "\n#}":
            self.element()
        return self.text[start:self.at].strip()

    def body(self, end: str) -> Body:
        made = Body()
        while True:
            self.skip()
            if self.at >= len(self.text) or self.text[self.at] == "}":
                if self.text[self.at:self.at + 1] != end:
                    self.fail("braces do not match")
                self.at += len(end)
                return made
            if head := HEAD.match(self.text, self.at):
                self.at = head.end()
                labels = [label.strip('"') for label in head[2].split()]
                made.blocks.append((head[1], labels, self.body("}")))
            elif argument := ARGUMENT.match(self.text, self.at):
                self.at = argument.end()
                if argument[1] in made.arguments:
                    self.fail(f"{argument[1]} twice")
                made.arguments[argument[1]] = self.expression()
            else:
                self.fail("neither an argument nor a block")


def read(folder: Path) -> Body:
    """All files of a module as one."""
    whole = Body()
    for path in sorted(folder.glob("*.tf")):
        whole.blocks += Reader(path.read_text(), path.name).body("").blocks
    return whole
