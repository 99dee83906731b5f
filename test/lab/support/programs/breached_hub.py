"""Answers members in the place of their hub, which was broken into: it says what somebody writes.

    breached_hub.py PORT FILE SCRIPT

FILE has {ADDRESS: what the hub has told the member with that address}. A watch begins with that,
and goes on with SCRIPT, to which whoever is in the hub appends: a line is an event, or
{"say": NAME}, which is printed once that far is told. Everything else is answered with 204.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLD = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
SCRIPT = Path(sys.argv[3])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Only what the script has is said."""

    def chunk(self, event: dict) -> None:
        line = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def tell(self, address: str, line: str) -> None:
        event = json.loads(line)
        if "say" in event:
            print(f"{event['say']} to {address}", flush=True)
        else:
            self.chunk(event)

    def watch(self) -> None:
        address = self.client_address[0]
        told = TOLD[address]
        n_told = 0
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.chunk({"type": "snapshot"} | told)
            while True:  # until the member hangs up
                lines = SCRIPT.read_text(encoding="utf-8").splitlines()
                for line in lines[n_told:]:
                    self.tell(address, line)
                n_told = len(lines)
                time.sleep(0.2)
                self.chunk({"type": "heartbeat", "revision": told["revision"] + n_told})
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


print("in the hub's place", flush=True)
ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
