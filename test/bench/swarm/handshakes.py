"""Handshakes answered each second by one core, alone and beside a stream at full rate.

The answering end has one core to itself, for handshakes and data alike; its other end, the
stream's two ends and the many initiators (bench-swarm.c) share the others. The initiators have made
all their messages before the clock starts, and go before everything else there, so that they never
are what is waited for.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Daemon, Lab
from swarm import SWARM, swarm_lab
from tunnel import Tunnel, cpu_s

PAUSE_S = 0.3  # between bench-swarm's saying that it begins and its beginning


@contextmanager
def core_set_aside() -> Iterator[int]:
    """A core that nothing started from here runs on, unless it is moved there."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("handshakes: two cores are needed, one for the answering end alone")
    os.sched_setaffinity(0, cores[:-1])
    try:
        yield cores[-1]
    finally:
        os.sched_setaffinity(0, cores)


class Answerer:
    """A tunnel whose far end is alone on @core and knows @n more peers."""

    def __init__(self, name: str, number: int, n: int, core: int, lab: Lab, scratch: Path) -> None:
        self._tunnel = tunnel = Tunnel(name, number, lab)
        self._n = n
        self._target = f"{tunnel.b.address()}:{51820 + number}"
        config = scratch / f"{name}.conf"
        config.write_text(tunnel.a.run([SWARM, "config", n], quiet=True).out)
        tunnel.b.run(["wg", "addconf", tunnel.far.interface, config], timeout_s=60)
        for task in Path(f"/proc/{tunnel.far.daemon.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {core})

    def received_bytes(self) -> int:
        path = f"/sys/class/net/{self._tunnel.far.interface}/statistics/rx_bytes"
        return int(self._tunnel.b.run(["cat", path], quiet=True).out)

    def stream(self) -> Daemon:
        """To the answering end, until it is stopped."""
        return self._tunnel.a.spawn(["iperf3", "--client", self._tunnel.address, "--time", 3600],
                                    name=f"stream-{self._tunnel.name}", allow=[".*"])

    def data_gbps(self, seconds: float) -> float:
        before = self.received_bytes()
        time.sleep(seconds)
        return (self.received_bytes() - before) * 8 / 1e9 / seconds

    def greet(self) -> dict[str, float]:
        """All peers, once: handshakes for each second, and for each of CPU time; data meanwhile."""
        swarm = self._tunnel.a.spawn(
            ["nice", "-n", "-10", SWARM, "run", self._n, self._tunnel.far.public_key, self._target,
             1], name=f"swarm-{self._tunnel.name}")
        swarm.wait_line("^greet$", 120)
        time.sleep(PAUSE_S)
        before = self.received_bytes(), cpu_s([self._tunnel.far.daemon])
        step = json.loads(swarm.wait_line('.*"step": "greet".*', 120)[0])
        received = self.received_bytes() - before[0]
        used = cpu_s([self._tunnel.far.daemon]) - before[1]
        swarm.wait(60)
        if step["answered"] < self._n:
            raise SystemExit(f"{self._tunnel.name} answered {step['answered']} of {self._n}")
        return {"perSecond": self._n / step["seconds"], "perCpuSecond": self._n / used,
                "dataGbps": received * 8 / 1e9 / step["seconds"]}

    def stop(self) -> None:
        for process in self._tunnel.processes:
            process.stop()


def measure(names: list[str], n: int, seconds: float) -> dict[str, dict[str, float]]:
    """The figures of each implementation with @n peers; its data's rate alone over @seconds."""
    figures = {}
    with core_set_aside() as core, swarm_lab() as (lab, scratch):
        for number, name in enumerate(names):
            answerer = Answerer(name, number, n, core, lab, scratch)
            alone = answerer.greet()
            stream = answerer.stream()
            time.sleep(1)  # its slow start
            data_gbps = answerer.data_gbps(seconds)
            beside = answerer.greet()
            stream.stop()
            answerer.stop()
            figures[name] = {
                "handshakesPerSecondAlone": alone["perSecond"],
                "handshakesPerCpuSecond": alone["perCpuSecond"],
                "handshakesPerSecondBesideData": beside["perSecond"],
                "dataBesideHandshakesGbps": beside["dataGbps"],
                "dataAloneGbps": data_gbps,
            }
    return figures
