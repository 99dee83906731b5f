"""scale - a hub with a fleet of fake nodes (main.c): joins, memory, rest, news told to all.

    scale.py [NODES [LATE [IDLE_S [CHANGES]]]]     prints JSON; needs root; $WEFT or build/weft,
                                                   and $WEFT_BEFORE, a program to compare with

                 wire
        fleet ---------- hub       both on the cores that this process may use: $CORES

The nodes are one process in the host "fleet", each with an address of its own there and in the
overlay; the hub is the real program with everything it does: TLS, SQLite, its data plane. What
10,000 nodes cost that have nothing to do, beside the same with $WEFT_BEFORE: scale.py 10000 0 130 1
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from lab import Lab, wait_for  # noqa: E402 - the path is set above

WEFT = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
FLEET = ROOT / "build/test/bench/scale/bench-scale"
TOPOLOGY = """
# fleet ---- wire ---- hub
switch wire 10.9.0.0/24
host fleet
host hub
link fleet wire 10.9.0.1
link hub   wire 10.9.0.2
"""
INTERFACE = "nodes0"
# The overlay's addresses and the nodes' own: all of them local in "fleet", but for the hub's.
ROUTES = [
    ("fleet", "ip route add local 10.42.0.0/16 dev lo"),
    ("fleet", "ip route add local 172.20.0.0/16 dev lo"),
    ("fleet", f"ip tuntap add dev {INTERFACE} mode tun vnet_hdr"),
    ("fleet", f"ip link set {INTERFACE} mtu 1420 txqueuelen 30000 up"),
    ("fleet", f"ip route add table local 10.42.0.1/32 dev {INTERFACE}"),
    ("fleet", "sysctl -qw net.ipv4.conf.all.rp_filter=0"),
    ("hub", "ip route add 172.20.0.0/16 via 10.9.0.1"),
]


def measure(nodes: int, late: int, idle_s: int, changes: int) -> dict[str, dict[str, float]]:
    """The fleet with the hub of each program, one after the other."""
    programs = {"weft": WEFT}
    if "WEFT_BEFORE" in os.environ:
        programs["before"] = Path(os.environ["WEFT_BEFORE"]).resolve()
    return {name: measure_hub(program, nodes, late, idle_s, changes)
            for name, program in programs.items()}


def measure_hub(
    program: Path, nodes: int, late: int, idle_s: int, changes: int
) -> dict[str, float]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (Lab.from_text(TOPOLOGY, capture=False) as lab,
          tempfile.TemporaryDirectory(prefix="weft-bench-scale.") as top):
        hosts = {name: lab.host(name) for name in ("fleet", "hub")}
        for name, command in ROUTES:
            hosts[name].run(command.split(), quiet=True)
        hub = hosts["hub"].spawn(
            [program, "hub", "up", "--public", "10.9.0.2", "--cidr4", "10.42.0.0/16", "--state",
             f"{top}/state", "--socket", f"{top}/sock", "--log-level", "error"],
            name="hub", allow=[".*"])
        wait_for(lambda: any("is up" in line for line in hub.lines()), 10, "the hub")
        token = hosts["hub"].run([program, "token", "new", "--uses", nodes + late, "--ttl", "1h",
                                  "--socket", f"{top}/sock"], quiet=True).out.strip()
        fleet = hosts["fleet"].spawn([FLEET, token, hub.pid, INTERFACE, nodes, late, idle_s,
                                      changes], name="fleet", allow=[".*"])
        status = fleet.wait(1800)
        said = "".join(fleet.lines())
    try:
        return json.loads(said)
    except json.JSONDecodeError:
        raise SystemExit(f"{FLEET} has ended with {status} and said no JSON: {said}") from None


def build() -> None:
    """`make build` leaves the fleet out, so one that is there may be of an older source."""
    if not (ROOT / "build/build.ninja").exists():
        raise SystemExit("there is no build folder: run make build")
    subprocess.run(["ninja", "-C", ROOT / "build", "--quiet", FLEET.relative_to(ROOT / "build")],
                   check=True)


if __name__ == "__main__":
    build()
    words = [int(word) for word in sys.argv[1:]]
    print(json.dumps(measure(*(words + [1000, 100, 30, 50][len(words):])), indent=1))
