"""The tunnel beside the bare line, for a pair whose machines are both behind a NAT.

     hub ──┐
     a ─ na┤ net         a's line takes 60 Mbit/s and 5 ms each way
     b ─ nb┤             both NATs let in only what was asked for
     c ─ nc┘             this one shows each destination another port

What leaves the tunnel and what does not is sent and counted alike, so the two are compared, and so
is what is encrypted first, as in TLS; where a NAT keeps datagrams beside the tunnel out, that is
said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch net  198.51.100.0/24
switch lana 192.168.1.0/24 gateway=na
switch lanb 192.168.2.0/24 gateway=nb
switch lanc 192.168.3.0/24 gateway=nc
host hub
nat na port-restricted out=net
nat nb port-restricted out=net
nat nc symmetric out=net
host a
host b
host c
link hub net 198.51.100.10
link na net 198.51.100.21 emulated
link nb net 198.51.100.22
link nc net 198.51.100.23
link na lana 192.168.1.1
link nb lanb 192.168.2.1
link nc lanc 192.168.3.1
link a lana 192.168.1.2
link b lanb 192.168.2.2
link c lanc 192.168.3.2
"""
RATE = 60e6
DELAY_MS = 5
HEADERS_SHARE = 0.1  # at most, of what the line takes: IP, UDP, and WireGuard's


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        site.join("a", "b", "c")
        lab.link("na", "net").set(rate="60mbit", delay=f"{DELAY_MS}ms")
        yield site


def bench(node: AgentNode, peer: str) -> dict:
    done = node.host.run([node.weft, "bench", peer, "--ms", "300", "--allreduce", "0", "--json"],
                         timeout_s=120)
    [pair] = json.loads(done.out)["pairs"]
    return pair


def test_the_tunnel_beside_the_line(site: Site) -> None:
    """TCP beside the tunnel does not pass a NAT; bursts of datagrams do, both ways."""
    a, b = site.nodes["a"], site.nodes["b"]
    a.reaches(b)
    site.wait_paths({("a", "b"): {"direct"}}, 20)
    pair = bench(a, "b")
    assert pair["path"] == "direct"
    assert "why" in pair["underlay"]
    bursts = pair["bursts"]
    assert bursts["why"] == ""
    assert bursts["via"] == "198.51.100.22"
    for way in ("outBitsPerSecond", "inBitsPerSecond"):
        raw, tunnel = bursts["raw"][way], bursts["tunnel"][way]
        print(f"FIGURE {way}: {tunnel / 1e6:.1f} Mbit/s in the tunnel, {raw / 1e6:.1f} beside it")
        assert RATE * (1 - HEADERS_SHARE) < raw < RATE * 1.05
        assert RATE * (1 - 2 * HEADERS_SHARE) < tunnel <= raw * 1.02
    assert -2 <= bursts["costPercent"] <= 100 * HEADERS_SHARE
    # No processor is slower than that line, and TLS costs nothing.
    for way in ("outBitsPerSecond", "inBitsPerSecond"):
        assert RATE * (1 - 2 * HEADERS_SHARE) < bursts["tls"][way] < RATE * 1.05
    print(f"FIGURE TLS in the tunnel costs {bursts['tlsCostPercent']} % on a line of "
          f"{RATE / 1e6:.0f} Mbit/s")
    assert -5 <= bursts["tlsCostPercent"] <= 5
    for which in ("raw", "tunnel", "tls"):
        assert 2 * DELAY_MS <= bursts[which]["rttMedianUs"] / 1000 < 10 * DELAY_MS
    said = a.run("bench", "b", "--ms", "100", "--allreduce", "0").out
    assert "UDP, bursts" in said
    assert "ms in the tunnel" in said
    assert "  with TLS in the tunnel: " in said


def line(site: Site, edge: str, by: str) -> dict:
    """What the hub keeps of this day, as that node has measured it."""
    rows = json.loads(site.hub.run([site.weft, "get", "edges", "--json"], quiet=True).out)["edges"]
    status = next((row["status"] for row in rows if row["name"] == edge), {})
    return status.get(f"agent/{by}", {}).get("line", {})


