"""While all is well nothing is found: six nodes at rest, and then under full load, on busy cores.

    hub, and n1 to n6, each with its agent and its probe; a job on n1 and n2

WEFT_SOAK_S says for how long each; `make soak` takes an hour. That this machine's cores are full,
and what follows from that on the machine itself, may be found.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

SOAK_S = int(os.environ.get("WEFT_SOAK_S", "180"))
NODES = tuple(f"n{i}" for i in range(1, 7))
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, **{name: 20 + i
                                                         for i, name in enumerate(NODES)}})
# What is a machine's own: its cores are full, and so it does not get to its sockets in time.
MACHINE = {"WEFT-CPU-001", "WEFT-UDP-003", "WEFT-NIC-003", "WEFT-TCP-001", "WEFT-OFFLOAD-001"}
# Ranks 0 and 1 send each other a block by turns, for ever.
JOB = """
import os, socket, time
at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
block = bytes(65536)
if os.environ["RANK"] == "0":
    server = socket.create_server(at)
    print("it runs", flush=True)
    other, _ = server.accept()
else:
    while True:
        try:
            other = socket.create_connection(at)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    other.sendall(block)
while True:
    other.recv(len(block), socket.MSG_WAITALL)
    time.sleep(0.05)
    other.sendall(block)
"""


class Mesh:
    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.site = Site(lab, weft, versions=(4,))
        self.site.join(*NODES, allow=dict.fromkeys(NODES, [HUB_AWAY]))
        for name in NODES:
            lab.host(name).spawn([weft, "probe", "--report"], name="probe",
                                 allow=["does not answer", "hub"])
        self.site.wait_paths({(a, b): {"lan", "direct"} for a in NODES for b in NODES if a < b}, 60)
        self.jobs = [
            lab.host(name).spawn([weft, "run", "--nnodes", "2", "--job", "soak", "--",
                                  "/usr/bin/python3", "-c", JOB], name="job", allow=[""])
            for name in NODES[:2]]
        wait_for(lambda: any("it runs" in "\n".join(job.lines()) for job in self.jobs), 60,
                 "the job to run")
        wait_for(lambda: not self.found(), 60, "nothing to be found")

    def found(self) -> dict[tuple[str, str], str]:
        answer = json.loads(self.site.hub.run([self.weft, "get", "findings", "--json"],
                                              quiet=True).out)
        return {(one["code"], one["subject"]): one["text"] for one in answer["findings"]
                if one["code"] not in MACHINE}

    def watch(self, for_s: float) -> dict[tuple[str, str], str]:
        """What is found in that time."""
        seen: dict[tuple[str, str], str] = {}
        until = time.monotonic() + for_s

        def is_over() -> bool:
            seen.update(self.found())
            return time.monotonic() >= until

        wait_for(is_over, for_s + 60, f"{for_s:g} s to pass")
        return seen


@pytest.fixture(scope="module")
def mesh(weft: Path) -> Iterator[Mesh]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Mesh(lab, weft)


def test_at_rest(mesh: Mesh) -> None:
    assert mesh.watch(SOAK_S) == {}


def test_under_full_load(mesh: Mesh) -> None:
    """Each node sends to the next one what the cores can do, beside a busy loop on each core."""
    busy = [mesh.site.hub.spawn(["nice", "sh", "-c", "while :; do :; done"], name="busy")
            for _ in range(os.cpu_count() or 1)]
    flows = []
    for name, other in zip(NODES, (*NODES[1:], NODES[0]), strict=True):
        server = mesh.lab.host(other).spawn(["nice", "iperf3", "-s", "-1", "--forceflush"],
                                            name="iperf-server")
        server.wait_line("listening")
        flows.append(mesh.lab.host(name).spawn(
            ["nice", "iperf3", "-t", SOAK_S, "-i", "10", "--forceflush", "-c",
             mesh.site.nodes[other].address()], name="iperf"))
    assert mesh.watch(SOAK_S) == {}
    for flow in flows:
        wait_for(lambda f=flow: not f.running, 60, "the flows to end")
        print("FIGURE", flow.name, next(line for line in reversed(flow.lines())
                                        if "receiver" in line))
    for loop in busy:
        loop.stop()
    assert all(job.running for job in mesh.jobs)
