"""Faults of a machine's devices, one at a time, with files in the place of what its kernel counts.

The network is that of net.py. On b these stand in /sys and /proc: a fabric port, a network card,
how much its cores are taken, how hot they are, and what its control group was held back. A machine
is looked at each minute, and what is counted in one minute is over with the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab

from .net import QUARTET, Net, fault

pytestmark = pytest.mark.namespaces

MINUTES_S = 140
VERBS = "/sys/class/infiniband/mlx5_0"
PORT = f"{VERBS}/ports/1"
CARD = "/sys/class/net/ice0/statistics"
HOT = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
GROUP = "/sys/fs/cgroup/cpu.stat"
STAT = "/proc/stat"
WELL = {
    f"{PORT}/state": "4: ACTIVE", f"{PORT}/link_layer": "InfiniBand",
    f"{PORT}/counters/symbol_error": "0", f"{PORT}/counters/link_downed": "0",
    f"{CARD}/rx_packets": "1000000", f"{CARD}/rx_missed_errors": "0",
    f"{CARD}/rx_crc_errors": "0", HOT: "0", GROUP: "nr_periods 0\nthrottled_usec 0",
    STAT: "cpu  1000 0 1000 100000 0 0 0 0 0 0",
}
# Files of a kind cannot be made there, so each folder is another one.
STAND_IN = """
set -e
mkdir -p /run/class/net/ice0/device
cp -a /sys/class/net/. /run/class/net/
mount --bind /run/class /sys/class
mount -t tmpfs none /sys/devices/system/cpu/cpu0
mount -t tmpfs none /sys/fs/cgroup
cat /proc/stat > /run/stat
mount --bind /run/stat /proc/stat
"""


def put(host: Host, files: dict[str, str]) -> None:
    for path, text in files.items():
        host.run(["sh", "-c", 'mkdir -p "${1%/*}"; cat > "$1"', "-", path], stdin=text + "\n",
                 quiet=True)


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        lab.host("b").run(["sh", "-c", STAND_IN], quiet=True)
        put(lab.host("b"), WELL)
        made = Net(lab, weft)
        made.nodes["b"].agent.allow(".*")
        yield made


@pytest.mark.parametrize(("code", "files", "said"), [
    ("WEFT-FABRIC-002", {f"{PORT}/state": "1: DOWN"}, r"The port mlx5_0/1 of b is not active"),
    ("WEFT-FABRIC-003", {f"{PORT}/counters/symbol_error": "7"},
     r"The port mlx5_0/1 of b has counted 7 errors in \d+ s"),
    ("WEFT-NIC-001", {f"{CARD}/rx_packets": "1100000", f"{CARD}/rx_missed_errors": "500"},
     r"The network card ice0 of b has dropped 500 of \d+ packets"),
    ("WEFT-NIC-002", {f"{CARD}/rx_packets": "1200000", f"{CARD}/rx_crc_errors": "50"},
     r"The network card ice0 of b has got 50 damaged packets of \d+"),
    ("WEFT-CPU-002", {GROUP: "nr_periods 600\nthrottled_usec 9000000"},
     r"Weft's control group on b was held back for 9\.0 of the last \d+ s"),
    ("WEFT-CPU-003", {HOT: "3"}, r"Cores of b were slowed down 3 times in \d+ s"),
])
def test_what_is_counted(net: Net, code: str, files: dict[str, str], said: str) -> None:
    with fault(net, code, "b", MINUTES_S, over_s=150) as found:
        put(net.lab.host("b"), files)
        assert re.match(said, found()["text"])
        put(net.lab.host("b"), {f"{PORT}/state": WELL[f"{PORT}/state"]})


def test_cores_that_are_full(net: Net) -> None:
    with fault(net, "WEFT-CPU-001", "b", MINUTES_S, over_s=150) as found:
        put(net.lab.host("b"), {STAT: "cpu  12000 0 2000 100100 0 0 0 0 0 0"})
        assert re.match(r"The cores of b were idle for 0\.8 % of the last \d+ s", found()["text"])


def test_a_fabric_device_that_is_gone(net: Net) -> None:
    b = net.lab.host("b")
    with fault(net, "WEFT-FABRIC-001", "b", MINUTES_S, over_s=150) as found:
        b.run(["mv", VERBS, "/run/mlx5_0"], quiet=True)
        assert "The fabric device mlx5_0/1 of b is gone" in found()["text"]
        b.run(["mv", "/run/mlx5_0", VERBS], quiet=True)
