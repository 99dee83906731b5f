"""Faults of a node's GPUs, one at a time: what is found of each, and that nothing else is.

The network is that of net.py. b has a GPU, by a stand-in for NVIDIA's library (test/lab/nvml), and
a fabric port, by files in the place of the kernel's (support/devices.py). GPUs are asked each
minute; test_gpus.py has what is found of one that is gone, or has bad memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.devices import Devices

from .net import QUARTET, Net, fault

pytestmark = pytest.mark.namespaces

ANY = [".*"]
# Landlock lets an agent read there; and each machine has its own.
FOLDER = "/run/nvml"
PCI = "bus/pci/devices"
# A look takes 45 s while a program uses a GPU.
MINUTES_S = 140
# Of what may be so by chance in one sample a finding needs two.
TWO_LOOKS_S = 240
DRIVER, IDLE, BUSY_GPU = "driver 550.54.15", "gpu 3b 0 0 0 0", "gpu 3b 65000 55 0 0"
MISMATCH = "init 18"
LINE_MBIT = 20


class GpuNet(Net):
    """In which b has a GPU."""

    def __init__(self, lab: Lab, weft: Path, library: Path) -> None:
        self.machine = lab.host("b")
        self.machine.run(["mkdir", FOLDER], quiet=True)
        self.machine.run(["cp", library, FOLDER], quiet=True)
        self.devices = Devices(self.machine)
        self.devices.replace(PCI)
        self.put_gpu_at(0)
        self.devices.add_port("mlx5_0")
        self.say(DRIVER, IDLE)
        super().__init__(lab, weft)
        for node in self.nodes.values():
            node.agent.allow(*ANY)

    def say(self, *lines: str) -> None:
        """In one step: it may be read at any time."""
        self.machine.run(["sh", "-c", f"cat > {FOLDER}/new && mv {FOLDER}/new {FOLDER}/state"],
                         stdin="".join(line + "\n" for line in lines), quiet=True)

    def put_gpu_at(self, numa_node: int) -> None:
        self.devices.say(f"{PCI}/0000:3b:00.0", {"numa_node": numa_node})


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[GpuNet]:
    library = weft.parent / "test/lab/nvml/libnvidia-ml.so.1"
    assert library.exists(), f"{library} is built with the program"
    with pytest.MonkeyPatch.context() as patch, Lab.from_text(QUARTET, capture=False) as lab:
        patch.setenv("LD_LIBRARY_PATH", FOLDER)
        yield GpuNet(lab, weft, library)


def test_a_driver_that_was_upgraded(net: GpuNet) -> None:
    """Its packages were, and the machine was not started anew."""
    with fault(net, "WEFT-GPU-003", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.say(DRIVER, IDLE, MISMATCH)
        said = found()
        assert said["about"] == "node" and said["severity"] == "warning"
        assert said["text"].startswith("On b the library of the GPUs' driver is of another ")
        net.say(DRIVER, IDLE)


def test_a_gpu_far_from_the_network(net: GpuNet) -> None:
    with fault(net, "WEFT-GPU-007", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.put_gpu_at(1)
        said = found()
        assert said["severity"] == "note"
        assert said["text"] == (
            "GPUs of b are at another NUMA node than all its network cards that matter: "
            "0000:3b:00.0 (node 1); mlx5_0/1 (node 0).")
        net.put_gpu_at(0)


def test_a_gpu_that_waits_for_a_line(net: GpuNet) -> None:
    """A program computes on it, while the node's line is full; what leaves on it is counted by the
    kernel."""
    b, sink = net.lab.host("b"), net.lab.host("hub")
    b.run(["ip", "route", "add", "default", "via", sink.address(4)], quiet=True)
    net.devices.set("class/net/wan/speed", LINE_MBIT)
    with fault(net, "WEFT-GPU-008", "b", TWO_LOOKS_S, over_s=TWO_LOOKS_S) as found:
        sink.spawn(["iperf3", "-s", "-1", "--forceflush"], name="sink").wait_line("listening")
        flow = b.spawn(["iperf3", "-c", sink.address(4), "-b", f"{LINE_MBIT + 4}M", "-w", "128K",
                        "-t", "0", "--forceflush"], name="flow")
        net.say(DRIVER, BUSY_GPU)
        said = found()
        assert said["text"].startswith("The GPUs of b that programs use work 55 % of the time, "
                                       "while wan carries ")
        flow.stop()
        net.say(DRIVER, IDLE)


def test_a_fault_that_is_a_program_s_own(net: GpuNet) -> None:
    """It is said for an hour; an agent that is started anew knows nothing of it."""
    with fault(net, "WEFT-GPU-006", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.say(DRIVER, IDLE, "xid 3b 31")
        said = found()
        assert said["severity"] == "warning"
        assert said["text"] == ("GPUs of b have reported faults in the last hour: 0000:3b:00.0 Xid "
                                "31 (a program has used memory that it does not have).")
        net.say(DRIVER, IDLE)
        node = net.nodes["b"]
        node.agent.stop()
        node.start(allow=ANY)
