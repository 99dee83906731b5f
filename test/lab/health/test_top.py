"""weft top and weft get edges: what is so now, and no number of what is dead.

      hub        203.0.113.10
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12; their packets to each other need not go through the hub
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import Site
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
# What the agents may say while one is cut off.
ANY = {"n1": [".*"], "n2": [".*"]}
# From the fault to the finding.
BOUND_S = 30


def test_top(weft: Path) -> None:
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        site = Site(lab, weft, versions=(4,))
        n1, n2 = site.join("n1", "n2", allow=ANY)

        def at_the_hub(*words: str) -> str:
            return lab.host("hub").run([weft, *words], quiet=True).out

        def row(pattern: str, said: str) -> bool:
            return re.search(pattern, said, re.MULTILINE) is not None

        site.wait_paths({("n1", "n2"): {"direct", "lan"}}, 60)
        pings = n1.host.spawn(["ping", "-i", "0.02", "-s", "1000", n2.address()], name="ping")
        pings.wait_line("bytes from", 20)
        # This node and its peers: both directions, by the second.
        wait_for(lambda: row(r"^n1--n2 +(lan|direct) +[\d.]+ ms .*[\d.]+ kB/s +[\d.]+ kB/s +\d+ ",
                             n1.run("top", "--once").out), 30, "rates at n1")
        wait_for(lambda: row(r"^n1--n2 +(lan|direct) .* \d+ (s|min)", at_the_hub("top", "--once")),
                 60, "the hub to know the pair")
        assert row(r"^n1--n2 +(lan|direct) +\d+ (s|min)[^-]* +(lan|direct), ",
                   at_the_hub("get", "edges"))
        lab.link("n2", "wan").down()
        wait_for(lambda: row(r"^n2 +silent \d+ s +- +- +- ", n1.run("top", "--once").out),
                 BOUND_S, "n1 to know that n2 is dead")
        assert row(r"^n1--n2 +\S+ +- +- +- +- +- ", n1.run("top", "--once").out)
        wait_for(lambda: row(r"^n2 +down +- +- +- ", at_the_hub("top", "--once")), BOUND_S,
                 "the hub to know that n2 is dead")
        shown = at_the_hub("top", "--once")
        assert row(r"^n1--n2 +agent-silent +- +- +- +- +- +\d+ s +n2 is down", shown), shown
        assert "WEFT-NODE-001" in shown and "-> Start the machine, or look at its line" in shown
        edges = at_the_hub("get", "edges")
        assert row(r"^n1--n2 +agent-silent +\d+ s .* - +- +n2 is down", edges), edges
        pings.stop()
