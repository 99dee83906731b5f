"""A member orders another to measure where it should not; a line for what came of each order.

    misdirected_orders.py ADDRESS PEER ENDPOINT...
"""

from __future__ import annotations

import json
import os
import sys

from refused_orders import begin_session, connect


def main() -> None:
    address, peer, *endpoints = sys.argv[1:]
    begin = {"op": "session", "id": os.urandom(16).hex(), "purpose": "test", "seconds": 60}
    with connect(address) as sock:
        begin_session(sock, address, begin)
        lines = sock.makefile()

        def order(what: dict) -> dict:
            sock.sendall(json.dumps(what).encode() + b"\n")
            return json.loads(lines.readline())

        for endpoint in endpoints:
            host, port = endpoint.rsplit(":", 1)
            answer = order({"op": "bulk", "peer": peer, "streams": 1, "ms": 50, "bytes": 1000,
                            "way": "out", "underlay": True, "port": int(port),
                            "addresses": [host]})
            print(endpoint, answer.get("why") or answer.get("error") or "measured")
        for op in ("bulk", "light"):
            answer = order({"op": op, "peer": address, "streams": 1, "ms": 50, "bytes": 1000,
                            "way": "out", "pings": 1})
            print("itself", answer.get("error", "measured"))
        for name, where in (("localhost", peer), ("hub", peer), ("n3", "127.0.0.1")):
            answer = order({"op": "names", "names": [{"name": name, "address": where}]})
            print(name, answer.get("error", "told"))


if __name__ == "__main__":
    main()
