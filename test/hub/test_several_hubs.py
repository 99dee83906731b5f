"""Three hubs serve the same networks, with a real etcd as their store.

     etcd 192.0.2.10     hub 192.0.2.1     hub-b 192.0.2.2     hub-c 192.0.2.3     a     b
         `---------------- wan ---------------'------------------'------------------'-----'
                            `---- weft-default 10.42.0.0/16: .1, .2, .3; a .4, b .5 ---------'

The hubs have no data plane: the switch `weft-default` is the overlay.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support.etcd import start_etcd

from .hub import SECRETS, Hub, Signer, key_of, new_key

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not shutil.which("etcd"), reason="there is no etcd (Debian's etcd-server)"),
]

TOPOLOGY = """
switch wan 192.0.2.0/24
switch weft-default 10.42.0.0/16
host etcd
host hub
host hub-b
host hub-c
host a
host b
link etcd wan 192.0.2.10
link hub wan 192.0.2.1
link hub-b wan 192.0.2.2
link hub-c wan 192.0.2.3
link a wan 192.0.2.4
link b wan 192.0.2.5
link hub weft-default 10.42.0.1
link hub-b weft-default 10.42.0.2
link hub-c weft-default 10.42.0.3
link a weft-default 10.42.0.4
link b weft-default 10.42.0.5
"""

CLIENT = "http://192.0.2.10:2379"
PEER = "http://192.0.2.10:2380"
STORE = ("--store", "etcd://192.0.2.10?prefix=/weft/lab")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """With an etcd in it."""
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        start_etcd(lab.host("etcd"), tmp_path / "etcd", CLIENT, PEER)
        yield lab


class Hubs:
    """The three of them, which have started one after another."""

    def __init__(self, lab: Lab, weft: Path, directory: Path) -> None:
        self.all = []
        for name, address in (("hub", "192.0.2.1"), ("hub-b", "192.0.2.2"), ("hub-c", "192.0.2.3")):
            (directory / name).mkdir()
            hub = Hub(lab, weft, directory / name, name, address)
            self.all.append(self.start(hub))

    def start(self, hub: Hub) -> Hub:
        return hub.start(*STORE, "--name", hub.name)

    def wait(self, what, text: str) -> None:
        """Until `what` is true of each of those that live."""
        for hub in self.all:
            wait_for(lambda: what(hub), 10, f"{hub.name}: {text}")


@pytest.fixture
def hubs(lab: Lab, weft: Path, tmp_path: Path) -> Iterator[Hubs]:
    """They end before their etcd does, or they would wait for it."""
    hubs = Hubs(lab, weft, tmp_path)
    yield hubs
    for hub in hubs.all:
        assert hub.daemon.stop() == 0


def networks(hub: Hub) -> set[str]:
    _, answer = hub.admin("GET", "/v1/networks")
    return {network["metadata"]["name"] for network in answer["networks"]}


def specs(hub: Hub, network: str = "default") -> dict[str, dict]:
    return {name: node["spec"] for name, node in hub.nodes(network).items()}


def records(lab: Lab, *prefixes: str) -> list[str]:
    """The keys of the store that begin so."""
    out = lab.host("etcd").run(["env", "ETCDCTL_API=3", "etcdctl", f"--endpoints={CLIENT}", "get",
                                "--prefix", "--keys-only", "/weft/lab/k/"], quiet=True).out
    keys = [key.removeprefix("/weft/lab/k/") for key in out.split()]
    return [key for key in keys if key.startswith(prefixes)]


def beats(lab: Lab, hub: str) -> int:
    """How often the process that says last that it is that hub has said so, each two seconds."""
    out = lab.host("etcd").run(["env", "ETCDCTL_API=3", "etcdctl", f"--endpoints={CLIENT}", "get",
                                "--print-value-only", f"/weft/lab/k/hub/{hub}"], quiet=True).out
    return json.loads(out)["beat"]


class Member:
    """A machine that is a node, and asks each hub in the overlay with its own proof."""

    def __init__(self, host: Host, hubs: Hubs, name: str) -> None:
        self.host = host
        key = new_key()
        status, snapshot = hubs.all[0].enrol(host, hubs.all[0].secret(), name=name, publicKey=key)
        assert status == 200, snapshot
        self.signers = {}
        for node in snapshot["nodes"]:
            hub_key = base64.b64decode(node["spec"]["publicKey"])
            self.signers[node["metadata"]["name"]] = (node["spec"]["address4"], Signer(
                key_of(SECRETS[key], hub_key, base64.b64decode(key))))

    def ask(self, hub: Hub, method: str, path: str) -> tuple[int, dict]:
        address, signer = self.signers[hub.name]
        for _ in range(2):  # the first time the hub says which proofs it takes
            argv = ["curl", "-s", "-X", method, "-m", "20", "-w", "\n%{http_code}",
                    "-H", f"Authorization: {signer.sign(method, path, b'')}",
                    f"http://{address}:8443{path}"]
            text, _, status = self.host.run(argv, check=False, quiet=True).out.rpartition("\n")
            answer = json.loads(text) if text else {}
            if status != "401" or not signer.learn(answer):
                break
        return int(status), answer

    def etcd(self, job: dict, *words: str) -> dict:
        """Ask the job's etcd for the key `step`."""
        url = f"http://{job['etcdV2']['endpoint']}/v2/keys/step"
        return json.loads(self.host.run(["curl", "-s", "-m", "20", *words, url]).out)


