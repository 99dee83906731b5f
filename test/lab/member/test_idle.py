"""What a node costs that has nothing to do, with a hundred peers.

    hub, self, live-1 ... live-8 ── [ wan ]      and 92 members that were never switched on
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab
from lab.support.agents import AgentNode, Site
from lab.support.stock_mesh import ask

pytestmark = pytest.mark.namespaces

N_PEERS = 100
LIVE = [f"live-{i}" for i in range(1, 9)]

TOPOLOGY = "\n".join([
    "switch wan 203.0.113.0/24", "host hub", "link hub wan 203.0.113.10",
    *(line for i, name in enumerate(["self", *LIVE], start=11)
      for line in (f"host {name} no-v6", f"link {name} wan 203.0.113.{i}")),
])

# How long is measured; `make lab` takes its time.
MEASURED_S = float(os.environ.get("WEFT_LAB_IDLE_S", 10))


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        yield Site(lab, weft)


def enrol_absent(site: Site, n: int) -> None:
    """Members of whom nobody will ever hear."""
    token = site.hub.run([site.weft, "token", "new", "--uses", n], quiet=True).out.strip()
    packed = token.partition(".")[2]
    said = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))

    def enrol(i: int) -> None:
        key = base64.b64encode(os.urandom(31) + b"\1").decode()  # bit 255 is clear
        ask(site.hub, "POST", f"https://{said['a'][0]}/v1/enrol",
            {"secret": said["s"], "publicKey": key, "name": f"absent-{i}"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enrol, range(n)))


def processes(node: AgentNode) -> dict[str, Path]:
    """Agent and data plane, as folders of /proc."""
    agent = Path(f"/proc/{node.agent.pid}")
    network = os.readlink(agent / "ns/net")
    found = {"agent": agent}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"wg" in words and os.readlink(folder / "ns/net") == network:
                found["wg"] = folder
        except OSError:
            continue  # It has just ended, and was another one.
    return found


def spent(process: Path) -> tuple[float, int]:
    """CPU seconds of all its threads, and how often they have fallen asleep."""
    tasks = list((process / "task").iterdir())
    ran = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)
    slept = sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(),
                              re.MULTILINE)[1]) for task in tasks)
    return ran / 1e9, slept


def test_a_node_with_a_hundred_peers_at_rest(site: Site) -> None:
    enrol_absent(site, N_PEERS - len(LIVE))
    node = site.join("self", *LIVE)[0]
    site.wait_paths({("self", name): {"lan", "direct"} for name in LIVE}, 30)
    for name in LIVE:
        node.reaches(site.nodes[name])
    assert len(node.peers()) == N_PEERS
    parts = processes(node)
    assert set(parts) == {"agent", "wg"}

    # What follows from joining and from those pings is over by then: beats, confirmations, reports.
    time.sleep(15)
    before = {name: spent(process) for name, process in parts.items()}
    began = time.monotonic()
    time.sleep(MEASURED_S)
    took = time.monotonic() - began
    share, wakes = {}, {}
    for name, process in parts.items():
        ran, slept = spent(process)
        share[name] = 100 * (ran - before[name][0]) / took
        wakes[name] = (slept - before[name][1]) / took
    print(f"FIGURE idle with {N_PEERS} peers, {len(LIVE)} of them live: "
          f"agent {share['agent']:.3f} %, data plane {share['wg']:.3f} % of a core; "
          f"of both together {sum(share.values()):.3f} % (to be below 0.1); "
          f"they wake up {wakes['agent']:.1f} and {wakes['wg']:.1f} times a second")
    # A busy machine makes everything dearer; what there is to do stays next to nothing.
    assert sum(wakes.values()) < 60
    assert sum(share.values()) < 3
