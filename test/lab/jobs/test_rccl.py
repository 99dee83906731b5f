"""NCCL's own code over Weft without a GPU: which interface it takes, and whether all connects.

    hub ──┐                 n1 and n2 behind the NAT a, n3 and n4 behind b
    n1, n2 ─ a ─┤ net       all have a docker0 as well, and n1 and n3 an interface
    n3, n4 ─ b ─┘           of a LAN that the other side does not have

RCCL, which is NCCL's code for AMD, runs as Debian 13 has it; what it asks of a GPU answers
rccl/stand_in.c. Its sends and receives move data through its proxies: what their kernels do is done
by threads, rccl/kernel.c. Collectives are not done. `make rccl` gets the libraries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support import ROOT
from lab.support.agents import Site

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3", "n4")
TOPOLOGY = """
switch net  198.51.100.0/24
switch lana 192.168.1.0/24 gateway=a
switch lanb 192.168.2.0/24 gateway=b
switch aside1 10.9.1.0/24
switch aside3 10.9.3.0/24
host hub
host n1
host n2
host n3
host n4
nat a port-restricted out=net
nat b port-restricted out=net
link hub net 198.51.100.10
link a net 198.51.100.21
link b net 198.51.100.22
link a lana 192.168.1.1
link b lanb 192.168.2.1
link n1 lana 192.168.1.2
link n2 lana 192.168.1.3
link n3 lanb 192.168.2.2
link n4 lanb 192.168.2.3
link n1 aside1 10.9.1.1
link n3 aside3 10.9.3.1
"""
HERE = Path(__file__).parent / "rccl"
# As job.c has it.
MOVED = 512 * 1024 + 12345
ROUNDS = 2


class Library:
    """NCCL's calls by one of the libraries, and the stand-in that one of them needs."""

    def __init__(self, files: Path, made: Path, name: str) -> None:
        job = made / f"job-{name}"
        [library] = files.glob(f"lib/lib{name}.so.[0-9]")
        subprocess.run(["gcc", "-O1", HERE / "job.c", "-o", job, "-Wl,--no-as-needed",
                        "-Wl,--allow-shlib-undefined", library], check=True)
        # Debian 12's C library is older than what they are compiled for.
        self.argv = [files / "lib/ld-linux-x86-64.so.2", "--library-path", f"{made}:{files}/lib",
                     job]


def stand_in(files: Path, made: Path) -> None:
    for name, words in (("libamdhip64.so.5", [f"-Wl,--version-script={HERE}/versions.map"]),
                        ("librocm_smi64.so.1", [])):
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-D__HIP_PLATFORM_AMD__",
                        "-isystem", files / "include", f"-Wl,-soname,{name}", *words,
                        HERE / "stand_in.c", HERE / "kernel.c", "-o", made / name], check=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    tool = ROOT / "tools/rccl"
    if subprocess.run([tool, "have"], check=False).returncode != 0:
        pytest.skip("RCCL and NCCL are not here (make rccl)")
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc to compile the stand-in for a GPU with")
    files = Path(subprocess.run([tool, "where"], check=True, stdout=subprocess.PIPE,
                                text=True).stdout.strip())
    made = tmp_path_factory.mktemp("rccl")
    stand_in(files, made)
    return {name: Library(files, made, name) for name in ("rccl", "nccl")}


@pytest.fixture(scope="module")
def site(weft: Path, libraries: dict[str, Library]) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        made = Site(lab, weft)
        made.join(*NODES)
        for name in NODES:
            for words in ("link add docker0 type veth peer name veth1", "link set docker0 up",
                          "link set veth1 up", "address add 172.17.0.1/16 dev docker0"):
                lab.host(name).run(["ip", *words.split()])
        yield made


def taken(lines: list[str], what: str) -> set[str]:
    """The interfaces, and their addresses, of the lines in which the library says what it uses."""
    return {match for line in lines if what in line
            for match in re.findall(r"([\w-]+):(?=[\d.]+<\d+>)", line.partition(what)[2])}


def settings(site: Site, name: str) -> dict[str, str]:
    """That of NCCL which is set on a node without us."""
    told = site.lab.host(name).run(["env"], quiet=True).out
    return dict(line.split("=", 1) for line in told.splitlines() if line.startswith("NCCL_"))


def sent_bytes(site: Site, name: str) -> int:
    """By Weft's interface of a node."""
    path = "/sys/class/net/weft0/statistics/tx_bytes"
    return int(site.lab.host(name).run(["cat", path], quiet=True).out)


def test_all_connects_and_moves(site: Site, libraries: dict[str, Library],
                                tmp_path: Path) -> None:
    """Four ranks behind two NATs; each takes Weft's interface, and that alone: all rings and trees
    connect, and each rank sends to the next one through its proxy, twice half a MiB."""
    assert settings(site, "n1") == {}
    before = {name: sent_bytes(site, name) for name in NODES}
    jobs = {}
    for rank, name in enumerate(NODES):
        argv = [site.weft, "run", "--nnodes", len(NODES), "--job", "rings", "--",
                *libraries["rccl"].argv, rank, len(NODES), tmp_path / "identifier"]
        jobs[name] = site.lab.host(name).spawn(argv, name="job", allow=[""],
                                               env={"NCCL_DEBUG": "INFO"})
    # One that fails leaves the others waiting.
    wait_for(lambda: any(job.rc for job in jobs.values())
             or not any(job.running for job in jobs.values()), 400, "all ranks to end")
    for name, job in jobs.items():
        assert not job.rc, f"{name}: " + "\n".join(job.lines()[-60:])
    after = {name: sent_bytes(site, name) for name in NODES}
    for rank, name in enumerate(NODES):
        lines = jobs[name].lines()
        shown = "\n".join(lines[-60:])
        assert jobs[name].rc == 0, f"{name}: {shown}"
        assert taken(lines, "Bootstrap : Using ") == {"weft0"}, shown
        assert taken(lines, "NET/Socket : Using ") == {"weft0"}, shown
        for what in ("Connected all rings", "Connected all trees",
                     f"rank {rank} of 4 is connected",
                     *(f"rank {rank} has {MOVED} bytes of rank {(rank - 1) % 4}, round {i}"
                       for i in range(ROUNDS))):
            assert any(what in line for line in lines), f"{name} has no \"{what}\": {shown}"
        assert after[name] - before[name] > ROUNDS * MOVED, "it went another way"


@pytest.mark.parametrize("name", ["rccl", "nccl"])
def test_another_interface_would_be_taken(site: Site, libraries: dict[str, Library],
                                          name: str) -> None:
    """An identifier says where rank 0 listens. Without Weft that is where the others are not."""
    argv = libraries[name].argv
    host = site.lab.host("n1")
    alone = host.run([*argv], env={"NCCL_DEBUG": "INFO"}).out.splitlines()
    # None of them leads to n3: a LAN of its own, that of its NAT, and Docker's bridge.
    assert taken(alone, "Bootstrap : Using ") - {"weft0"}, alone
    told = host.run([site.weft, "run", "--nnodes", 1, "--rendezvous", "none", "--", *argv],
                    env={"NCCL_DEBUG": "INFO"}).out.splitlines()
    assert taken(told, "Bootstrap : Using ") == {"weft0"}, told
