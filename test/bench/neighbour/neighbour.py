#!/usr/bin/python3
"""neighbour - what the members of one network feel of a hostile member of another.

    neighbour.py [SECONDS] [HOSTILE]    needs root; $WEFT or build/weft

A hub without data plane, one network "quiet" with a member that asks (GET /v1/jobs), joins (a new
machine enrols), meets (TCPStore), writes (etcd) and pings, each request on a connection of its own;
and HOSTILE networks (1, or 10) with a member each that does the worst it can by every API
(hostile.py). The quiet one's times alone and beside them, from one run; the peak resident memory of
the hub and of each rendezvous process; and how many of those were ended.
"""

from __future__ import annotations

import base64
import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test")]
from hub.hub import SECRETS, Hub, new_key, secret_of  # noqa: E402
from lab import Lab  # noqa: E402

WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
ENDS = Path(__file__).parent / "hostile.py"
JOBS = 2


def topology(hostile: int) -> tuple[str, list[str]]:
    networks = ["quiet", *(f"bad{i}" for i in range(hostile))]
    lines = ["switch wan 192.0.2.0/24", "host hub", "link hub wan 192.0.2.1"]
    for i, name in enumerate(networks):
        lines += [f"switch weft-{name} 10.42.0.0/16", f"host {name}",
                  f"link {name} wan 192.0.2.{i + 2}", f"link hub weft-{name} 10.42.0.1",
                  f"link {name} weft-{name} 10.42.0.2"]
    return "\n".join(lines) + "\n", networks


def member(hub: Hub, network: str) -> dict:
    """The machine joins; what hostile.py has to know of it."""
    host = hub.lab.host(network)
    key = new_key()
    status, snapshot = hub.enrol(host, hub.secret(network), name="member", publicKey=key)
    assert status == 200, snapshot
    own = next(n["spec"] for n in snapshot["nodes"] if n["metadata"]["name"] == "hub")
    _, token = hub.admin("POST", f"/v1/networks/{network}/tokens", {"uses": 10000})
    # The ports that everybody knows: of TCPStore, and of etcd.
    return {"secret": base64.b64encode(SECRETS[key]).decode(), "public": key,
            "hub": own["publicKey"], "tokens": [secret_of(token["token"])], "ports": [29400, 2379]}


def run(hub: Hub, network: str, what: str, me: dict, seconds: float) -> dict:
    done = hub.lab.host(network).run([sys.executable, ENDS, what, seconds], stdin=json.dumps(me),
                                     quiet=True, timeout_s=seconds + 120)
    return json.loads(done.out.splitlines()[-1])


def percentiles(took: dict[str, list[float]]) -> dict[str, float]:
    found = {}
    for name, times in took.items():
        cuts = statistics.quantiles(times, n=100)
        found |= {f"{name}P50Ms": round(cuts[49], 2), f"{name}P99Ms": round(cuts[98], 2)}
    return found


def processes(hub: Hub) -> dict[str, int]:
    """The hub, and its rendezvous processes by network."""
    return {"hub": hub.daemon.pid, **hub.rendezvous_processes()}


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(re.search(r"^VmHWM:\s+(\d+)", status, re.M)[1]) / 1024, 1)


def measure(seconds: float = 10, hostile: int = 1) -> dict:
    """Figures by situation."""
    text, networks = topology(hostile)
    with tempfile.TemporaryDirectory() as directory, Lab.from_text(text, capture=False) as lab:
        hub = Hub(lab, WEFT, Path(directory)).start("--network", "quiet", "--log-level", "error")
        for name in networks[1:]:
            hub.admin("POST", "/v1/networks", {"name": name, "cidr4": "10.42.0.0/16"})
        hub.daemon.allow(".*")
        members = {name: member(hub, name) for name in networks}
        alone = percentiles(run(hub, "quiet", "work", members["quiet"], seconds))
        before = processes(hub)
        bad = []
        for name in networks[1:]:
            file = Path(directory) / name
            file.write_text(json.dumps(members[name]))
            bad.append(hub.lab.host(name).spawn(
                ["sh", "-c", f'exec {sys.executable} {ENDS} attack {seconds + 2} < {file}'],
                name=f"attack-{name}", allow=[""]))
        beside = percentiles(run(hub, "quiet", "work", members["quiet"], seconds))
        after = processes(hub)
        peaks = {name: peak_mib(pid) for name, pid in after.items()}
        others = [peaks[name] for name in after if name.startswith("bad")]
        beside |= {"hubPeakMiB": peaks["hub"], "quietPeakMiB": peaks["quiet"],
                   "worstHostilePeakMiB": max(others, default=0.0)}
        killed = [name for name in before if before[name] != after.get(name)]
        print(f"FIGURE processes that ended: {killed or 'none'}", file=sys.stderr)
        for daemon in bad:
            daemon.wait(seconds + 60)
            print(f"FIGURE attack: {daemon.lines()[-1:]}", file=sys.stderr)
        restarts = re.search(r"weft_rendezvous_restarts_total (\d+)", hub.metrics())
        beside["restarts"] = int(restarts[1])
        hub.daemon.stop(30)
    return {"alone": alone, "beside": beside}


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    print(json.dumps(measure(*arguments), indent=2))
