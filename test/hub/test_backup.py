"""A copy of a running hub, and a hub made of it."""

from __future__ import annotations

import sys

import pytest

from .hub import Hub
from .test_audit import Churning, state_of

pytestmark = pytest.mark.namespaces

SILENT_NAME_SERVER = """
import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
print("is up", flush=True)
signal.pause()
"""


def restore(hub, source, *more: object, check: bool = True):
    return hub.lab.host("hub").run(
        [hub.weft, "hub", "restore", source, "--state", hub.state, *more], check=check)


def test_there_and_back(hub, lab, tmp_path):
    """What the hub had at the copy it has again, keys and tokens too; what came later is gone."""
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    secret = hub.secret(uses=5)
    assert hub.enrol(lab.host("a"), secret, name="gpu-1")[0] == 200
    copy, pin, before = tmp_path / "copy", hub.pin, state_of(hub)
    hub.run("hub", "backup", str(copy))
    assert copy.stat().st_mode & 0o777 == 0o700
    assert all(f.stat().st_mode & 0o77 == 0 for f in copy.rglob("*"))
    assert not (hub.state / "backup").exists()
    assert hub.enrol(lab.host("b"), secret, name="later")[0] == 200
    hub.run("network", "rm", "other")

    # Not over a running hub, and nothing is touched then.
    refused = restore(hub, copy, check=False)
    assert refused.rc == 1 and "is in use" in refused.err and "end that hub first" in refused.err
    assert "later" in hub.nodes()

    assert hub.daemon.stop() == 0
    said = restore(hub, copy).out
    assert "what was there is now in" in said
    # The next step, with what the hub was started with.
    options = " ".join(str(word) for word in hub.argv()[3:])
    assert f"its hub was started by: weft hub up {options}\n" in said
    assert "systemctl enable --now weft-hub" in said
    hub.start()
    assert hub.pin == pin and state_of(hub) == before
    networks = hub.admin("GET", "/v1/networks")[1]["networks"]
    assert [n["metadata"]["name"] for n in networks] == ["default", "other"]
    assert hub.enrol(lab.host("b"), secret, name="gpu-2")[0] == 200
    told = hub.admin("GET", "/v1/audit")[1]["entries"]
    assert [e["object"] for e in told if e["operation"] == "copy"] == ["file/backup"]


def test_a_copy_of_one_moment(hub, lab, tmp_path, weft):
    """While nodes come and go: each copy is a hub by itself, whole."""
    churn = Churning(hub)
    churn.start()
    try:
        for i in range(3):
            hub.run("hub", "backup", str(tmp_path / f"copy-{i}"))
    finally:
        churn.stopping.set()
        churn.join()
    assert hub.daemon.stop() == 0
    for i in range(3):
        again = Hub(lab, weft, tmp_path / f"hub-{i}")
        again.socket.parent.mkdir()
        restore(again, tmp_path / f"copy-{i}")
        again.start()
        state = state_of(again)
        assert len(again.nodes()) >= 1 and all(revision > 0 for revision in state.values())
        assert "weft_damaged_records 0" in again.metrics()
        assert again.daemon.stop() == 0


def test_what_is_no_copy(hub, tmp_path):
    """It is refused in words, and the state stays as it was."""
    copy = tmp_path / "copy"
    hub.run("hub", "backup", str(copy))
    again = hub.run("hub", "backup", str(copy), check=False)
    assert again.rc == 1 and "File exists" in again.err
    assert hub.daemon.stop() == 0
    before = (hub.state / "tls.key").read_bytes()
    with (copy / "hub.db").open("r+b") as file:
        file.truncate(5000)
    done = restore(hub, copy, check=False)
    assert done.rc == 1 and f'"{copy}/hub.db" is damaged, or is not the database' in done.err
    (copy / "hub.db").unlink()
    done = restore(hub, copy, check=False)
    assert done.rc == 1 and "has no hub.db" in done.err
    assert (hub.state / "tls.key").read_bytes() == before
    assert sorted(p.name for p in hub.state.parent.iterdir() if "restore" in p.name) == []
    hub.start()


def test_a_copy_without_keys(hub, tmp_path):
    """As `scp copy/* there:` makes one. It is restored, and what it lacks is said at once."""
    copy = tmp_path / "copy"
    hub.run("network", "add", "second")
    hub.run("hub", "backup", str(copy))
    assert hub.daemon.stop() == 0
    assert restore(hub, copy).err == ""
    (copy / "keys" / "second.key").write_text("something else\n")
    (copy / "keys" / "default.key").unlink()
    said = restore(hub, copy).err
    assert "the copy lacks keys/NETWORK.key" in said and "for: default, second. A hub" in said
    hub.start()
    hub.daemon.allow("is set aside")


def test_on_a_machine_that_never_had_a_hub(hub, lab, tmp_path):
    """The folders are made, and what root has restored is the hub's when it starts."""
    copy, pin, before = tmp_path / "copy", hub.pin, state_of(hub)
    hub.run("hub", "backup", str(copy))
    assert hub.daemon.stop() == 0
    hub.state = hub.state.parent / "elsewhere" / "deep" / "hub"
    out = restore(hub, copy).out
    assert "what was there" not in out
    hub.start()
    assert hub.pin == pin and state_of(hub) == before


def test_a_name_server_that_says_nothing(lab, weft, tmp_path):
    """A hub that waits to be told where its --public leads says so."""
    hub = Hub(lab, weft, tmp_path)
    host = lab.host("hub")
    silent = host.spawn([sys.executable, "-c", SILENT_NAME_SERVER], name="dns")
    silent.wait_line("is up")
    host.run(["sh", "-c", "echo nameserver 127.0.0.1 > /run/resolv.conf; echo options timeout:4 "
              "attempts:1 >> /run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf"])
    hub.address = "hub.example.org"
    daemon = host.spawn(hub.argv(), name="hub")
    daemon.wait_line("waiting for a name server to say where --public hub.example.org:51820 leads")
    assert daemon.wait() == 1