def test_one_network(hubs: Hubs, lab: Lab) -> None:
    """Each is a node of its own in every network, and whoever is asked does it."""
    a, b, c = hubs.all
    hubs.wait(lambda hub: set(hub.nodes()) == {"hub", "hub-b", "hub-c"}, "to know the others")
    own = specs(a)
    assert specs(b) == own and specs(c) == own
    assert [own[n]["address4"] for n in sorted(own)] == ["10.42.0.1", "10.42.0.2", "10.42.0.3"]
    assert len({spec["publicKey"] for spec in own.values()}) == 3
    for hub in hubs.all:
        assert own[hub.name]["hub"]["endpoints"] == [f"{hub.address}:51820"]
        assert own[hub.name]["hub"]["tlsPin"] == hub.pin

    # A token names the hub that has made it, and where the others are.
    token = b.admin("POST", "/v1/networks/default/tokens", {})[1]["token"].removeprefix("weft1.")
    said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert said["k"] == own["hub-b"]["publicKey"]
    assert {other["k"] for other in said["h"]} == {own["hub"]["publicKey"],
                                                   own["hub-c"]["publicKey"]}

    # A token that one has made is good at another, and all hear of who came in.
    secret = b.secret(uses=3)
    assert c.enrol(lab.host("a"), secret, name="gpu-1")[0] == 200
    assert a.enrol(lab.host("b"), secret, name="gpu-2")[0] == 200
    assert c.enrol(lab.host("b"), secret, name="gpu-1")[0] == 409
    hubs.wait(lambda hub: {"gpu-1", "gpu-2"} <= set(hub.nodes()), "to know who came in")
    assert b.enrol(lab.host("b"), secret, publicKey=own["hub-c"]["publicKey"])[0] == 400

    # A network that one makes is joined by the others without a restart.
    assert c.run("network", "add", "other", "--cidr4", "10.50.0.0/16").rc == 0
    hubs.wait(lambda hub: "other" in networks(hub) and len(hub.nodes("other")) == 3,
              "to have joined the network")
    assert specs(a, "other")["hub-c"]["address4"] == "10.50.0.1"
    # What a hub does by itself is in the log under its name.
    entries = a.admin("GET", "/v1/audit?limit=100")[1]["entries"]
    assert {"hub:hub", "hub:hub-b"} <= {entry["actor"] for entry in entries}, entries
    assert a.enrol(lab.host("a"), b.secret("other"), name="gpu-1")[0] == 200
    wait_for(lambda: records(lab, "owner/other"), 10, "one to serve the network's jobs")
    assert a.run("network", "rm", "other").rc == 0
    hubs.wait(lambda hub: "other" not in networks(hub), "to have left the network")
    wait_for(lambda: not records(lab, "owner/other", "rdzv/other/"), 30, "nothing to be left of it")
    assert not (b.state / "keys" / "other.key").exists()


