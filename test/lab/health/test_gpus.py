"""What a node finds of its GPUs, by a stand-in for NVIDIA's library (test/lab/nvml).

    hub 203.0.113.10 and n1 on .11

Memory errors, a fault (Xid) while a program computes, a GPU that falls off the bus, a driver that
is unloaded: each is named by `weft status` and `weft doctor`, and told to Prometheus.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support import ROOT
from lab.support.agents import AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11})
# Landlock lets an agent read there; and each machine has its own.
FOLDER = "/run/nvml"
# From a fault to its finding: GPUs are asked each minute.
BOUND_S = 90
METRIC = re.compile(r"^\| `(weft_agent_gpu_\w+)` \|", re.MULTILINE)


class Gpus:
    """A machine with two GPUs, of which a program uses the first."""

    def __init__(self, node: AgentNode) -> None:
        self.node = node

    def say(self, *lines: str) -> None:
        """In one step: it may be read at any time."""
        self.node.host.run(["sh", "-c", f"cat > {FOLDER}/new && mv {FOLDER}/new {FOLDER}/state"],
                           stdin="".join(line + "\n" for line in lines), quiet=True)

    def found(self) -> dict[str, str]:
        return {one["code"]: one["text"] for one in self.node.status()["findings"]
                if one["code"].startswith("WEFT-GPU-")}

    def wait(self, what: str, *codes: str) -> dict[str, str]:
        since = time.monotonic()
        wait_for(lambda: set(self.found()) == set(codes), BOUND_S, what)
        print(f"FIGURE {what}: found after {time.monotonic() - since:.1f} s")
        return self.found()


def metrics(node: AgentNode) -> str:
    return node.host.run(["curl", "-s", "--unix-socket", "/run/weft/agent.sock",
                          "http://weft/v1/metrics"], quiet=True).out


def test_gpus(weft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = weft.parent / "test/lab/nvml/libnvidia-ml.so.1"
    assert library.exists(), f"{library} is built with the program"
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        host = lab.host("n1")
        host.run(["mkdir", FOLDER])
        host.run(["cp", library, FOLDER])
        gpus = Gpus(AgentNode(host, weft))
        gpus.say("driver 550.54.15", "gpu 3b 65000 95 2 0", "gpu 5e 0 0 0 0")
        monkeypatch.setenv("LD_LIBRARY_PATH", FOLDER)
        [gpus.node] = site.join("n1")

        # The look takes longer while a program computes, but for the first fault.
        gpus.say("driver 550.54.15", "gpu 3b 65000 95 2 0", "gpu 5e 0 0 0 0", "xid 5e 74")
        found = gpus.wait("memory errors and a fault", "WEFT-GPU-004", "WEFT-GPU-005")
        assert "0000:3b:00.0 (2)" in found["WEFT-GPU-004"]
        assert "0000:5e:00.0 Xid 74 (an error of NVLink)" in found["WEFT-GPU-005"]
        doctor = gpus.node.run("doctor", check=False)
        assert doctor.rc == 2 and "WEFT-GPU-005" in doctor.out
        text = metrics(gpus.node)
        assert 'weft_agent_gpu_use_ratio{gpu="0000:3b:00.0"} 0.95\n' in text
        assert 'weft_agent_gpu_uncorrected_errors{gpu="0000:3b:00.0"} 2\n' in text
        assert 'weft_agent_gpu_fault{gpu="0000:5e:00.0",xid="74"} 1\n' in text
        listed = (ROOT / "docs/METRICS.md").read_text(encoding="utf-8")
        assert set(re.findall(r"^# TYPE (weft_agent_gpu_\w+) ", text, re.MULTILINE)) == \
            set(METRIC.findall(listed))

        # One is gone, and what it has reported before follows from that.
        gpus.say("driver 550.54.15", "gpu 3b 0 0 0 0")
        found = gpus.wait("a GPU that is gone", "WEFT-GPU-001")
        assert found["WEFT-GPU-001"].startswith("0000:5e:00.0 (NVIDIA Stand-in) of n1 is gone")

        # The agent goes on, whatever becomes of the driver.
        gpus.say("init 9")
        found = gpus.wait("a driver that was unloaded", "WEFT-GPU-002", "WEFT-GPU-005")
        assert "version 550.54.15, is gone: it is not loaded" in found["WEFT-GPU-002"]
        assert not re.search(r"^weft_agent_gpu_use", metrics(gpus.node), re.MULTILINE)


def test_a_machine_without_gpus(weft: Path) -> None:
    """Nothing is said of any."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        [n1] = site.join("n1")
        wait_for(lambda: "weft_agent_peers " in metrics(n1), 20, "metrics")
        assert "weft_agent_gpu" not in metrics(n1)
        said = json.loads(n1.run("doctor", "--json", check=False).out)
        assert not [one for one in said["findings"] if one["code"].startswith("WEFT-GPU-")]
