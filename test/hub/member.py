#!/usr/bin/python3
"""member - bad manners, run on a machine of the lab; prints one line of JSON.

    member hold ADDRESS PORT BYTES [PACE]   connect, send BYTES, then one byte each PACE seconds
                                            (default: none); how long until the hub ends it
    member doze ADDRESS PORT KEY ADMIN ROUNDS
                                            open a watch and do not read it while the labels of
                                            node "a" are changed ROUNDS times through the socket
                                            ADMIN; then read until the last change is told; KEY
                                            is that of the member's proofs
    member flood ADDRESS PORT RATE SECONDS  so many connections a second, silent, 500 kept open;
                                            says "flooding" first
    member store ADDRESS PORT COUNT         send the bytes that stdin has in hex; the first COUNT
                                            bytes that come back
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors"))
from member_reference import Signer  # noqa: E402

PATIENCE_S = 60


def hold(address: str, port: str, first: str, pace: str = "0") -> dict:
    """Stay on a connection for as long as the hub lets us."""
    start = time.monotonic()
    sock = socket.create_connection((address, int(port)))
    sock.sendall(first.encode().decode("unicode_escape").encode())
    while time.monotonic() - start < PATIENCE_S:
        readable, _, _ = select.select([sock], [], [], float(pace) or PATIENCE_S)
        try:
            if readable and not sock.recv(65536):
                return {"seconds": time.monotonic() - start}
            if float(pace):
                sock.sendall(b"x")
        except OSError:
            return {"seconds": time.monotonic() - start}
    return {"seconds": None}


def ask(at: tuple[str, int], signer: Signer, method: str, path: str,
        body: str = "") -> http.client.HTTPResponse:
    """Signed, and again when the hub says which proofs it takes."""
    while True:
        connection = http.client.HTTPConnection(*at, timeout=60)
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sock.connect(at)
        connection.request(method, path, body or None,
                           {"Authorization": signer.sign(method, path, body.encode())})
        answer = connection.getresponse()
        if answer.status != 401 or not signer.learn(json.loads(answer.read())):
            return answer


def admin(path: str, method: str, body: object = None) -> dict:
    """Ask for or write node "a"."""
    connection = http.client.HTTPConnection("hub")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request(method, "/v1/networks/default/objects/Node/a",
                       json.dumps(body) if body else None)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    node = json.loads(answer.read())
    connection.close()
    return node


def doze(address: str, port: str, key: str, socket_path: str, rounds: str) -> dict:
    """Fall behind, then catch up; every line must be whole, and the last state must come."""
    stream = ask((address, int(port)), Signer(bytes.fromhex(key)), "GET", "/v1/watch")
    kinds = [json.loads(stream.readline())["type"]]
    node = admin(socket_path, "GET")
    del node["metadata"]["resourceVersion"]
    for i in range(int(rounds)):
        node["spec"]["labels"] = {f"{k:02d}" + "x" * 60: f"{i:06d}" + "x" * 57 for k in range(32)}
        admin(socket_path, "PUT", node)
    last = f"{int(rounds) - 1:06d}"
    while True:
        line = stream.readline()
        event = json.loads(line)
        kinds.append(event["type"])
        if last.encode() in line:
            return {"snapshots": kinds.count("snapshot"), "puts": kinds.count("put")}


def flood(address: str, port: str, rate: str, seconds: str) -> dict:
    """Whatever becomes of them: it is refused, taken or left waiting."""
    start, sent, held = time.monotonic(), 0, []
    while (elapsed := time.monotonic() - start) < float(seconds):
        for _ in range(max(1, int(elapsed * float(rate)) - sent)):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((address, int(port)))
            held.append(sock)
            sent += 1
        while len(held) > 500:
            held.pop(0).close()
        if sent >= float(rate) / 2 and sent - float(rate) / 2 < 10:
            print("flooding", flush=True)
        time.sleep(0.002)
    return {"sent": sent}


def store(address: str, port: str, count: str) -> dict:
    """Ask a job's port with bytes."""
    request = sys.stdin.read()
    with socket.create_connection((address, int(port)), timeout=60) as sock:
        sock.sendall(bytes.fromhex(request))
        answer = b""
        while len(answer) < int(count):
            more = sock.recv(int(count) - len(answer))
            if not more:
                break
            answer += more
    return {"answer": answer.hex()}


if __name__ == "__main__":
    VERBS = {"hold": hold, "doze": doze, "flood": flood, "store": store}
    print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))
