"""Many peers greet a `weft wg` with several workers at once, beside a stream and configuration.

What can go wrong here goes wrong between threads: `make san` runs it under ThreadSanitizer.

    a (the crowd, and one end of the stream) ── [ s ] ── b (who knows them all)
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.topologies import one_switch

from .wgpeer import WgPeer

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("s", "192.0.2", {"a": 1, "b": 2})
CROWD = 300
ACTIVE = 100
FLOWING_BYTES = 10 << 20


def test_a_crowd_at_work(weft: Path, tmp_path: Path):
    swarm = weft.parent / "test/bench/swarm/bench-swarm"
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        a, b = (WgPeer.userspace(lab.host(name), [weft, "wg", "--threads", "3"])
                for name in ("a", "b"))
        a.configure(["10.7.0.1/24"])
        b.configure(["10.7.0.2/24"])
        a.add_peer(b, endpoint=True)
        b.add_peer(a, endpoint=True)
        a.machine.run(["ip", "route", "add", "local", "10.64.0.0/16", "dev", "lo"])
        b.machine.run(["ip", "route", "add", "10.64.0.0/16", "via", "192.0.2.1"])
        crowd = tmp_path / "crowd.conf"
        crowd.write_text(a.machine.run([swarm, "config", CROWD], quiet=True).out)
        b.machine.run(["wg", "addconf", b.interface, crowd])
        a.ping(b)
        b.machine.spawn(["iperf3", "--server"])
        stream = ["iperf3", "--client", "10.7.0.2", "--parallel", "4"]
        wait_for(lambda: a.machine.run([*stream, "--time", "1"], check=False).rc == 0, 30,
                 "the stream's other end")
        before = b.state(a).rx_bytes
        streaming = a.machine.spawn([*stream, "--time", "600"], allow=[".*"])
        wait_for(lambda: b.state(a).rx_bytes > before + FLOWING_BYTES, 30, "the stream")

        greeting = a.machine.spawn(
            [swarm, "run", CROWD, b.public_key, "192.0.2.2:51820", 1, ACTIVE])
        mark = 0
        while greeting.running:
            mark += 1
            b.set("fwmark", mark)
            b.machine.run(["wg", "show", b.interface, "dump"], quiet=True)
        assert greeting.wait() == 0
        said = "\n".join(greeting.lines())
        steps = {step["step"]: step for step in map(json.loads, re.findall("^{.*}$", said, re.M))}
        assert steps["greet"]["answered"] == CROWD
        assert steps["data"]["sent"] > ACTIVE
        stamps = b.machine.run(["wg", "show", b.interface, "latest-handshakes"], quiet=True).out
        # Their data come faster than they may be taken, so of many of them all may be lost.
        assert any(line.split()[1] != "0" for line in stamps.splitlines()
                   if line.split()[0] != a.public_key)
        assert streaming.running
        streaming.stop()
        a.ping(b)
