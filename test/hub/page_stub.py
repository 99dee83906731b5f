"""The hub's page without a hub: its files, and a network of any size that changes when a test says.

It answers as the hub does (src/control/hub/web/live_view.h), so that what takes 200 machines, jobs
that are held up and findings of all kinds can be looked at.
"""

from __future__ import annotations

import http.server
import json
import queue
import random
import threading
import time
from pathlib import Path

FILES = Path(__file__).parents[2] / "src/control/hub/web/files"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript",
         ".svg": "image/svg+xml"}
# As WEB_POLICY of src/control/hub/handlers/handlers_web.c.
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
          "require-trusted-types-for 'script'; trusted-types 'none'")
STATES = ["off", "refused", "failing", "never-applied", "agent-silent", "fell-back", "unreached",
          "no-path", "stream", "relay", "direct", "lan", "idle"]
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def number(value: int) -> str:
    text = ""
    while value:
        value, digit = divmod(value, 36)
        text = DIGITS[digit] + text
    return text or "0"


def pair(state: str, **values: int | None) -> str:
    """As a row of the matrix has it: pair("relay", R=40000)."""
    return chr(97 + STATES.index(state)) + "".join(
        letter + number(value) for letter, value in values.items() if value is not None)


def finding(code: str, severity: str, about: str, subject: str, title: str, text: str, fix: str,
            age: int = 24) -> dict:
    return {"code": code, "severity": severity, "about": about, "subject": subject, "title": title,
            "since": int(time.time()) - age, "text": text, "fix": fix}


