"""The jobs of a network: which there are, who sees them, and when a new run begins."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from lab import wait_for

from .hub import CIDR4, MACHINES, Hub, member_call


def join(host, job: str) -> dict:
    status, answer = member_call(host, "POST", f"/v1/jobs/{job}/rendezvous")
    assert status == 200, answer
    return answer


def members(hub: Hub, *names: str) -> list:
    """These machines of the lab, enrolled in this order, so that their addresses fit."""
    hosts = [hub.lab.host(name) for name in names]
    for host in hosts:
        status, answer = hub.enrol(host, hub.secret(), name=host.name)
        assert status == 200, answer
    return hosts


def test_jobs_are_made_kept_and_shared(hub: Hub) -> None:
    a, b = members(hub, "a", "b")
    train = join(a, "train")
    assert train["run"] == "train.1" and train["job"] == "train"
    assert train["c10d"]["endpoint"] == f"10.42.0.1:{train['c10d']['port']}"
    assert join(b, "train") == train, "everybody meets at one place"
    other = join(b, "other")
    assert other["c10d"]["port"] != train["c10d"]["port"], "jobs are separate"
    hub.restart()
    again = join(b, "train")
    assert again.pop("epoch") != train.pop("epoch"), "it can be seen that it was away"
    assert again == train, "and the hub remembers it"
    _, answer = member_call(a, "GET", "/v1/jobs")
    assert [job["job"] for job in answer["jobs"]] == ["default", "other", "train"]


def test_no_user_of_the_hubs_machine_comes_to_a_job(hub: Hub) -> None:
    """From the hub's own address, which every program there has; a member comes, as it should."""
    (a,) = members(hub, "a")
    port = join(a, "train")["etcdV2"]["port"]
    keys(a, "PUT", port, "/run/state", value="secret")
    url = f"http://10.42.0.1:{port}/v2/keys/run/state"
    for before in ([], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]):
        said = hub.host.run([*before, "curl", "-s", "-m", "20", url], check=False)
        assert said.rc in (52, 56), (said.rc, said.out)  # it is hung up on, at once
        assert "secret" not in said.out
    assert keys(a, "GET", port, "/run/state")["node"]["value"] == "secret"
    # It is so for a hub that finds the job when it starts, too.
    hub.restart()
    assert hub.host.run(["curl", "-s", "-m", "20", url], check=False).rc in (52, 56)
    assert keys(a, "GET", port, "/run/state")["node"]["value"] == "secret"


def test_jobs_do_not_outlive_their_network(hub: Hub) -> None:
    (a,) = members(hub, "a")
    join(a, "train")
    hub.run("network", "rm", "default")
    # Killed before it has forgotten them, it finds jobs of a network that there is no more, and
    # makes its first network once more, with nothing of the former one in it.
    hub.restart()
    members(hub, "a")
    _, answer = member_call(a, "GET", "/v1/jobs")
    assert [job["job"] for job in answer["jobs"]] == ["default"]


def test_a_run_ends_when_somebody_says_so(hub: Hub) -> None:
    (a,) = members(hub, "a")
    assert member_call(a, "GET", "/v1/jobs/train/rendezvous")[0] == 404
    join(a, "train")
    assert member_call(a, "DELETE", "/v1/jobs/train/rendezvous") == (204, None)
    again = join(a, "train")
    assert again["run"] == "train.2"
    assert member_call(a, "GET", "/v1/jobs/train/rendezvous") == (200, again | {"members": ["a"]})
    # That it is over is kept, too: the next one must not find what a closed run left behind.
    assert member_call(a, "DELETE", "/v1/jobs/train/rendezvous") == (204, None)
    hub.restart()
    assert join(a, "train")["run"] == "train.3"
    hub.restart()
    assert join(a, "train")["run"] == "train.3", "a restart alone ends nothing"
    status, answer = member_call(a, "POST", "/v1/jobs/No_Name/rendezvous")
    assert status == 400 and "No_Name" in answer["error"]


