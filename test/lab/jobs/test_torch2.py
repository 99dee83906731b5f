"""torch 2 in Debian 13's root file system, on Weft's portable programs: what torchrun 1.13 is not.

    hub 203.0.113.10, and n1, n2, n3 on .11 to .13. Their host names are known to nobody, so that
    rank 0 is found only by the address that `weft run` has it announce (--local-addr).

`make torch2` builds the file system. Each node sees it through an overlay of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support import ROOT
from lab.support.agents import HUB_AWAY, AgentNode, Site
from lab.support.topologies import one_switch
from lab.support.worlds import WRAPPERS, Scripts, check_world

pytestmark = pytest.mark.namespaces

NODES = ("n1", "n2", "n3")
TOPOLOGY = one_switch("wan", "203.0.113", {"hub": 10, "n1": 11, "n2": 12, "n3": 13})
WEFT = "/opt/weft/weft"
# In a mount namespace of its own. $1: Debian 13, $2: the folder of our portable programs, $3: ours.
ENTER = """
set -e
top=$1 programs=$2 source=$3
shift 3
root=/run/torch2/root
mkdir -p /run/torch2
mount -t tmpfs tmpfs /run/torch2
mkdir /run/torch2/upper /run/torch2/work $root
mount -t overlay overlay -o lowerdir=$top,upperdir=/run/torch2/upper,workdir=/run/torch2/work $root
mkdir -p $root/opt/weft $root$source
for dir in /proc /dev /sys /var/lib; do mount --rbind $dir $root$dir; done
# Not all of /run, in which the root itself lies.
mkdir -p $root/run/weft
mount --rbind /run/weft $root/run/weft
mount --bind $programs $root/opt/weft
mount --bind $source $root$source
cp /etc/hosts $root/etc/hosts
hostname called-otherwise
exec chroot $root env PATH=/opt/weft:/usr/bin:/bin HOME=/root OMP_NUM_THREADS=1 "$@"
"""
# Says what the others are told of rank 0, and which interface they take. Its tensors are referred
# to until the end, without which torch 2.6 may wait for itself when it destroys the process group.
MEET = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
own = torch.tensor(list((os.environ["MASTER_ADDR"] + " " + os.environ["GLOO_SOCKET_IFNAME"])
                        .ljust(64).encode()))
found = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(found, own)
print(f"rank {dist.get_rank()} met {[bytes(f.tolist()).decode().split() for f in found]}",
      flush=True)
dist.barrier()
dist.destroy_process_group()
"""
# Trains with whom it finds.
ALONE = """
import torch.distributed as dist
dist.init_process_group("gloo")
print(f"world {dist.get_world_size()}", flush=True)
dist.destroy_process_group()
"""


