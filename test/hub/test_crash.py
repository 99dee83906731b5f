"""Nothing that was acknowledged is lost: kill -9, full disks, damaged files."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from lab import wait_for

from .hub import Hub, Watch, member_call, new_key, put_of

pytestmark = pytest.mark.namespaces


class Enrolling(threading.Thread):
    """Machines that enrol one after the other, until told to stop."""

    def __init__(self, hub: Hub, host, secret: str, prefix: str) -> None:
        super().__init__()
        self.hub, self.host, self.secret, self.prefix = hub, host, secret, prefix
        self.acked: dict[str, dict] = {}  # by name, the node as it was acknowledged
        self.stopping = threading.Event()

    def run(self) -> None:
        n = 0
        while not self.stopping.is_set():
            name = f"{self.prefix}-{n}"
            status, answer = self.hub.enrol(self.host, self.secret, name=name)
            # An answer that was cut in the middle is none.
            if status == 200 and isinstance(answer, dict):
                self.acked[name] = next(
                    node for node in answer["nodes"] if node["metadata"]["name"] == name)
                n += 1
            elif status:
                n += 1  # it was taken in, and only the answer was lost


def test_kill_9_at_any_moment(hub, lab):
    """Machines enrol all the time while the hub is killed again and again."""
    rng = random.Random(7)
    secret = hub.secret(uses=100000, ttlSeconds=3600)
    workers = [Enrolling(hub, lab.host(name), secret, name) for name in "ab"]

    def n_acked() -> int:
        return sum(len(worker.acked) for worker in workers)

    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            before = n_acked()
            wait_for(lambda n=before: n_acked() >= n + 2, 10, "machines to enrol")
            time.sleep(rng.uniform(0, 0.3))  # the moment of the crash is the point
            hub.restart()
    finally:
        for worker in workers:
            worker.stopping.set()
            worker.join()
    hub.restart()
    nodes = hub.nodes()
    acked = {name: node for worker in workers for name, node in worker.acked.items()}
    assert len(acked) >= 20
    for name, node in acked.items():
        for field in ("publicKey", "address4", "address6"):
            assert nodes[name]["spec"][field] == node["spec"][field]
    addresses = [node["spec"]["address4"] for node in nodes.values()]
    assert len(set(addresses)) == len(addresses)


def test_everything_is_there_after_kill_9(hub, lab):
    hub.run("network", "add", "other", "--cidr4", "10.50.0.0/16")
    keep, used = hub.secret(uses=2), hub.secret()
    key = new_key()
    assert hub.enrol(lab.host("a"), used, name="a", publicKey=key)[0] == 200
    assert hub.enrol(lab.host("b"), keep, name="b")[0] == 200
    hub.run("edge", "set", "a", "b", "--path", "relay")
    before = hub.admin("GET", "/v1/networks")[1], hub.nodes(), hub.nodes("other"), hub.pin
    edge = hub.admin("GET", "/v1/networks/default/objects/MeshEdge/a--b")[1]
    hub.restart()

    def without_status(nodes):
        return {name: node["spec"] for name, node in nodes.items()}

    after = hub.admin("GET", "/v1/networks")[1], hub.nodes(), hub.nodes("other"), hub.pin
    assert after[0] == before[0] and after[3] == before[3]
    assert without_status(after[1]) == without_status(before[1])
    assert without_status(after[2]) == without_status(before[2])
    assert hub.admin("GET", "/v1/networks/default/objects/MeshEdge/a--b")[1] == edge
    # Tokens too: the used one is still used, its machine still welcome, the other has one use.
    assert hub.enrol(lab.host("a"), used)[0] == 401
    assert hub.enrol_again(lab.host("a"), used, key)[1]["self"] == "a"
    assert hub.enrol(lab.host("a"), keep)[0] == 200
    assert hub.enrol(lab.host("a"), keep)[0] == 401


def test_an_address_is_not_given_out_again_after_a_restart(hub, lab):
    secret = hub.secret(uses=9)
    assert hub.enrol(lab.host("a"), secret, name="one")[0] == 200
    hub.run("node", "rm", "one")
    hub.restart()
    assert hub.enrol(lab.host("a"), secret, name="two")[0] == 200
    assert hub.nodes()["two"]["spec"]["address4"] == "10.42.0.3"


def test_watches_come_back(hub, lab):
    assert hub.enrol(lab.host("a"), hub.secret(), name="a")[0] == 200
    watch = Watch(lab.host("a"))
    revision = watch.wait('"type":"snapshot"')["revision"]
    hub.restart()
    watch.daemon.wait()
    again = Watch(lab.host("a"))
    assert again.wait('"type":"snapshot"')["revision"] >= revision
    assert hub.enrol(lab.host("b"), hub.secret(), name="b")[0] == 200
    again.wait(put_of("b"))


def test_reports_survive_an_orderly_end(hub, lab):
    assert hub.enrol(lab.host("a"), hub.secret(), name="a", engine="kernel")[0] == 200
    assert hub.daemon.stop() == 0
    hub.start()
    status = hub.nodes()["a"]["status"]
    assert status["engine"] == "kernel" and status["lastSeen"] > 0


def metric(hub, name):
    return float(re.search(rf"^{name} (\S+)$", hub.metrics(), re.MULTILINE)[1])


def test_a_full_disk_is_said_until_it_is_over(lab, weft, tmp_path):
    """Health, metrics and `weft hub status` say so, and cease by themselves when there is room."""
    hub = Hub(lab, weft, tmp_path)
    hub.start(before=("prlimit", "--fsize=400000:"))
    secret = hub.secret(uses=100000)
    assert hub.admin("GET", "/v1/health")[1]["ok"] is True
    assert metric(hub, "weft_store_refuses") == 0
    for i in range(400):
        if hub.enrol(lab.host("a"), secret, name=f"n-{i}", labels={"x": "y" * 60})[0] != 200:
            break
    status, answer = hub.admin("GET", "/v1/health")
    assert (status, answer["ok"]) == (503, False) and "no space left" in answer["error"]
    # Strangers are not told where files are.
    status, answer = hub.public(lab.host("a"), "GET", "/v1/health")
    assert status == 503 and "refuses changes" in answer["error"] and "hub.db" not in str(answer)
    assert hub.public(lab.host("a"), "GET", "/v1/health?live=1")[0] == 200
    assert metric(hub, "weft_store_refuses") == 1
    assert metric(hub, "weft_store_commits_refused_total") >= 1
    said = hub.run("hub", "status", check=False)
    assert said.rc == 1 and "refuses changes" in said.err
    hub.daemon.allow("no space left")
    lab.host("hub").run(["prlimit", f"--pid={hub.daemon.pid}", "--fsize=unlimited:"])
    wait_for(lambda: hub.admin("GET", "/v1/health")[0] == 200, 120, "the hub to be healthy again")
    assert metric(hub, "weft_store_refuses") == 0
    assert "the hub answers" in hub.run("hub", "status").out


def test_full_disk(lab, weft, tmp_path):
    """Files of the hub may not grow beyond 400 KiB: it refuses in words and goes on."""
    hub = Hub(lab, weft, tmp_path)
    hub.start(before=("prlimit", "--fsize=400000"))
    secret = hub.secret(uses=100000)
    acked, refused = [], None
    for i in range(400):
        status, answer = hub.enrol(lab.host("a"), secret, name=f"n-{i}", labels={"x": "y" * 60})
        if status != 200:
            refused = status, answer
            break
        acked.append(f"n-{i}")
    assert refused and refused[0] == 507 and "no space left" in refused[1]["error"]
    assert str(hub.state / "hub.db") in refused[1]["error"]
    # Reading goes on; another try is refused again, and nothing is half done.
    assert hub.nodes().keys() == {"hub", *acked}
    assert hub.admin("POST", "/v1/networks", {"name": "more"})[0] == 507
    assert [n["metadata"]["name"] for n in hub.admin("GET", "/v1/networks")[1]["networks"]] == [
        "default"]
    hub.daemon.allow("no space left")
    hub.daemon.kill9()
    hub.start()
    assert hub.nodes().keys() == {"hub", *acked}
    assert hub.enrol(lab.host("a"), secret)[0] == 200


def test_a_start_on_a_full_disk(lab, weft, tmp_path):
    """The hub serves what it holds, also with other options, which it then cannot keep."""
    hub = Hub(lab, weft, tmp_path)
    hub.state.mkdir()
    hub.host.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", hub.state])
    hub.start()
    secret = hub.secret()
    hub.host.run(["sh", "-c", f"cat /dev/zero > {hub.state}/fill"], check=False)
    hub.daemon.kill9()
    hub.start()
    assert hub.nodes().keys() == {"hub"}
    assert not [line for line in hub.daemon.lines() if "are not kept" in line]
    hub.daemon.kill9()
    hub.start("--audit-age", "9d")
    hub.daemon.wait_line("the options of this start are not kept")
    hub.daemon.allow("options of this start are not kept")
    assert hub.nodes().keys() == {"hub"}
    hub.host.run(["rm", hub.state / "fill"])
    wait_for(lambda: hub.enrol(lab.host("a"), secret, name="gpu-1")[0] == 200, 120, "room")


@pytest.mark.parametrize("name, size, word", [
    ("hub.db", 0, "left as it is"), ("hub.db", 5000, "left as it is"),
    ("tls.key", 0, "left as it is"), ("tls.key", 100, "left as it is"),
    ("tls.crt", 100, "left as it is"), ("admin.token", 3, "left as it is")])
def test_damaged_files_are_named_and_left(hub, name, size, word):
    assert hub.daemon.stop() == 0
    path = hub.state / name
    with path.open("r+b") as file:
        file.truncate(size)
    before = path.read_bytes()
    done = hub.lab.host("hub").run(hub.argv(), check=False)
    assert done.rc == 1 and str(path) in done.err and word in done.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("size, word", [
    (0, "left as it is"), (20, "left as it is"), (None, "is missing")])
def test_a_network_without_its_key_stays_down(hub, lab, size, word):
    """The others live; its record is left as it is, and so is the file."""
    assert hub.admin("POST", "/v1/networks", {"name": "other", "cidr4": "10.50.0.0/16"})[0] == 201
    assert hub.daemon.stop() == 0
    path = hub.state / "keys/default.key"
    key = path.read_bytes()
    if size is None:
        path.unlink()
    else:
        path.write_bytes(key[:size])
    hub.start()
    hub.daemon.allow("is set aside")
    hub.daemon.wait_line(f'"network/default" is set aside.*{word}')
    assert "weft_damaged_records 1" in hub.metrics()
    networks = hub.admin("GET", "/v1/networks")[1]["networks"]
    assert [n["metadata"]["name"] for n in networks] == ["other"]
    assert hub.enrol(lab.host("a"), hub.secret("other"))[0] == 200
    assert hub.admin("POST", "/v1/networks", {"name": "default"})[0] == 409
    assert path.exists() == (size is not None)
    assert size is None or path.read_bytes() == key[:size]
    path.write_bytes(key)
    hub.restart()
    assert "weft_damaged_records 0" in hub.metrics()
    assert hub.nodes().keys() == {"hub"}


def damage(hub, key: str, value: str) -> None:
    with closing(sqlite3.connect(hub.state / "hub.db")) as db, db:
        assert db.execute("UPDATE item SET value = ? WHERE key = ?", (value, key)).rowcount == 1


def test_damaged_records_are_named_and_set_aside(hub, lab):
    secret = hub.secret(uses=9)
    for name in ("gpu-1", "gpu-2", "gpu-3"):
        assert hub.enrol(lab.host("a"), secret, name=name)[0] == 200
    assert hub.daemon.stop() == 0
    damage(hub, "node/default/gpu-2", "{")
    hub.start()
    hub.daemon.allow("is set aside")
    hub.daemon.wait_line('"node/default/gpu-2" is set aside')
    assert "weft_damaged_records 1" in hub.metrics()
    assert hub.nodes().keys() == {"hub", "gpu-1", "gpu-3"}
    status, body = hub.enrol(lab.host("a"), secret, name="gpu-2")
    assert status == 409 and "gpu-2" in body["error"]
    status, body = hub.enrol(lab.host("a"), secret, name="gpu-4")
    assert status == 200 and hub.nodes()["gpu-4"]["spec"]["address4"] == "10.42.0.5"


def test_a_report_that_an_earlier_hub_took(hub, lab):
    """It is told to nobody, and forgotten with the node's next one."""
    assert hub.enrol(lab.host("a"), hub.secret(), name="a")[0] == 200
    assert hub.enrol(lab.host("b"), hub.secret(), name="b")[0] == 200
    assert hub.daemon.stop() == 0
    damage(hub, "report/default/a", '{"lastSeen":5,"node":{"engine":"","candidates":[1]}}')
    hub.start()
    hub.daemon.allow("is set aside")
    hub.daemon.wait_line('"report/default/a" is set aside')
    watch = Watch(lab.host("b"))
    snapshot = watch.wait('"type":"snapshot"')
    assert "status" not in next(n for n in snapshot["nodes"] if n["metadata"]["name"] == "a")
    report = {"node": {"candidates": [{"type": "host", "endpoint": "192.0.2.2:7"}]}}
    assert member_call(lab.host("a"), "PUT", "/v1/status", report)[0] == 204
    watch.wait(put_of("a"))
    wait_for(lambda: "weft_damaged_records 0" in hub.metrics(), 20, "a sound record")


def test_unwritable_state(lab, weft):
    hub = Hub(lab, weft, Path("/proc/nowhere"))
    done = lab.host("hub").run(hub.argv(), check=False)
    assert done.rc == 1 and "/proc/nowhere" in done.err
    assert json.dumps(done.err).count("\\n") == 1
