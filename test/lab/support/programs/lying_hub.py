"""Answers members in the place of their hub, with snapshots that it has no right to send.

    lying_hub.py PORT FILE

FILE has {ADDRESS: what the hub has told the member with that address}. Each watch of a member is
told the next lie, and a line says which and to whom. Everything else is answered with 204.
"""

from __future__ import annotations

import copy
import itertools
import json
import sys
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLD = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
BLOCK4, BLOCK6, OUTSIDE = "8.0.0.0/8", "2001:db8::/32", "8.8.8.8"


def snapshot(told: dict) -> dict:
    return {"type": "snapshot"} | copy.deepcopy(told)


def other_network(told: dict, field: str, block: str) -> dict:
    network = copy.deepcopy(told["network"])
    network["spec"][field] = block
    return network


def node_outside(told: dict) -> dict:
    """Another member than the one that is told."""
    node = next(one for one in told["nodes"]
                if "hub" not in one["spec"] and one["metadata"]["name"] != told["self"])
    node = copy.deepcopy(node)
    node["spec"]["address4"] = OUTSIDE
    return node


def put(told: dict, thing: dict) -> list[dict]:
    """First the truth, then that."""
    return [snapshot(told), {"type": "put", "revision": told["revision"] + 1, "object": thing}]


def whole_block4(told: dict) -> list[dict]:
    return [snapshot(told) | {"network": other_network(told, "cidr4", BLOCK4)}]


def whole_block6(told: dict) -> list[dict]:
    return [snapshot(told) | {"network": other_network(told, "cidr6", BLOCK6)}]


def whole_node(told: dict) -> list[dict]:
    node = node_outside(told)
    return [snapshot(told) | {"nodes": [
        node if one["metadata"]["name"] == node["metadata"]["name"] else one
        for one in told["nodes"]]}]


def later_block4(told: dict) -> list[dict]:
    return put(told, other_network(told, "cidr4", BLOCK4))


def later_node(told: dict) -> list[dict]:
    return put(told, node_outside(told))


LIES = (whole_block4, whole_block6, whole_node, later_block4, later_node)
next_lie = defaultdict(lambda: itertools.cycle(LIES))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing but the lies is said."""

    def chunk(self, event: dict) -> None:
        line = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def watch(self) -> None:
        address = self.client_address[0]
        lie = next(next_lie[address])
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in lie(TOLD[address]):
                self.chunk(event)
            print(f"{lie.__name__} to {address}", flush=True)
            while True:  # until the member hangs up
                time.sleep(0.5)
                self.chunk({"type": "heartbeat", "revision": TOLD[address]["revision"] + 2})
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        if self.path.startswith("/v1/watch"):
            self.watch()
        else:
            self.do_PUT()

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    do_POST = do_DELETE = do_PUT


print("lying", flush=True)
ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
