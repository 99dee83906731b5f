"""What a machine's kernel counts, and its disk. Its agent looks each minute, so a fault takes two.

The network is that of net.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import STATE

from .net import QUARTET, Net, drop, fault, undo

pytestmark = pytest.mark.namespaces

# Of what the kernel counts each minute a finding needs two samples.
MINUTES_S = 140
# What agents say of such faults.
ANY = [".*"]
# Datagrams to a socket that nobody reads.
FLOOD = """
import socket, time
deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
deaf.bind(("127.0.0.1", 0))
print("it sends", flush=True)
while True:
    deaf.sendto(bytes(1000), deaf.getsockname())
    time.sleep(0.01)
"""
# Segments that go a way on which one in ten is lost.
SEGMENTS = """
import socket
there = socket.create_server(("127.0.0.1", 0))
here = socket.create_connection(there.getsockname())
other, _ = there.accept()
print("it sends", flush=True)
while True:
    here.sendall(bytes(4000))
    other.recv(4000, socket.MSG_WAITALL)
"""


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        # The disk that has c's state is its own.
        lab.host("c").run(["mkdir", "-p", STATE], quiet=True)
        lab.host("c").run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", STATE], quiet=True)
        made = Net(lab, weft)
        for node in made.nodes.values():
            node.agent.allow(*ANY)
        yield made


def test_datagrams_that_nobody_reads(net: Net) -> None:
    with fault(net, "WEFT-UDP-003", "b", MINUTES_S, over_s=150) as found:
        flood = net.lab.host("b").spawn(["/usr/bin/python3", "-c", FLOOD], name="flood")
        flood.wait_line("it sends")
        assert re.match(r"b has thrown away \d+ of \d+ datagrams", found()["text"])
        flood.stop()


def test_segments_that_are_sent_again(net: Net) -> None:
    b = net.lab.host("b")
    with fault(net, "WEFT-TCP-001", "b", MINUTES_S, over_s=150) as found:
        drop(b, "lossy", "output",
             "oifname lo meta l4proto tcp numgen random mod 10 == 0")
        sender = b.spawn(["/usr/bin/python3", "-c", SEGMENTS], name="segments")
        sender.wait_line("it sends")
        assert found()["severity"] == "note"
        sender.stop()
        undo(b, "lossy")


def test_a_disk_that_is_full(net: Net) -> None:
    c = net.lab.host("c")
    with fault(net, "WEFT-DISK-002", "c", MINUTES_S, over_s=150) as found:
        c.run(["dd", "if=/dev/zero", f"of={STATE}/full", "bs=1M"], check=False, quiet=True)
        assert "has no room left" in found()["text"]
        c.run(["rm", f"{STATE}/full"], quiet=True)


def test_a_disk_that_is_nearly_full(net: Net) -> None:
    c = net.lab.host("c")
    with fault(net, "WEFT-DISK-001", "c", MINUTES_S, over_s=150) as found:
        c.run(["dd", "if=/dev/zero", f"of={STATE}/full", "bs=1M", "count=61"], quiet=True)
        assert re.search(r"has [23] of 64 MiB left", found()["text"])
        c.run(["rm", f"{STATE}/full"], quiet=True)
