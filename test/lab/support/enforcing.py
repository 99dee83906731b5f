"""Who enforces a network's rules on a host: the kernel's packet filter, or the data plane itself.

The same is expected of both. Where the data plane does it, the kernel's filter is hidden from all
of Weft's programs (programs/without_nftables.py), as in a container that has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .network.laboratory import Host

PROGRAMS = Path(__file__).parent / "programs"
KINDS = ("nftables", "own")
# Asks the process that runs an interface, and prints its answer.
ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(f"/run/wireguard/{sys.argv[1]}.sock")
    s.sendall(sys.argv[2].encode() + b"\\n\\n")
    answer = b""
    while not answer.endswith(b"\\n\\n"):
        answer += s.recv(65536)
print(answer.decode())
"""


class Enforcing:
    def __init__(self, kind: str) -> None:
        self.is_own = kind == "own"
        # What is put before each command of Weft's.
        self.wrap: Iterable[object] = ("/usr/bin/python3",
                                       PROGRAMS / "without_nftables.py") if self.is_own else ()
        # Words of weft join.
        self.words = ["--engine", "userspace"] if self.is_own else []

    def _ask(self, host: Host, interface: str, request: str) -> str:
        return host.run(["/usr/bin/python3", "-c", ASK, interface, request], check=False,
                        quiet=True).out

    def is_on(self, host: Host, interface: str = "weft0") -> bool:
        """Does it enforce anything there?"""
        if self.is_own:
            return "access_tag=" in self._ask(host, interface, "access_counts=1")
        return host.run(["nft", "list", "table", "inet", f"weft_access_{interface}"], check=False,
                        quiet=True).rc == 0

    def has_refused(self, host: Host, source: str, interface: str = "weft0") -> bool:
        """Anything from that address?"""
        if self.is_own:
            return f"access_kind={source}," in self._ask(host, interface, "access_counts=1")
        return f"{source} . " in host.run(
            ["nft", "list", "table", "inet", f"weft_access_{interface}"], check=False,
            quiet=True).out

    def stop(self, host: Host, interface: str = "weft0") -> None:
        """It enforces nothing, until Weft puts it again."""
        if self.is_own:
            assert "errno=0" in self._ask(host, interface, "set=1\naccess=off")
        else:
            host.run(["nft", "delete", "table", "inet", f"weft_access_{interface}"], check=False,
                     quiet=True)
