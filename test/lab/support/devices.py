"""Devices that a machine of a lab does not have: files say of them what the kernel would.

    devices = Devices(lab.host("b"))
    devices.replace("devices/virtual/net/wan")
    devices.say("devices/virtual/net/wan", {"statistics/rx_crc_errors": 0})

They lie below /run/devices, which is the machine's own, and are mounted over its /sys, so programs
find them where the kernel has them. A file is replaced as a whole: it may be read at any time.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .network.laboratory import Host

FILES = "/run/devices"
# A machine without verbs devices has no folder for them, and none can be made in sysfs.
CLASSES = f"""
for folder in /sys/class/*; do
    mkdir -p {FILES}/class/${{folder##*/}}
    mount --rbind $folder {FILES}/class/${{folder##*/}}
done
mkdir -p {FILES}/infiniband {FILES}/class/infiniband
mount --bind {FILES}/infiniband {FILES}/class/infiniband
mount --rbind {FILES}/class /sys/class
"""
VERBS = "class/infiniband"
# The counters of a port of InfiniBand that are looked at.
COUNTERS = ("symbol_error", "port_rcv_errors", "link_downed", "port_xmit_data", "port_rcv_data")


class Devices:
    """Those of one machine; paths are below /sys."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._folders: dict[str, str] = {}
        self._run(CLASSES)
        self._folders[VERBS] = f"{FILES}/infiniband"

    def _run(self, script: str) -> None:
        self.host.run(["sh", "-e"], stdin=script, quiet=True)

    def _path(self, path: str) -> str:
        """Where it is written; what is not below a folder that was replaced cannot be."""
        [(folder, files)] = [(folder, files) for folder, files in self._folders.items()
                             if path == folder or path.startswith(f"{folder}/")]
        return files + path[len(folder):]

    def replace(self, folder: str) -> None:
        """From now on that folder has only what is said here."""
        files = f"{FILES}/{folder.replace('/', '.')}"
        self._run(f"mkdir {files}\nmount --bind {files} /sys/{folder}\n")
        self._folders[folder] = files

    def say(self, folder: str, files: Mapping[str, object]) -> None:
        script = ""
        for name, text in files.items():
            path = self._path(f"{folder}/{name}")
            script += (f"mkdir -p $(dirname {path})\necho {shlex.quote(str(text))} > {path}.new\n"
                       f"mv {path}.new {path}\n")
        self._run(script)

    def set(self, path: str, text: object) -> None:
        """That one file of the kernel's says so from now on."""
        file = f"{FILES}/{path.replace('/', '.')}"
        self._run(f"echo {shlex.quote(str(text))} > {file}\nmount --bind {file} /sys/{path}\n")

    def take_away(self, path: str) -> None:
        self._run(f"mv {self._path(path)} {FILES}/away\n")

    def put_back(self, path: str) -> None:
        self._run(f"mv {FILES}/away {self._path(path)}\n")

    def add_port(self, device: str) -> None:
        """A verbs device of NUMA node 0 with one port of InfiniBand, which is active."""
        self.say(f"{VERBS}/{device}", {
            "device/numa_node": 0, "ports/1/link_layer": "InfiniBand", "ports/1/state": "4: ACTIVE",
            "ports/1/rate": "100 Gb/sec (4X EDR)",
            **{f"ports/1/counters/{name}": 0 for name in COUNTERS}})
