"""What is done to a node's interface from outside: seen at once, mended, and said in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from lab import wait_for
from lab.support.agents import ENGINE_AWAY
from lab.support.pinging import LONGEST_GAP_S, Pings

from .conftest import Pair

pytestmark = pytest.mark.namespaces


Damage = Callable[[Pair], object]


def kill_engine(site: Pair) -> None:
    [pid] = site.n1.pids("weft-wg")
    os.kill(pid, 9)


def ip(*words: str) -> Damage:
    return lambda site: site.n1.host.run(["ip", *words])


@pytest.mark.parametrize(("damage", "said"), [
    (ip("link", "delete", "weft0"), "weft0 had been deleted, or its data plane had ended"),
    (ip("link", "set", "weft0", "down"), "weft0 had been set down and is up again"),
    (kill_engine, "weft0 had been deleted, or its data plane had ended"),
    (ip("route", "replace", "10.42.0.0/16", "dev", "lo"),
     "the route to 10.42.0.0/16 had been taken from weft0"),
    (ip("link", "set", "weft0", "name", "odd0"), "weft0 had been renamed to odd0"),
], ids=["deleted", "down", "killed", "stolen", "renamed"])
@pytest.mark.parametrize("pinger", ["n1", "n2"])
def test_damage_is_mended_at_once_and_said(site: Pair, pinger: str, damage: Damage,
                                           said: str) -> None:
    """n2 may send in a session that n1 knows nothing of any more."""
    site.both_join()
    site.n1.insist_ping(site.n2.address(), within_s=5)
    site.n1.agent.allow(ENGINE_AWAY)
    source, target = (site.n1, site.n2) if pinger == "n1" else (site.n2, site.n1)
    pings = Pings(source.host, target.address())
    damage(site)
    site.n1.agent.wait_line(said, 20)
    pings.wait_more()
    pings.stop()
    gap = pings.longest_gap_s()
    print(f"FIGURE {said}: no answer to {pinger} for {gap:.2f} s (to be below 1)")
    # By itself WireGuard notices only after 15 s that the other end knows its session no more.
    assert gap < LONGEST_GAP_S
    assert len(re.findall(said, "\n".join(site.n1.agent.lines()))) == 1


def test_an_interface_renamed_while_no_agent_ran(site: Pair) -> None:
    site.both_join()
    far = site.n2.address()
    site.n1.insist_ping(far, within_s=5)
    site.n1.agent.stop()
    site.n1.host.run(["ip", "link", "set", "weft0", "name", "odd0"])
    site.n1.start()
    site.n1.agent.wait_line("weft0 had been renamed to odd0 and has its name again", 20)
    site.n1.insist_ping(far, within_s=10)


HOLD_INTERFACE = """
import fcntl, struct, time
held = open("/dev/net/tun", "r+b", buffering=0)
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x0001, 0x1000
fcntl.ioctl(held, TUNSETIFF, struct.pack("16sH22x", b"weft0", IFF_TUN | IFF_NO_PI))
time.sleep(1000)
"""


def test_an_interface_that_goes_later_than_its_socket(site: Pair, weft: Path) -> None:
    """As when an engine was killed, and the kernel has not closed all of it yet."""
    host = site.n1.host
    holder = host.spawn(["/usr/bin/python3", "-c", HOLD_INTERFACE], name="holder")
    wait_for(lambda: host.run(["ip", "link", "show", "weft0"], check=False, quiet=True).rc == 0,
             10, "the interface")
    taker = host.spawn([weft, "wg", "--take-over", "-f", "weft0"], name="taker")
    wait_for(lambda: "poll" in Path(f"/proc/{taker.pid}/wchan").read_text(), 10,
             "the taker to find it in use")
    holder.kill9()
    taker.wait_line("weft0", 10)
    wait_for(lambda: host.run(["wg", "show", "weft0"], check=False, quiet=True).rc == 0, 10,
             "the taker to serve it")