def test_names(hubs: Hubs, lab: Lab, weft: Path, tmp_path: Path) -> None:
    """A name is one hub's, and no member's; a hub that is gone can be retired, and come back."""
    a, b, c = hubs.all
    (tmp_path / "second").mkdir()
    for name in ("hub", "hub-b"):
        twin = Hub(lab, weft, tmp_path / "second", "a", "192.0.2.4")
        done = lab.host("a").run(twin.argv(*STORE, "--name", name), check=False)
        assert done.rc == 1 and "--name" in done.err and "default" in done.err, done.err
    refused = lab.host("a").run(twin.argv(*STORE, "--name", "localhost"), check=False)
    assert refused.rc == 2 and "localhost" in refused.err, refused.err

    assert "the hub itself" in c.run("delete", "Node", "hub-c", check=False).err
    c.daemon.kill9()
    assert a.run("delete", "Node", "hub-c").rc == 0
    hubs.all.remove(c)
    hubs.wait(lambda hub: set(hub.nodes()) == {"hub", "hub-b"}, "to have heard of it")
    assert c.name not in specs(a)

    # A member takes the name meanwhile: the hub is told so, and does not serve as if it were it.
    assert b.enrol(lab.host("b"), a.secret(), name="hub-c", publicKey=new_key())[0] == 200
    done = c.host.run(c.argv(*STORE, "--name", "hub-c"), check=False)
    assert done.rc == 1 and "another key" in done.err, done.err
    assert b.run("delete", "Node", "hub-c").rc == 0
    hubs.all.append(hubs.start(c))
    hubs.wait(lambda hub: "hub-c" in hub.nodes(), "to know that it has come back")

    # One that lives is retired as well: it serves the network no more, and says so.
    c.daemon.allow("was removed from network")
    assert a.run("delete", "Node", "hub-c").rc == 0
    c.daemon.wait_line("was removed from network")
    assert c.admin("POST", "/v1/networks/default/tokens", {})[0] == 503


def test_a_copied_state(hubs: Hubs, lab: Lab, weft: Path, tmp_path: Path) -> None:
    """Two processes are the same hub: the later one ends, or the one that stood still."""
    b = hubs.all[1]

    def where() -> list[str]:
        return specs(hubs.all[0])["hub-b"]["hub"]["endpoints"]

    here = where()
    shutil.copytree(b.state, tmp_path / "copy" / "state")
    copy = Hub(lab, weft, tmp_path / "copy", "a", "192.0.2.4")
    b.daemon.allow("another process was started as hub")
    wrong = 'another process runs as hub "hub-b" on this store, with its name and its key, and this'
    done = lab.host("a").run(copy.argv(*STORE, "--name", "hub-b"), check=False)
    assert done.rc == 1 and f"weft hub up: {wrong} one was started later, so it ends" in done.err
    b.daemon.wait_line('another process was started as hub "hub-b"')
    wait_for(lambda: where() == here, 20, "nodes to be told of the one that is left")

    # The machine stands still and another one takes its place, for good.
    os.kill(b.daemon.pid, signal.SIGSTOP)
    copy.start(*STORE, "--name", "hub-b")
    wait_for(lambda: where() != here, 10, "nodes to be told of the new one")
    copy.daemon.allow("another process was started as hub")
    wait_for(lambda: beats(lab, "hub-b") > 4, 20, "it to be heard for longer than six seconds")
    os.kill(b.daemon.pid, signal.SIGCONT)
    assert b.daemon.wait() == 1
    assert f"{wrong} one was taken for dead, so it ends" in "\n".join(b.daemon.lines())
    hubs.all[1] = copy
    assert copy.daemon.running and copy.admin("GET", "/v1/networks")[0] == 200