def torch2_root() -> Path:
    tool = ROOT / "tools/torch2"
    if subprocess.run([tool, "have"], check=False).returncode != 0:
        pytest.skip("torch 2 is not built here (make torch2)")
    return Path(subprocess.run([tool, "where"], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.strip())


class Site2(Site):
    """A hub, and nodes on which commands run in Debian 13."""

    def __init__(self, lab: Lab, weft: Path, root: Path, programs: Path) -> None:
        super().__init__(lab, weft)
        self.enter = ["unshare", "--mount", "--uts", "sh", "-c", ENTER, "sh", root, programs, ROOT]
        self.join(*NODES)
        for name in NODES:
            self.nodes[name].agent.allow(HUB_AWAY)
            self.nodes[name].agent.allow("UDP to the hub fails, and so does TLS")

    def inside(self, node: AgentNode, *words: object) -> str:
        return node.host.run([*self.enter, *words], timeout_s=120).out

    def start(self, nnodes: str, *words: object,
              nodes: Sequence[str] = NODES) -> dict[str, Daemon]:
        argv = [*self.enter, WEFT, "run", "--nnodes", nnodes, *words]
        return {name: self.lab.host(name).spawn(argv, name="job", allow=[""]) for name in nodes}

    def write(self, path: str, text: str) -> None:
        """A file on all nodes, below /var/lib/weft, which is seen inside."""
        for name in NODES:
            self.lab.host(name).run(["sh", "-c", f"cat > {path} && chmod 755 {path}"], stdin=text,
                                    quiet=True)


@pytest.fixture(scope="module")
def site(weft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site2]:
    root = torch2_root()
    if "san" in weft.parent.name:
        pytest.skip("a sanitizer's build does not run on another system")
    folder = tmp_path_factory.mktemp("portable")
    subprocess.run([ROOT / "tools/portable", weft.parent, folder / "weft.tar.gz"], check=True,
                   stdout=subprocess.DEVNULL)
    with tarfile.open(folder / "weft.tar.gz") as tar:
        tar.extractall(folder)
    with Lab.from_text(TOPOLOGY) as lab:
        yield Site2(lab, weft, root, folder / "opt/weft")


def lines(jobs: dict[str, Daemon], pattern: str) -> list[re.Match[str]]:
    return [match for job in jobs.values() for line in job.lines()
            if (match := re.search(pattern, line))]


def end(jobs: dict[str, Daemon], within_s: float) -> None:
    def end_of(name: str) -> str:
        return f"{name}:\n" + "\n".join(jobs[name].lines()[-40:])

    try:
        wait_for(lambda: not any(job.running for job in jobs.values()), within_s, "the job to end")
    except AssertionError as error:
        running = [end_of(name) for name in jobs if jobs[name].running]
        raise AssertionError("\n".join([str(error), *running])) from error
    for name, job in jobs.items():
        assert job.rc == 0, end_of(name)


def test_the_store_answers_as_libuvs(site: Site2) -> None:
    """Case by case, by torch 2's client and by bytes of its protocol."""
    node = site.nodes["n1"]
    site.inside(node, WEFT, "run", "--nnodes", "1", "true")
    # Who only has it explained makes no job.
    site.inside(node, WEFT, "env", "--job", "cases", "--nnodes", "2")
    explained = site.inside(node, WEFT, "run", "--explain", "--job", "cases", "--nnodes", "2",
                            "torchrun", "x.py")
    assert "torch 2." in explained and f"PET_LOCAL_ADDR={node.address()}" in explained
    host, port = re.search(r"PET_RDZV_ENDPOINT=(\S+):(\d+)", explained).groups()
    cases = ROOT / "test/hub/store_cases.py"
    answers = [json.loads(site.inside(node, "python3", cases, *words).splitlines()[-1])
               for words in (("127.0.0.1", 0, "own"), (host, port))]
    theirs, ours = answers
    assert theirs.pop("server") == "libuv" and ours.pop("server") is None
    assert {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]} == {}
    assert len(theirs) > 30


def test_rank_0_is_found_by_its_address(site: Site2, tmp_path: Path) -> None:
    script = f"/var/lib/weft/{tmp_path.name}.py"
    site.write(script, MEET)
    jobs = site.start("3", "torchrun", script)
    end(jobs, 90)
    addresses = {site.nodes[name].address() for name in NODES}
    [first, *others] = [match[1] for match in lines(jobs, r"rank \d met (.*)")]
    assert others == [first] * 2
    masters = {found[0] for found in json.loads(first.replace("'", '"'))}
    assert len(masters) == 1 and masters < addresses


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_is_one_world_of_two(site: Site2, wrapper: str, tmp_path: Path) -> None:
    """Whatever starts torch: torchrun in a shell, or a script of one process a node."""
    scripts = Scripts(f"/var/lib/weft/{tmp_path.name}")
    for name in NODES:
        site.lab.host(name).run(["mkdir", scripts.folder], quiet=True)
    for path, text in scripts.files().items():
        site.write(path, text)
    jobs = site.start("2", "--job", wrapper, "--", *WRAPPERS[wrapper](scripts), nodes=NODES[:2])
    check_world(list(jobs.values()), 120)


