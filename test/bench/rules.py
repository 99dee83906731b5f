"""The data plane with 1,000 rules that it enforces itself beside the same without any, in pairs.

As before.py compares two programs. All rules are about both ends: 999 of ports that nobody uses,
and one of iperf3's. The other tunnel has no rule. The measure of a packet's cost is the processor
time of both ends together.
"""

from __future__ import annotations

import before
from lab import Host, Lab
from tunnel import TOPOLOGY, Tunnel, set_underlay

REFERENCE = "without"
RULES = 1000
# Sends a request to the process that runs an interface.
TELL = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(f"/run/wireguard/{sys.argv[1]}.sock")
    s.sendall(sys.stdin.buffer.read())
    answer = b""
    while not answer.endswith(b"\\n\\n"):
        answer += s.recv(65536)
assert answer == b"errno=0\\n\\n", answer
"""


def lines(own: str, other: str) -> list[str]:
    """Of a node with the address `own`, which knows one other."""
    said = [f"self {own}", "refuse in", "refuse out", "set", f"set {other}"]
    for number in range(RULES):
        port = 5201 if number == 0 else 20000 + number
        said += [f"rule r{number}", f"allow tcp/{port}-{port},udp/{port}-{port},icmp",
                 f"in set:1 {own}/32", "out set:1"]
    return said


def tell(host: Host, interface: str, said: list[str]) -> None:
    request = "".join(f"access={line}\n" for line in ["begin", *said, "end 1"])
    host.run(["/usr/bin/python3", "-c", TELL, interface], stdin=f"set=1\n{request}\n", quiet=True)


def measure(underlay: str, pairs: int, seconds: int) -> dict[str, dict[str, float]]:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        set_underlay(lab, underlay)
        tunnels = [Tunnel("weft", number, lab, label=label)
                   for number, label in enumerate(("rules", REFERENCE))]
        near, far = (str(end.addresses[0].ip) for end in (tunnels[0].near, tunnels[0].far))
        tell(lab.host("a"), tunnels[0].near.interface, lines(near, far))
        tell(lab.host("b"), tunnels[0].far.interface, lines(far, near))
        return before.in_pairs(tunnels, pairs, seconds, "OfWithout")
