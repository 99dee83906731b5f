"""What a page of docs/ tells people to type: its fenced blocks, by kind and name.

    ```sh join          kind "sh", name "join"
    ```nft hub          kind "nft", name "hub"
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> dict[str, str]:
    """All of that kind in a page, by name; without a name by their order from 0."""
    found: dict[str, str] = {}
    for match in FENCE.finditer((DOCS / page).read_text(encoding="utf-8")):
        if match[1] == kind:
            found[match[2] or str(len(found))] = match[3]
    assert found, f"{page} has no block of kind {kind}"
    return found
