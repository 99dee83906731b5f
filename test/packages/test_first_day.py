"""From fresh Debian 12 machines to a training job, with the five commands of the README.

    hub    na ─ a          na and nb are NATs of two providers; each machine has a Debian root of
     │     │               its own with apt, and no systemd runs there
   [ net ]─┴─ nb ─ b
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Lab

from . import chroots
from .build import Packages

pytestmark = pytest.mark.namespaces

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/train_ddp.py"
TOPOLOGY = ROOT / "test/lab/topo/two-nats.topo"
# What it is to be on a machine with nothing else to do, and what one that is busy may make of it.
TAKES_S, DEADLINE_S = 90, 600


def test_five_commands(packages: Packages, tmp_path: Path) -> None:
    base = chroots.base(packages)
    with Lab.from_file(TOPOLOGY, capture=False) as lab, ThreadPoolExecutor(3) as pool:
        machines = dict(zip(("hub", "a", "b"), pool.map(
            lambda name: chroots.Chroot(lab.host(name), base, packages), ("hub", "a", "b"))))
        hub, a, b = machines.values()
        weft = f"./{packages.weft.name}"
        began = time.monotonic()

        def on_nodes(command) -> None:
            list(pool.map(command, (a, b)))

        def install(machine: chroots.Chroot) -> None:
            more = [f"./{packages.hub.name}"] if machine is hub else []
            machine.run(["apt", "install", "-y", weft, *more], timeout_s=120)

        list(pool.map(install, (hub, a, b)))
        installed = time.monotonic()
        daemon = hub.spawn(["weft", "hub", "up", "--public", lab.host("hub").address()], name="hub")
        daemon.wait_line("weft hub is up", 30)
        token = hub.run(["weft", "token", "new", "--uses", "2"]).out.strip()
        on_nodes(lambda machine: machine.run(["weft", "join", token], timeout_s=60))
        joined = time.monotonic()
        on_nodes(lambda machine: machine.run(
            ["weft", "run", "--nnodes", "2", "--", "torchrun", "--redirects=2", "--tee=1",
             f"--log_dir={tmp_path}/{machine.host.name}", EXAMPLE, "--steps", "40"],
            timeout_s=200))
        ended = time.monotonic()
        print(f"FIGURE first day: {ended - began:.0f} s from apt install to the end of a job on "
              f"two nodes (to be under {TAKES_S} s); {installed - began:.0f} s of it apt, "
              f"{joined - installed:.0f} s hub and joining, {ended - joined:.0f} s the job")
        assert ended - began < DEADLINE_S
        on_nodes(lambda machine: machine.run(["weft", "leave"], timeout_s=60))