def test_who_speaks_of_the_commands_of_a_run(hub: Hub) -> None:
    """A member that has not come to a run neither is counted there nor lost."""
    a, b = members(hub, "a", "b")
    run = join(a, "train")["run"]
    word = {"run": run, "command": "00ff", "everySeconds": 3}

    def say(host, **more: object) -> tuple[int, dict]:
        return member_call(host, "PUT", "/v1/jobs/train/rendezvous", word | more)

    assert say(b) == (403, {"error": f'node "b" has not come to the run "{run}" of the job '
                                     '"train", and has no command there'})
    assert say(b, ended=True)[0] == 403
    status, answer = say(a)
    assert status == 200
    assert {name: answer["presence"][name] for name in ("present", "ended", "endedOn", "lost")} == {
        "present": 1, "ended": 0, "endedOn": [], "lost": []}
    # Of another run nobody is told but which one it is.
    status, answer = say(b, run="train.99")
    assert (status, answer["run"]) == (200, run) and "presence" not in answer
    join(b, "train")
    assert say(b, ended=True)[1]["presence"]["endedOn"] == ["b"]
    # A hub that was started anew does not know who has come, and believes who says so.
    hub.restart()
    assert say(b)[1]["presence"]["present"] == 1


def test_only_members_of_a_run_see_its_budget(hub: Hub) -> None:
    """What others spend is no affair of a member, nor of one of another network."""
    a, b = members(hub, "a", "b")
    hub.run("network", "add", "other", *CIDR4)
    hub.enrol(hub.lab.host("c"), hub.secret("other"), name="c")
    path = "/v1/networks/default/objects/Network/default"
    _, network = hub.admin("GET", path)
    network["spec"]["budgets"] = [{"job": "train", "bytesPerDay": 10 ** 9},
                                  {"job": "other", "bytesPerDay": 10 ** 9}]
    assert hub.admin("PUT", path, network)[0] == 200
    join(a, "train")
    join(b, "other")

    def seen(host, job: str) -> dict | None:
        status, answer = member_call(host, "GET", f"/v1/jobs/{job}/rendezvous")
        assert status == 200 and answer["job"] == job
        return answer.get("budget")

    wait_for(lambda: seen(a, "train"), 60, "the hub to have counted")
    assert (seen(a, "train")["job"], seen(b, "other")["job"]) == ("train", "other")
    assert seen(b, "train") is None and seen(a, "other") is None
    # In no other answer either, whoever asks.
    for host in (a, b):
        _, answer = member_call(host, "GET", "/v1/jobs")
        assert {job["job"] for job in answer["jobs"]} >= {"train", "other"}
        assert '"budget' not in json.dumps(answer)
    word = {"run": "train.1", "command": "00ff", "everySeconds": 3}
    status, answer = member_call(b, "PUT", "/v1/jobs/train/rendezvous", word)
    assert status == 403 and set(answer) == {"error"}
    status, answer = member_call(hub.lab.host("c"), "GET", "/v1/jobs/train/rendezvous")
    assert (status, answer) == (404, {"error": 'network "other" has no job "train"'})
    status, answer = member_call(a, "GET", "/v1/networks/default/jobs")
    assert status in (403, 404) and "budgets" not in answer
    # Who comes to the run sees it; the administrator sees all.
    join(b, "train")
    assert seen(b, "train")["job"] == "train"
    _, answer = hub.admin("GET", "/v1/networks/default/jobs")
    assert {budget["job"] for budget in answer["budgets"]} == {"train", "other"}


