"""Containers in a lab's hosts, from an OCI image layout, as an engine would run them.

    image = Image(tar, folder)                   unpacked once
    box = Container(image, host, folder / "hub", ["hub", "up", "--public", "203.0.113.10"])
    box.start()                                  crun in the host's network namespace
    box.run("token", "new")                      another program of the image, inside

What an engine decides is decided here as Docker does it: root with its default capabilities and
those that are added, /dev/net/tun, and an /etc/hosts of the container's own that is bound over the
image's. With `user` it is Podman's way: no root at all, and only those capabilities that are added.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from .network.laboratory import Host
from .network.process import Daemon, Result

WEFT_UID = 65532
# Docker's, for a container that is not told otherwise.
DEFAULT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE",
                        "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"]
TUN = {"path": "/dev/net/tun", "type": "c", "major": 10, "minor": 200, "fileMode": 0o666,
       "uid": 0, "gid": 0}


class Image:
    """An OCI image layout in a tar file, checked while it is unpacked."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.layout = folder / "layout"
        with tarfile.open(file) as tar:
            tar.extractall(self.layout)
        self.index = json.loads((self.layout / "index.json").read_text())
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.root = folder / "root"
        for layer in self.manifest["layers"]:
            self.blob(layer)
            with tarfile.open(self.layout / "blobs" / layer["digest"].replace(":", "/")) as tar:
                tar.extractall(self.root, numeric_owner=True)

    def blob(self, descriptor: dict) -> bytes:
        kind, digest = descriptor["digest"].split(":")
        data = (self.layout / "blobs" / kind / digest).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (descriptor["size"], digest)
        return data


class Container:
    """One program of the image, with a root file system, /etc/hosts and state that stay."""

    def __init__(self, image: Image, host: Host, folder: Path, words: Sequence[str], *,
                 user: int = 0, files: Iterable[Path] = ()) -> None:
        self.host = host
        self.folder = folder
        self.image = image
        self.words = list(words)
        self.user = user
        self.name = f"{host.name}-{os.getpid()}"
        self.daemon: Daemon | None = None
        # What a kept volume and the engine's own files are.
        self.state = folder / "state"
        self.hosts = folder / "hosts"
        folder.mkdir()
        shutil.copytree(image.root / "var/lib/weft", self.state)
        for name in ("node", "hub"):
            os.chown(self.state / name, WEFT_UID, WEFT_UID)
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.files = list(files)

    def start(self, allow: Iterable[str] = ()) -> Daemon:
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        # cp keeps owners and links; every start has a root file system of its own.
        subprocess.run(["cp", "-a", self.image.root, root], check=True)
        (self.folder / "config.json").write_text(json.dumps(self._config()))
        self.daemon = self.host.spawn(
            [*self._crun(), "run", "--bundle", self.folder, self.name],
            name=f"{self.words[0]}-container", allow=allow)
        return self.daemon

    def run(self, *words: str, check: bool = True) -> Result:
        return self.host.run([*self._crun(), "exec", f"--user={self.user}:{self.user}", self.name,
                              "/usr/bin/weft", *words], check=check, quiet=True)

    def pid(self) -> int:
        """Of its first process, as the machine sees it."""
        told = self.host.run([*self._crun(), "state", self.name], quiet=True).out
        return json.loads(told)["pid"]

    def kill(self) -> None:
        self.host.run([*self._crun(), "kill", self.name, "KILL"], quiet=True)
        self.daemon.wait(20)
        self.host.run([*self._crun(), "delete", "--force", self.name], check=False, quiet=True)

    def _crun(self) -> list[str | Path]:
        # The host's /sys has no control groups, of which crun wants to see the place.
        return ["unshare", "--mount", "sh", "-c",
                'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "--",
                "crun", "--root", self.folder / "engine", "--cgroup-manager=disabled"]

    def _config(self) -> dict:
        settings = self.image.config["config"]
        added = ["CAP_NET_ADMIN"]
        capabilities = {kind: added for kind in
                        ("bounding", "effective", "permitted", "inheritable", "ambient")}
        if self.user == 0:
            every = [f"CAP_{name}" for name in DEFAULT_CAPABILITIES] + added
            capabilities = {kind: every for kind in ("bounding", "effective", "permitted")}
        return {
            "ociVersion": "1.0.0",
            "root": {"path": "root", "readonly": False},
            "hostname": self.host.name,
            "process": {
                "cwd": settings["WorkingDir"], "env": settings["Env"],
                "args": [*settings["Entrypoint"], *self.words],
                "user": {"uid": self.user, "gid": self.user}, "noNewPrivileges": True,
                "capabilities": capabilities},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                 "options": ["nosuid", "mode=755", "size=65536k"]},
                *(bind(volume, self.state) for volume in settings["Volumes"]),
                bind("/etc/hosts", self.hosts),
                *(bind(f"/run/secrets/{file.name}", file, "ro") for file in self.files)],
            # The network is the one of who starts it, which is the lab's host.
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")],
                      "devices": [TUN]}}


def bind(destination: str, source: Path, mode: str = "rw") -> dict:
    return {"destination": destination, "type": "bind", "source": str(source),
            "options": ["bind", mode]}
