"""Between two stock WireGuards the relay of the hub enforces rules, by the pair.

      hub        203.0.113.10
       |
     [ wan ]
      |   |
     s1   s2     203.0.113.11, .12: wg-quick and wireguard-go, no agent
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.agents import Site
from lab.support.pinging import can_ping
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "s1": 11, "s2": 12})


def stock(site: Site, weft: Path, host: Host) -> None:
    conf = site.hub.run([weft, "node", "add", host.name, "--new-key"], quiet=True).out
    host.run(["mkdir", "-p", "/etc/wireguard"], quiet=True)
    host.run(["sh", "-c", f"umask 077; cat > /etc/wireguard/{host.name}.conf"], stdin=conf,
             quiet=True)
    host.run(["wg-quick", "up", host.name], quiet=True,
             env={"WG_QUICK_USERSPACE_IMPLEMENTATION": "wireguard-go"})


def test_the_relay_goes_by_the_pair(weft: Path) -> None:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        s1, s2 = lab.host("s1"), lab.host("s2")
        stock(site, weft, s1)
        stock(site, weft, s2)
        spec = {name: node["spec"] for name, node in site.hub_nodes().items()}
        # The file of s1 was made before there was s2.
        at, key = spec["s2"]["address4"], spec["s2"]["publicKey"]
        s1.run(["wg", "set", "s1", "peer", key, "endpoint", "203.0.113.10:51820", "allowed-ips",
                f"{at}/32"], quiet=True)
        s1.run(["ip", "route", "replace", at, "dev", "s1"], quiet=True)
        wait_for(lambda: can_ping(s1, at), 30, "s1 to reach s2")

        def rule(*words: str) -> str:
            return site.hub.run([weft, "rule", *words], check=False, quiet=True).out

        rule("add", "other", "--from", "node:s1", "--to", "hub", "--allow", "any", "--yes")
        wait_for(lambda: not can_ping(s1, at), 10, "the relay to keep them apart")
        assert rule("test", "s1", "s2:22").splitlines() == [
            "refused: none of the 1 rules allows it",
            "enforced by the relay of a hub alone, which reads no ports: it goes by the pair, "
            "and not on a direct path"]
        # One port is enough for the pair.
        rule("add", "ssh", "--from", "node:s2", "--to", "node:s1", "--allow", "tcp/22")
        wait_for(lambda: can_ping(s1, at), 30, "the pair to be let through")
        rule("rm", "ssh")
        wait_for(lambda: not can_ping(s1, at), 10, "the relay to keep them apart again")
        rule("rm", "other")
        wait_for(lambda: can_ping(s1, at), 30, "s1 to reach s2 without rules")
