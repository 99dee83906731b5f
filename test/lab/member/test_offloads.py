"""On a kernel without offloads everything works, and the log, the metrics and the status say why.

    hub        203.0.113.10
     |
   [ wan ]
    |   |
   n1   n2     203.0.113.11, .12
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.test_wg_life import is_instrumented
from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.stock_mesh import ask
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
REASONS = {
    "udp-gso": "the kernel refuses it: Protocol not available",
    "udp-gro": "the kernel refuses it: Protocol not available",
    "tso": "the kernel refuses it: Invalid argument",
    "uso": "the kernel refuses it: Invalid argument",
}
SIZE = 4 << 20


def test_a_kernel_without_offloads(weft: Path, monkeypatch: pytest.MonkeyPatch):
    if is_instrumented(weft.with_name("weft-wg")):
        pytest.skip("a sanitizer wants to be loaded first itself")
    refuser = weft.parent / "test/lab/refuser/refuser.so"
    assert refuser.exists(), f"{refuser} is built with the program"
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        monkeypatch.setenv("LD_PRELOAD", str(refuser))
        site = Site(lab, weft)
        n1, n2 = site.join("n1", "n2")
        n1.reaches(n2)

        # What is lost is only speed.
        n2.host.spawn(["iperf3", "--server"])
        client = ["iperf3", "--client", n2.address(), "--bytes", SIZE]
        wait_for(lambda: n1.host.run(client, check=False, timeout_s=30).rc == 0, 30, "a transfer")

        told = n1.status()["self"]["offloads"]
        assert {each["name"]: each["why"] for each in told if not each["on"]} == REASONS
        assert ("WEFT-OFFLOAD-001", "n1") in n1.found("note")
        table = n1.host.run([weft, "status"], quiet=True).out
        metrics = ask(site.hub, "GET", "http://hub/v1/metrics", socket="/run/weft/hub.sock")
        for name, why in REASONS.items():
            said = f"the offload {name} is off: {why}"
            assert said in table
            assert any(said in line for line in n1.agent.lines())
            assert any(said in line for line in site.daemon.lines())
            assert f'offload="{name}",why="{why}"}} 0' in metrics
