"""What the interop tests share: labs with a stock kernel in a virtual machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab

from interop.vm import image
from interop.vm.kernelvm import KernelVm

PAIR = """
switch s 192.0.2.0/24 2001:db8::/64
host k
host u
link k s 192.0.2.1 2001:db8::1
link u s 192.0.2.2 2001:db8::2
"""


@pytest.fixture(scope="module")
def kernel_vm() -> Iterator[KernelVm]:
    """A stock kernel as `k` of a lab, with a host `u` beside it; booted once for each file."""
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    with Lab.from_text(PAIR) as lab, KernelVm(lab.host("k")) as vm:
        yield vm
