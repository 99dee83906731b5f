"""Faults of hubs, one at a time: what is found of each, and that nothing else is.

A hub with a small disk, and the network of net.py; and three hubs that share a store:

    [store], hub, hub-b, hub-c ── [ wan ] ── a, b
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.etcd import start_etcd
from lab.support.three_hubs import NODES, ThreeHubs, topology

from .net import QUARTET, Net, drop, fault, undo

pytestmark = pytest.mark.namespaces

HUB_STATE = "/var/lib/weft/hub"
CLIENT, PEER = "http://203.0.113.10:2379", "http://203.0.113.10:2380"
STORE = "etcd://203.0.113.10?prefix=/weft/lab"


def test_the_disk_of_a_hub_is_full(weft: Path) -> None:
    with Lab.from_text(QUARTET, capture=False) as lab:
        hub = lab.host("hub")
        hub.run(["mkdir", "-p", HUB_STATE], quiet=True)
        hub.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", HUB_STATE], quiet=True)
        net = Net(lab, weft)
        with fault(net, "WEFT-HUB-001", "hub", 30, over_s=90) as found:
            hub.run(["sh", "-c", f"cat /dev/zero > {HUB_STATE}/fill"], check=False, quiet=True)
            wait_for(lambda: hub.run([weft, "token", "new"], check=False, quiet=True).rc != 0, 20,
                     "a change to be refused")
            said = found()
            assert said["about"] == "hub" and said["severity"] == "critical"
            assert said["text"].startswith("The store of the hub takes no writes: ")
            hub.run(["rm", f"{HUB_STATE}/fill"], quiet=True)


class Cluster(ThreeHubs):
    """Three hubs, of which a word is had by what fault() asks."""

    def findings(self) -> list[dict]:
        """Of the first hub."""
        return json.loads(self.lab.host("hub").run(
            [self.weft, "get", "findings", "--json"], quiet=True).out)["findings"]

    def findings_of(self, node: str) -> list[dict]:
        return json.loads(self.lab.host(node).run(
            [self.weft, "status", "--json"], quiet=True).out)["findings"]

    def unquiet(self) -> list[str]:
        """What is found but notes, by the hub and by the nodes."""
        found = self.findings() + [one for node in NODES for one in self.findings_of(node)]
        return [f"{one['code']} {one['subject']}: {one['text']}" for one in found
                if one["severity"] != "note"]


@pytest.fixture(scope="module")
def cluster(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not shutil.which("etcd"):
        pytest.skip("there is no etcd (Debian's etcd-server)")
    with Lab.from_text(topology(), capture=False) as lab:
        start_etcd(lab.host("store"), tmp_path_factory.mktemp("etcd"), CLIENT, PEER)
        made = Cluster(lab, weft, STORE, allow=[".*"])
        wait_for(lambda: all(map(made.knows_all, NODES)), 60, "each node to know each hub")
        yield made
        made.stop()


def test_a_hub_that_does_not_hear_its_store(cluster: Cluster) -> None:
    """It takes no writes either, which is not said besides."""
    hub = cluster.lab.host("hub")
    with fault(cluster, "WEFT-HUB-002", "hub", 30, over_s=60) as found:
        drop(hub, "storeless", "output", "tcp dport 2379")
        drop(hub, "storeless_in", "input", "tcp sport 2379")
        hub.spawn([cluster.weft, "token", "new"], name="token", allow=[""])
        assert "and nodes are told what was true before" in found()["text"]
        undo(hub, "storeless")
        undo(hub, "storeless_in")


def test_another_hub_that_is_away(cluster: Cluster) -> None:
    """What a node says that is served by the first one."""
    with fault(cluster, "WEFT-HUBS-001", "hub-c", 110, over_s=90,
               at=lambda: cluster.findings_of("a")) as found:
        cluster.hubs["hub-c"].kill9()
        assert found()["severity"] == "warning"
        cluster.hubs["hub-c"] = cluster.start_hub("hub-c")
