"""The process that serves a network's jobs: what it may do, and what its death costs."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
from pathlib import Path

import pytest
from lab import Lab, wait_for

from .hub import Hub, member_call
from .test_rendezvous import HELLO, MEMBER_SCRIPT, PYTHON, ask, join, keys, members, text, u64

STARTED_AGAIN = "it is started again"
KEYS = 200


def process(hub: Hub, network: str = "default") -> int:
    return wait_for(lambda: hub.rendezvous_processes().get(network), 10, "the rendezvous process")


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def metric(hub: Hub, name: str) -> int:
    return int(re.search(rf"^{name} (\d+)$", hub.metrics(), re.M)[1])


def readable_memory(pid: int) -> bytes:
    """All that a process has written to, as its tracer sees it."""
    memory = b""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for line in maps:
            where, mode = line.split()[:2]
            first, last = (int(word, 16) for word in where.split("-"))
            if mode.startswith("rw"):
                file.seek(first)
                memory += file.read(last - first) or b""
    return memory


def test_it_has_nothing(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    ask(a, port, HELLO + b"\1" + text(b"key") + text(b"a value of the job") + b"\x07", 8)
    pid = process(hub)
    now = status(pid)
    assert now["Uid"].split() == ["65534"] * 4 and now["Gid"].split() == ["65534"] * 4
    assert not now["Groups"]
    for what in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(now[what], 16) == 0, what
    assert now["NoNewPrivs"] == "1" and now["Seccomp"] == "2"
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0", limits)
    assert re.search(r"Max data size\s+%d\s" % (112 << 20), limits)
    # 8,192 connections, the ports of 256 jobs, and its own.
    assert int(re.search(r"Max open files\s+(\d+)\s", limits)[1]) <= 10240
    # Sockets and what the loop is made of, and standard streams; no file of the hub's.
    open_now = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if int(fd.name) > 2}
    assert all(re.match(r"(socket:|anon_inode:|pipe:)", path) for path in open_now), open_now
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PATH=" not in environment
    memory = readable_memory(pid)
    assert b"a value of the job" in memory, "what it does have is found"
    for path in [*(hub.state / "keys").iterdir(), hub.state / "admin.token"]:
        secret = path.read_bytes().strip()
        assert secret and secret not in memory, path
    hub.daemon.stop()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 5, "it to end with its hub")


def test_it_ends_with_a_hub_that_is_killed(hub: Hub) -> None:
    pid = process(hub)
    hub.daemon.kill9()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 5, "it to be gone")


def test_what_was_acknowledged_outlives_it(hub: Hub) -> None:
    hub.admin("POST", "/v1/networks", {"name": "other", "cidr4": "10.42.0.0/16"})
    a, b = members(hub, "a", "b")
    c = hub.lab.host("c")
    assert hub.enrol(c, hub.secret("other"), name="c")[0] == 200
    hub.daemon.allow(STARTED_AGAIN)
    job = join(a, "train")
    there = process(hub, "other")
    neighbour = c.spawn([PYTHON, MEMBER_SCRIPT, "hold", "10.42.0.1",
                         join(c, "train")["c10d"]["port"], "\\x06"], name="neighbour")
    long = bytes(range(256)) * 4000
    for round_ in range(3):
        # The answer to the last request is what acknowledges all of them.
        sets = b"".join(b"\1" + text(b"%d/%d" % (round_, i)) + text(b"x") for i in range(KEYS))
        ask(a, job["c10d"]["port"], HELLO + sets + b"\1" + text(b"long") + text(long) +
            b"\4" + text(b"sum") + u64(1), 8)
        index = keys(b, "PUT", job["etcdV2"]["port"], f"/run/{round_}", value="x")["node"]
        os.kill(process(hub), signal.SIGKILL)
        # Whoever asks now waits for the next process, and finds all of it.
        again = ask(a, job["c10d"]["port"], HELLO + b"\x07" + b"\3" + text(b"long") +
                    b"\3" + text(b"sum"), 8 + 8 + len(long) + 8 + 1)
        assert again == (u64((round_ + 1) * KEYS + 2) + text(long) +
                         text(b"%d" % (round_ + 1)))
        assert keys(b, "GET", job["etcdV2"]["port"], f"/run/{round_}")["node"] == index
    assert metric(hub, "weft_rendezvous_restarts_total") == 3
    # The hub and the other network have not noticed.
    assert process(hub, "other") == there and neighbour.running
    assert join(b, "train") | {"keys": 0, "bytes": 0} == job | {"keys": 0, "bytes": 0}
    hub.restart()
    hub.daemon.allow(STARTED_AGAIN)
    assert ask(a, job["c10d"]["port"], HELLO + b"\x07", 8) == u64(3 * KEYS + 2)


def test_a_run_that_is_over_does_not_come_back(hub: Hub) -> None:
    (a,) = members(hub, "a")
    hub.daemon.allow(STARTED_AGAIN)
    port = join(a, "train")["c10d"]["port"]
    sets = b"".join(b"\1" + text(b"%d" % i) + text(b"old") for i in range(KEYS))
    ask(a, port, HELLO + sets + b"\x07", 8)
    wait_for(lambda: member_call(a, "DELETE", "/v1/jobs/train/rendezvous")[0] == 204, 5, "an end")
    assert join(a, "train")["run"] == "train.2"
    os.kill(process(hub), signal.SIGKILL)
    assert ask(a, port, HELLO + b"\x07", 8) == u64(0)
    hub.restart()
    assert ask(a, port, HELLO + b"\x07", 8) == u64(0)


BARRIER = """
import sys, time, torch
at = ("10.42.0.1", int(sys.argv[1]), None, False)
stores = [torch.distributed.TCPStore(*at, wait_for_workers=False) for _ in range(500)]
time.sleep(15)  # the silence is what is tested
for store in stores:
    store.add("come", 1)
print("come:", stores[0].get("come").decode(), flush=True)
"""


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="python3-torch is not installed")
def test_clients_say_nothing_until_they_come_to_a_barrier(hub: Hub) -> None:
    """A client of torch 1.x connects twice, and sends its first byte when it is first used."""
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    many = a.spawn(["prlimit", "--nofile=4096", PYTHON, "-c", BARRIER, port], name="barrier")
    many.wait_line("come: 500$", 60)
    many.wait(30)
    assert metric(hub, "weft_rendezvous_hung_up_total") == 0


def test_descriptors_run_out(lab: Lab, weft: Path, tmp_path: Path) -> None:
    hub = Hub(lab, weft, tmp_path).start(before=("prlimit", "--nofile=100"))
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    pid = process(hub)
    ask(a, port, HELLO + b"\1" + text(b"key") + text(b"value") + b"\x07", 8)
    many = (f"for i in $(seq 110); do exec {{fd}}<>/dev/tcp/10.42.0.1/{port}; printf '\\6' >&$fd; "
            "done; echo all; sleep 600")
    greedy = a.spawn(["bash", "-c", many], name="greedy")
    greedy.wait_line("all")
    wait_for(lambda: metric(hub, "weft_rendezvous_accepts_deferred_total") > 1, 20,
             "it to accept no more")
    # It does not try again and again: between the tries it sleeps.
    slept = int(status(pid)["voluntary_ctxt_switches"])
    wait_for(lambda: int(status(pid)["voluntary_ctxt_switches"]) > slept + 20, 20, "it to sleep")
    greedy.kill9()
    assert ask(a, port, HELLO + b"\3" + text(b"key"), 8 + 5) == text(b"value")