def test_a_run_that_ends_without_a_node_that_was_lost(hub: Hub) -> None:
    """When it comes back, alone, it is told."""
    a, b = members(hub, "a", "b")

    def say(host, run: str, command: str, **more: object) -> dict:
        status, answer = member_call(host, "PUT", "/v1/jobs/train/rendezvous", {
            "run": run, "command": command, "everySeconds": 1} | more)
        assert status == 200, answer
        return answer["presence"]

    for host in (a, b):
        say(host, join(host, "train")["run"], "1a")
    wait_for(lambda: say(a, "train.1", "1a")["lost"] == ["b"], 30, "the command of b to be missed")
    status, answer = member_call(a, "POST", "/v1/jobs/train/rendezvous", {"brokenRun": "train.1"})
    assert (status, answer["run"]) == (200, "train.2")
    say(a, "train.2", "1a", ended=True)
    assert member_call(a, "DELETE", "/v1/jobs/train/rendezvous") == (204, None)
    assert join(b, "train")["run"] == "train.3"
    assert say(b, "train.3", "2b")["endedWithout"] == {
        "run": "train.2", "ended": 1, "endedOn": ["a"]}
    join(a, "train")
    assert "endedWithout" not in say(b, "train.3", "2b") | say(a, "train.3", "2a")


