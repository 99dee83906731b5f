#!/usr/bin/python3
"""hostile - a member that does the worst it can to its hub, by every API; and one that works.

    hostile.py attack SECONDS      as the first; what it has done, as JSON
    hostile.py work SECONDS        as the second; how long each of its requests took, as JSON

Standard input has who it is: {"secret", "public", "hub", "tokens", "ports"}. The first runs with
the lowest priority: in life its processor is its own.
"""

from __future__ import annotations

import base64
import http.client
import json
import multiprocessing
import os
import random
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vectors"))
from member_reference import Signer, key_of  # noqa: E402

HUB = "10.42.0.1"
PUBLIC = ("192.0.2.1", 8443)
SET, GET, ADD, WAIT, APPEND = 0, 2, 3, 5, 9
MIB = 1 << 20
PACE_S = 0.02
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE


def text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


class Member:
    """Asks at the members' API, with its proof."""

    def __init__(self, me: dict) -> None:
        secret, public, hub = (base64.b64decode(me[k]) for k in ("secret", "public", "hub"))
        self.signer = Signer(key_of(secret, hub, public))

    def ask(self, method: str, path: str, body: str = "") -> tuple[int, object]:
        for _ in range(2):
            connection = http.client.HTTPConnection(HUB, 8443, timeout=30)
            proof = self.signer.sign(method, path, body.encode())
            connection.request(method, path, body or None, {"Authorization": proof})
            answer = connection.getresponse()
            data = answer.read()
            connection.close()
            found = json.loads(data) if data else None
            if answer.status != 401 or not self.signer.learn(found):
                break
        return answer.status, found


# ---- the hostile one ------------------------------------------------------------------------

def connect(port: int, first: bytes = b"") -> socket.socket:
    sock = socket.create_connection((HUB, port), timeout=5)
    sock.sendall(first)
    return sock


def appends(me: dict) -> None:
    """To one long value, empty and short, as fast as it goes."""
    one = bytes([APPEND]) + text(b"long")
    sock = connect(me["ports"][0], bytes([SET]) + text(b"long") + text(b"x" * MIB))
    while True:
        sock.sendall((one + text(b"") + one + text(b"y")) * 1000)


def large_values(me: dict) -> None:
    sock = connect(me["ports"][0])
    while True:
        sock.sendall(bytes([SET]) + text(b"v%d" % random.randrange(8)) + text(b"z" * (7 * MIB)))


def many_keys(me: dict) -> None:
    socks = [connect(port) for port in me["ports"]]
    n = 0
    while True:
        for sock in socks:
            sock.sendall(b"".join(bytes([SET]) + text(b"%d" % (n + i)) + text(b"v" * 100)
                                  for i in range(500)))
        n = (n + 500) % 70000


def unread(me: dict) -> None:
    """Asks for one long value again and again, and reads nothing."""
    writer = connect(me["ports"][0], bytes([SET]) + text(b"big") + text(b"x" * MIB))
    socks = [connect(me["ports"][0]) for _ in range(100)]
    for sock in socks:
        sock.setblocking(False)
    while True:
        _, writable, _ = select.select([], socks, [], 1)
        for sock in writable:
            sock.send((bytes([GET]) + text(b"big")) * 50)
    writer.close()


def tree(me: dict) -> None:
    """Values that grow in JSON, and then all of them at once, again and again."""
    def put(path: str, body: str, method: str = "PUT") -> None:
        connection = http.client.HTTPConnection(HUB, me["ports"][1], timeout=30)
        connection.request(method, "/v2/keys" + path, body,
                           {"Content-Type": "application/x-www-form-urlencoded"})
        connection.getresponse().read()
        connection.close()

    everything = b"GET /v2/keys/?recursive=true HTTP/1.1\r\nHost: x\r\n\r\n"
    for i in range(160):
        put(f"/d/{i}", "value=" + "%01" * 250_000)
    while True:
        socks = [connect(me["ports"][1], everything) for _ in range(20)]
        for _ in range(50):
            put("/d/" + "d/" * 60 + str(random.randrange(1000)), "value=" + "x" * 200_000)
        for sock in socks:
            sock.close()


def silent(me: dict) -> None:
    """As many connections as it gets, that say nothing, at every port."""
    socks = []
    while True:
        for port in [8443, *me["ports"]]:
            try:
                socks.append(socket.create_connection((HUB, port), timeout=0.2))
            except OSError:
                pass
        del socks[:-3000]


