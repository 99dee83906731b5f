"""The engine's contract, run where the kernel has WireGuard: both engines pass the same tests.

The unit test `engine-contract` skips the kernel's engine on machines without it; here the same
program runs inside a virtual machine, and skips nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab

from .vm import image
from .vm.kernelvm import MODULES, KernelVm

pytestmark = pytest.mark.namespaces

ALONE = """
switch s 192.0.2.0/24
host k
link k s 192.0.2.1
"""


@pytest.fixture
def contract(weft: Path) -> Path:
    return weft.parent / "src/test-engine-contract"


@pytest.fixture
def machine(contract: Path) -> Iterator[KernelVm]:
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(ALONE) as lab, \
            KernelVm(lab.host("k"), (*MODULES, "tun"), [contract]) as vm:
        yield vm


def test_both_engines(machine: KernelVm, contract: Path) -> None:
    said = machine.run([contract.name], timeout_s=120).out
    assert "PASSED" in said
    assert "SKIPPED" not in said
    assert "skipped" not in said
