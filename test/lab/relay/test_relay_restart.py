"""A hub that starts again: its nodes are stock WireGuards, which do not notice.

      hub   n1   n2
       |     |    |
     [ net 198.51.100.0/24 ]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.stock_mesh import Hub
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("net", "198.51.100", {"hub": 10, "n1": 11, "n2": 12})
MEMORY = "/var/lib/weft/hub/addresses.json"
# After so long WireGuard finds by itself that nothing comes back any more, and begins anew.
SILENCE_S = 15


@pytest.fixture
def hub(weft: Path) -> Iterator[Hub]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Hub(lab.host("hub"), weft)


def remembered(hub: Hub) -> dict:
    done = hub.host.run(["cat", MEMORY], check=False, quiet=True)
    return json.loads(done.out)["default"] if done.rc == 0 else {}


def test_nodes_are_found_at_once_and_edges_soon(hub: Hub, weft: Path) -> None:
    n1 = hub.add_node(hub.host.lab.host("n1"), ["wireguard-go"], keepalive_s=25)
    n2 = hub.add_node(hub.host.lab.host("n2"), [weft, "wg"], keepalive_s=25)
    n1.meet(n2)
    n1.wg.ping(n2.wg)
    wait_for(lambda: len(remembered(hub)) == 2, 10, "the hub to remember both")
    hub.daemon.kill9()
    hub.start()
    for node in (n1, n2):
        node.insist_ping(node.hub_spec["address4"], within_s=4)
    n1.wg.ping(n2.wg, deadline_s=SILENCE_S + 10)
    assert remembered(hub)[n1.wg.public_key] == f"{n1.host.address()}:{n1.wg.port()}"


def test_a_damaged_memory_is_named_and_left_alone(hub: Hub) -> None:
    hub.daemon.stop()
    hub.host.run(["tee", MEMORY], stdin='{"default": ')
    hub.start_allowing(r"warning: hub: .*addresses\.json, line 1: .* it is left as it is")
    n1 = hub.add_node(hub.host.lab.host("n1"), ["wireguard-go"])
    n1.insist_ping(n1.hub_spec["address4"])
    assert hub.host.run(["cat", MEMORY]).out == '{"default": '
