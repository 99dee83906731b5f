#!/usr/bin/python3
"""`make demo`: a mesh behind real NATs on this one machine, and a real training job over it.

A hub with a public address, two providers with a NAT each and two nodes behind each NAT, all of
them network namespaces. Each step says in plain words what it did; the demo fails loudly if a
step did not do what it says. With KEEP=1 the lab stays up, and the end says how to look around.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import Daemon, Lab, wait_for
from lab.support.network.laboratory import unavailable
from lab.support.network.process import CommandError

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY = ROOT / "test/lab/topo/two-providers.topo"
NODES = ("n1", "n2", "n3", "n4")
ROUNDS = 12


def said(jobs: list[Daemon]) -> list[str]:
    """What rank 0 has printed; which node has it, the nodes agree on when they meet."""
    return [line for job in jobs for line in job.lines() if re.match(r'round|{"world"', line)]


class Demo:
    """The steps, in order; each uses what the ones before it left."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.overlay: dict[str, tuple[str, str]] = {}  # name: its IPv4 and IPv6 overlay address
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        print(f"\n[{time.monotonic() - self._started:5.1f} s] {text}", flush=True)

    def start_hub(self) -> None:
        hub = self.lab.host("hub")
        daemon = hub.spawn([self.weft, "hub", "up", "--public", hub.address()], name="weft-hub")
        daemon.wait_line(r"hub is up", 20)
        self.say(f"The hub is up at {hub.address()}: "
                 "one UDP port for packets, one TCP port to enrol.")

    def join(self) -> None:
        for name in NODES:
            made = self.lab.host("hub").run([self.weft, "token", "new", "--json"], quiet=True)
            token = json.loads(made.out)["token"]
            self.lab.host(name).run([self.weft, "join", token, "--name", name], quiet=True)
            self.overlay[name] = self._addresses(name)
            provider = "a (port-restricted NAT)" if name in ("n1", "n2") else "b (symmetric NAT)"
            self.say(f"{name}, behind provider {provider}, joined with a one-time token: "
                     f"{self.overlay[name][0]}, {self.overlay[name][1]}")

    def _addresses(self, name: str) -> tuple[str, str]:
        status = self.status(name)["self"]
        return status["address4"].split("/")[0], status["address6"].split("/")[0]

    def status(self, name: str) -> dict:
        return json.loads(self.lab.host(name).run([self.weft, "status", "--json"], quiet=True).out)

    def ping_all(self) -> None:
        for a, b in itertools.permutations(NODES, 2):
            for address in self.overlay[b]:
                self._reach(a, address)
        self.say(f"Every pair talks both ways, over IPv4 and IPv6: {len(NODES) * (len(NODES) - 1)} "
                 "pairs, end-to-end encrypted.")

    def _reach(self, name: str, address: str) -> None:
        ping = ["ping", "-n", "-c1", "-W1", address]
        host = self.lab.host(name)
        wait_for(lambda: host.run(ping, check=False, quiet=True).rc == 0, 15,
                 f"{name} to reach {address}")

    def train(self) -> None:
        if not Path("/usr/lib/python3/dist-packages/torch").exists():
            raise CommandError("python3-torch is not installed: `make demo` as root installs it")
        command = [self.weft, "run", "--nnodes", len(NODES), "--", "torchrun",
                   ROOT / "examples/train_diloco.py", "--rounds", ROUNDS]
        shown_command = " ".join(map(str, command)).replace(f"{ROOT}/", "")
        self.say("A real training job (DiLoCo on Gloo): the same command on every node, and "
                 f"nothing set by hand:\n          $ {shown_command}")
        jobs = [self.lab.host(name).spawn(command, name="job", env={"OMP_NUM_THREADS": "1"})
                for name in NODES]
        shown = 0
        while any(job.running for job in jobs):
            shown = self._show_progress(jobs, shown)
            self._wait_for_news(jobs, shown)
        self._show_progress(jobs, shown)
        for name, job in zip(NODES, jobs):
            if job.rc != 0:
                end = "\n".join(job.lines()[-15:])
                raise CommandError(f"the job on {name} ended with {job.rc}\n{end}")
        result = json.loads(said(jobs)[-1])
        if result["world"] != len(NODES) or not result["last_loss"] < result["first_loss"]:
            raise CommandError(f"the job did not train: {result}")
        self.say(f"It trained: loss {result['first_loss']:.3f} -> {result['last_loss']:.3f} in "
                 f"{result['rounds']} rounds, the same weights on all {result['world']} ranks.")

    def _wait_for_news(self, jobs: list[Daemon], shown: int) -> None:
        wait_for(lambda: len(said(jobs)) > shown or not any(job.running for job in jobs), 120,
                 "the training job to make progress")

    def _show_progress(self, jobs: list[Daemon], shown: int) -> int:
        lines = said(jobs)
        for line in lines[shown:]:
            if line.startswith("round"):
                print("          " + line, flush=True)
        return len(lines)

    def show_paths(self) -> None:
        for name in ("n1", "n3"):
            self.say(f"The paths as {name} sees them (weft status):")
            print(self.lab.host(name).run([self.weft, "status"], quiet=True).out, flush=True)

    def explain_keep(self) -> None:
        tag = self.lab.tag
        tool = "test/lab/lab.py"
        self.say("Left running, as KEEP=1 asks. Look around:")
        print(f"  {tool} exec {tag} n1 -- {self.weft} status --watch\n"
              f"  {tool} exec {tag} n1 -- ping {self.overlay['n4'][0]}\n"
              f"  {tool} exec {tag} hub -- {self.weft} nodes\n"
              f"  {tool} shell {tag} n3\n"
              f"and end it:\n  {tool} down {tag}", flush=True)


def run(lab: Lab, weft: Path) -> None:
    demo = Demo(lab, weft)
    demo.say("Built a small internet: a hub with a public address, two providers with a NAT each, "
             "two nodes behind each.")
    demo.start_hub()
    demo.join()
    demo.ping_all()
    demo.train()
    demo.show_paths()
    if os.environ.get("KEEP") == "1":
        demo.explain_keep()


def main() -> int:
    why = unavailable()
    weft = Path(os.environ.get("WEFT", ROOT / "build/weft")).resolve()
    if why or not weft.exists():
        print(f"demo: {why or f'{weft} is not built: run make build'}", file=sys.stderr)
        return 1
    lab = Lab.from_file(TOPOLOGY, tag="demo" if os.environ.get("KEEP") == "1" else None)
    lab.__enter__()
    try:
        run(lab, weft)
    except BaseException:
        lab.__exit__(*sys.exc_info())
        raise
    if os.environ.get("KEEP") != "1":
        lab.__exit__(None, None, None)
        print("\nCleaned up: every process ended, every namespace gone.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
