"""The image of `make image`: what is in it, and a hub and two agents that run from it.

      hub        203.0.113.10, a container that is not root anywhere
       |
     [ wan ]
      |   |
     n1   n2     203.0.113.11, .12: each a job's network, with the agent in a container beside it
"""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path

import pytest
from lab import Lab, wait_for
from lab.support.agents import HUB_AWAY
from lab.support.container import WEFT_UID, Container, Image
from lab.support.pinging import can_ping
from lab.support.topologies import one_switch

from .conftest import build

pytestmark = pytest.mark.namespaces

TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12})
NET_BIND_SERVICE, NET_ADMIN = 1 << 10, 1 << 12


def files(image: Image) -> list[Path]:
    return [path for path in image.root.rglob("*") if not path.is_symlink()]


def test_it_says_what_it_is(image: Image, weft: Path) -> None:
    version = subprocess.run([weft, "version"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.split()[1]
    labels = {key.removeprefix("org.opencontainers.image."): value
              for key, value in image.config["config"]["Labels"].items()}
    assert (labels["title"], labels["version"], labels["licenses"]) == (
        "weft", version, "Apache-2.0")
    assert image.config["config"]["Entrypoint"] == ["/usr/bin/weft"]
    assert len(image.manifest["layers"]) == len(image.config["rootfs"]["diff_ids"]) == 2
    inside = subprocess.run(["chroot", image.root, "/usr/bin/weft", "version"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.split()[1]
    assert inside == version


def test_what_is_not_in_it(image: Image) -> None:
    names = {path.name for path in files(image) if path.is_file()}
    assert not names & {"sh", "bash", "dash", "apt", "dpkg", "perl", "mount", "su"}
    assert sorted(path.name for path in (image.root / "usr/bin").iterdir()) == ["weft", "weft-wg"]
    for path in files(image):
        about = path.stat()
        assert not about.st_mode & (stat.S_ISUID | stat.S_ISGID), path
        assert about.st_uid in (0, WEFT_UID), path
        assert path.name == "tmp" or not about.st_mode & stat.S_IWOTH, path
    assert not list((image.root / "var/lib/weft/node").iterdir()), "no key"
    assert sum(path.stat().st_size for path in files(image) if path.is_file()) < 40 << 20


def test_who_looks_for_holes_finds_the_packages(image: Image) -> None:
    records = {path.name: path.read_text()
               for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert {"libc6", "libssl3", "libcurl4"} <= records.keys()
    for name, record in records.items():
        assert re.search(rf"^Package: {re.escape(name)}\nSource|^Package: {re.escape(name)}\n",
                         record)
        assert re.search(r"^Version: \d", record, re.MULTILINE)
        if name != "gcc-12-base":
            assert (image.root / "usr/share/doc" / name).exists(), f"the licence of {name}"


def test_the_same_bytes_twice(made: Path, weft: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar"
    assert build(weft, again) is None
    assert again.read_bytes() == made.read_bytes()


def status_of(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))


def start_agent(image: Image, lab: Lab, folder: Path, hub: Container, name: str) -> Container:
    token = folder / f"{name}.token"
    token.write_text(hub.run("token", "new").out)
    box = Container(image, lab.host(name), folder / name,
                    ["join", "--foreground", "--token-file", f"/run/secrets/{token.name}",
                     "--name", name], files=[token])
    box.start(allow=[HUB_AWAY]).wait_line("the hub answers", 30)
    return box


def test_a_hub_and_agents_beside_jobs(image: Image, weft: Path, tmp_path: Path) -> None:
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    with Lab.from_text(TOPOLOGY) as lab:
        hub = Container(image, lab.host("hub"), tmp_path / "hub",
                        ["hub", "up", "--public", "203.0.113.10"], user=WEFT_UID)
        hub.start().wait_line("hub is up", 30)
        nodes = [start_agent(image, lab, tmp_path, hub, name) for name in ("n1", "n2")]
        for box in (hub, *nodes):
            said = status_of(box.pid())
            assert set(said["Uid"].split()) == {str(WEFT_UID)}, box.name
            # Agents answer DNS.
            rights = NET_ADMIN if box is hub else NET_ADMIN | NET_BIND_SERVICE
            assert int(said["CapEff"], 16) == rights, box.name
        other = json.loads(nodes[1].run("status", "--json").out)["self"]["address4"]
        job = lab.host("n1")  # what shares the network namespace, and nothing else

        def reached() -> bool:
            return can_ping(job, other)
        wait_for(reached, 20, "n2 to answer a job beside n1's agent")
        wait_for(lambda: "n2" in nodes[0].hosts.read_text(), 20,
                 "n1's hosts file, which engines share with the job, to name n2")

        # A new container with the old state: the token has been used, and is not needed.
        nodes[0].kill()
        nodes[0].files[0].write_text("")
        nodes[0].start(allow=[HUB_AWAY]).wait_line("the hub answers", 30)
        wait_for(reached, 20, "n2 to answer again")
        for box in (*nodes, hub):
            box.kill()
