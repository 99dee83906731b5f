"""What a stranger, and a member gone wrong, can do to a hub: not much."""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time
from pathlib import Path

import pytest

from .hub import SIGNERS, Watch, member_call, new_key

pytestmark = pytest.mark.namespaces

MEMBER = Path(__file__).resolve().parent / "member.py"
DEEP = "[" * 30000
BODIES = ["", "{", "[]", "null", '"x"', "{}", DEEP, '{"a":' * 5000, "\0\0\0\0", "\xff\xfe",
          '{"secret":1,"publicKey":2}', '{"secret":"x","secret":"y"}', '{"secret":"\\u0000"}',
          '{"name":"%s"}' % ("n" * 60000), '{"labels":{"":""}}', '{"ttlSeconds":-1}',
          '{"ttlSeconds":1e308}', '{"node":[],"edges":7}', '{"edges":{"..":{}}}',
          '{"kind":"Node","metadata":{"name":"hub"},"spec":{}}']
CALLS = [("POST", "/v1/enrol"), ("PUT", "/v1/status"), ("POST", "/v1/networks"),
         ("POST", "/v1/networks/default/tokens"),
         ("PUT", "/v1/networks/default/objects/Node/hub"),
         ("PUT", "/v1/networks/default/objects/MeshEdge/a--b"),
         ("PUT", "/v1/networks/default/objects/Network/default")]
PATHS = ["/", "//", "/v1", "/v1/", "/v1/networks/", "/v1/networks//nodes", "/v1/networks/%00",
         "/v1/networks/../../etc/passwd", "/v1/networks/default/objects/Node/" + "x" * 400,
         "/v1/" + "x" * 5000, "/v1/networks/default/snapshots/nobody", "/v1/networks/A%20B"]


def raw(hub, data: bytes) -> bytes:
    """Bytes to the unix socket as they are; what comes back."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(hub.socket))
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # it has had enough already
            pass
        got = b""
        try:
            while piece := sock.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got


def request(method: str, path: str, body: str) -> bytes:
    data = body.encode("utf-8", "surrogateescape")
    head = f"{method} {path} HTTP/1.1\r\nHost: hub\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


def test_garbage_bodies(hub):
    for method, path in CALLS:
        for body in BODIES:
            status = status_of(raw(hub, request(method, path, body)))
            # An empty body is a fair way to ask for a token.
            fair = path.endswith("/tokens") and body in ("", "{}")
            assert status == 201 if fair else 400 <= status < 500, (method, path, body[:60], status)
    assert hub.admin("GET", "/v1/health")[0] == 200
    assert hub.nodes().keys() == {"hub"}


def test_garbage_paths(hub):
    for path in PATHS:
        status = status_of(raw(hub, request("GET", path, "")))
        assert 400 <= status < 500, (path[:60], status)


def test_refusals_are_sentences(hub):
    for method, path in (("GET", "/v1/nowhere"), ("DELETE", "/v1/networks/zz"),
                         ("POST", "/v1/enrol"), ("PATCH", "/v1/networks")):
        status, answer = hub.admin(method, path)
        assert status >= 400 and len(answer["error"]) > 10


def test_long_bodies(hub, lab):
    a = lab.host("a")
    secret = hub.secret()
    body = json.dumps({"secret": "A" * (1 << 20), "publicKey": new_key()})
    status, answer = hub.public(a, "POST", "/v1/enrol", body)
    assert status == 413 and "longer than 65536 bytes" in answer["error"]
    # Ten mebibytes, announced or not: refused, or cut, at once.
    ten = b"x" * (10 << 20)
    head = b"POST /v1/networks HTTP/1.1\r\nHost: hub\r\n"
    assert status_of(raw(hub, head + b"Content-Length: 10485760\r\n\r\n" + ten)) in (0, 413)
    chunks = b"%x\r\n" % len(ten) + ten + b"\r\n0\r\n\r\n"
    assert status_of(raw(hub, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)) in (0, 413)
    assert hub.enrol(a, secret)[0] == 200


def test_noise_instead_of_http_and_tls(hub, lab):
    noise = bytes(range(256)) * 64
    for data in (noise, b"\x16\x03\x01\x02\x00" + noise, b"\r\n" * 4000, b"GET " + noise,
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000):
        raw(hub, data)
    lab.host("a").run(["sh", "-c", "head -c 100000 /dev/urandom | "
                       "timeout 60 socat -u - TCP:192.0.2.1:8443"], check=False)
    assert hub.public(lab.host("a"), "GET", "/v1/health")[0] == 200


def test_slow_senders_are_cut(hub, lab):
    """All at once, for each takes its ten seconds: on TLS, on the overlay, in headers and body."""
    a = lab.host("a")
    put = "PUT /v1/status HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 60000\\r\\n\\r\\n"
    slow = [("192.0.2.1", ""), ("192.0.2.1", "\\x16\\x03\\x01", "1"), ("10.42.0.1", ""),
            ("10.42.0.1", "GET /v1/he", "1"), ("10.42.0.1", put, "1"),
            ("10.42.0.1", "GET /v1/health HTTP/1.1\\r\\nA: ", "1")]
    holders = [a.spawn([sys.executable, MEMBER, "hold", address, "8443", *rest], name="hold")
               for address, *rest in slow for _ in range(5)]
    # Meanwhile others are served.
    assert hub.public(lab.host("b"), "GET", "/v1/health")[0] == 200
    for holder in holders:
        assert holder.wait(30) == 0
        seconds = json.loads(holder.lines()[-1])["seconds"]
        # Some seconds more on a busy machine; without a limit it would be minutes.
        assert seconds is not None and seconds < 30, holder.lines()
    _, metrics = hub.admin("GET", "/v1/health")
    assert metrics["ok"]


def test_one_address_cannot_take_all_places(hub, lab):
    a = lab.host("a")
    many = "for i in $(seq 100); do exec {fd}<>/dev/tcp/192.0.2.1/8443; done; echo all; sleep 60"
    greedy = a.spawn(["bash", "-c", many])
    greedy.wait_line("all")
    assert hub.public(a, "GET", "/v1/health")[0] == 0
    assert hub.public(lab.host("b"), "GET", "/v1/health")[0] == 200


def test_a_flood_from_one_address_is_not_felt(hub, lab):
    """Connections wait behind those of their own source: a stranger's is next."""
    a, b = lab.host("a"), lab.host("b")

    def ask() -> float:
        start = time.monotonic()
        status, _ = hub.public(b, "GET", "/v1/health")
        assert status == 200
        return time.monotonic() - start

    quiet = statistics.median(ask() for _ in range(5))
    flood = a.spawn([sys.executable, MEMBER, "flood", "192.0.2.1", "8443", "800", "60"])
    flood.wait_line("flooding")
    times = [ask() for _ in range(15)]
    assert flood.running, "it has ended too early to tell"
    flood.stop()
    print(f"FIGURE a stranger's request beside 800 connections/s of one address: median "
          f"{statistics.median(times) * 1e3:.0f} ms, worst {max(times) * 1e3:.0f} ms, alone "
          f"{quiet * 1e3:.0f} ms, curl's start and TLS included (was 8300)")
    # Without turns by source it waits for seconds each time.
    assert statistics.median(times) < 2


