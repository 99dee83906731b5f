"""A hub in a lab, and the ways to ask it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import sys
from pathlib import Path

from lab import Daemon, Host, Lab
from lab.support.schemas import check_answer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors"))
from member_reference import Signer, key_of, public_of  # noqa: E402

# That of the lab's interfaces, which are there before the hub is.
CIDR4 = ("--cidr4", "10.42.0.0/16")

TOPOLOGY = """
switch wan 192.0.2.0/24
switch weft-default 10.42.0.0/16
switch weft-other 10.42.0.0/16
host hub
host a
host b
host c
host d
link hub wan 192.0.2.1
link a wan 192.0.2.2
link b wan 192.0.2.3
link c wan 192.0.2.4
link d wan 192.0.2.5
link hub weft-default 10.42.0.1
link a weft-default 10.42.0.2
link b weft-default 10.42.0.3
link d weft-default 10.42.0.4
link hub weft-other 10.42.0.1
link c weft-other 10.42.0.2
"""


SECRETS: dict[str, bytes] = {}  # of the keys that new_key() has made
SIGNERS: dict[Host, Signer] = {}  # of the member that each machine is, see Hub.enrol()
MACHINES = {("default", "10.42.0.2"): "a", ("default", "10.42.0.3"): "b",
            ("other", "10.42.0.2"): "c"}


def new_key() -> str:
    """The public key of a new pair."""
    secret = os.urandom(32)
    public = base64.b64encode(public_of(secret)).decode()
    SECRETS[public] = secret
    return public


def secret_of(token: str) -> str:
    text = token.removeprefix("weft1.")
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))["s"]


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("hub", timeout=60)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Hub:
    """A hub on a machine of the lab, by default `hub`."""

    def __init__(self, lab: Lab, weft: Path, directory: Path, name: str = "hub",
                 address: str = "192.0.2.1") -> None:
        self.lab = lab
        self.weft = weft
        self.name = name  # of its machine, and of its own node
        self.address = address
        self.host = lab.host(name)
        self.state = directory / "state"
        self.socket = directory / "hub.sock"
        self.daemon: Daemon | None = None
        self.pin = ""

    def argv(self, *more: str) -> list:
        return [self.weft, "hub", "up", "--public", self.address, "--state", self.state, "--socket",
                self.socket, "--no-dataplane", *(() if "--cidr4" in more else CIDR4), *more]

    def start(self, *more: str, before: tuple = ()) -> Hub:
        self.daemon = self.host.spawn([*before, *self.argv(*more)], name=self.name)
        self.pin = self.daemon.wait_line(r"hub is up: .*TLS pin (\S+),")[1]
        return self

    def restart(self) -> None:
        self.daemon.kill9()
        self.start()

    # ---- the admin API

    def admin(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Ask through the unix socket; gives the status and the JSON."""
        connection = UnixConnection(self.socket)
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text)
            answer = connection.getresponse()
            data = answer.read()
            said = json.loads(data) if data else None
        finally:
            connection.close()
        check_answer(method, path, answer.status, said)
        return answer.status, said

    def run(self, *words: str, check: bool = True):
        """A command of weft against this hub."""
        return self.host.run([self.weft, *words, "--socket", self.socket], check=check)

    def secret(self, network: str = "default", **fields: object) -> str:
        status, answer = self.admin("POST", f"/v1/networks/{network}/tokens", fields)
        assert status == 201, answer
        return secret_of(answer["token"])

    def nodes(self, network: str = "default") -> dict[str, dict]:
        _, answer = self.admin("GET", f"/v1/networks/{network}/nodes")
        return {node["metadata"]["name"]: node for node in answer["nodes"]}

    def metrics(self) -> str:
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/v1/metrics")
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    # ---- the public API

    def rendezvous_processes(self) -> dict[str, int]:
        """The process IDs of its rendezvous processes, by network."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                parent = re.search(r"^PPid:\s(\d+)", (entry / "status").read_text(), re.M)[1]
            except OSError:
                continue
            if argv[1:2] == [b"rendezvous"] and int(parent) == self.daemon.pid:
                found[argv[2].decode()] = int(entry.name)
        return found

    def public(self, host: Host, method: str, path: str, body: object = None,
               *more: str, bearer: str = "") -> tuple[int, object]:
        """Ask with curl over TLS, with the pin; perhaps with an admin token, or `more` words."""
        argv = ["curl", "-sk", "--pinnedpubkey", f"sha256//{self.pin}", "-X", method, "-m", "60",
                "-w", "\n%{http_code}", *more, f"https://{self.address}:8443{path}"]
        stdin = None
        if bearer:
            argv += ["-H", f"Authorization: Bearer {bearer}"]
        if body is not None:
            argv += ["--data-binary", "@-"]
            stdin = body if isinstance(body, str) else json.dumps(body)
        done = host.run(argv, stdin=stdin, check=False, quiet=True)
        text, _, status = done.out.rpartition("\n")
        try:
            said = json.loads(text) if text else None
        except ValueError:
            return int(status), text
        check_answer(method, path, int(status), said)
        return int(status), said

    def enrol(self, host: Host, secret: str, *more: str, **fields: object) -> tuple[int, object]:
        """The machine that has the member's address can speak for it from then on."""
        key = fields.get("publicKey") or new_key()
        body = {"secret": secret, "publicKey": key} | fields
        status, answer = self.public(host, "POST", "/v1/enrol", body, *more)
        if status == 200:
            self._remember(answer, key)
        return status, answer

    def enrol_again(self, host: Host, secret: str, key: str) -> tuple[int, object]:
        """As the machine whose key it is, and whose address."""
        body = json.dumps({"secret": secret, "publicKey": key})
        return self.public(host, "POST", "/v1/enrol", body,
                           *proof_of(host, "POST", "/v1/enrol", body))

    def leave_by_key(self, host: Host, name: str) -> tuple[int, object]:
        """By the public API, as a machine whose join has failed; again when the hub says which
        proof it takes."""
        nodes = self.nodes()
        own, hub = (nodes[node]["spec"]["publicKey"] for node in (name, self.name))
        signer = Signer(key_of(SECRETS[own], base64.b64decode(hub), base64.b64decode(own)))
        path = f"/v1/leave/default/{base64.b64decode(own).hex()}"

        def ask() -> tuple[int, object]:
            return self.public(host, "POST", path, None, "-H",
                               f"Authorization: {signer.sign('POST', path)}")

        status, answer = ask()
        return ask() if status == 401 and signer.learn(answer) else (status, answer)

    def _remember(self, snapshot: dict, key: str) -> None:
        nodes = {node["metadata"]["name"]: node["spec"] for node in snapshot["nodes"]}
        network = snapshot["network"]["metadata"]["name"]
        machine = MACHINES.get((network, nodes[snapshot["self"]]["address4"]))
        if machine and key in SECRETS:
            hub_key = base64.b64decode(nodes[self.name]["publicKey"])
            SIGNERS[self.lab.host(machine)] = Signer(
                key_of(SECRETS[key], hub_key, base64.b64decode(key)))


