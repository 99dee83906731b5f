"""What a page of docs/ tells people to type: its fenced blocks, by kind and name.

    ```sh join          kind "sh", name "join"
    ```nft hub          kind "nft", name "hub"

commands() gives the command lines of any page in their order, those within sentences, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import DOCS, ROOT

FENCE = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> dict[str, str]:
    """All of that kind in a page, by name; without a name by their order from 0."""
    found: dict[str, str] = {}
    for match in FENCE.finditer((DOCS / page).read_text(encoding="utf-8")):
        if match[1] == kind:
            found[match[2] or str(len(found))] = match[3]
    assert found, f"{page} has no block of kind {kind}"
    return found


# ---- command lines ------------------------------------------------------------------------------

# What a command line begins with; anything else in a block or in quotes is no command.
PROGRAMS = ("weft", "make", "ping", "systemctl", "journalctl", "apt", "apt-get", "dpkg", "wg",
            "wg-quick", "curl", "man", "docker", "podman", "crun", "buildah", "ssh", "srun",
            "sbatch", "kubectl", "nft", "ip", "eval", "sudo", "*")
COMMENT = re.compile(r"\s+# .*$|\s{2,}#.*$")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


@dataclass(frozen=True)
class Command:
    """A command line of a page."""

    page: str  # below the root of the source
    line: int  # from 1
    text: str  # as it is typed, without its comment
    comment: str  # what stands behind it
    inline: bool  # it is quoted in a sentence, and perhaps only named
    before: str  # the sentences above it, from the last command in a block on

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def _is_command(text: str) -> bool:
    return text.split(maxsplit=1)[0] in PROGRAMS if text.strip() else False


def _quoted(page: str, first: int, prose: str, before: str) -> Iterator[Command]:
    """Those within the sentences that begin on the line `first`."""
    for match in SPAN.finditer(prose):
        text = " ".join(match[1].split())
        if _is_command(text):
            line = first + prose[:match.start()].count("\n")
            yield Command(page, line, text, "", True, before + prose[:match.end()])


def commands(path: Path) -> list[Command]:
    """The command lines of a page: in blocks that are indented or have no kind, and in quotes."""
    found: list[Command] = []
    page = str(path.relative_to(ROOT))
    before, prose, fence = "", "", None
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        is_prose = fence is None and line.strip() and not line.startswith(("```", "    "))
        if is_prose:
            prose += line + "\n"
            continue
        first = number - prose.count("\n")
        found += _quoted(page, first, prose, before)
        before, prose = before + prose, ""
        text = COMMENT.sub("", line).strip()
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
        elif fence in (None, "", "sh") and _is_command(text):
            comment = line.strip()[len(text):].strip()
            found.append(Command(page, number, text, comment, False, before))
            before = ""
    return found
