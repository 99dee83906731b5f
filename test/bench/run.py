#!/usr/bin/python3
"""run.py - what the data plane costs, beside wireguard-go and the bare wire, in one run.

Only the ratios of one run mean anything: another machine, or the next minute on this one, has other
absolute figures. The wireguard-go is that of $WIREGUARD_GO, or the installed one.

    test/bench/run.py [--parts pair peers paths] [--underlay veth nic] [--rounds 3]
                      [--seconds 3] [--out build/bench.json]

    pair        one peer: TCP of one and four streams each way, small packets, round trips, CPU,
                memory; --steps for some of these
    before      the data plane beside that of the program in $WEFT_BEFORE, in pairs: to a hundredth
    peers       1, 10, 1,000 and 60,000 peers: handshakes, memory, data of one and of 1,000 of them
    handshakes  handshakes answered each second by one core, alone and beside data at full rate
    paths       TCP and round trips by each kind of path beside the bare line, through 100 Mbit/s
    qos         a heartbeat beside bulk on a line of 100 Mbit/s, without and with a rate
    plan        synchronisations by torch over emulated lines, beside what weft plan says of them
    hierarchical  training in two islands far apart beside averaging everywhere: speed and loss
    relay       the blind relay: CPU per GB beside plain forwarders, and a hub that relays beside
                one that decrypts
    ciphers     sealing and opening with each back end
    store       a read of a hub beside 1,000 machines a second that are taken in, and, with
                $WEFT_BEFORE, that of another program
    scale       a hub with a fleet of --nodes machines that join, watch and report: joins, memory,
                rest, and how soon the last of them is told of a change; with $WEFT_BEFORE
                beside the hub of that program
    preflight   weft preflight over sixteen nodes, and over two
    page        the hub's page with 200 nodes in headless Chromium: bytes, first paint, updates
    reconcile   an agent's pass over 1,000 peers: the first, one without news, one with a change,
                and what each of them writes
    access      a network's rules: one that changes among 1,000 of a node, and a packet of a flow
                that goes on, without rules, with one, and with 1,000
    rules       the data plane with 1,000 rules that it enforces itself beside one without, in
                pairs: to a hundredth
    scrape      an agent's answer to Prometheus with 1,000 peers, beside one of one peer and a node
                exporter's: time and bytes
    neighbour   a member's requests alone, and beside a hostile member of another network, or of ten

Tables go to standard output, and everything as JSON to --out. A part that fails says why, the
others go on, and the exit status tells.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE / "swarm"), str(HERE / "plan")]

import before  # noqa: E402 - the path is set above
import handshakes  # noqa: E402
import hierarchical  # noqa: E402
import page  # noqa: E402
import pair  # noqa: E402
import paths  # noqa: E402
import plan  # noqa: E402
import preflight  # noqa: E402
import qos  # noqa: E402
import rules  # noqa: E402
import scrape  # noqa: E402
import swarm  # noqa: E402
from lab import unavailable  # noqa: E402
from report import ratios, table  # noqa: E402
from tunnel import BEFORE, PROGRAMS, REFERENCE, ROOT, UNDERLAYS  # noqa: E402

BUILT = ROOT / "build/test/bench"


def _module(path: Path):
    spec = importlib.util.spec_from_file_location(path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part_pair(args) -> dict:
    return {underlay: pair.measure(underlay, args.rounds, args.seconds, args.steps)
            for underlay in args.underlay}


def part_before(args) -> dict:
    return {underlay: before.measure(underlay, args.rounds, args.seconds)
            for underlay in args.underlay}


def part_peers(args) -> dict:
    return {"peers": swarm.measure(args.peers)}


def part_handshakes(args) -> dict:
    return {"handshakes": handshakes.measure(["wireguard-go", "weft"], 8000, args.seconds)}


def part_paths(args) -> dict:
    return {"paths": paths.measure(args.rounds, args.seconds)}


def part_qos(args) -> dict:
    return {"qos": qos.measure(args.rounds, args.seconds)}


def part_plan(_args) -> dict:
    title, figures = plan.measure(3)
    return {title: figures}


def part_hierarchical(_args) -> dict:
    title, figures = hierarchical.measure()
    return {title: figures}


def part_relay(args) -> dict:
    hub = _module(HERE / "relay/run.py").run(args.rounds, args.seconds)
    bulk = subprocess.run([BUILT / "relay/bench-relay", "500"], capture_output=True, check=True)
    forwarders: dict[str, dict[str, float]] = {}
    for load, figures in json.loads(bulk.stdout).items():
        for figure, value in figures.items():
            if figure.endswith("CpuPerGB"):
                forwarders.setdefault(figure.removesuffix("CpuPerGB"), {})[
                    f"{load}CpuSecondsPerGB"] = value
    return {"hub": hub, "forwarders": forwarders}


def part_ciphers(_args) -> dict:
    print(subprocess.run([BUILT / "bench-aead"], capture_output=True, text=True, check=True).stdout)
    return {}


def part_neighbour(args) -> dict:
    neighbour = _module(HERE / "neighbour/neighbour.py")
    return {f"beside {hostile}": neighbour.measure(10, hostile) for hostile in (1, 10)}


def part_store(args) -> dict:
    return {"store": _module(HERE / "store/store.py").measure(args.rounds, max(args.seconds, 5))}


def part_scale(args) -> dict:
    scale = _module(HERE / "scale/scale.py")
    return {"scale": scale.measure(args.nodes, args.nodes // 10, 130, 200)}


def part_reconcile(args) -> dict:
    return {"1,000 peers": _module(HERE / "reconcile/reconcile.py").measure(1000, args.rounds)}


def part_preflight(args) -> dict:
    return {"preflight": preflight.measure(args.rounds)}


def part_page(args) -> dict:
    return {"page": page.measure(args.rounds)}


def part_scrape(_args) -> dict:
    """And of names as long as they may be, with all that is measured, as the unit test makes it."""
    said = subprocess.run([ROOT / "build/src/test-agent-node-metrics"], capture_output=True,
                          text=True, check=True).stdout
    peers, ms, size = re.search(
        r"a scrape of (\d+) peers: ([\d.]+) ms, (\d+) bytes", said).groups()
    return {"scrape": scrape.measure(),
            f"{peers} peers, the most": {"weft": {"madeInMs": float(ms), "KiB": int(size) / 1024}}}


def part_access(_args) -> dict:
    """By the kernel's packet filter, and by the data plane itself."""
    said: dict[str, float] = {}
    for program, packets in (("bench-access", "50000"), ("bench-access-own", "2000000")):
        said |= json.loads(subprocess.run([BUILT / program, "1000", "1000", "20", packets],
                                          capture_output=True, text=True, check=True).stdout)
    return {"1,000 rules": {"weft": said}}


