"""The folder of `make portable`, in root file systems that have nothing but busybox.

      hub        203.0.113.10, called hub.example.test by one name server, 203.0.113.53
       |
     [ wan ] -- dns
      |   |
     n1   n2     203.0.113.11, .12: both chroots; one joins by the hub's address, one by its name
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support import PROGRAMS, ROOT
from lab.support.agents import HUB_AWAY
from lab.support.pinging import can_ping
from lab.support.topologies import one_switch

pytestmark = pytest.mark.namespaces

NAME = "hub.example.test"
NAME_SERVER = PROGRAMS / "name_server.py"
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "dns": 53, "n1": 11, "n2": 12})
WEFT = "/opt/weft/weft"


def make(weft: Path, file: Path) -> bytes:
    missing = [tool for tool in ("patchelf", "strip", "dpkg-query", "busybox")
               if not shutil.which(tool)]
    if missing:
        pytest.skip(f"what is portable needs {', '.join(missing)}")
    if "san" in weft.parent.name:
        pytest.skip("a sanitizer's build is none to ship")
    done = subprocess.run([ROOT / "tools/portable", weft.parent, file], text=True, check=True,
                          stdout=subprocess.PIPE)
    print(f"FIGURE portable {done.stdout.strip()}")
    return file.read_bytes()


@pytest.fixture(scope="module")
def made(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("portable") / "weft.tar.gz"
    make(weft, file)
    return file


def unpack(made: Path, root: Path) -> Path:
    """A root file system with busybox and what was made, and what no machine is without."""
    for name in ("bin", "proc", "dev/net", "etc", "run", "tmp", "var/lib"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "mount", "grep"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/resolv.conf").write_text("nameserver 203.0.113.53\noptions timeout:1\n")
    for name, device in (("net/tun", (10, 200)), ("null", (1, 3)), ("urandom", (1, 9))):
        os.mknod(root / "dev" / name, 0o20666, os.makedev(*device))
        (root / "dev" / name).chmod(0o666)
    with tarfile.open(made) as tar:
        tar.extractall(root)
    return root


def put_dynamic(name: str, root: Path) -> None:
    """Puts a program of this machine into a root file system, with its loader and libraries."""
    program = shutil.which(name)
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    shutil.copy(program, root / "bin" / name)
    for library in re.findall(r"(/\S+) \(0x", said):
        (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.lstrip("/"))


def test_the_same_bytes_twice(made: Path, weft: Path, tmp_path: Path) -> None:
    assert make(weft, tmp_path / "again.tar.gz") == made.read_bytes()
    with tarfile.open(made) as tar:
        names = tar.getnames()
        assert {(m.uid, m.gid) for m in tar.getmembers()} == {(0, 0)}
    assert all(name.startswith("opt/weft/") for name in names)
    assert {"opt/weft/licences/libcurl4", "opt/weft/licences/weft"} <= set(names)
    assert made.stat().st_size < 20 << 20


class Chroot:
    """A host of the lab whose programs see only such a root file system."""

    def __init__(self, host: Host, root: Path) -> None:
        self.host = host
        self.root = root

    def words(self, *words: str) -> list[str | Path]:
        # The chroot's /proc is mounted for each call alone.
        return ["unshare", "--mount", "sh", "-c",
                'mount -t proc proc "$1/proc"; exec chroot "$@"', "--", self.root, *words]

    def run(self, *words: str) -> str:
        return self.host.run(self.words(WEFT, *words), quiet=True).out

    def join(self, token: str) -> None:
        self.run("join", token, "--name", self.host.name, "--no-start")
        self.host.spawn(self.words(WEFT, "agent"), name="agent",
                        allow=[HUB_AWAY]).wait_line("the hub answers", 30)

    def address(self) -> str:
        return json.loads(self.run("status", "--json"))["self"]["address4"]


def test_nothing_of_the_machine_is_used(made: Path, weft: Path, tmp_path: Path) -> None:
    """Without /proc and libraries: the loader and its folder are found by their names."""
    root = unpack(made, tmp_path / "root")
    said = [subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
            for words in (["chroot", root, WEFT, "version"], [weft, "version"])]
    assert said[0] == said[1]


def test_join_by_address_and_by_name(made: Path, weft: Path, tmp_path: Path) -> None:
    with Lab.from_text(TOPOLOGY) as lab:
        hub = lab.host("hub")
        lab.host("dns").spawn(["/usr/bin/python3", NAME_SERVER, f"{NAME}=203.0.113.10"],
                              name="names").wait_line("listening")
        hub.run(["sh", "-c", "echo nameserver 203.0.113.53 > /etc/resolv.conf"], quiet=True)
        n1 = Chroot(lab.host("n1"), unpack(made, tmp_path / "n1"))
        n2 = Chroot(lab.host("n2"), unpack(made, tmp_path / "n2"))
        for node, public in ((n1, "203.0.113.10"), (n2, NAME)):
            daemon = hub.spawn([weft, "hub", "up", "--public", public], name=f"hub-{public[0]}")
            daemon.wait_line("hub is up", 30)
            node.join(hub.run([weft, "token", "new"], quiet=True).out.strip())
            if node is n1:
                daemon.stop()
        other = n2.address()
        wait_for(lambda: can_ping(n1.host, other), 30, "n2 to answer n1")
        # A program that is linked dynamically shows whose loader and libraries a job gets.
        put_dynamic("cat", n1.root)
        maps = n1.run("run", "--", "/bin/cat", "/proc/self/maps")
        assert re.search(r" /\S*ld-linux\S*$", maps, re.MULTILINE)
        assert "/opt/weft" not in maps, "a job gets the machine's own loader and libraries"
