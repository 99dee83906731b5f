"""Each finding is brought about by a test in a lab or a cluster, or here is said why it is not."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r'"(WEFT-[A-Z0-9]+-\d{3})"')
# Names what may be found while all is well.
ALL_WELL = "test_soak.py"
# What weft preflight finds is told by its names for it in the lab.
PREFLIGHT = re.compile(r'^    X\(\w+, (\w+), "([\w-]+)"', re.MULTILINE)
ROW = re.compile(r'X\((\w+), "(WEFT-[A-Z0-9]+-\d{3})"')
NOT_PROVOKED = {
    "WEFT-CLOCK-002": "only the kernel's WireGuard has it, on a machine whose clock may be set",
    "WEFT-CPU-001": "it would take all cores from what runs beside the lab",
    "WEFT-NIC-003": "the kernel has one limit of the backlog for all machines of a lab",
    "WEFT-RULE-001": "a kernel of the lab with WireGuard and without nf_tables cannot be had",
    "WEFT-RULE-002": "a hub enforces rules itself where its kernel does not; hub-store-lag has its "
                     "unit test",
}


def table() -> str:
    return "".join(path.read_text(encoding="utf-8")
                   for path in (ROOT / "src/core/health").glob("finding_*.h"))


def by_preflight() -> set[str]:
    """The codes of those of its findings that its labs name."""
    codes = dict(ROW.findall(table()))
    named = "".join(path.read_text(encoding="utf-8")
                    for path in (ROOT / "test/lab/jobs").glob("test_preflight*.py"))
    header = ROOT / "src/control/train/preflight/preflight.h"
    return {codes[row] for row, name in PREFLIGHT.findall(header.read_text(encoding="utf-8"))
            if row in codes and f'"{name}"' in named}


def test_each_is_provoked() -> None:
    codes = set(CODE.findall(table()))
    provoked = {code for folder in ("lab", "kube")
                for path in (ROOT / "test" / folder).rglob("test_*.py") if path.name != ALL_WELL
                for code in CODE.findall(path.read_text(encoding="utf-8"))} | by_preflight()
    assert len(codes) > 50
    assert codes - provoked == NOT_PROVOKED.keys()
    assert provoked <= codes
