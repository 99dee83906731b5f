"""A running lab: the handle through which tests and people use it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .. import ROOT
from . import construction, record
from .emulator import Emulator
from .gateway import Filter
from .link import Link
from .namespace import Namespace
from .process import Daemon, Result
from .record import Record
from .topology import Topology

TOOLS = ("ip", "nft", "unshare", "nsenter", "sysctl", "conntrack")
_numbers = itertools.count(1)


class LogError(AssertionError):
    """A daemon complained, and the test had not said that it would."""


def unavailable() -> str | None:
    """Why no lab can be made here, or None if one can."""
    if os.geteuid() != 0:
        return "a lab needs root, to make network namespaces"
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"a lab needs {', '.join(missing)}"
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "true"], capture_output=True, check=False)
    if done.returncode != 0:
        return f"namespaces cannot be made here: {done.stderr.decode().strip()}"
    return None


class Host:
    """A machine of a running lab; any role, not only `host`."""

    def __init__(self, lab: Lab, namespace: Namespace) -> None:
        self.lab = lab
        self.name = namespace.name
        self.namespace = namespace

    def run(self, argv: Sequence[str | Path | int], **options) -> Result:
        """Run a command to its end; for the options see Namespace.run()."""
        return self.namespace.run(argv, **options)

    def spawn(
        self,
        argv: Sequence[str | Path | int],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        allow: Iterable[str] = (),
    ) -> Daemon:
        """Start a daemon, whose output goes to a log; it ends with the lab at the latest.

        `allow` lists regular expressions of complaints (lines with "warning:" or "error:") that
        the test expects; any other fails it.
        """
        return self.lab.spawn(self, argv, name or Path(str(argv[0])).name, env, allow)

    def pids(self, program: str) -> list[int]:
        """Processes of this host that run `program`, by the network namespace that they are in."""
        ours = self.run(["readlink", "/proc/self/ns/net"], quiet=True).out.strip()
        found = []
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                if (os.readlink(proc / "ns/net") == ours
                        and Path(os.readlink(proc / "exe")).name == program):
                    found.append(int(proc.name))
            except OSError:  # It has ended meanwhile.
                continue
        return found

    def address(self, version: int = 4) -> str:
        """The machine's address in the topology, on its first link that has one."""
        links = self.lab.topology.links_of(self.name)
        return str(next(filter(None, (link.address(version) for link in links))))