def test_rendezvous(hubs: Hubs, lab: Lab) -> None:
    """One hub serves a network's jobs; when it dies another one does, with all that was in them."""
    a, b, c = hubs.all
    member = Member(lab.host("a"), hubs, "gpu-1")
    path = "/v1/jobs/train/rendezvous"
    wait_for(lambda: member.ask(a, "POST", path)[0] == 200, 10, "the first hub to serve the jobs")
    job = member.ask(a, "POST", path)[1]
    assert job["address4"] == "10.42.0.1" and job["run"] == "train.1"
    for other in (b, c):
        status, answer = member.ask(other, "POST", path)
        assert status == 421 and answer["hub"] == "hub", answer
    assert member.etcd(job, "-X", "PUT", "-d", "value=41")["action"] == "set"
    assert specs(b)["hub"]["hub"]["rendezvousEpoch"] == 1

    # One network goes while its owner is dead, and nobody has taken that one's place yet.
    assert a.run("network", "add", "gone", "--cidr4", "10.50.0.0/16").rc == 0
    wait_for(lambda: records(lab, "rdzv/gone/"), 10, "the network's default job to be stored")
    hubs.wait(lambda hub: "gone" in networks(hub), "to know the network")
    a.daemon.kill9()
    assert b.run("network", "rm", "gone").rc == 0
    hubs.all.remove(a)
    owner = []

    def is_taken() -> bool:
        owner[:] = [hub for hub in (b, c) if member.ask(hub, "POST", path)[0] == 200]
        return len(owner) == 1

    wait_for(is_taken, 30, "another hub to serve the jobs")
    taken = member.ask(owner[0], "POST", path)[1]
    own = specs(b)[owner[0].name]
    assert taken["address4"] == own["address4"] and own["hub"]["rendezvousEpoch"] == 2
    assert taken["run"] == "train.1" and taken["epoch"] != job["epoch"]
    assert member.etcd(taken)["node"]["value"] == "41"
    wait_for(lambda: not records(lab, "owner/gone", "rdzv/gone/"), 30, "nothing to be left of it")
    assert {name: node.get("servesJobs") for name, node in b.nodes().items()} == {
        "hub": False, "hub-b": owner[0] is b, "hub-c": owner[0] is c, "gpu-1": None}
    shown = b.run("nodes").out
    assert f"{owner[0].name} serves the rendezvous of jobs (epoch 2)" in shown
    assert re.search(r"^hub .* hub, away ", shown, re.MULTILINE), shown
    reachable = {name: node["reachable"] for name, node in b.nodes().items()}
    assert not reachable["hub"] and reachable["hub-b"] and reachable["hub-c"]

    # The first one comes back, and does not serve them; the owner ends, and gives them up.
    hubs.all.insert(0, hubs.start(a))
    assert member.ask(a, "POST", path)[0] == 421
    assert member.etcd(taken, "-X", "PUT", "-d", "value=42")["action"] == "set"
    assert owner[0].daemon.stop() == 0
    hubs.all.remove(owner[0])
    wait_for(lambda: any(member.ask(hub, "POST", path)[0] == 200 for hub in hubs.all), 20,
             "one of the others to serve the jobs")
    last = next(hub for hub in hubs.all if member.ask(hub, "POST", path)[0] == 200)
    assert member.etcd(member.ask(last, "POST", path)[1])["node"]["value"] == "42"


def test_enrolments_at_once(hubs: Hubs, lab: Lab) -> None:
    """Machines enrol at all hubs, and one hub is killed: who was let in is a member, once."""
    a, b, c = hubs.all
    secret = b.secret(uses=40)

    def enrol(i: int) -> str:
        name = f"gpu-{i // 2}"  # two machines want each name
        status, _ = hubs.all[i % 3].enrol(lab.host("ab"[i % 2]), secret, name=name)
        if i == 10:
            c.daemon.kill9()
        return name if status == 200 else ""

    with ThreadPoolExecutor(6) as pool:
        admitted = [name for name in pool.map(enrol, range(30)) if name]
    hubs.all.remove(c)
    assert len(admitted) == len(set(admitted)), "a name was given twice"
    assert len(admitted) >= 10, admitted
    hubs.wait(lambda hub: set(admitted) <= set(hub.nodes()), "to know whom any of them let in")
    nodes = specs(a)
    assert len({spec["address4"] for spec in nodes.values()}) == len(nodes)
    assert specs(b) == nodes
    # Those that the dead hub had let in and could not answer may be there as well, and cost a use.
    members = len(nodes) - 3
    left = [t for t in a.admin("GET", "/v1/networks/default/tokens")[1]["tokens"]]
    assert left[0]["usesLeft"] == 40 - members
    entries = a.admin("GET", "/v1/audit?limit=1000")[1]["entries"]
    made = [e["object"] for e in entries
            if e["operation"] == "create" and e["object"].startswith("node/default/gpu-")]
    assert sorted(made) == sorted(f"node/default/{n}" for n in nodes if n.startswith("gpu-"))
