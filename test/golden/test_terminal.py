"""What is printed of texts from outside: nothing that a terminal obeys.

A server in the place of a hub, and of an agent, has escape sequences in each text of its answers,
as no hub lets in that checks what members say.
"""

from __future__ import annotations

import http.server
import json
import re
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

# ESC and '[', the same as one character of C1, DEL, and the beginning of a line.
EVIL = "x\x1b[2J\x9b31m\x7f\r\n\b"
NODE = {"kind": "Node", "metadata": {"name": EVIL, "network": EVIL, "resourceVersion": 1},
        "spec": {"address4": EVIL, "address6": EVIL, "rate": EVIL, "classRates": {"bulk": EVIL}},
        "status": {"engine": EVIL, "path": EVIL, "handshakeAgeSeconds": 1, "error": EVIL,
                   "endpoint": EVIL}, "island": EVIL}
BUDGET = {"job": EVIL, "level": EVIL, "share": 0.5, "bytes": 1, "bytesPerDay": 2}
ANSWERS = {
    "/v1/networks": {"networks": [{"metadata": {"name": EVIL}, "nodes": 1,
                                   "spec": {"cidr4": EVIL, "cidr6": EVIL}}]},
    "/v1/networks/default/nodes": {"nodes": [NODE], "rendezvous": {"hub": EVIL, "epoch": 1},
                                   "alarms": [{"node": EVIL, "peers": [EVIL]}]},
    "/v1/networks/default/tokens": {"tokens": [
        {"id": EVIL, "uses": 1, "expires": 4000000000, "madeBy": EVIL, "by": EVIL}]},
    "/v1/admin-tokens": {"adminTokens": [
        {"name": EVIL, "role": EVIL, "network": EVIL, "madeBy": EVIL, "by": EVIL}]},
    "/v1/networks/default/jobs": {
        "jobs": [{"job": EVIL, "run": EVIL, "c10d": {"endpoint": EVIL}, "lastLimit": EVIL,
                  "nccl": [{"verdict": EVIL, "node": EVIL, "text": EVIL}], "budget": BUDGET}],
        "budgets": [BUDGET]},
    "/v1/networks/default/edges": {"edges": [
        {"name": EVIL, "nodes": ["a", "b"], "state": EVIL, "why": EVIL,
         "status": {"agent/a": {"path": EVIL, "handshakeAgeSeconds": 1},
                    "probe/a": {"tunnel": EVIL, "underlay": EVIL}}}]},
    "/v1/networks/default/findings": {"findings": [
        {"severity": EVIL, "code": EVIL, "subject": EVIL, "text": EVIL, "fix": EVIL}]},
    "/v1/networks/default/events": {"events": [
        {"time": 1, "kind": EVIL, "object": EVIL, "text": EVIL, "reason": EVIL, "count": 1}]},
    "/v1/audit": {"entries": [
        {"id": "1", "time": 1, "actor": EVIL, "from": EVIL, "answer": "refused", "status": 403,
         "operation": EVIL, "why": EVIL},
        {"id": "2", "time": 1, "actor": EVIL, "answer": "done", "operation": EVIL,
         "object": EVIL}]},
    "/v1/networks/default/traffic": {"network": EVIL, "since": EVIL, "until": EVIL, "rows": [],
                                     "disputes": [], "budgets": [BUDGET]},
    "/v1/move": {"public": [EVIL], "next": [EVIL], "untold": [EVIL], "nodes": 1, "told": 0},
    "/v1/status": {
        "self": {"name": EVIL, "network": EVIL, "interface": EVIL, "engine": EVIL, "mtu": 1420,
                 "address4": EVIL, "address6": EVIL, "engineWhy": EVIL, "fault": EVIL},
        "hub": {"name": EVIL, "endpoint": EVIL, "why": EVIL, "reachable": True},
        "peers": [{"name": EVIL, "address4": EVIL, "path": EVIL, "endpoint": EVIL, "why": EVIL}],
        "namesLeftOut": [{"name": EVIL, "node": EVIL, "why": EVIL}],
        "jobs": [{"job": EVIL, "nodes": [EVIL], "budget": BUDGET,
                  "nccl": {"verdict": EVIL, "text": EVIL}}]},
    "/v1/paths/a": {"peer": EVIL, "pairs": [{"local": EVIL, "remote": EVIL, "state": EVIL,
                                             "why": EVIL, "kind": EVIL}], "why": EVIL},
}
HUB = ["nodes", "network ls", "token ls --all", "admin ls", "jobs", "get edges", "get events",
       "get findings",
       "audit", "cost", "hub move"]
AGENT = ["status", "paths a", "islands", "leave", "env"]


class Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self, status: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:  # noqa: N802 - its name in http.server
        body = ANSWERS.get(self.path.split("?")[0])
        self._answer(200 if body else 404, body or {"error": EVIL})

    def do_POST(self) -> None:  # noqa: N802
        self._answer(200, {"network": EVIL, "interface": EVIL, "why": EVIL, "namesWhy": EVIL})

    def address_string(self) -> str:
        return "a unix socket"

    def log_message(self, *_: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("evil") / "sock"
    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def said(weft: Path, words: str, evil: Path) -> str:
    done = subprocess.run([weft, *words.split(), "--socket", evil], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.stdout.decode()


def obeyed(text: str) -> list[str]:
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


@pytest.mark.parametrize("words", HUB + AGENT)
def test_text(weft: Path, evil: Path, words: str) -> None:
    text = said(weft, words, evil)
    assert re.search(r"x\?\[2J\?+31m\?", text)
    assert not obeyed(text)


@pytest.mark.parametrize("words", [words for words in HUB + AGENT if words not in ("leave", "env")])
def test_json(weft: Path, evil: Path, words: str) -> None:
    """JSON keeps what was said, in escapes."""
    text = said(weft, f"{words} --json", evil)
    assert not obeyed(text)
    assert r"x\u001B[2J\u009B31m\u007F" in text


@pytest.mark.parametrize("words", ["get Node b", "paths b", "render b"])
def test_refusals(weft: Path, evil: Path, words: str) -> None:
    """What the other end says no with."""
    text = said(weft, words, evil)
    assert re.search(r"x\?\[2J\?+31m\?", text)
    assert not obeyed(text)