class Lab:
    """A network of namespaces, alive inside a `with` block.

        with Lab.from_file("two-providers.topo") as lab:
            lab.host("n1").run(["ping", "-c1", lab.host("hub").address()])

    An exception that leaves the block, or an unexpected complaint in a daemon's log, keeps the
    logs and packet captures and says where; with WEFT_LAB_KEEP=1 it also leaves the lab running.
    """

    def __init__(self, topology: Topology, tag: str | None = None, capture: bool = True) -> None:
        self.topology = topology
        # A run that was killed leaves its folder, and another process may get its pid.
        self.tag = tag or next(name for n in _numbers
                               if not Record(name := f"p{os.getpid()}-{n}").folder.exists())
        self.logs = Path(os.environ.get("WEFT_LAB_LOGS", ROOT / "build/lab/logs")) / self.tag
        self._captures = capture and shutil.which("tcpdump") is not None
        self._record: Record | None = None  # None while the tag is not ours
        self._machines: dict[str, Namespace] = {}
        self._hosts: dict[str, Host] = {}
        self._links: dict[str, Link] = {}
        self._filters: dict[str, Filter] = {}
        self._daemons: list[Daemon] = []
        self._n_named: Counter[str] = Counter()  # daemons by name, to tell them apart
        self._previous_sigterm = None

    @classmethod
    def from_file(cls, path: str | Path, **options) -> Lab:
        return cls(Topology.from_file(path), **options)

    @classmethod
    def from_text(cls, text: str, **options) -> Lab:
        """A lab whose topology stands in the test itself."""
        return cls(Topology.from_text(text), **options)

    @classmethod
    def attach(cls, tag: str) -> Lab:
        """A lab that another process made and that still runs."""
        rec = Record.read(tag)
        lab = cls(Topology.from_text(rec.topology, rec.source), tag)
        lab._record = rec
        lab.logs = Path(rec.logs)
        for name, (pid, started) in rec.machines.items():
            namespace = Namespace.attach(name, tag, pid, started)
            if not namespace:
                raise record.RecordError(
                    f"lab {tag} has lost {name}; end it with: lab.py down {tag}")
            lab._machines[name] = namespace
        lab._make_handles(rec)
        return lab

    # Its parts

    def host(self, name: str) -> Host:
        return _find(self._hosts, name, "machine")

    def nat(self, name: str) -> Filter:
        """The NAT, firewall or router of that name, as a filter of packets."""
        return _find(self._filters, name, "nat, firewall or router")

    def link(self, node: str, switch: str | None = None) -> Link:
        """The link between a node and a switch; the node's only one if no switch is named."""
        names = [link.name for link in self.topology.links_of(node)]
        if switch is None and len(names) != 1:
            raise KeyError(f"{node} has not one link but {len(names)}: {', '.join(names)}")
        return _find(self._links, f"{node}/{switch}" if switch else names[0], "link")

    # Life

    def __enter__(self) -> Lab:
        if threading.current_thread() is threading.main_thread():
            self._previous_sigterm = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            self.up()
        except BaseException:
            self.down()
            self._restore_sigterm()
            raise
        return self

    def __exit__(self, kind, error, _traceback) -> None:
        keep_running, keep_logs = False, kind is not None
        try:
            complaints = self.complaints()
            if complaints or kind is not None:
                keep_logs = True
                keep_running = os.environ.get("WEFT_LAB_KEEP") == "1"
                self._tell_failure(complaints, keep_running)
        finally:
            if not keep_running:
                self.down(keep_logs)
            self._restore_sigterm()
        if complaints and kind is None:
            raise LogError("unexpected complaints:\n" + "\n".join(complaints))

    def _restore_sigterm(self) -> None:
        if self._previous_sigterm is not None:
            signal.signal(signal.SIGTERM, self._previous_sigterm)

    def up(self) -> None:
        """Build everything.  On failure what was built is left for down()."""
        rec = self._record = Record.claim(self.tag)
        self.logs.mkdir(parents=True, exist_ok=True)
        rec.topology, rec.source = self.topology.text, self.topology.source
        rec.logs = str(self.logs)
        self._machines = construction.start_machines(self.topology, self.tag)
        rec.machines = {key: (m.pid, m.started) for key, m in self._machines.items()}
        fabric = self._machines[construction.FABRIC]
        emulator = None
        if any(link.emulated for link in self.topology.links):
            emulator = construction.start_emulator(
                self.topology, fabric, rec.folder / "linkem", self.logs / "linkem.log")
        construction.connect(self.topology, self._machines, emulator, rec.ports)
        for node in self.topology.nodes.values():
            lines = construction.settings(self.topology, node)
            construction.run_script(self._machines[node.name], lines)
        self._make_handles(rec)
        for handle in self._filters.values():
            handle.start()
        if self._captures:
            self._start_captures(fabric)
        rec.write()

    def down(self, keep_logs: bool = False) -> None:
        """End everything that the lab started, and leave nothing behind but logs if asked for."""
        if self._record is None:
            return
        for daemon in self._daemons:
            daemon.stop()
        record.erase(self.tag)
        self._record = None
        for machine in self._machines.values():
            machine.end()
        if not keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    def complaints(self) -> list[str]:
        """What daemons complained about and nobody allowed, as "LOG: LINE"."""
        return [f"{d.name}: {line}" for d in self._daemons for line in d.complaints()]

    def spawn(self, host: Host, argv, name: str, env, allow) -> Daemon:
        name = f"{host.name}-{name}"
        self._n_named[name] += 1
        if self._n_named[name] > 1:
            name += f".{self._n_named[name]}"
        log = self.logs / f"{name}.log"
        daemon = Daemon(host.namespace.start(argv, log, env), name, log, allow)
        self._daemons.append(daemon)
        return daemon

    def _make_handles(self, rec: Record) -> None:
        fabric = self._machines[construction.FABRIC]
        emulator = Emulator(rec.folder / "linkem")
        for node in self.topology.nodes.values():
            self._hosts[node.name] = Host(self, self._machines[node.name])
            if node.forwards:
                self._filters[node.name] = Filter(node, self._machines[node.name])
        for link in self.topology.links:
            self._links[link.name] = Link(link, rec.ports[link.name], fabric, emulator)

    def _start_captures(self, fabric: Namespace) -> None:
        """Record what crosses each switch: the start of each packet, in a ring of 4 × 8 MB."""
        for switch in self.topology.switches:
            argv = ["tcpdump", "-q", "-n", "-U", "-Z", "root", "-s", 200, "-C", 8, "-W", 4]
            argv += ["-i", switch, "-w", self.logs / f"{switch}.pcap"]
            fabric.start(argv, self.logs / "tcpdump.log", quiet=True)

    def _tell_failure(self, complaints: list[str], keeps_running: bool) -> None:
        for line in complaints:
            print(f"unexpected in a log: {line}")
        for daemon in self._daemons:
            state = "runs" if daemon.running else f"ended with {daemon.rc}"
            print(f"--- {daemon.name} ({state}), the end of its log:")
            print("\n".join(daemon.lines()[-20:]))
        if keeps_running:
            print(f"the lab runs on: lab.py shell {self.tag} HOST, lab.py down {self.tag}")
        print(f"logs and captures are in {self.logs}", flush=True)


def _find(things: dict, name: str, what: str):
    if name not in things:
        raise KeyError(f"there is no {what} {name!r}; there are: {', '.join(things)}")
    return things[name]
