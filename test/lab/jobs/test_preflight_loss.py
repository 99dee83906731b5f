"""A line that loses packets: weft preflight says how many, which way, and what that does to a job.
And one that is long for the buffers that TCP has.

    hub ── [ wan ] ──┬── n1    10 ms each way, and a loss
                     └── n2
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site

pytestmark = pytest.mark.namespaces

NO = 3  # exit status of a job that would not run
TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
link hub wan 203.0.113.10
host n1 no-v6
link n1 wan 203.0.113.11 delay=10ms
host n2 no-v6
link n2 wan 203.0.113.12
"""


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft)
        n1, n2 = site.join("n1", "n2")
        n1.reaches(n2)
        yield site


def preflight(node: AgentNode, *words: str) -> tuple[int, dict]:
    done = node.host.run([node.weft, "preflight", "--json", *words], check=False, timeout_s=120)
    assert done.rc in (0, NO), done.err
    return done.rc, json.loads(done.out)


def of_loss(report: dict) -> list[dict]:
    return [f for f in report["findings"] if f["fault"] == "loss"]


def preflight_that_says(node: AgentNode, level: str | None, *words: str) -> tuple[int, dict]:
    """On a machine that is busy otherwise lines do lose packets: of three one has to say it."""
    for _ in range(3):
        rc, report = preflight(node, *words)
        if [f["level"] for f in of_loss(report)] == ([level] if level else []):
            return rc, report
        print(f"another says: {report['findings']}", flush=True)
    raise AssertionError(f"none of three says {level} of the loss")


def test_a_clean_line(site: Site) -> None:
    rc, report = preflight_that_says(site.nodes["n1"], None)
    assert rc == 0
    [pair] = report["pairs"]
    for way in ("lossAToB", "lossBToA"):
        assert pair[way]["by"] == "datagrams"
        # In its time a machine that is busy otherwise sends fewer.
        assert 500 <= pair[way]["sent"] <= 10000
        assert pair[way]["ppm"] < 1000 or pair[way]["lost"] < 3
    print(f"FIGURE preflight of two nodes: {report['seconds']:.1f} s,"
          f" {pair['lossAToB']['sent']} datagrams")


@pytest.mark.parametrize("direction,loser,other,way,back", [
    ("out", "n1", "n2", "lossAToB", "lossBToA"), ("in", "n2", "n1", "lossBToA", "lossAToB")])
def test_two_percent(site: Site, direction: str, loser: str, other: str, way: str,
                     back: str) -> None:
    """A tenth of the speed: no job would run, and it is said which way, and why."""
    link = site.lab.link("n1")
    link.set(**{f"{direction}_loss": "2%"})
    try:
        rc, report = preflight_that_says(site.nodes["n1"], "no")
    finally:
        link.set(loss="0%")
    assert rc == NO and report["verdict"] == "no"
    [finding] = of_loss(report)
    said = re.fullmatch(r"(\d+\.\d\d) % of (\d+) datagrams from (n\d) to (n\d) were lost; with an "
                        r"RTT of (\d+\.\d) ms one TCP connection gets about (\d+\.\d) Mbit/s"
                        r"(, and more with the BBR that it has)?",
                        finding["text"])
    assert said, finding["text"]
    assert (said[3], said[4]) == (loser, other)
    assert 1 < float(said[1]) < 4
    assert 20 <= float(said[5]) < 40
    assert 1 < float(said[6]) < 8
    assert f"the line from {loser} to {other}" in finding["fix"]
    [pair] = report["pairs"]
    assert pair["nodes"] == ["n1", "n2"]
    assert 10000 < pair[way]["ppm"] < 40000
    assert pair[way]["lost"] == pytest.approx(pair[way]["sent"] * pair[way]["ppm"] / 1e6, abs=1)
    assert pair[back]["ppm"] < 10000


def test_three_thousandths(site: Site) -> None:
    """A job would run, and the line is worth a look."""
    link = site.lab.link("n1")
    link.set(out_loss="0.3%")
    try:
        rc, report = preflight_that_says(site.nodes["n1"], "warn")
        # Fifty pings do not show it, which is said.
        quick_rc, quick = preflight_that_says(site.nodes["n1"], "note", "--quick")
    finally:
        link.set(loss="0%")
    assert rc == 0 and report["verdict"] == "warn"
    [finding] = of_loss(report)
    assert re.match(r"0\.\d\d % of \d+ datagrams from n1 to n2 were lost", finding["text"])
    assert quick_rc == 0
    [note] = of_loss(quick)
    assert "by pings alone" in note["text"]
    assert quick["pairs"][0]["lossAToB"]["by"] == "pings"


def preflight_that_blames(node: AgentNode, *faults: str) -> dict:
    """With just these faults that are graver than a note, in one of three."""
    for _ in range(3):
        _, report = preflight(node)
        grave = [f for f in report["findings"] if f["level"] in ("warn", "no")]
        if [f["fault"] for f in grave] == list(faults):
            return report
        print(f"another says: {report['findings']}", flush=True)
    raise AssertionError(f"none of three says {faults}")


def test_buffers_that_are_small(site: Site) -> None:
    """One connection gets little of the line, and several get more."""
    hosts = [site.nodes[name].host for name in ("n1", "n2")]
    usual = [host.run(["sysctl", "-n", "net.ipv4.tcp_rmem"]).out.strip() for host in hosts]
    for host in hosts:
        host.run(["sysctl", "-q", "-w", "net.ipv4.tcp_rmem=4096 65536 65536"])
    try:
        report = preflight_that_blames(site.nodes["n1"], "buffers")
    finally:
        for host, sizes in zip(hosts, usual, strict=True):
            host.run(["sysctl", "-q", "-w", f"net.ipv4.tcp_rmem={sizes}"])
    assert report["verdict"] == "warn"
    [finding] = [f for f in report["findings"] if f["fault"] == "buffers"]
    assert (finding["code"], finding["nodes"]) == ("WEFT-TCP-003", ["n1", "n2"])
    said = re.fullmatch(r"with an RTT of (\d+\.\d) ms the TCP buffers of n1 and n2 hold one "
                        r"connection at (\d+) Mbit/s, and the line carries (\d+)",
                        finding["text"])
    assert said, finding["text"]
    assert 20 <= float(said[1]) < 40
    assert int(said[2]) <= 13 < int(said[3])
    assert "weft tune --apply" in finding["fix"]
    preflight_that_blames(site.nodes["n1"])