class Network:
    """So many nodes in islands of eight, of which some things are wrong."""

    def __init__(self, n: int) -> None:
        self.random = random.Random(n)
        self.names = sorted(["hub", *(f"gpu-{i:03}" for i in range(1, n))])
        self.island = {name: f"rack-{int(name[4:]) // 24 + 1}" for name in self.names
                       if name != "hub"}
        self.rows = {"names": self.names, "net": {
            "name": "default", "cidr4": "10.77.0.0/16", "nodes": n, "events": 3,
            "jobsElsewhere": False, "leftOut": 0}}
        for i, name in enumerate(self.names):
            node = {"reachable": True, "kind": "node", "island": self.island.get(name, ""),
                    "address4": f"10.77.{i // 250}.{i % 250 + 1}", "engine": "userspace",
                    "version": "0.2.0"}
            if name == "hub":
                node |= {"kind": "hub"}
                del node["island"]
            self.rows[f"n/{name}"] = node
        if n > 5:
            self.rows["n/gpu-003"] |= {"reachable": False, "lastSeen": int(time.time()) - 130}
            self.rows["n/gpu-002"] |= {"kind": "relay"}
            self.rows["n/gpu-004"] |= {"kind": "stock", "engine": "stock"}
        for i in range(n):
            self.rows[f"m/{self.names[i]}"] = ",".join(
                self.make(self.names[i], b) for b in self.names[i + 1:])
        self.find()

    def make(self, a: str, b: str) -> str:
        if "gpu-003" in (a, b):
            return pair("agent-silent")
        if "hub" in (a, b):
            return ""
        lucky = self.random.random()
        if self.island[a] == self.island[b]:
            return pair("lan", R=self.random.randint(90, 400), X=0, Y=0,
                        G=self.random.randint(0, 3) * 10**8 or None)
        if lucky < 0.08:
            return pair("relay", R=self.random.randint(20000, 90000))
        if lucky < 0.1:
            return pair("stream", R=self.random.randint(30000, 90000))
        if lucky < 0.105:
            return pair("fell-back", P=3)
        lost = self.random.randint(900, 23000) if lucky > 0.98 else 0
        return pair("direct", R=self.random.randint(800, 42000), X=lost, Y=lost // 7)

    def find(self) -> None:
        for x in (
            finding("WEFT-NODE-001", "critical", "node", "gpu-003", "machine is down, or cut off",
                    "nothing of it is heard since 14:02:11, and no probe reaches it",
                    "Start the machine, or look at its line.", 130),
            finding("WEFT-LOSS-002", "critical", "way", "gpu-001>gpu-005", "much is lost",
                    "1.9 % of 73210 datagrams in 58 s do not arrive",
                    "Look at the line between the two: weft preflight measures it."),
            finding("WEFT-MTU-002", "warning", "pair", "gpu-001--gpu-002", "packets are cut short",
                    "datagrams of 1420 bytes do not pass, of 1280 do", "Let ICMP pass.", 4000),
            finding("WEFT-CPU-001", "note", "node", "gpu-005", "cores are full",
                    "no core was idle for 60 s", "Leave a core to the network.", 90000),
        ):
            self.rows[f"f/{x['code']}/{x['subject']}"] = x
        held = finding("WEFT-RANK-003", "critical", "rank", "train/gpu-005", "its line is slow",
                       "gpu-005 > gpu-001: 0.20 MB/s while it sends, was 11 MB/s",
                       "Look at the line of gpu-005.")
        members = [name for name in self.names if name != "hub"][:8]
        self.rows["j/train"] = {"run": "train.3", "present": members, "heldUpBy": [held],
                                "step": 4711, "stepsPerSecond": 1.25, "limitHits": 0}
        self.rows["j/default"] = {"run": "default.1", "present": [], "heldUpBy": [], "limitHits": 0}

    def change(self) -> dict:
        """What may change from one look to the next: some hundred pairs, a node, a finding."""
        rows = {}
        for name in self.names[1:20]:
            codes = self.rows[f"m/{name}"].split(",")
            rows[f"m/{name}"] = ",".join(
                pair("direct", R=self.random.randint(800, 42000)) if code[:1] == "k" else code
                for code in codes)
        node = dict(self.rows["n/gpu-001"])
        node["reachable"] = not node["reachable"]
        rows["n/gpu-001"] = node
        self.rows |= rows
        return rows


class Stub:
    """Serves it at 127.0.0.1, for as long as it is entered."""

    def __init__(self, n: int, role: str = "admin") -> None:
        self.network = Network(n)
        self.role = role
        self.streams: list[queue.Queue] = []
        self.logged_in = True
        self.posted: list[tuple[str, dict]] = []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.get(self)

            def do_POST(self) -> None:
                stub.post(self)

            def do_DELETE(self) -> None:
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/web/"

    def __enter__(self) -> Stub:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self.streams:
            stream.put(None)
        self.server.shutdown()
        self.server.server_close()

    def first(self) -> bytes:
        return json.dumps({"all": True, "rows": self.network.rows},
                          separators=(",", ":")).encode()

    def change(self) -> None:
        data = json.dumps({"rows": self.network.change()}).encode()
        for stream in self.streams:
            stream.put(data)

    def answer(self, to: http.server.BaseHTTPRequestHandler, body: object, status: int = 200,
               kind: str = "application/json") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        to.send_response(status)
        to.send_header("Content-Type", kind)
        to.send_header("Content-Length", str(len(data)))
        to.send_header("Content-Security-Policy", POLICY)
        to.end_headers()
        to.wfile.write(data)

    def session(self) -> dict:
        return {"name": "page:uid:0", "role": self.role, "hub": "hub", "version": "0.2.0",
                "expires": int(time.time()) + 3600}

    def get(self, to: http.server.BaseHTTPRequestHandler) -> None:
        path = to.path.partition("?")[0]
        name = path.removeprefix("/web/") or "index.html"
        now = int(time.time())
        if path.startswith("/web/") and (FILES / name).is_file():
            self.answer(to, (FILES / name).read_bytes(), kind=TYPES[Path(name).suffix])
        elif path == "/web/codes.json":
            self.answer(to, {"WEFT-NODE-001": {"means": "Its agent is not heard.",
                                               "provoke": "Cut its line."}})
        elif path == "/v1/web/session":
            self.answer(to, self.session() if self.logged_in else {"error": "log in"},
                        200 if self.logged_in else 401)
        elif path == "/v1/networks":
            self.answer(to, {"networks": [{"metadata": {"name": "default"}}]})
        elif path.endswith("/live"):
            self.stream(to)
        elif path.endswith("/events"):
            self.answer(to, {"events": [{"number": i, "time": now - 60 * i, "type": "Found",
                                         "code": "WEFT-MTU-002", "object": "gpu-001--gpu-002",
                                         "text": "datagrams of 1420 bytes do not pass"}
                                        for i in range(1, 4)]})
        elif path.endswith("/history"):
            name = path.split("/")[-2]
            begin = now - now % 3600
            self.answer(to, {"name": name, "nodes": name.split("--"), "minutes": [
                {"at": now - now % 60 - 60 * i, "state": "direct", "rttMs": 12.5 + i % 3,
                 "jitterMs": 0.75, "lossPercent": [0.02, None], "bytesPerSecond": [0, 4096000]}
                for i in range(30, 0, -1)], "hours": [
                {"at": begin - 7200, "state": "relay", "rttMs": 40.0},
                {"at": begin - 3600, "state": "agent-silent"}]})
        elif "/objects/MeshEdge/" in path:
            a, b = path.rpartition("/")[2].split("--")
            end = {"path": "direct", "endpoint": "198.51.100.4:40112", "handshakeAgeSeconds": 41}
            probe = {"tunnel": "reached", "tunnelRttMs": 12.5, "underlay": "reached"}
            self.answer(to, {"status": {f"agent/{a}": end, f"agent/{b}": end, f"probe/{a}": probe,
                                        "hub": {"state": "direct", "why": ""}}})
        elif path.endswith("/tokens"):
            self.answer(to, {"tokens": [{"id": "0123456789ab", "usesLeft": 3, "expires": now + 9000,
                                         "ephemeral": False, "relay": True, "createdBy": "uid:0"}]})
        elif path == "/v1/admin-tokens":
            self.answer(to, {"adminTokens": [{"name": "ci", "role": "viewer", "created": now,
                                              "expires": now + 90000, "createdBy": "uid:0"}]})
        else:
            self.answer(to, {"error": f"there is no {path}"}, 404)

    def post(self, to: http.server.BaseHTTPRequestHandler) -> None:
        body = json.loads(to.rfile.read(int(to.headers["Content-Length"])) or b"{}")
        self.posted.append((to.path, body))
        if to.path.endswith("/tokens"):
            self.answer(to, {"token": "weft1.abc", "expires": int(time.time()) + 3600}, 201)
        else:
            self.answer(to, {"error": "no"}, 404)

    def stream(self, to: http.server.BaseHTTPRequestHandler) -> None:
        events: queue.Queue = queue.Queue()
        events.put(self.first())
        self.streams.append(events)
        to.send_response(200)
        to.send_header("Content-Type", "text/event-stream")
        to.end_headers()
        number_of = 0
        while (data := events.get()) is not None:
            number_of += 1
            try:
                to.wfile.write(b"id: 1.%d\ndata: " % number_of + data + b"\n\n")
                to.wfile.flush()
            except OSError:
                return