def test_torch_alone_is_no_success(site: Site2, tmp_path: Path) -> None:
    """A torchrun to which no variable comes."""
    script = f"/var/lib/weft/{tmp_path.name}.py"
    site.write(script, ALONE)
    words = ["env", "-i", "PATH=/usr/bin:/bin", "torchrun", script]
    job = site.start("2", "--job", "strayed", "--", *words, nodes=["n1"])["n1"]
    wait_for(lambda: not job.running, 120, "the command to end")
    text = "\n".join(job.lines())
    assert "world 1" in text
    assert job.rc == 3, text
    assert "env has used torch and has ended alone: it has exchanged nothing with another node " \
           "of the job strayed.1 (n2, n3 have not started it), so the exit status is 3" in text


# What `accelerate config` writes: a place of another network, and a rank of this machine's.
ACCELERATE_CONFIG = """compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
machine_rank: 1
main_process_ip: 192.0.2.7
main_process_port: 29500
num_machines: 3
num_processes: 3
rdzv_backend: static
same_network: true
"""


def test_accelerate_meets_at_the_hub(site: Site2, tmp_path: Path) -> None:
    """accelerate itself, whose configuration file names another place."""
    if not (torch2_root() / "opt/accelerate").exists():
        pytest.skip("accelerate, of Debian's sid alone, is not there (make torch2)")
    files = {name: f"/var/lib/weft/{tmp_path.name}.{name}" for name in ("py", "yaml")}
    for name in NODES:
        for kind, text in (("py", MEET), ("yaml", ACCELERATE_CONFIG)):
            site.lab.host(name).run(["sh", "-c", f"cat > {files[kind]}"], stdin=text, quiet=True)
    argv = [*site.enter, "env", "PYTHONPATH=/opt/accelerate", WEFT, "run", "--nnodes", "3",
            "python3", "-m", "accelerate.commands.launch", "--multi_gpu", "--config_file",
            files["yaml"], files["py"]]
    jobs = {name: site.lab.host(name).spawn(argv, name="job", allow=[""]) for name in NODES}
    end(jobs, 120)
    assert len(lines(jobs, r"rank \d met ")) == 3
    assert {match[1] for match in lines(jobs, r"accelerate gets these options as well:.* "
                                              r"--main_process_ip (\S+)")} == {"10.42.0.1"}


@pytest.mark.parametrize("backend", ["c10d", "etcd-v2"])
def test_a_job_outlives_rank_0_and_the_hub(site: Site2, backend: str) -> None:
    """From an encrypted checkpoint, which torch 2 loads without running what is in it."""
    key = "/var/lib/weft/checkpoint.key"
    secret = subprocess.run(["age-keygen"], check=True, capture_output=True, text=True).stdout
    for name in NODES:
        site.lab.host(name).run(["sh", "-c", f"umask 077; cat > {key}"], stdin=secret, quiet=True)
    jobs = site.start("2:3", "--rendezvous", backend, "--job", backend, "torchrun", "--rdzv_conf",
                      "is_host=false,last_call_timeout=5", ROOT / "examples/train_ddp.py",
                      "--steps", 100, "--pause", "0.1", "--timeout", 10, "--checkpoint",
                      f"/var/lib/weft/{backend}.pt", "--checkpoint-key", key)
    wait_for(lambda: lines(jobs, r"step +16/.* world 3"), 150, "three nodes to train")
    [lost] = [name for name, job in jobs.items() if lines({name: job}, r"step +16/")]
    site.lab.link(lost).down()
    gone = jobs.pop(lost)
    gone.kill9()
    again = wait_for(lambda: lines(jobs, r"2 ranks, from step (\d+)"), 150, "the others")[-1]
    assert int(again[1]) >= 15
    site.daemon.kill9()
    site.start_hub()
    end(jobs, 200)
    [result] = lines(jobs, r'({"world".*})')
    found = json.loads(result[1])
    assert (found["world"], found["steps"], found["same_weights"]) == (2, 100, True)
    site.lab.link(lost).up()
