"""What the program prints, compared with the files beside this one.

The texts that people and scripts read are kept word for word, so that a change to one of them is
seen in review. `make golden` (GOLDEN_REWRITE=1) writes the files anew; read the diff. The help of
every command and subcommand has a file; a command that goes leaves a file behind, which fails too.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
# Command lines that are wrong, by the name of the file with what is said about them.
MISTAKES = {"no-command": [], "no-such-command": ["wobble"]}


def told(weft: Path, *words: str) -> str:
    """The exit status and the output of one call, as a golden file has them: of no version."""
    done = subprocess.run([weft, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    said = re.sub(r"^weft \d[^:\n]*", "weft VERSION", done.stdout)
    return f"$ weft {' '.join(words)}".rstrip() + f"\n{said}exit status {done.returncode}\n"


def subcommands(text: str) -> list[str]:
    """The names in the indented table that --help prints."""
    return re.findall(r"^  ([a-z][a-z-]*) +\S", text, re.MULTILINE)


def helps(weft: Path) -> dict[str, str]:
    """The help of the program, of each command, and of each command's commands."""
    texts = {"help": told(weft, "--help")}
    for name in subcommands(texts["help"]):
        texts[f"help-{name}"] = told(weft, name, "--help")
        for sub in subcommands(texts[f"help-{name}"]):
            texts[f"help-{name}-{sub}"] = told(weft, name, sub, "--help")
    return texts


def compare(texts: dict[str, str], prefix: str) -> None:
    if os.environ.get("GOLDEN_REWRITE"):
        for old in HERE.glob(f"{prefix}*.txt"):
            old.unlink()
        for name, text in texts.items():
            (HERE / f"{name}.txt").write_text(text)
    kept = {p.stem: p.read_text() for p in HERE.glob(f"{prefix}*.txt")}
    for name in sorted(texts.keys() | kept.keys()):
        assert texts.get(name) == kept.get(name), f"{name}.txt differs; `make golden` rewrites it"


def test_help(weft: Path) -> None:
    compare(helps(weft), "help")


def test_help_of(weft: Path) -> None:
    """The other way to ask for it."""
    for words in (["join"], ["edge", "set"]):
        asked, other = told(weft, *words, "--help"), told(weft, "help", *words)
        assert asked.split("\n", 1)[1] == other.split("\n", 1)[1]


def test_mistakes(weft: Path) -> None:
    compare({f"mistake-{name}": told(weft, *words) for name, words in MISTAKES.items()}, "mistake")


def test_variables(weft: Path) -> None:
    """The table of variables in docs/TRAINING.md is the program's own."""
    document = HERE.parents[1] / "docs/TRAINING.md"
    table = subprocess.run([weft, "env", "--table"], stdout=subprocess.PIPE, text=True, timeout=60,
                           check=True).stdout
    kept = re.search(r"^\| variable \|.*?\n(?=\n|\Z)", document.read_text(), re.M | re.S)
    assert kept
    if os.environ.get("GOLDEN_REWRITE"):
        document.write_text(document.read_text().replace(kept[0], table))
        return
    assert kept[0] == table, "docs/TRAINING.md differs; `make golden` rewrites its table"


def test_version(weft: Path) -> None:
    for words in (["--version"], ["version"], ["-V"]):
        done = subprocess.run([weft, *words], stdout=subprocess.PIPE, text=True, timeout=60,
                              check=True)
        assert re.fullmatch(r"weft \d+\.\d+\.\d+[-+.~0-9a-z]*\n", done.stdout)
        assert len(done.stdout.split()[1]) <= 31, "a hub takes 31 bytes of a node's version"
