"""Faults of WireGuard's sessions, as both ends see them where no probe runs, one at a time.

The network is that of net.py, without its probes; d is a stock WireGuard.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for

from .net import QUARTET, Net, fault, join, part

pytestmark = pytest.mark.namespaces

# What agents say of such faults.
ANY = [".*"]
# A handshake's first message is 148 bytes long, and its second one 92; with UDP's header.
HANDSHAKES = "udp length { 156, 100 }"
# All that WireGuard sends begins with one of these; what looks for paths does not.
TUNNEL = "@th,64,8 1-4"
# A session is late after 135 s and 15 s of traffic that should have renewed it, and dead after
# 180 s and what is to be answered within 25 s.
LATE_S, DEAD_S = 170, 230


@pytest.fixture(scope="module")
def net(weft: Path) -> Iterator[Net]:
    with Lab.from_text(QUARTET, capture=False) as lab:
        made = Net(lab, weft, probes=False)
        for node in made.nodes.values():
            node.agent.allow(*ANY)
        yield made


def start_pings(net: Net, address: str) -> Daemon:
    pings = net.lab.host("a").spawn(["ping", "-i", "0.5", address], name="ping")
    pings.wait_line("bytes from", 20)
    return pings


def test_a_peer_that_gets_nothing(net: Net) -> None:
    pings = start_pings(net, net.nodes["b"].address())
    with fault(net, "WEFT-PEER-001", "a--b", 60) as found:
        part(net, "a", "b", TUNNEL)
        assert re.search("(a|b) does not answer: what was sent to it, (lan|direct), for ",
                         found()["text"])
        join(net, "a", "b")
    pings.stop()


def test_handshakes_that_do_not_pass(net: Net) -> None:
    """Late at first, and then the session is dead."""
    pings = start_pings(net, net.nodes["b"].address())
    with fault(net, "WEFT-HANDSHAKE-002", "a--b", DEAD_S, over_s=60) as found:
        part(net, "a", "b", HANDSHAKES)

        def grave() -> dict[str, str]:
            return {one["code"]: one["subject"] for one in net.findings()
                    if one["severity"] != "note"}

        assert wait_for(grave, LATE_S, "the handshake to be late") == {"WEFT-HANDSHAKE-001": "a--b"}
        said = found()["text"]
        assert re.match(r"the last handshake with (a|b) is \d+ .+ old, and what was ", said), said
        join(net, "a", "b")
    pings.stop()


def stock_up(net: Net) -> None:
    net.lab.host("d").run(["wg-quick", "up", "stock0"], quiet=True,
                          env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})


def test_a_stock_member_that_is_gone(net: Net) -> None:
    d = net.lab.host("d")
    conf = net.site.hub.run([net.site.weft, "node", "add", "d", "--new-key"], quiet=True).out
    # Its interface has addresses of both families.
    d.run(["sysctl", "-w", "net.ipv6.conf.default.disable_ipv6=0"], quiet=True)
    d.run(["mkdir", "-p", "/etc/wireguard"], quiet=True)
    d.run(["sh", "-c", "umask 077; cat > /etc/wireguard/stock0.conf"], stdin=conf, quiet=True)
    stock_up(net)
    address = net.site.hub_nodes()["d"]["spec"]["address4"]
    net.nodes["a"].insist_ping(address, within_s=30)
    pings = start_pings(net, address)
    with fault(net, "WEFT-PEER-001", "a--d", 60) as found:
        for pid in d.pids("wireguard-go"):
            os.kill(pid, signal.SIGKILL)
        assert "d does not answer: what was sent to it, relay via hub, for " in found()["text"]
        stock_up(net)
        net.nodes["a"].insist_ping(address, within_s=60)
    pings.stop()