def api(me: dict) -> None:
    member = Member(me)
    n = 0
    while True:
        n += 1
        member.ask("POST", f"/v1/jobs/job-{n % 300}/rendezvous")
        member.ask("GET", "/v1/jobs")
        member.ask("PUT", "/v1/status", json.dumps(
            {"node": {"os": "x" * 200}, "edges": {f"n{i}": {} for i in range(500)}}))
        member.ask("DELETE", f"/v1/jobs/job-{n % 300}/rendezvous")
        member.ask("PUT", "/v1/status", "[" * 60000)


def strangers(me: dict) -> None:
    """The public API, with tokens that are none."""
    body = json.dumps({"secret": "A" * 43, "publicKey": "B" * 44, "labels": {"x": "y" * 60}})
    while True:
        try:
            with socket.create_connection(PUBLIC, timeout=5) as raw, \
                    TLS.wrap_socket(raw) as sock:
                sock.sendall((f"POST /v1/enrol HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
                              f"\r\n\r\n{body}").encode())
                sock.recv(4096)
        except OSError:
            pass


WAYS = (appends, large_values, many_keys, unread, tree, silent, api, strangers)


def again_and_again(way, me: dict, ends: float, done) -> None:
    while time.monotonic() < ends:
        with done.get_lock():
            done.value += 1
        try:
            way(me)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)


def attack(me: dict, seconds: float) -> dict:
    os.nice(19)
    ends = time.monotonic() + seconds
    begun = {way.__name__: multiprocessing.Value("i", 0) for way in WAYS}
    workers = [multiprocessing.Process(target=again_and_again,
                                       args=(way, me, ends, begun[way.__name__])) for way in WAYS]
    for worker in workers:
        worker.start()
    time.sleep(max(0.0, ends - time.monotonic()))
    for worker in workers:
        worker.kill()
        worker.join()
    return {name: value.value for name, value in begun.items()}


# ---- the one that works ---------------------------------------------------------------------

def join(token: str) -> None:
    """A new machine comes in; nobody asks it for the secret half of its key."""
    connection = http.client.HTTPSConnection(*PUBLIC, timeout=30, context=TLS)
    key = base64.b64encode(os.urandom(31) + b"\1").decode()  # bit 255 is clear
    connection.request("POST", "/v1/enrol", json.dumps({"secret": token, "publicKey": key}))
    assert connection.getresponse().status == 200
    connection.close()


def meet(port: int, n: int) -> None:
    """A process of a job: says that it is there, and waits for what another one says."""
    with connect(port, bytes([ADD]) + text(b"here") + struct.pack("<q", 1) +
                 bytes([SET]) + text(b"go%d" % n) + text(b"1") +
                 bytes([WAIT]) + struct.pack("<Q", 1) + text(b"go%d" % n)) as sock:
        got = b""
        while len(got) < 9:
            got += sock.recv(9 - len(got)) or sys.exit("hung up")


def put_key(port: int, n: int) -> None:
    """etcd answers when the disk has it."""
    connection = http.client.HTTPConnection(HUB, port, timeout=30)
    connection.request("PUT", f"/v2/keys/state/{n % 20}", "value=1",
                       {"Content-Type": "application/x-www-form-urlencoded"})
    assert connection.getresponse().status in (200, 201)
    connection.close()


def work(me: dict, seconds: float) -> dict:
    member = Member(me)
    ping = subprocess.Popen(["ping", "-n", "-i", "0.02", "-w", str(int(seconds)), HUB],
                            stdout=subprocess.PIPE, text=True)
    took: dict[str, list[float]] = {}
    ends = time.monotonic() + seconds
    n = 0
    while time.monotonic() < ends:
        n += 1
        for name, call in (("ask", lambda: member.ask("GET", "/v1/jobs")),
                           ("meet", lambda: meet(me["ports"][0], n)),
                           ("etcd", lambda: put_key(me["ports"][1], n)),
                           ("join", lambda: join(me["tokens"][n % len(me["tokens"])]))):
            start = time.monotonic()
            call()
            took.setdefault(name, []).append((time.monotonic() - start) * 1000)
            time.sleep(PACE_S)
    out, _ = ping.communicate()
    took["ping"] = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", out)]
    return took


if __name__ == "__main__":
    print(json.dumps({"attack": attack, "work": work}[sys.argv[1]](
        json.load(sys.stdin), float(sys.argv[2]))))
