"""Who holds up a job, of a job of plain sockets, as `weft jobs` and the hub's findings say it.

    hub 203.0.113.10, and n1 to n3 on .11 to .13, which send each other a block in a ring

On one node at a time the job sleeps, computes, gets no core, waits for a disk, is in the kernel, or
waits for what nobody sends; and at last its command is killed. Nothing else is named meanwhile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import wait_for
from lab.support.agents import Site
from lab.support.held_up import HeldUp, descendants, in_lab, words_of
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113",
                      {"hub": 10, **{name: 11 + i for i, name in enumerate(NODES)}})
# A node does in each step for three seconds what its file says. Who starts a process waits, and
# cannot be interrupted, until that has opened its files: a pipe stands for a disk that is slow.
SCRIPT = """
import os, socket, subprocess, sys, threading, time

folder, *addresses = sys.argv[1:]
node = os.environ["WEFT_NODE"]
me = int(node[1:]) - 1
BLOCK = 1 << 18
pipe = f"{folder}/pipe-{node}"
os.mkfifo(pipe)
zeroes = os.open("/dev/zero", os.O_RDONLY)
space = bytearray(1 << 24)
server = socket.create_server((addresses[me], 7100))
while True:
    try:
        following = socket.create_connection((addresses[(me + 1) % len(addresses)], 7100))
        break
    except OSError:
        time.sleep(0.1)
previous, _ = server.accept()
print("it runs", flush=True)
had = 0

def take():
    global had
    n = previous.recv_into(space)
    had += n
    if n == 0:  # The one before is gone, and this one waits for ever, as many do.
        time.sleep(3600)

def fault():
    try:
        with open(f"{folder}/{node}", encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return ""

def suffer():
    until = time.monotonic() + 3
    what = fault()
    if what == "sleep":
        time.sleep(3)
    while what == "compute" and time.monotonic() < until:
        pass
    while what == "kernel" and time.monotonic() < until:
        os.readv(zeroes, [space])
    if what == "disk":
        opener = subprocess.Popen(["sh", "-c", f"sleep 3; : > {pipe}"])
        started = os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, pipe, os.O_RDONLY, 0)])
        os.waitpid(started, 0)
        opener.wait()
    while fault() == "stuck":
        previous.settimeout(0.5)
        try:
            take()
        except TimeoutError:
            pass
    previous.settimeout(None)

step = 0
while True:
    suffer()
    step += 1
    sender = threading.Thread(target=following.sendall, args=(bytes(BLOCK),))
    sender.start()
    while had < step * BLOCK:
        take()
    sender.join()
    time.sleep(0.2)
"""
# What a line carries is known after five samples; and so long it is looked that nothing is named.
WELL_S, AGAIN_S = 30, 15


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

    def set(self, node: str, what: str) -> None:
        """So that it is written whole."""
        (self.folder / "next").write_text(what)
        (self.folder / "next").rename(self.folder / node)

    def named(self, what: str, code: str, subject: str) -> str:
        """What is said, once it is; nothing else as grave is found in the network."""
        found = self.wait_named(what, code, subject)
        wait_for(lambda: (code, subject) in self.site.found(found["severity"]), 10,
                 "the hub to say so")
        assert self.site.found(found["severity"]) == {(code, subject)}
        return found["text"]

    def mend(self, node: str, what: str) -> None:
        """And for a while it goes as usual, so that this is what is usual."""
        self.set(node, "")
        self.wait_mended(what)
        self.wait_well(AGAIN_S)

    def rank(self, node: str) -> int:
        """The process that sends and receives there."""
        [pid] = [pid for pid in descendants(self.commands[node].pid) if "ring.py" in words_of(pid)]
        return pid


@pytest.fixture(scope="module")
def ring(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    with in_lab(Ring, weft, TOPOLOGY, NODES, tmp_path_factory.mktemp("ring"), WELL_S) as ring:
        yield ring


def test_a_rank_that_sleeps(ring: Ring) -> None:
    ring.set("n2", "sleep")
    assert ring.named("a rank that sleeps", "WEFT-RANK-002", "ring/n2") == \
        "n2 does not read what has come from n1, who waits for it"
    ring.mend("n2", "a rank that sleeps")


def test_a_rank_that_computes(ring: Ring) -> None:
    """What the others have sent lies there unread as well, which follows from it."""
    ring.set("n3", "compute")
    said = ring.named("a rank that computes", "WEFT-RANK-003", "ring/n3")
    assert re.match(r"n3 (computes|wants a core, and does not get it, for) \d+ % of the time while "
                    r"the others wait; the job moves [\d.]+ MB/s, was [\d.]+ MB/s$", said), said
    ring.mend("n3", "a rank that computes")


def test_a_rank_that_gets_no_core(ring: Ring) -> None:
    """It shares one with other programs."""
    host, core = ring.site.nodes["n1"].host, min(os.sched_getaffinity(0))
    pid, cores = ring.rank("n1"), ",".join(map(str, sorted(os.sched_getaffinity(0))))
    host.run(["taskset", "-p", "-c", core, pid], quiet=True)
    others = [host.spawn(["taskset", "-c", core, "sh", "-c", "while :; do :; done"], name="other")
              for _ in range(3)]
    ring.set("n1", "compute")
    said = ring.named("a rank that gets no core", "WEFT-RANK-003", "ring/n1")
    assert re.match(r"n1 wants a core, and does not get it, for \d+ % of the time", said), said
    for other in others:
        other.stop()
    host.run(["taskset", "-p", "-c", cores, pid], quiet=True)
    ring.mend("n1", "a rank that gets no core")


def test_a_rank_that_waits_for_a_disk(ring: Ring) -> None:
    ring.set("n2", "disk")
    said = ring.named("a rank that waits for a disk", "WEFT-RANK-003", "ring/n2")
    assert re.match(r"n2 waits for a disk, or another device, \d+ % of the time while ", said), said
    ring.mend("n2", "a rank that waits for a disk")


def test_a_rank_in_the_kernel(ring: Ring) -> None:
    """It has a core whatever else runs here, or that would be what it wants."""
    ring.site.nodes["n3"].host.run(["chrt", "-r", "-p", 1, ring.rank("n3")], quiet=True)
    ring.set("n3", "kernel")
    said = ring.named("a rank in the kernel", "WEFT-RANK-006", "ring/n3")
    assert re.match(r"n3 is in the kernel \d+ % of the time while the others wait", said), said
    ring.mend("n3", "a rank in the kernel")


def test_a_job_that_is_stuck(ring: Ring) -> None:
    """Each waits for another one, and nobody sends."""
    ring.set("n1", "stuck")
    said = ring.named("a job that is stuck", "WEFT-JOB-001", "ring")
    assert said.startswith("nothing moves between its 3 nodes, and none of its processes computes")
    ring.mend("n1", "a job that is stuck")


def test_a_command_that_was_killed(ring: Ring) -> None:
    """The last of this file: the job does not go on."""
    ring.commands["n3"].kill9()
    assert ring.named("a command that was killed", "WEFT-RANK-005", "ring/n3") == \
        "n3: nothing is heard of the job there, which has not ended"