def test_a_third_node_for_a_job_of_two(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told who has the places, also after a restart, and gets one when its owner is lost."""
    monkeypatch.setitem(MACHINES, ("default", "10.42.0.4"), "d")
    a, b, d = members(hub, "a", "b", "d")
    path = "/v1/jobs/train/rendezvous"

    def come(host, nnodes: str = "2", **more: object) -> tuple[int, dict]:
        return member_call(host, "POST", path, {"nnodes": nnodes} | more)

    def say(host, run: str, **more: object) -> dict:
        status, answer = member_call(host, "PUT", path, {
            "run": run, "command": "1a", "everySeconds": 1} | more)
        assert status == 200, answer
        return answer

    def check_refused(**more: object) -> None:
        status, answer = come(d, **more)
        assert status == 409, answer
        assert re.match(r'the job "train" has its 2 nodes, a( \(.*?\))?, b( \(.*?\))?, and '
                        "this would be one more: give it another --job, or --nnodes 2:3",
                        answer["error"])

    for host in (a, b):
        say(host, come(host)[1]["run"])
    check_refused()
    check_refused(dryRun=True)
    # Who starts its command again has its place.
    assert come(b)[0] == 200
    # The names are in the store within a second or two.
    wait_for(lambda: any(b'"members":"a b"' in file.read_bytes()
                         for file in hub.state.glob("hub.db*")), 20, "who has come to be stored")
    hub.restart()
    check_refused()
    assert come(a, brokenRun="train.1") == (200, come(a)[1])
    check_refused()
    assert come(b, brokenRun="train.1")[1]["run"] == "train.2"
    for host in (a, b):
        say(host, "train.2")
    check_refused()
    # b is lost.
    wait_for(lambda: say(a, "train.2")["presence"]["lost"] == ["b"], 30, "b to be missed")
    assert come(d)[0] == 200
    status, answer = come(b)
    assert (status, "has its 2 nodes, a, d, and" in answer["error"]) == (409, True)
    # A range of nodes is not counted, and another number is refused as before.
    assert "runs with 2 nodes" in come(b, nnodes="2:3")[1]["error"]
    # All have ended: the name is free.
    for host in (a, d):
        say(host, "train.2", ended=True)
    assert come(b)[0] == 200


def test_a_run_that_has_ended_on_a_node(hub: Hub) -> None:
    """The other one does not begin it again, though the hub was killed just after that."""
    a, b = members(hub, "a", "b")
    path = "/v1/jobs/train/rendezvous"

    def say(host, run: str, **more: object) -> dict:
        status, answer = member_call(host, "PUT", path, {
            "run": run, "command": host.name, "everySeconds": 1} | more)
        assert status == 200, answer
        return answer

    def come(host, **more: object) -> tuple[int, dict]:
        return member_call(host, "POST", path, {"nnodes": "2"} | more)

    for host in (a, b):
        say(host, come(host)[1]["run"])
    say(b, "train.1", ended=True)
    assert member_call(b, "DELETE", path)[0] == 409, "a is still there"
    hub.restart()
    status, answer = come(a, brokenRun="train.1")
    assert (status, answer) == (409, {
        "error": "the command of the job has ended on b in the run train.1, so that run is not "
                 "begun again", "endedOn": "b"})
    # Who starts it anew comes to it, and with b again there it can be begun again.
    assert come(b)[1]["run"] == "train.1"
    say(b, "train.1", command="b2")
    wait_for(lambda: come(a, brokenRun="train.1")[0] == 200, 20, "the run to be begun again")
    # b has ended meanwhile, and could not say so.
    assert say(b, "train.1", command="b2", ended=True)["run"] == "train.2"
    assert say(a, "train.2")["presence"]["endedOn"] == ["b"]


needs_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"),
                                 reason="python3-torch is not installed")
STORE_CASES = Path(__file__).parent / "store_cases.py"
PYTHON = "/usr/bin/python3"
MEMBER_SCRIPT = Path(__file__).parent / "member.py"


def answers_of(host, *words: object) -> dict:
    return json.loads(host.run([PYTHON, STORE_CASES, *words], quiet=True).out.splitlines()[-1])


@needs_torch
def test_the_store_answers_as_pytorchs_own(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    theirs = answers_of(a, "127.0.0.1", 0, "own")
    ours = answers_of(a, "10.42.0.1", port)
    assert (theirs.pop("server"), ours.pop("server")) == ("own", None)
    assert {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]} == {}
    assert len(theirs) > 30


def unsaved(hub: Hub) -> int:
    text = hub.metrics()
    return int(re.search(r"^weft_rendezvous_unsaved (\d+)$", text, re.MULTILINE)[1])


def u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def text(data: bytes) -> bytes:
    return u64(len(data)) + data


def ask(host, port: int, request: bytes, size: int) -> bytes:
    """Bytes to a job's port, and so many that come back."""
    argv = [PYTHON, MEMBER_SCRIPT, "store", "10.42.0.1", port, size]
    return bytes.fromhex(json.loads(host.run(argv, stdin=request.hex(), quiet=True).out)["answer"])


HELLO = b"\0" + struct.pack("<I", 0x3C85F7CE)


def test_what_is_in_the_store_survives_the_hub(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["c10d"]["port"]
    long = bytes(range(256)) * 2000
    ask(a, port, HELLO + b"\1" + text(b"short") + text(b"1") + b"\1" + text(b"long") + text(long) +
        b"\4" + text(b"sum") + u64(41) + b"\1" + text(b"gone") + text(b"x") +
        b"\x08" + text(b"gone") + b"\x0e" + text(b"queue") + text(b"one") +
        b"\x0e" + text(b"queue") + text(b"two") + b"\x07", 16)
    wait_for(lambda: unsaved(hub) == 0, 5, "the changes to be on the disk")
    hub.restart()
    again = ask(a, port, HELLO + b"\x07" + b"\3" + text(b"long") + b"\4" + text(b"sum") + u64(1) +
                b"\x0f" + text(b"queue") + b"\x0f" + text(b"queue") + b"\3" + text(b"gone"),
                8 + 8 + len(long) + 8 + 2 * 19 + 8)
    assert again == (u64(3) + text(long) + u64(42) + u64(2) + text(b"one") + u64(1) +
                     text(b"two") + u64(0))


def test_a_new_run_begins_with_nothing(hub: Hub) -> None:
    a, b = members(hub, "a", "b")
    port = join(a, "train")["c10d"]["port"]
    ask(a, port, HELLO + b"\1" + text(b"state") + text(b"closed") + b"\x07", 8)
    other = b.spawn([PYTHON, MEMBER_SCRIPT, "hold", "10.42.0.1", port,
                     "\\x03"], name="other")
    wait_for(lambda: member_call(a, "DELETE", "/v1/jobs/train/rendezvous")[0] == 409, 5,
             "the other member to be connected")
    other.kill9()
    wait_for(lambda: member_call(a, "DELETE", "/v1/jobs/train/rendezvous")[0] == 204, 5,
             "the other member to be gone")
    assert join(b, "train")["run"] == "train.2"
    assert ask(b, port, HELLO + b"\x07", 8) == u64(0)
    # The other network has the same addresses, and none of these jobs.
    hub.admin("POST", "/v1/networks", {"name": "other", "cidr4": "10.42.0.0/16"})
    c = hub.lab.host("c")
    assert hub.enrol(c, hub.secret("other"), name="c")[0] == 200
    assert member_call(c, "GET", "/v1/jobs/train/rendezvous")[0] == 404
    assert join(c, "train")["run"] == "train.1"
    assert ask(c, join(c, "train")["c10d"]["port"], HELLO + b"\x07", 8) == u64(0)


@pytest.mark.skipif(not shutil.which("etcd"), reason="etcd-server is not installed")
@pytest.mark.skipif(not importlib.util.find_spec("etcd"), reason="python3-etcd is not installed")
def test_the_keys_answer_as_those_of_etcd(hub: Hub, tmp_path: Path) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["etcdV2"]["port"]
    argv = ["etcd", "--enable-v2", "--data-dir", tmp_path / "etcd", "--log-level", "error",
            "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls",
            "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380"]
    real = a.spawn(argv, name="etcd", allow=[".*"])
    wait_for(lambda: a.run(["curl", "-s", "http://127.0.0.1:2379/v2/keys/"], check=False,
                           quiet=True).rc == 0, 20, "etcd to answer")
    cases = Path(__file__).parent / "etcd_cases.py"
    answers = [json.loads(a.run([PYTHON, cases, *at], quiet=True).out.splitlines()[-1])
               for at in (("127.0.0.1", 2379), ("10.42.0.1", port))]
    real.kill9()
    theirs, ours = answers
    different = {}
    for case, expected in theirs.items():
        pairs = zip(expected, ours[case], strict=True)
        different |= {(case, i): {"etcd": x, "hub": y} for i, (x, y) in enumerate(pairs) if x != y}
    assert different == {}, "\n".join(f"{k}\n{v}" for k, v in different.items())
    assert len(theirs) > 10


def keys(host, method: str, port: int, key: str, **fields: object) -> dict:
    """Ask the keys API with curl."""
    argv = ["curl", "-s", "-X", method, "-m", "60", f"http://10.42.0.1:{port}/v2/keys{key}"]
    for name, value in fields.items():
        argv += ["-d", f"{name}={value}"]
    return json.loads(host.run(argv, quiet=True).out)


def keys_of_file(host, port: int, key: str, path: Path) -> dict:
    """The same with a form out of a file."""
    return json.loads(host.run(["curl", "-s", "-X", "PUT", "--data-binary", f"@{path}",
                                f"http://10.42.0.1:{port}/v2/keys{key}"], quiet=True).out)


def test_what_etcd_has_acknowledged_survives_the_hub(hub: Hub) -> None:
    (a,) = members(hub, "a")
    port = join(a, "train")["etcdV2"]["port"]
    keys(a, "PUT", port, "/run/state", value="1", ttl=10)
    keys(a, "PUT", port, "/run/gone", value="1")
    keys(a, "DELETE", port, "/run/gone")
    long = keys(a, "PUT", port, "/run/long", value="x" * 100000)
    before = keys(a, "POST", port, "/queue", value="one")["node"]["modifiedIndex"]
    hub.restart()
    state = keys(a, "GET", port, "/run")["node"]["nodes"]
    assert [node["key"] for node in state] == ["/run/long", "/run/state"]
    assert state[0] == long["node"]
    # The time to live has begun anew, from when torch's client will have noticed.
    assert state[1]["value"] == "1" and 75 < state[1]["ttl"] <= 85
    assert keys(a, "PUT", port, "/x", value="1")["node"]["modifiedIndex"] == before + 1
    # What happened before is not known any more, and that is said.
    cleared = a.run(["curl", "-s", f"http://10.42.0.1:{port}/v2/keys/run?wait=true&waitIndex=1"])
    assert json.loads(cleared.out)["errorCode"] == 401
    # One port serves both, and a new run has neither.
    ask(a, port, HELLO + b"\1" + text(b"key") + text(b"value") + b"\x07", 8)
    assert member_call(a, "DELETE", "/v1/jobs/train/rendezvous")[0] == 204
    join(a, "train")
    assert "nodes" not in keys(a, "GET", port, "/")["node"]
    assert ask(a, port, HELLO + b"\x07", 8) == u64(0)


def test_what_is_taken_is_loaded_again(hub: Hub) -> None:
    """A name that etcd makes below a path that is as deep as is allowed is one part too many."""
    (a,) = members(hub, "a")
    port = join(a, "train")["etcdV2"]["port"]
    refused = keys(a, "POST", port, "/d" * 64, value="1")
    assert (refused["errorCode"], refused["cause"]) == (210, "the key has more than 64 parts")
    kept = keys(a, "POST", port, "/d" * 63, value="1")["node"]
    hub.restart()
    assert keys(a, "GET", port, kept["key"])["node"] == kept


def test_a_large_answer_is_refused_before_it_is_made(hub: Hub, tmp_path: Path) -> None:
    """24 MB of control characters, which are six times as long in JSON."""
    (a,) = members(hub, "a")
    port = join(a, "train")["etcdV2"]["port"]
    value = tmp_path / "value"
    value.write_text("value=" + "\x01" * 250_000)
    for i in range(96):
        assert keys_of_file(a, port, f"/big/{i}", value)["node"]["key"] == f"/big/{i}"
    refused = keys(a, "GET", port, "/?recursive=true")
    assert refused["errorCode"] == 300 and "over 16 MiB" in refused["cause"], refused
    peak = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{hub.daemon.pid}/status").read_text(),
                     re.MULTILINE)
    print(f"FIGURE peak resident memory of the hub, 24 MB in etcd: {int(peak[1]) // 1024} MiB")

    def shown() -> dict[str, int]:
        jobs = member_call(a, "GET", "/v1/jobs")[1]["jobs"]
        return next(job for job in jobs if job["job"] == "train")

    # The process of the rendezvous tells the hub a moment later.
    wait_for(lambda: shown()["limitHits"] == 1, 10, "the refusal to be counted")
    assert 24_000_000 < shown()["bytes"] < 40_000_000, shown()


def test_who_leaves_or_is_removed_is_forgotten(hub: Hub) -> None:
    a, b = members(hub, "a", "b")
    job = join(a, "train")
    port = job["etcdV2"]["port"]
    waiting = [host.spawn(["curl", "-sN", f"http://10.42.0.1:{port}/v2/keys/x?wait=true"],
                          name=f"wait{i}") for i, host in enumerate((a, a, a, b))]
    store = b.spawn([PYTHON, MEMBER_SCRIPT, "hold", "10.42.0.1",
                     job["c10d"]["port"], "\\x03"], name="store")
    connections = re.compile(r"^weft_rendezvous_connections (\d+)$", re.MULTILINE)

    def count() -> int:
        return int(connections.search(hub.metrics())[1])

    wait_for(lambda: count() == 5, 5, "four to wait, and one at the store")
    waiting[0].kill9()
    wait_for(lambda: count() == 4, 5, "one to be forgotten")
    hub.run("node", "rm", "b")
    wait_for(lambda: count() == 2, 5, "the removed node's two to be hung up on")
    wait_for(lambda: not store.running and not waiting[3].running, 5, "it to be told")
    keys(a, "PUT", port, "/x", value="1")
    wait_for(lambda: all("/x" in "".join(w.lines()) for w in waiting[1:3]), 5, "two to be told")
    hub.daemon.stop()
