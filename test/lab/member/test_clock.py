"""A clock that is wrong is named, and set right it locks nobody out.

      hub        203.0.113.10
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import STATE, AgentNode, Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
AHEAD_S = 7200
# The wall clock alone is ahead. An agent hands it down to the data plane that it starts.
AHEAD = {"LD_PRELOAD": str(LIBRARY), "FAKETIME": f"+{AHEAD_S}s",
         "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
         # The sanitizer's library may come second.
         "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
OFF = f"this machine's clock is 7[12][0-9][0-9] s {'ahead of'} the hub's"
BACK = "this machine's clock is 7[0-9]{3} s behind what it was when handshakes were made last"


def kill(node: AgentNode) -> None:
    """The machine's power fails."""
    node.agent.kill9()
    for pid in node.pids("weft-wg") + node.pids("weft"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not node.has_interface(), 5, "the interface to go")


def kept_ahead_s(node: AgentNode) -> float:
    """How far the time that the node keeps is ahead of this machine's."""
    return int(node.host.run(["cat", f"{STATE}/timestamp"], quiet=True).out) - time.time()


@pytest.mark.skipif(LIBRARY is None, reason="a clock that is ahead needs the package faketime")
def test_a_clock_that_was_ahead_and_is_set_right(weft: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        [n2] = site.join("n2", words={"n2": ["--engine", "userspace"]})
        n1 = AgentNode(lab.host("n1"), weft)
        with monkeypatch.context() as patch:
            for name, value in AHEAD.items():
                patch.setenv(name, value)
            n1.join(site.token(), "--engine", "userspace", allow=[OFF])
        n1.agent.wait_line(OFF, 20)
        n1.reaches(n2, 20)
        said = n1.run("status").out
        assert re.search("WEFT-CLOCK-001 .*: this machine's clock is 7", said)
        assert "timedatectl set-ntp true" in said
        wait_for(lambda: site.found() == {("WEFT-CLOCK-001", "n1")}, 60, "the hub to know")
        assert AHEAD_S - 60 < kept_ahead_s(n1) < AHEAD_S + 900

        kill(n1)
        n1.start()
        # The hub and n2 have sessions that they take for alive, and so begin none by themselves.
        n1.reaches(n2, 20)
        n2.reaches(n1, 20)
        hub = n1.status()["hub"]
        assert hub["udp"] and hub["why"] == "", hub
        assert "CLOCK" not in n1.run("status").out
        assert AHEAD_S - 60 < kept_ahead_s(n1) < AHEAD_S + 900
