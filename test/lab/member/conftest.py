"""A hub and two machines that may join it, for the files that draw no network of their own.

      hub        203.0.113.10, 2001:db8::10
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12; their packets to each other need not go through the hub
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.topologies import one_switch

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12}, v6=True)


class Pair(Site):
    """The lab above with a hub that runs; the two have not joined."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        super().__init__(lab, weft, versions=(4,))
        self.n1 = AgentNode(lab.host("n1"), weft)
        self.n2 = AgentNode(lab.host("n2"), weft)

    def both_join(self) -> None:
        for node in (self.n1, self.n2):
            node.join(self.token())
        wait_for(lambda: self.n1.peer_names() == {"n2"}, 5, "n1 to hear of n2")


HOLD_PORT = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[1])))
time.sleep(1000)
"""


def hold_port(host: Host, port: int) -> Daemon:
    """A program that has a UDP port."""
    holder = host.spawn(["/usr/bin/python3", "-c", HOLD_PORT, str(port)], name="holder")
    wait_for(lambda: f":{port} " in host.run(["ss", "-uanH"], quiet=True).out, 10,
             "the port to be taken")
    return holder


def hide_tun(host: Host) -> None:
    """As on a machine without /dev/net/tun."""
    host.run(["mount", "-t", "tmpfs", "none", "/dev/net"])


@pytest.fixture
def site(weft: Path) -> Iterator[Pair]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Pair(lab, weft)