def part_rules(args) -> dict:
    return {underlay: rules.measure(underlay, args.rounds, args.seconds)
            for underlay in args.underlay}


PARTS = {"pair": part_pair, "before": part_before, "peers": part_peers,
         "handshakes": part_handshakes,
         "paths": part_paths, "qos": part_qos, "plan": part_plan,
         "hierarchical": part_hierarchical, "relay": part_relay,
         "ciphers": part_ciphers, "store": part_store, "scale": part_scale,
         "preflight": part_preflight, "page": part_page, "reconcile": part_reconcile,
         "access": part_access, "rules": part_rules,
         "scrape": part_scrape, "neighbour": part_neighbour}
# What there is to measure without a program to compare with.
USUAL = [name for name in PARTS if name != "before" or BEFORE in PROGRAMS]
# What the tables of a part that has no wireguard-go are divided by.
REFERENCES = {"plan": "measured", "hierarchical": hierarchical.REFERENCE, "paths": paths.REFERENCE,
              "qos": qos.REFERENCE, "hub": "wireguard-go hub", "before": BEFORE,
              "preflight": preflight.REFERENCE, "page": page.REFERENCE,
              "scrape": scrape.REFERENCE, "rules": rules.REFERENCE,
              "forwarders": "plain",
              "store": "before" if os.environ.get("WEFT_BEFORE") else "alone",
              "scale": "before" if os.environ.get("WEFT_BEFORE") else "weft",
              "beside 1": "alone", "beside 10": "alone"}


def machine() -> dict[str, object]:
    model = next((line.split(": ", 1)[1] for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=USUAL)
    parser.add_argument("--underlay", nargs="+", choices=UNDERLAYS, default=["veth", "nic"])
    parser.add_argument("--steps", nargs="+", choices=pair.STEPS, default=list(pair.STEPS))
    parser.add_argument("--peers", nargs="+", type=int, default=[1, 10, 1000, 60000])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench.json")
    args = parser.parse_args()
    if unavailable():
        sys.exit(unavailable())
    result: dict = {"machine": machine(), "rounds": args.rounds, "seconds": args.seconds}
    failed = []
    for name in args.parts:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = PARTS[name](args)
        except (Exception, SystemExit):  # pylint: disable=broad-except - the others still count
            traceback.print_exc()
            failed.append(name)
            continue
        for title, figures in found.items():
            reference = REFERENCES.get(title, REFERENCES.get(name, REFERENCE))
            print(table(f"{name}: {title}", figures, reference), "\n", flush=True)
            result.setdefault(name, {})[title] = {
                "figures": figures, "ratios": ratios(figures, reference)}
        args.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written: {args.out}")
    if failed:
        sys.exit(f"these parts failed, as is told above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
