"""The command line of the lab: what lab.py does when a person runs it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import record
from .drawing import draw
from .emulator import EmulatorError
from .laboratory import Lab, unavailable
from .process import CommandError
from .record import RecordError
from .topology import Topology, TopologyError


def up(args: argparse.Namespace) -> int:
    reason = unavailable()
    if reason:
        print(f"lab.py: {reason}", file=sys.stderr)
        return 1
    lab = Lab.from_file(args.file, tag=args.tag, capture=args.capture)
    try:
        lab.up()
    except BaseException:
        lab.down()
        raise
    print(draw(lab.topology), end="")
    print(f"\nlab {lab.tag} is up; look around with:\n"
          f"  lab.py shell {lab.tag} {next(iter(lab.topology.nodes))}\n"
          f"  lab.py exec {lab.tag} HOST -- COMMAND...\n"
          f"end it with:\n  lab.py down {lab.tag}")
    return 0


def execute(args: argparse.Namespace) -> int:
    argv = args.command or [os.environ.get("SHELL", "/bin/sh")]
    namespace = Lab.attach(args.tag).host(args.host).namespace
    command = namespace.enter(argv)
    os.execvpe(command[0], command, namespace.environment({"PS1": f"{args.host}# "}))


def down(args: argparse.Namespace) -> int:
    if args.tag not in record.tags():
        raise record.unknown(args.tag)
    record.erase(args.tag)
    return 0


def show(args: argparse.Namespace) -> int:
    print(draw(Topology.from_file(args.file)), end="")
    return 0


def names(_args: argparse.Namespace) -> int:
    for tag in record.tags():
        print(tag)
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lab.py", description="Networks made of namespaces.")
    actions = top.add_subparsers(required=True, metavar="ACTION")

    action = actions.add_parser("up", help="build the network that a topology file describes")
    action.add_argument("file", type=Path)
    action.add_argument("--tag", help="the lab's name from now on (default: from the pid)")
    action.add_argument("--capture", action="store_true", help="record the packets on each switch")
    action.set_defaults(act=up)

    action = actions.add_parser("exec", help="run a command on a machine of a running lab")
    action.add_argument("tag")
    action.add_argument("host")
    action.add_argument("command", nargs="+", metavar="COMMAND")
    action.set_defaults(act=execute)

    action = actions.add_parser("shell", help="run a shell on a machine of a running lab")
    action.add_argument("tag")
    action.add_argument("host")
    action.set_defaults(act=execute, command=None)

    action = actions.add_parser("down", help="end a lab, also one that was left behind")
    action.add_argument("tag")
    action.set_defaults(act=down)

    action = actions.add_parser("show", help="draw a topology file")
    action.add_argument("file", type=Path)
    action.set_defaults(act=show)

    action = actions.add_parser("list", help="name the labs that run")
    action.set_defaults(act=names)
    return top


def main() -> int:
    args = parser().parse_args()
    try:
        return args.act(args)
    except (TopologyError, RecordError, EmulatorError, CommandError, KeyError, OSError) as error:
        print(f"lab.py: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