def test_a_sample_is_kept_by_day(site: Site) -> None:
    """As the agent has it measured once a day; also by a hub that is started anew."""
    a = site.nodes["a"]
    site.wait_paths({("a", "b"): {"direct"}}, 20)
    said = a.run("bench", "b", "--sample").out
    assert "UDP, bursts" in said
    wait_for(lambda: "rawBitsPerSecond" in line(site, "a--b", "a"), 30, "the hub to have it")
    today = line(site, "a--b", "a")
    assert -2 <= today["costPercent"] <= 100 * HEADERS_SHARE
    assert min(today["tunnelRttUs"], today["rawRttUs"]) >= 2000 * DELAY_MS
    assert max(today["tunnelBitsPerSecond"]) < RATE * 1.05
    assert max(today["tlsBitsPerSecond"]) < RATE * 1.05
    assert -100 * HEADERS_SHARE <= today["tlsCostPercent"] <= 100 * HEADERS_SHARE
    edge = json.loads(site.hub.run([site.weft, "get", "MeshEdge", "a--b"], quiet=True).out)
    assert edge["status"]["agent/a"]["lineByDay"] == [today]
    wrong = a.run("bench", "--sample", check=False)
    assert wrong.rc == 2
    assert "--sample goes with PEER" in wrong.err
    for node in site.nodes.values():
        node.agent.allow("the hub does not answer")
    site.daemon.stop()
    site.start_hub()
    wait_for(lambda: line(site, "a--b", "a") == today, 30, "the hub to have kept it")


def test_where_it_cannot_be_measured(site: Site) -> None:
    """Behind such a NAT the tunnel may find its way by guessing; another socket does not."""
    a, c = site.nodes["a"], site.nodes["c"]
    a.reaches(c)
    bursts = bench(a, "c")["bursts"]
    assert bursts["raw"] is None
    assert bursts["tunnel"]["outBitsPerSecond"] > 0
    assert bursts["why"].startswith(("no datagram passes beside the tunnel: a NAT",
                                     "there is no direct path to it beside the overlay"))


def test_round_trips_are_told(site: Site) -> None:
    """Median, percentile and jitter of a path's pings: at both ends, at the hub, in figures."""
    a, b = site.nodes["a"], site.nodes["b"]
    site.wait_paths({("a", "b"): {"direct"}}, 20)
    pings = a.host.spawn(["ping", "-i", "0.2", b.address()], name="ping")
    pings.wait_line("bytes from", 20)
    for node, peer in ((a, "b"), (b, "a")):
        wait_for(lambda n=node, p=peer: n.peers()[p]["rttP50Ms"] is not None, 90, "enough pings")
        found = node.peers()[peer]
        assert 2 * DELAY_MS <= found["rttP50Ms"] <= found["rttP99Ms"]
        assert found["jitterMs"] >= 0

    def told() -> list[dict]:
        rows = json.loads(site.hub.run([site.weft, "get", "edges", "--json"], quiet=True).out)
        status = next((row["status"] for row in rows["edges"] if row["name"] == "a--b"), {})
        return [status[f"agent/{name}"]["rtt"] for name in "ab"
                if "rtt" in status.get(f"agent/{name}", {})]

    wait_for(lambda: len(told()) == 2, 90, "the hub to know")
    assert all(2 * DELAY_MS <= rtt["p50Ms"] <= rtt["p99Ms"] and rtt["samples"] >= 8
               for rtt in told())
    # Of what is dead there is no number.
    pings.stop()
    b.agent.allow("UDP to the hub fails, and so does TLS")
    site.lab.link("nb", "net").down()
    wait_for(lambda: (a.peers()["b"]["rttP50Ms"], a.peers()["b"]["rttMs"]) == (None, None), 60,
             "the figures to be gone")
    wait_for(lambda: told() == [], 60, "the hub to forget them")
