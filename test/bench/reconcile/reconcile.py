"""reconcile - what a pass of the agent costs: the first, one without news, one with one change.

    reconcile.py [PEERS [ROUNDS]]      prints JSON; needs root; $WEFT or build/weft

The passes are made by the agent's own code in bench-reconcile (main.c), over the configuration
socket, on `weft wg` and on wireguard-go in turn. "weft, routes" is `weft wg` with a measured MTU
for each peer, which is two routes each: the state in which an agent is after its first minutes.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from interop.wgpeer import WgPeer  # noqa: E402 - the path is set above
from lab import Lab  # noqa: E402
from tunnel import PROGRAMS, REFERENCE, ROOT  # noqa: E402

PROGRAM = ROOT / "build/test/bench/reconcile/bench-reconcile"
PASSES = 41
MTU = 1380
# The program, and the MTU of each peer's path; 0: none was measured.
KINDS = {REFERENCE: (PROGRAMS[REFERENCE], 0), "weft": (PROGRAMS["weft"], 0),
         "weft, routes": (PROGRAMS["weft"], MTU)}
TOPOLOGY = """
# node ---- wire
switch wire 10.9.0.0/24
host node
link node wire 10.9.0.1
"""


def one(argv: list, peers: int, mtu: int) -> dict[str, float]:
    """The figures of one run, on an interface that nobody has touched before."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        host = lab.host("node")
        WgPeer.userspace(host, argv, "weft0", allow=[".*"])
        done = host.run([PROGRAM, "weft0", peers, PASSES, mtu], timeout_s=120, quiet=True)
        return json.loads(done.out)


def measure(peers: int, rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in KINDS}
    for _ in range(rounds):
        for name, (argv, mtu) in KINDS.items():
            found[name].append(one(argv, peers, mtu))
    return {name: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
            for name, runs in found.items()}


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    print(json.dumps(measure(*(words + [1000, 3][len(words):])), indent=1))
