"""What a running lab writes down, so that another process can enter it or end it.

The folder /run/weft-lab/TAG holds it; making that folder is what claims the tag.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .process import end_tagged

FOLDER = Path("/run/weft-lab")
TAG = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


class RecordError(Exception):
    """There is no such lab, or there is one already."""


@dataclass
class Record:
    """One running lab."""

    tag: str
    topology: str = ""  # the text of its topology file
    source: str = ""  # where that text came from
    logs: str = ""
    # Holder process of each machine: its pid, and its start time, which tells it from another
    # process that got the same pid later.
    machines: dict[str, tuple[int, int]] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)  # link name -> interface in the fabric

    @property
    def folder(self) -> Path:
        return FOLDER / self.tag

    @classmethod
    def claim(cls, tag: str) -> Record:
        """Take the tag for a new lab."""
        check_tag(tag)
        record = cls(tag)
        try:
            record.folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise RecordError(f"lab {tag} exists already; end it with: lab.py down {tag}") from None
        return record

    @classmethod
    def read(cls, tag: str) -> Record:
        check_tag(tag)
        try:
            text = (FOLDER / tag / "lab.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            raise unknown(tag) from None
        return cls(**json.loads(text))

    def write(self) -> None:
        path = self.folder / "lab.json"
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")
        draft.rename(path)


def check_tag(tag: str) -> None:
    if not TAG.fullmatch(tag):
        raise RecordError(f"the tag {tag!r} is not 1 to 31 of a-z, 0-9 and '-'")


def unknown(tag: str) -> RecordError:
    return RecordError(f"there is no lab {tag}; there are: {', '.join(tags()) or 'none'}")


def tags() -> list[str]:
    """The labs that run, or that somebody left behind."""
    return sorted(path.name for path in FOLDER.iterdir()) if FOLDER.is_dir() else []


def erase(tag: str) -> None:
    """End every process of a lab, and with them its namespaces, and forget it."""
    check_tag(tag)
    end_tagged(tag)
    shutil.rmtree(FOLDER / tag, ignore_errors=True)