def proof_of(host: Host, method: str, path: str, body: str = "") -> list[str]:
    """Arguments of curl with the proof of the member that the machine is; none if it is none."""
    signer = SIGNERS.get(host)
    return ["-H", f"Authorization: {signer.sign(method, path, body.encode())}"] if signer else []


def member_call(host: Host, method: str, path: str, body: object = None) -> tuple[int, object]:
    """Ask at the hub's overlay address, with a proof; again when the hub says which it takes."""
    text = "" if body is None else json.dumps(body)
    status, answer = plain_call(host, method, path, body, *proof_of(host, method, path, text))
    if status == 401 and host in SIGNERS and SIGNERS[host].learn(answer):
        return plain_call(host, method, path, body, *proof_of(host, method, path, text))
    return status, answer


def plain_call(host: Host, method: str, path: str, body: object, *more: str | int,
               before: tuple = ()) -> tuple[int, object]:
    """Ask at the hub's overlay address, with more arguments of curl."""
    argv = [*before, "curl", "-s", "-X", method, "-m", "60", "-w", "\n%{http_code}", *more,
            f"http://10.42.0.1:8443{path}"]
    stdin = None
    if body is not None:
        argv += ["--data-binary", "@-"]
        stdin = json.dumps(body)
    text, _, status = host.run(argv, stdin=stdin, check=False, quiet=True).out.rpartition("\n")
    said = json.loads(text) if text else None
    check_answer(method, path, int(status), said)
    return int(status), said


class Watch:
    """A watch of a member, by curl; its lines are the log."""

    def __init__(self, host: Host, url: str = "http://10.42.0.1:8443/v1/watch") -> None:
        member_call(host, "GET", "/v1/jobs")  # so that the hub has said which proofs it takes
        proof = proof_of(host, "GET", "/v1/watch")
        self.daemon = host.spawn(["curl", "-sN", *proof, url], name="watch")
        self._checked = 0  # events that were held against their schema

    def events(self) -> list[dict]:
        found = [json.loads(line) for line in self.daemon.lines() if line.startswith("{")]
        for event in found[self._checked:]:
            check_answer("GET", "/v1/watch", 200, event)
        self._checked = len(found)
        return found

    def wait(self, pattern: str) -> dict:
        """The first event whose line matches."""
        return json.loads(self.daemon.wait_line(pattern).string)

    def names(self) -> set[str]:
        """The nodes that the events add up to."""
        known: set[str] = set()
        for event in self.events():
            if event["type"] == "snapshot":
                known = {node["metadata"]["name"] for node in event["nodes"]}
            elif event["type"] == "put" and event["object"]["kind"] == "Node":
                known.add(event["object"]["metadata"]["name"])
            elif event["type"] == "delete" and event["kind"] == "Node":
                known.discard(event["name"])
        return known


def put_of(name: str) -> str:
    return f'"type":"put".*"kind":"Node","metadata":{{"name":"{re.escape(name)}"'