def test_a_program_of_a_node_does_not_shut_its_agent_out(hub, lab):
    """It may hold all places that the hub has for the node: who has not asked yet gives way."""
    a = lab.host("a")
    assert hub.enrol(a, hub.secret(), name="a")[0] == 200
    watch = Watch(a)
    watch.wait('"type":"snapshot"')
    many = ("i=0; while [ $i -lt 40 ]; do exec {fd}<>/dev/tcp/10.42.0.1/8443; i=$((i+1)); done; "
            "echo all; sleep 60")
    holder = a.spawn(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                      "bash", "-c", many])
    holder.wait_line("all")
    for _ in range(10):
        assert member_call(a, "PUT", "/v1/status", {"node": {}})[0] == 204
    assert watch.daemon.running and holder.running


def test_a_reader_that_dozes_is_told_the_last(hub, lab):
    assert hub.enrol(lab.host("a"), hub.secret(), name="a")[0] == 200
    done = lab.host("a").run([sys.executable, MEMBER, "doze", "10.42.0.1", "8443",
                              SIGNERS[lab.host("a")].key.hex(), hub.socket, "1500"], timeout_s=90)
    # 7 MB there were to say; 64 KiB wait in the hub at most, and 4 MiB in its socket.
    seen = json.loads(done.out)
    assert seen["snapshots"] == 1 and seen["puts"] < 1450


def test_watches_of_one_node_are_bounded(hub, lab):
    assert hub.enrol(lab.host("a"), hub.secret(), name="a")[0] == 200
    watches = []
    for _ in range(5):
        watches.append(Watch(lab.host("a")))
        watches[-1].wait('"type":"snapshot"')
    for watch in watches[:3]:
        watch.daemon.wait(10)
    assert watches[-1].daemon.running
    assert member_call(lab.host("a"), "PUT", "/v1/status", {"node": {}})[0] == 204
