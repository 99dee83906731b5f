"""Which rank has not entered the collective operation in which the others wait, and which is in
another one, by PyTorch's flight recorder, as `weft jobs` says it.

    hub 203.0.113.10, and n1 to n3 on .11 to .13, which send each other a block in a ring

There is no GPU in the lab, and Debian's PyTorch has no NCCL, so the ranks are stand-ins that write
records of PyTorch's form when `weft run` asks by the pipe (lab/support/flight.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.support import flight
from lab.support.agents import Site
from lab.support.held_up import HeldUp, in_lab
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113",
                      {"hub": 10, **{name: 11 + i for i, name in enumerate(NODES)}})
# A node whose file is there goes on to read, as NCCL's proxies do, and enters nothing, or something
# else. An operation is over when all ranks have entered the same one, as with NCCL.
SCRIPT = """
import os, socket, sys, threading, time

support, folder, *addresses = sys.argv[1:]
sys.path.insert(0, support)
from flight import Recorder

node = os.environ["WEFT_NODE"]
me = int(node[1:]) - 1
BLOCK = 1 << 18
recorder = Recorder(me, len(addresses))

def enter(number, operation, elements):
    recorder.enter(number, operation, elements)
    with open(f"{folder}/next-{me}", "w", encoding="ascii") as file:
        file.write(f"{number} {operation}")
    os.rename(f"{folder}/next-{me}", f"{folder}/rank-{me}")

def has_entered(rank, number):
    try:
        with open(f"{folder}/rank-{rank}", encoding="ascii") as file:
            entered, operation = file.read().split()
    except OSError:
        return False
    return int(entered) > number or (int(entered) == number and operation == "all_reduce")

server = socket.create_server((addresses[me], 7300))
while True:
    try:
        following = socket.create_connection((addresses[(me + 1) % len(addresses)], 7300))
        break
    except OSError:
        time.sleep(0.1)
previous, _ = server.accept()
print("it runs", flush=True)
space = bytearray(1 << 24)
had = 0

def read_while(name):
    global had
    while os.path.exists(f"{folder}/{name}-{node}"):
        previous.settimeout(0.5)
        try:
            had += previous.recv_into(space)
        except TimeoutError:
            pass
    previous.settimeout(None)

for number in range(1, 1 << 30):
    read_while("away")
    if os.path.exists(f"{folder}/other-{node}"):
        enter(number, "all_gather", BLOCK // 8)
        read_while("other")
    enter(number, "all_reduce", BLOCK // 4)
    sender = threading.Thread(target=following.sendall, args=(bytes(BLOCK),))
    sender.start()
    while had < number * BLOCK:
        had += previous.recv_into(space)
    sender.join()
    while not all(has_entered(rank, number) for rank in range(len(addresses))):
        time.sleep(0.02)
    recorder.complete()
    time.sleep(0.2)
"""
# What a line carries is known after five samples; and so long it is looked that nothing is named.
WELL_S = 30


class Ring(HeldUp):
    def __init__(self, site: Site, weft: Path, folder: Path) -> None:
        self.folder = folder
        script = folder / "ring.py"
        script.write_text(SCRIPT)
        addresses = [site.nodes[name].address() for name in NODES]
        argv = [weft, "run", "--nnodes", len(NODES), "--job", "ring", "--", "/usr/bin/python3",
                script, Path(flight.__file__).parent, folder, *addresses]
        super().__init__(site, "ring", {
            name: site.nodes[name].host.spawn(argv, name="ring", allow=[""]) for name in NODES})


@pytest.fixture(scope="module")
def ring(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    with in_lab(Ring, weft, TOPOLOGY, NODES, tmp_path_factory.mktemp("ring"), WELL_S) as ring:
        yield ring


def test_a_rank_that_has_not_entered(ring: Ring) -> None:
    """WEFT-RANK-007 in place of a job that is stuck, and nobody knows why."""
    (ring.folder / "away-n2").touch()
    found = ring.wait_named("a rank that has not entered", "WEFT-RANK-007", "ring/n2")
    assert re.fullmatch(r"rank 1 of 3 on n2 has not entered all_reduce number \d+ of default_pg "
                        r"\(65536 elements of Float\), in which 2 others wait",
                        found["text"]), found
    assert found["severity"] == "critical"
    (ring.folder / "away-n2").unlink()
    ring.wait_mended("a rank that has not entered")
    ring.wait_well(10)


def test_a_rank_that_is_in_another_operation(ring: Ring) -> None:
    (ring.folder / "other-n3").touch()
    found = ring.wait_named("a rank in another operation", "WEFT-RANK-008", "ring/n3")
    assert re.fullmatch(r"rank 2 of 3 on n3 waits in all_gather number (\d+) of default_pg "
                        r"\(32768 elements of Float\), and 2 others in all_reduce number \1 of "
                        r"default_pg \(65536 elements of Float\)", found["text"]), found
    (ring.folder / "other-n3").unlink()
    ring.wait_mended("a rank in another operation")
    ring.wait_well(10)
