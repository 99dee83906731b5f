"""What the checkers share: the tree's files, C code without comments, and the closing report."""
import argparse
import pathlib
import re
import sys

# A comment, a string or a character constant; what is left is code.
_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

# A body between braces in column one, which only functions have here.
BODY = re.compile(r"^(?!struct|union|enum|static const struct)\w[^;{}#]*?\n\{\n((?:(?!\}).*\n)*)\}",
                  re.MULTILINE)


def root_argument(description):
    """The tree to check: the first argument, or the one that this file lies in."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    return parser.parse_args().root


def files(root, folders, suffixes):
    """The files of these kinds below the named folders, sorted."""
    return sorted(p for folder in folders for p in (root / folder).rglob("*")
                  if p.suffix in suffixes and p.is_file() and "__pycache__" not in p.parts)


def c_files(root):
    """Every C source and header below src/ and test/."""
    return files(root, ["src", "test"], {".c", ".h"})


def blank(text):
    """@text with the same length and lines, comments and the contents of strings made spaces."""
    def spaces(match):
        kept = re.sub(r"[^\n]", " ", match.group())
        return kept if match.group()[0] == "/" else match.group()[0] + kept[2:] + match.group()[-1]
    return _NOT_CODE.sub(spaces, text)


def line_of(text, offset):
    """The number of the line, from 1, that holds @offset."""
    return text.count("\n", 0, offset) + 1


def is_test(path):
    """Is this a test or a fuzz target, to which the rules for the program do not apply?"""
    return path.name.startswith(("test-", "fuzz-")) or "test" in path.parts


def report(findings, summary):
    """Prints the findings and exits with 1, or prints the one-line summary and exits with 0."""
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(1)
    print(summary)
    sys.exit(0)
