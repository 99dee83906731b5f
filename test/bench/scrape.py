"""What a node's agent answers to Prometheus with 1,000 peers: time and bytes.

    hub, swarm ── [ wan ] ── node     its agent answers at the overlay address
                          └─ watch    a member; asks as Prometheus does, through the tunnel

The 1,000 are members whose keys one process has (bench-swarm.c): it begins a session with the node
for each, and sends data in it, so the node has something to say of each of them. In the same run
the node is asked when it has but one peer, and a node exporter on it, with its own defaults, where
one is installed.
"""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import statistics
from collections.abc import Callable

from lab import Host, Lab, wait_for
from lab.support.agents import AgentNode, Site
from tunnel import ROOT, WEFT

SWARM = ROOT / "build/test/bench/swarm/bench-swarm"
PORT = 9586
EXPORTER, EXPORTER_PORT = "prometheus-node-exporter", 9100
FEW, MANY = "1 peer", "1,000 peers"
REFERENCE = "node_exporter" if shutil.which(EXPORTER) else FEW
PEERS = 1000
SCRAPES = 101
SERIES = re.compile(r"^weft_agent_peer_session\{", re.MULTILINE)
TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
host swarm no-v6
host node no-v6
host watch no-v6
link hub wan 203.0.113.10
link swarm wan 203.0.113.11
link node wan 203.0.113.12
link watch wan 203.0.113.13
"""
# Makes a member of each key of its input, at HOST:PORT, with the SECRET of a join token.
ENROL = """
import http.client, json, ssl, sys, time
host, secret = sys.argv[1:]
context = ssl._create_unverified_context()
def enrol(body):
    hub = http.client.HTTPSConnection(host, timeout=60, context=context)
    hub.request("POST", "/v1/enrol", json.dumps(body), {"Content-Type": "application/json"})
    answer = hub.getresponse()
    text = answer.read()
    hub.close()
    if answer.status not in (200, 429):
        sys.exit(f"{answer.status}: {text.decode()}")
    return answer.status == 200
for i, key in enumerate(sys.stdin.read().split()):
    while not enrol({"secret": secret, "publicKey": key, "name": f"swarm-{i:04}", "peers": False}):
        time.sleep(0.1)
"""


def enrol_swarm(site: Site, swarm: Host) -> None:
    token = site.token("--uses", str(PEERS))
    packed = token.partition(".")[2]
    said = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
    config = swarm.run([SWARM, "config", PEERS], quiet=True).out
    swarm.run(["/usr/bin/python3", "-c", ENROL, said["a"][0], said["s"]], quiet=True, timeout_s=300,
              stdin="\n".join(re.findall(r"^PublicKey = (\S+)$", config, re.MULTILINE)))


def engine(node: AgentNode, what: str) -> str:
    return node.host.run(["wg", "show", "weft0", what], quiet=True).out.strip()


def greet(node: AgentNode, swarm: Host) -> None:
    """A session of each of the swarm with the node, and a second of data in all of them."""
    swarm.run(["ip", "route", "add", "local", "10.64.0.0/16", "dev", "lo"], quiet=True)
    node.host.run(["ip", "route", "add", "10.64.0.0/16", "via", swarm.address()], quiet=True)
    wait_for(lambda: len(engine(node, "peers").split()) > PEERS, 60,
             f"the engine to know {PEERS} peers")
    at = f"{node.host.address()}:{engine(node, 'listen-port')}"
    swarm.run([SWARM, "run", PEERS, engine(node, "public-key"), at, 1, PEERS], quiet=True,
              timeout_s=120)


def scrape(watch: Host, url: str) -> dict[str, float]:
    said = watch.run(["curl", "-s", "-m", "30", "-o", "/dev/null", "-w",
                      "%{http_code} %{time_total} %{size_download}", url], check=False, quiet=True)
    code, seconds, size = said.out.split()
    if code != "200":
        raise SystemExit(f"{url} answers {code}")
    return {"ms": float(seconds) * 1000, "KiB": float(size) / 1024}


def scrapes(watch: Host, urls: dict[str, str]) -> dict[str, dict[str, float]]:
    """All of them in turn, often."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in urls}
    for _ in range(SCRAPES):
        for name, url in urls.items():
            found[name].append(scrape(watch, url))

    def summary(samples: list[dict[str, float]]) -> dict[str, float]:
        times = sorted(one["ms"] for one in samples)
        return {"medianMs": statistics.median(times),
                "p99Ms": times[math.ceil(len(times) * 0.99) - 1], "worstMs": times[-1],
                "KiB": max(one["KiB"] for one in samples)}

    return {name: summary(samples) for name, samples in found.items()}


def answers(watch: Host, url: str) -> Callable[[], bool]:
    return lambda: watch.run(["curl", "-s", "-m", "5", "-o", "/dev/null", url], check=False,
                             quiet=True).rc == 0


def measure() -> dict[str, dict[str, float]]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, WEFT)
        site.daemon.allow(".*")
        node, watching = site.join("node", "watch", options=["--metrics", "overlay"],
                                   allow={name: [".*"] for name in ("node", "watch")})
        watch = watching.host
        site.wait_paths({("node", "watch"): {"lan", "direct"}}, 30)
        url = f"http://{node.address()}:{PORT}/metrics"
        others = {}
        if REFERENCE != FEW:
            node.host.spawn([EXPORTER, "--log.level=error"], name="exporter", allow=[".*"])
            others[REFERENCE] = f"http://{node.address()}:{EXPORTER_PORT}/metrics"
        for one in (url, *others.values()):
            wait_for(answers(watch, one), 20, f"{one} to answer")
        figures = {FEW: scrapes(watch, {FEW: url})[FEW]}
        enrol_swarm(site, lab.host("swarm"))
        greet(node, lab.host("swarm"))
        wait_for(lambda: len(SERIES.findall(watch.run(["curl", "-s", url], quiet=True).out))
                 > PEERS, 30, f"{PEERS} peers to be in the answer")
        figures.update(scrapes(watch, {MANY: url, **others}))
        return figures
