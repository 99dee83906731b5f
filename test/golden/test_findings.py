"""Each finding is brought about by a test in a lab or a cluster, or here is said why it is not."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r'"(WEFT-[A-Z0-9]+-\d{3})"')
# Names what may be found while all is well.
ALL_WELL = "test_soak.py"
NO_DEVICE = "a lab has no such device, and health-machine has its figures"
NOT_PROVOKED = {
    "WEFT-CLOCK-002": "only the kernel's WireGuard has it, on a machine whose clock may be set",
    "WEFT-CPU-001": "it would take all cores from what runs beside the lab",
    "WEFT-NIC-003": "the kernel has one limit of the backlog for all machines of a lab",
    **dict.fromkeys(("WEFT-CPU-002", "WEFT-CPU-003", "WEFT-FABRIC-001", "WEFT-FABRIC-002",
                     "WEFT-FABRIC-003", "WEFT-NIC-001", "WEFT-NIC-002"), NO_DEVICE),
}


def test_each_is_provoked() -> None:
    codes = set(CODE.findall((ROOT / "src/core/health/finding.h").read_text(encoding="utf-8")))
    provoked = {code for folder in ("lab", "kube")
                for path in (ROOT / "test" / folder).rglob("test_*.py") if path.name != ALL_WELL
                for code in CODE.findall(path.read_text(encoding="utf-8"))}
    assert len(codes) > 50
    assert codes - provoked == NOT_PROVOKED.keys()
    assert provoked <= codes
