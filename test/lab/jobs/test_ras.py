"""Which rank has not started what the others wait for, by NCCL's RAS, as `weft jobs` says it.

    hub 203.0.113.10, and n1 to n3 on .11 to .13, which send each other a block in a ring

There is no GPU in the lab, so the job speaks RAS' protocol itself: rank 0 answers on
localhost:28028, as the thread of NCCL does, with what each rank says that it has started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.support.agents import Site
from lab.support.held_up import HeldUp, descendants, in_lab, words_of
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113",
                      {"hub": 10, **{name: 11 + i for i, name in enumerate(NODES)}})
# A node whose file is there goes on to read, as NCCL's proxies do, and starts nothing.
SCRIPT = """
import json, os, socket, socketserver, threading, time, sys

folder, *addresses = sys.argv[1:]
me = int(os.environ["WEFT_NODE"][1:]) - 1
BLOCK = 1 << 18
started = 0

def publish():
    with open(f"{folder}/next-{me}", "w", encoding="ascii") as file:
        json.dump({"pid": os.getpid(), "started": started}, file)
    os.rename(f"{folder}/next-{me}", f"{folder}/rank-{me}")

def ranks():
    for rank, address in enumerate(addresses):
        with open(f"{folder}/rank-{rank}", encoding="ascii") as file:
            said = json.load(file)
        yield rank, address, said["pid"], said["started"]

def status():
    here, missing = [], []
    for rank, address, pid, n in ranks():
        said = {"rank": rank, "host": address, "pid": pid, "cuda_dev": 0, "nvml_dev": 0}
        if os.path.exists(f"{folder}/silent-{rank}"):
            missing.append({**said, "status": {"unresponsive": True, "considered_dead": False}})
            continue
        here.append({**said, "status": {
            "init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
            "abort_flag": False}, "collective_counts": {
            "Broadcast": 3, "AllReduce": n, "Send": rank, "Recv": 7}})
    return json.dumps({"nccl_version": "2.29.7", "communicators_count": 1, "communicators": [{
        "hash": "0x1", "secondary_hash": "0x2:0x3", "size": len(addresses),
        "ranks_count": len(here), "missing_ranks_count": len(missing), "ranks": here,
        "missing_ranks": missing}],
        "ras": {"collection_time_sec": 0.001, "timeouts_count": 0}}, indent=2) + "\\n"

class Ras(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.decode().strip().lower()
            if words.startswith("client protocol "):
                self.wfile.write(b"SERVER PROTOCOL 2\\n")
            elif words.startswith("timeout ") or words == "set format json":
                self.wfile.write(b"OK\\n")
            elif words == "verbose status":
                self.wfile.write(status().encode())
                return
            else:
                self.wfile.write(b"ERROR: Unknown command " + line)

server = socket.create_server((addresses[me], 7200))
while True:
    try:
        following = socket.create_connection((addresses[(me + 1) % len(addresses)], 7200))
        break
    except OSError:
        time.sleep(0.1)
previous, _ = server.accept()
publish()
if me == 0:
    ras = socketserver.ThreadingTCPServer(("127.0.0.1", 28028), Ras)
    threading.Thread(target=ras.serve_forever, daemon=True).start()
print("it runs", flush=True)
space = bytearray(1 << 24)
had = 0
while True:
    while os.path.exists(f"{folder}/n{me + 1}"):
        previous.settimeout(0.5)
        try:
            had += previous.recv_into(space)
        except TimeoutError:
            pass
    previous.settimeout(None)
    started += 1
    publish()
    sender = threading.Thread(target=following.sendall, args=(bytes(BLOCK),))
    sender.start()
    while had < started * BLOCK:
        had += previous.recv_into(space)
    sender.join()
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
                script, folder, *addresses]
        super().__init__(site, "ring", {
            name: site.nodes[name].host.spawn(argv, name="ring", allow=[""]) for name in NODES})

    def rank(self, node: str) -> int:
        [pid] = [pid for pid in descendants(self.commands[node].pid) if "ring.py" in words_of(pid)]
        return pid


@pytest.fixture(scope="module")
def ring(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    with in_lab(Ring, weft, TOPOLOGY, NODES, tmp_path_factory.mktemp("ring"), WELL_S) as ring:
        yield ring


def test_a_rank_that_has_not_started(ring: Ring) -> None:
    """WEFT-NCCL-007 in place of a job that is stuck, and nobody knows why."""
    (ring.folder / "n2").touch()
    found = ring.wait_named("a rank that is behind", "WEFT-NCCL-007", "ring/n2")
    pid = ring.rank("n2")
    assert re.fullmatch(rf"rank 1 of 3 on n2, process {pid} has not started AllReduce number \d+, "
                        r"for which 2 others wait; no rank starts anything", found["text"]), found
    assert found["severity"] == "critical"
    (ring.folder / "n2").unlink()
    ring.wait_mended("a rank that is behind")
    ring.wait_well(10)


def test_a_rank_that_does_not_answer(ring: Ring) -> None:
    (ring.folder / "silent-2").touch()
    (ring.folder / "n3").touch()
    found = ring.wait_named("a rank that is silent", "WEFT-NCCL-008", "ring/n3")
    assert found["text"] == (f"rank 2 of 3 on n3, process {ring.rank('n3')} does not answer NCCL, "
                             "and no rank starts anything")
    (ring.folder / "n3").unlink()
    (ring.folder / "silent-2").unlink()
    ring.wait_mended("a rank that is silent")
    ring.wait_well(10)
