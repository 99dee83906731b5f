"""What a stock WireGuard has sent and is lost is counted, datagram by datagram.

    u (weft wg) ── [ s ] ── g (wireguard-go); what leaves g is lost, at times
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from interop.own_keys import uapi
from interop.wgpeer import WgPeer
from lab import Lab, wait_for

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch s 192.0.2.0/24
host u
host g
link u s 192.0.2.1
link g s 192.0.2.2 emulated
"""
# For so long nothing may change: what is missing is awaited for a second, from the next look on.
RESTS_FOR_S = 3.5


def of_peer(end: WgPeer) -> dict[str, int]:
    """Its own keys, of its only peer; those that are not there are 0."""
    said = uapi(end, "get=1\n\n")
    return {name: int(said.get(name, 0))
            for name in ("rx_datagrams", "rx_lost", "rx_reordered", "rx_repeated", "socket_drops")}


def settled(end: WgPeer) -> dict[str, int]:
    """When nothing is awaited any more."""
    looks = [(time.monotonic(), of_peer(end))]

    def is_settled() -> bool:
        now = of_peer(end)
        if now != looks[-1][1]:
            looks.append((time.monotonic(), now))
        return time.monotonic() - looks[-1][0] > RESTS_FOR_S

    wait_for(is_settled, 30, "the counts to rest")
    return looks[-1][1]


@pytest.mark.parametrize("percent", [0.1, 1.0])
def test_what_is_found_is_what_was_dropped(weft: Path, percent: float):
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        ours = WgPeer.userspace(lab.host("u"), [weft, "wg"])
        theirs = WgPeer.userspace(lab.host("g"), ["wireguard-go"])
        ours.configure(["10.7.0.1/24"])
        theirs.configure(["10.7.0.2/24"])
        ours.add_peer(theirs)
        theirs.add_peer(ours, endpoint=True)
        theirs.ping(ours)
        before = settled(ours)
        assert before["rx_datagrams"] > 0
        assert before["rx_lost"] == before["rx_reordered"] == before["socket_drops"] == 0

        lab.link("g").set(out_loss=f"{percent}%")
        lab.host("u").spawn(["iperf3", "-s", "-1", "--forceflush"]).wait_line("listening")
        # With so small a window no other queue on the way overflows.
        lab.host("g").run(["iperf3", "-c", "10.7.0.1", "-w", "128K", "-b", "40M", "-n", "40M"],
                          quiet=True, timeout_s=300)
        lab.link("g").set(out_loss="0%")
        theirs.ping(ours)
        after = settled(ours)
        dropped = lab.link("g").counters()["out"]["loss"]
        print(f"FIGURE {percent} %: the line has dropped {dropped}; found: {after}")
        assert dropped > 10
        # What was dropped and is no data message (ARP) is not counted.
        assert dropped - 3 <= after["rx_lost"] <= dropped
        # wg(8) passes over what it does not know.
        assert theirs.public_key in lab.host("u").run(["wg", "show", "wg0"]).out
