"""Paths between agents, found and kept, whatever stands between them.

    hub ── [ wan ] ── nat-K ── [ lan-K ] ── K1 (K2)     for each kind of NAT K
              │
              ├───── firewall ── [ lan-six ] ── six1, six2: IPv6 without a NAT, symmetric IPv4
              └───── open: an address of its own

One topology with every kind at once, and all pairs at the same time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from lab.agents import Site

pytestmark = pytest.mark.namespaces

KINDS = {"fc": "full-cone", "ar": "address-restricted", "pr": "port-restricted", "sy": "symmetric"}


def topology(delay: str = "") -> str:
    words = f"delay={delay}" if delay else ""
    lines = ["switch wan 203.0.113.0/24 2001:db8:0::/64", "host hub",
             "link hub wan 203.0.113.10 2001:db8::10", "host open no-v6",
             f"link open wan 203.0.113.11 {words}"]
    number = 20
    for kind, long in KINDS.items():
        for side in "ab":
            number += 1
            nat, lan = f"nat-{kind}-{side}", f"lan-{kind}-{side}"
            lines += [f"switch {lan} 192.168.{number}.0/24 gateway={nat}",
                      f"nat {nat} {long} out=wan",
                      f"link {nat} wan 203.0.113.{number} {words}",
                      f"link {nat} {lan} 192.168.{number}.1",
                      f"host {kind}-{side} no-v6", f"link {kind}-{side} {lan} 192.168.{number}.11"]
    # A second host behind one NAT, and two networks with IPv6 behind a firewall each.
    lines += ["host pr-c no-v6", "link pr-c lan-pr-a 192.168.25.12"]
    for side, number in (("a", 41), ("b", 42)):
        nat, lan = f"nat-six-{side}", f"lan-six-{side}"
        lines += [f"switch {lan} 192.168.{number}.0/24 2001:db8:{number}::/64 gateway={nat}",
                  f"nat {nat} symmetric out=wan",
                  f"link {nat} wan 203.0.113.{number} 2001:db8::{number} {words}",
                  f"link {nat} {lan} 192.168.{number}.1 2001:db8:{number}::1",
                  f"host six-{side}",
                  f"link six-{side} {lan} 192.168.{number}.11 2001:db8:{number}::11",
                  f"route hub 2001:db8:{number}::/64 via={nat}"]
    lines += ["route nat-six-a 2001:db8:42::/64 via=nat-six-b",
              "route nat-six-b 2001:db8:41::/64 via=nat-six-a"]
    return "\n".join(lines)


def expected(a: str, b: str) -> set[str]:
    """How RFC 4787 lets two nodes reach each other, by the kinds of their NATs."""
    kinds = {a[:-2] if "-" in a else a, b[:-2] if "-" in b else b}
    if {a, b} == {"pr-a", "pr-c"}:
        return {"lan"}
    if kinds == {"six"}:
        return {"direct"}
    kinds = {"sy" if kind == "six" else kind for kind in kinds}
    if kinds == {"sy"}:
        return {"relay", "direct"}
    if kinds == {"sy", "pr"}:
        return {"relay", "direct"}
    return {"direct"}


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(topology(), capture=False) as lab:
        yield Site(lab, weft)


def test_every_kind_with_every_kind(site: Site) -> None:
    names = ["open", "pr-c", "six-a", "six-b",
             *(f"{kind}-{side}" for kind in KINDS for side in "ab")]
    site.join(*names)
    wanted = {pair: expected(*pair) for pair in itertools.combinations(names, 2)}
    site.wait_paths(wanted, 60)
    site.all_reach(wanted)
