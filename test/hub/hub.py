"""A hub in a lab, and the ways to ask it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
from pathlib import Path

from lab import Daemon, Host, Lab

TOPOLOGY = """
switch wan 192.0.2.0/24
switch weft-default 10.42.0.0/16
switch weft-other 10.42.0.0/16
host hub
host a
host b
host c
link hub wan 192.0.2.1
link a wan 192.0.2.2
link b wan 192.0.2.3
link c wan 192.0.2.4
link hub weft-default 10.42.0.1
link a weft-default 10.42.0.2
link b weft-default 10.42.0.3
link hub weft-other 10.42.0.1
link c weft-other 10.42.0.2
"""


def new_key() -> str:
    """A public key that nobody has the secret of; the hub does not ask for it."""
    return base64.b64encode(os.urandom(32)).decode()


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
    """A hub on the lab's machine `hub`."""

    def __init__(self, lab: Lab, weft: Path, directory: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.state = directory / "state"
        self.socket = directory / "hub.sock"
        self.daemon: Daemon | None = None
        self.pin = ""

    def argv(self, *more: str) -> list:
        return [self.weft, "hub", "up", "--public", "192.0.2.1", "--state", self.state, "--socket",
                self.socket, "--no-dataplane", *more]

    def start(self, *more: str, before: tuple = ()) -> Hub:
        self.daemon = self.lab.host("hub").spawn([*before, *self.argv(*more)], name="hub")
        self.pin = self.daemon.wait_line(r"hub is up: .*TLS pin (\S+),")[1]
        return self

    def restart(self) -> None:
        self.daemon.kill9()
        self.start()

    # ---- the administration's door

    def admin(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Ask through the unix socket; gives the status and the JSON."""
        connection = UnixConnection(self.socket)
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text)
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if data else None
        finally:
            connection.close()

    def run(self, *words: str, check: bool = True):
        """A command of weft against this hub."""
        return self.lab.host("hub").run([self.weft, *words, "--socket", self.socket], check=check)

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

    # ---- the public door

    def public(self, host: Host, method: str, path: str, body: object = None,
               bearer: str = "") -> tuple[int, object]:
        """Ask with curl over TLS, with the pin; perhaps with an admin token."""
        argv = ["curl", "-sk", "--pinnedpubkey", f"sha256//{self.pin}", "-X", method, "-m", "60",
                "-w", "\n%{http_code}", f"https://192.0.2.1:8443{path}"]
        stdin = None
        if bearer:
            argv += ["-H", f"Authorization: Bearer {bearer}"]
        if body is not None:
            argv += ["--data-binary", "@-"]
            stdin = body if isinstance(body, str) else json.dumps(body)
        done = host.run(argv, stdin=stdin, check=False, quiet=True)
        text, _, status = done.out.rpartition("\n")
        try:
            return int(status), json.loads(text) if text else None
        except ValueError:
            return int(status), text

    def enrol(self, host: Host, secret: str, **fields: object) -> tuple[int, object]:
        body = {"secret": secret, "publicKey": new_key()} | fields
        return self.public(host, "POST", "/v1/enrol", body)


def member_call(host: Host, method: str, path: str, body: object = None) -> tuple[int, object]:
    """Ask at the hub's overlay address."""
    argv = ["curl", "-s", "-X", method, "-m", "60", "-w", "\n%{http_code}",
            f"http://10.42.0.1:8443{path}"]
    stdin = None
    if body is not None:
        argv += ["--data-binary", "@-"]
        stdin = json.dumps(body)
    text, _, status = host.run(argv, stdin=stdin, check=False, quiet=True).out.rpartition("\n")
    return int(status), json.loads(text) if text else None


class Watch:
    """A watch of a member, by curl; its lines are the log."""

    def __init__(self, host: Host) -> None:
        self.daemon = host.spawn(["curl", "-sN", "http://10.42.0.1:8443/v1/watch"], name="watch")

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.daemon.lines() if line.startswith("{")]

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
