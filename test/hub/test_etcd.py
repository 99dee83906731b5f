"""A hub whose store is a real etcd."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from lab import Lab, wait_for

from .hub import Hub

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not shutil.which("etcd"), reason="there is no etcd (Debian's etcd-server)"),
]

CLIENT = "http://127.0.0.1:2379"
PEER = "http://127.0.0.1:2380"
STORE = ("--store", "etcd://127.0.0.1?prefix=/weft/lab")


class Etcd:
    """One member on the machine `hub`."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.host = lab.host("hub")
        self.directory = directory
        self.start()

    def start(self) -> None:
        self.daemon = self.host.spawn(
            ["/usr/bin/etcd", "--name", "one", "--data-dir", self.directory,
             "--listen-client-urls", CLIENT, "--advertise-client-urls", CLIENT,
             "--listen-peer-urls", PEER, "--initial-advertise-peer-urls", PEER,
             "--initial-cluster", f"one={PEER}", "--logger=zap", "--log-level=error"],
            name="etcd")
        wait_for(lambda: "true" in self.host.run(["curl", "-s", f"{CLIENT}/health"], check=False,
                                                 quiet=True).out, 10, "etcd to answer")

    def names(self) -> list[str]:
        out = self.host.run(["env", "ETCDCTL_API=3", "etcdctl", f"--endpoints={CLIENT}", "get",
                             "--prefix", "--keys-only", "/weft/lab/"], quiet=True).out
        return out.split()

    def sessions(self) -> list[str]:
        return [name for name in self.names() if name.startswith("/weft/lab/s/")]


@pytest.fixture
def etcd(lab: Lab, tmp_path: Path) -> Etcd:
    return Etcd(lab, tmp_path / "etcd")


@pytest.fixture
def hub(lab: Lab, weft: Path, tmp_path: Path, etcd: Etcd) -> Hub:
    return Hub(lab, weft, tmp_path).start(*STORE)


def test_nothing_is_lost(hub: Hub, lab: Lab, etcd: Etcd) -> None:
    """The hub dies, and so does etcd; who was told that it is a member is one."""
    secret = hub.secret(uses=5)
    assert hub.enrol(lab.host("a"), secret, name="gpu-1")[0] == 200
    assert hub.run("edge", "set", "hub", "gpu-1", "--path", "relay").rc == 0
    assert hub.run("rule", "add", "ssh", "--from", "members", "--to", "hub", "--allow", "tcp/22",
                   "--yes").rc == 0
    before = hub.nodes()
    assert any(name.endswith("/gpu-1") for name in etcd.names())
    assert not (hub.state / "hub.db").exists()
    hub.daemon.kill9()
    etcd.daemon.kill9()
    etcd.start()
    hub.start(*STORE)
    after = hub.nodes()
    assert {n: node["spec"] for n, node in after.items()} == \
        {n: node["spec"] for n, node in before.items()}
    assert "ssh  " in hub.run("rule", "ls").out
    assert hub.enrol(lab.host("b"), secret, name="gpu-2")[0] == 200
    assert "weft_damaged_records 0" in hub.metrics()
    assert len(etcd.sessions()) == 2
    assert hub.daemon.stop() == 0
    # It has given its session back; that of the one that was killed ends later, by itself.
    assert len(etcd.sessions()) == 1


def test_etcd_stands_still(hub: Hub, etcd: Etcd) -> None:
    """What cannot be written is refused in words; what is read is in the hub, and is answered."""
    hub.daemon.allow("etcd is away")
    hub.daemon.allow("is not known|has not answered")
    os.kill(etcd.daemon.pid, signal.SIGSTOP)
    try:
        lost = hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16", check=False)
        # Unless the hub has found etcd silent before the command came.
        assert lost.rc != 0 and re.search("is not known|most of its members must be up",
                                          lost.err), lost.err
        refused = hub.run("network", "add", "third", "--cidr4", "10.51.0.0/16", check=False)
        assert refused.rc != 0 and "most of its members must be up" in refused.err, refused.err
        assert set(hub.nodes()) == {"hub"}
    finally:
        os.kill(etcd.daemon.pid, signal.SIGCONT)

    def is_there() -> bool:
        """The refused one may have been done after all; else it is now."""
        hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16", check=False)
        networks = hub.admin("GET", "/v1/networks")[1]["networks"]
        return "other" in [n["metadata"]["name"] for n in networks]

    wait_for(is_there, 20, "the network to be there")


def test_no_copy_of_etcd(hub: Hub, tmp_path: Path) -> None:
    refused = hub.run("hub", "backup", str(tmp_path / "copy"), check=False)
    assert refused.rc == 1 and "etcdctl snapshot save" in refused.err, refused.err


def test_etcd_is_away(lab: Lab, weft: Path, tmp_path: Path) -> None:
    """A hub says what it lacks, and ends."""
    hub = Hub(lab, weft, tmp_path)
    done = lab.host("hub").run([*hub.argv(*STORE)], check=False)
    assert done.rc == 1 and "etcd is away" in done.err and "127.0.0.1:2379" in done.err, done.err
