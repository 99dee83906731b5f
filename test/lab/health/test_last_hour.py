"""A way that loses much more, or carries much less, than in its last hour is found, and kept.

    hub 203.0.113.10, a on .11, b on .12, c on .13 and d on .14; what leaves a is lost, and what
    leaves c is slow, at times

a sends to b all the time, and a job has c send to d. Round trips are in test_longer.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site

pytestmark = pytest.mark.namespaces

TOPOLOGY = "switch wan 203.0.113.0/24\nhost hub\nlink hub wan 203.0.113.10\n" + "".join(
    f"host {name}\nlink {name} wan 203.0.113.{11 + i}{' emulated' if name in 'ac' else ''}\n"
    for i, name in enumerate("abcd"))
# With so small a window no queue of the lab overflows, also where the processors are taken away.
FLOW = ["-b", "20M", "-w", "128K", "-t", "0", "--forceflush"]
# Both are warnings by their limit, so that no limit tells one from the other.
USUAL, WORSE = "0.2%", "0.75%"
LOST, SLOW = ("WEFT-LOSS-003", "a>b"), ("WEFT-RATE-003", "c>d")
# Node c sends a block, and waits for an answer.
JOB = """
import os, socket, time
at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    server = socket.create_server(at)
    print("it runs", flush=True)
    other, _ = server.accept()
else:
    while True:
        try:
            other = socket.create_connection(at)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
block = bytes(1 << 19)
while True:
    if os.environ["WEFT_NODE"] == "c":
        other.sendall(block)
        other.recv(1, socket.MSG_WAITALL)
        time.sleep(0.1)
    else:
        other.recv(len(block), socket.MSG_WAITALL)
        other.sendall(b"x")
"""


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft)
        lab.link("a").set(out_loss=USUAL)
        site.join(*"abcd")
        site.wait_paths({pair: {"lan", "direct"} for pair in (("a", "b"), ("c", "d"))}, 60)
        a, b = site.nodes["a"], site.nodes["b"]
        b.host.spawn(["iperf3", "-s", "-1", "--forceflush"], name="sink").wait_line("listening")
        daemons = [a.host.spawn(["iperf3", "-c", b.address(), *FLOW], name="load")]
        daemons += [lab.host(name).spawn(
            [weft, "run", "--nnodes", "2", "--job", "train", "--", "/usr/bin/python3", "-c", JOB],
            name="job", allow=[""]) for name in "cd"]
        wait_for(lambda: any("it runs" in "\n".join(job.lines()) for job in daemons), 60,
                 "the job to run")
        yield site
        assert all(daemon.running for daemon in daemons)


def ask(site: Site, *words: str) -> dict:
    return json.loads(site.hub.run([site.weft, "get", *words, "--json"], quiet=True).out)


def findings(site: Site) -> dict[tuple[str, str], dict]:
    return {(one["code"], one["subject"]): one for one in ask(site, "findings")["findings"]}


def found(site: Site, what: tuple[str, str], within_s: float) -> dict:
    one = wait_for(lambda: findings(site).get(what), within_s, f"{what} to be found")
    assert one["severity"] == "warning"
    other_way = ">".join(reversed(what[1].split(">")))
    assert (what[0], other_way) not in findings(site)
    return one


def rates(site: Site) -> list[int]:
    """What the job has moved from c to d in each minute."""
    minutes = ask(site, "edges", "c", "d", "--history")["minutes"]
    return [point["bytesPerSecond"][0] for point in minutes if "bytesPerSecond" in point]


def losses(site: Site, way: int) -> list[float]:
    """What was lost, from a to b or back, at the end of each minute."""
    minutes = ask(site, "edges", "b", "a", "--history")["minutes"]
    return [point["lossPercent"][way] for point in minutes
            if point.get("lossPercent", [None, None])[way] is not None]


def test_a_way_that_carries_less(site: Site) -> None:
    wait_for(lambda: rates(site), 130, "a minute of the job to be kept")
    assert SLOW not in findings(site)
    site.lab.link("c").set(out_rate="1.6mbit", out_queue="64k")
    text = found(site, SLOW, 90)["text"]
    match = re.match(r"what job train sends from c to d goes at ([\d.]+) MB/s while there is "
                     r"something to send, and in the last hour went at ([\d.]+) MB/s", text)
    assert match, text
    assert float(match[2]) > 3 * float(match[1])


def test_a_way_that_loses_more(site: Site) -> None:
    b = site.nodes["b"]
    usual = wait_for(lambda: (b.peers()["a"]["lossIn"] or {}).get("usualPpm"), 150,
                     "what is usual to be known")
    assert 1000 <= usual <= 4000
    assert LOST not in findings(site)
    site.lab.link("a").set(out_loss=WORSE)
    text = found(site, LOST, 120)["text"]
    match = re.match(r"([\d.]+) % of what a sends to b does not arrive, and in the last hour it "
                     r"was ([\d.]+) %: ", text)
    assert match, text
    assert float(match[1]) >= 3 * float(match[2]) - 0.02
    assert "; in the last hour it was " in findings(site)["WEFT-LOSS-001", "a>b"]["text"]


def test_what_is_kept(site: Site) -> None:
    """By minute: what was lost, what the job moved, round trips and the path."""
    wait_for(lambda: max(losses(site, 0), default=0) > 0.4, 70, "a minute that has lost much")
    wait_for(lambda: max(rates(site)) > 3 * rates(site)[-1] > 0, 70, "a minute that is slow")
    assert max(losses(site, 1), default=0) < 0.1
    answer = ask(site, "edges", "b", "a", "--history")
    assert answer["name"] == "a--b"
    assert answer["nodes"] == ["a", "b"]
    assert all(point["state"] in ("lan", "direct") for point in answer["minutes"])
    assert any("rttMs" in point and "jitterMs" in point for point in answer["minutes"])

    table = site.hub.run([site.weft, "get", "edges", "a", "b", "--history"]).out.splitlines()
    assert table[0].split() == ["TIME", "FOR", "RTT", "JITTER", "LOSS", "a>b", "LOSS", "b>a",
                                "GOODPUT", "a>b", "GOODPUT", "b>a", "PATH"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:00 +1 min +[\d.]+ ms +[\d.]+ ms +[\d.]+ % .*"
                        r" (direct|lan)", table[-1]), table[-1]
    refused = site.hub.run([site.weft, "get", "edges", "a", "z", "--history"], check=False)
    assert 'network "default" has no node "z"' in refused.err


def test_they_are_over(site: Site) -> None:
    site.lab.link("c").set(out_rate="0kbit")
    site.lab.link("a").set(out_loss=USUAL)
    wait_for(lambda: SLOW not in findings(site), 90, f"{SLOW} to be over")
    wait_for(lambda: LOST not in findings(site), 120, f"{LOST} to be over")
    gone = [(e["code"], e["object"]) for e in ask(site, "events")["events"] if e["type"] == "Gone"]
    assert LOST in gone
    assert SLOW in gone
