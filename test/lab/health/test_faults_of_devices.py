"""Faults of a node's network card, processor and fabric port, one at a time: what is found of each,
and that nothing else is.

The network is that of net.py. What the kernel counts of b's devices is said by files in its place
(support/devices.py). A machine is looked at each minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lab import Lab
from lab.support.devices import VERBS, Devices

from .net import QUARTET, Net, fault

pytestmark = pytest.mark.namespaces

# A finding needs two samples, which are a minute apart, and is over with the next one.
MINUTES_S = 140
ANY = [".*"]
NIC, CORE, GROUPS = "devices/virtual/net/wan", "devices/system/cpu/cpu0", "fs/cgroup"
# Since the machine's start.
CARD = {"rx_packets": 5_000_000, "tx_packets": 5_000_000, "rx_missed_errors": 40,
        "rx_crc_errors": 3}


class DeviceNet(Net):
    """In which b has a network card, a core and a fabric port that count what they are told to."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.devices = Devices(lab.host("b"))
        for folder in (NIC, CORE, GROUPS):
            self.devices.replace(folder)
        self.devices.say(f"{NIC}/device", {"numa_node": 0})
        self.card = dict(CARD)
        self.count_packets()
        self.slow_down(0)
        self.hold_back(0)
        self.devices.add_port("mlx5_0")
        super().__init__(lab, weft)
        for node in self.nodes.values():
            node.agent.allow(*ANY)

    def count_packets(self, **more: int) -> None:
        for name, n in more.items():
            self.card[name] += n
        self.devices.say(f"{NIC}/statistics", self.card)

    def slow_down(self, times: int) -> None:
        self.devices.say(CORE, {"thermal_throttle/core_throttle_count": 7 + times})

    def hold_back(self, seconds: int) -> None:
        """The control group of the agent, which is the tests' own."""
        [group] = [line[3:].rstrip("/")
                   for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
                   if line.startswith("0::")]
        self.devices.say(GROUPS + group, {
            "cpu.stat": f"usage_usec 900000000\nthrottled_usec {250_000 + seconds * 1_000_000}"})

    def set_port(self, files: Mapping[str, object]) -> None:
        self.devices.say(f"{VERBS}/mlx5_0/ports/1", files)


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[DeviceNet]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        yield DeviceNet(lab, weft)


def test_a_network_card_that_drops_packets(net: DeviceNet) -> None:
    with fault(net, "WEFT-NIC-001", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.count_packets(rx_packets=100_000, rx_missed_errors=900)
        said = found()
        assert said["about"] == "node" and said["severity"] == "warning"
        assert "The network card wan of b has dropped 900 of 100900 packets in " in said["text"]


def test_a_cable_that_is_bad(net: DeviceNet) -> None:
    with fault(net, "WEFT-NIC-002", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.count_packets(rx_packets=100_000, rx_crc_errors=60)
        assert ("The network card wan of b has got 60 damaged packets of 100060 in "
                in found()["text"])


def test_a_quota_of_processor_time(net: DeviceNet) -> None:
    with fault(net, "WEFT-CPU-002", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.hold_back(20)
        assert ("Weft's control group on b was held back for 20.0 of the last "
                in found()["text"])


def test_a_core_that_is_hot(net: DeviceNet) -> None:
    with fault(net, "WEFT-CPU-003", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.slow_down(12)
        assert "Cores of b were slowed down 12 times in " in found()["text"]


def test_a_fabric_port_with_errors(net: DeviceNet) -> None:
    with fault(net, "WEFT-FABRIC-003", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.set_port({"counters/symbol_error": 31})
        assert "The port mlx5_0/1 of b has counted 31 errors in " in found()["text"]


def test_a_fabric_port_that_is_down(net: DeviceNet) -> None:
    with fault(net, "WEFT-FABRIC-002", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.set_port({"state": "1: DOWN", "counters/link_downed": 1})
        said = found()
        assert said["severity"] == "critical"
        assert said["text"] == "The port mlx5_0/1 of b is not active any more."
        net.set_port({"state": "4: ACTIVE"})


def test_a_fabric_device_that_is_gone(net: DeviceNet) -> None:
    """Its driver was unloaded."""
    with fault(net, "WEFT-FABRIC-001", "b", MINUTES_S, over_s=MINUTES_S) as found:
        net.devices.take_away(f"{VERBS}/mlx5_0")
        said = found()
        assert said["severity"] == "critical"
        assert "The fabric device mlx5_0/1 of b is gone: " in said["text"]
        net.devices.put_back(f"{VERBS}/mlx5_0")
