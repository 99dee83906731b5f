"""The recipes of docs/recipes/: each command as its page has it.

    hub            203.0.113.10, the hub
     |
   [ wan ]
    |   |   |  \
 login gpu-1 gpu-2 a     .11 to .13; a: .9, a NAT that lets no UDP through
                   |
                 [lan]
                  pod    10.1.0.11, a container: of root's capabilities it has few, and no systemd
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, Result, wait_for
from lab.support.agents import AgentNode, Site
from lab.support.pages import blocks

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24
switch lan 10.1.0.0/24 gateway=a
host hub
host login
host gpu-1
host gpu-2
host pod
nat a port-restricted out=wan udp=blocked
link hub   wan 203.0.113.10
link login wan 203.0.113.11
link gpu-1 wan 203.0.113.12
link gpu-2 wan 203.0.113.13
link a wan 203.0.113.9
link a lan 10.1.0.1
link pod lan 10.1.0.11
"""
TRAIN = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"all {int(total)} ranks have met", flush=True)
dist.destroy_process_group()
"""
TORCH = Path("/usr/lib/python3/dist-packages/torch")
# What a container engine gives, and what the page asks for.
CONTAINER = ("chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,"
             "sys_chroot,mknod,audit_write,setfcap,net_admin")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.from_text(TOPOLOGY) as made:
        yield made


@pytest.fixture
def site(lab: Lab, weft: Path) -> Site:
    return Site(lab, weft)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job: a train.py whose ranks meet."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def needs(*programs: str) -> None:
    absent = [name for name in programs if not shutil.which(name, path="/usr/sbin:/usr/bin")]
    if absent or not TORCH.exists():
        pytest.skip(f"not installed: {', '.join(absent) or 'python3-torch'}")


def type_in(host: Host, weft: Path, text: str, cwd: Path, check: bool = True,
            **env: str) -> Result:
    """What a person types into a shell in that folder."""
    path = f"{weft.parent}:/usr/local/bin:/usr/sbin:/usr/bin:/bin"
    return host.run(["sh", "-e", "-c", f"cd {cwd}; {text}"], check=check, timeout_s=120,
                    env={"PATH": path, **env})


# ---- ssh ----------------------------------------------------------------------------------------

def serve_ssh(host: Host, weft: Path, folder: Path) -> Daemon:
    """A real SSH server for the key of `folder`; root's home is moved to the host's /var/lib."""
    key = (folder / "key.pub").read_text()
    path = f"export PATH={weft.parent}:/usr/sbin:/usr/bin:/bin OMP_NUM_THREADS=1"
    host.run(["sh", "-c", "sed -i 's|:/root:|:/var/lib/root:|' /etc/passwd && umask 077 && "
                          "mkdir -p /var/lib/root/.ssh /etc/dropbear && "
                          f"echo {path} > /var/lib/root/.bashrc && "
                          "cat > /var/lib/root/.ssh/authorized_keys"], stdin=key)
    daemon = host.spawn(["/usr/sbin/dropbear", "-F", "-E", "-R", "-s"], name="sshd")
    daemon.wait_line("Not backgrounding")
    return daemon


def test_many_machines_over_ssh(site: Site, lab: Lab, weft: Path, job: Path) -> None:
    needs("dropbear", "ssh", "ssh-keygen")
    folder = job.parent
    steps = {name: text.replace("/srv/job", str(job))
             for name, text in blocks("recipes/ssh.md", "sh").items()}
    assert list(steps) == ["join", "preflight", "run", "leave"]
    subprocess.run(["ssh-keygen", "-q", "-ted25519", "-N", "", "-f", folder / "key"], check=True)
    for name in ("gpu-1", "gpu-2"):
        serve_ssh(lab.host(name), weft, folder)
    (folder / "hosts").write_text("gpu-1\ngpu-2\n")
    addresses = "".join(f"{lab.host(n).address()} {n}\n" for n in ("gpu-1", "gpu-2"))
    site.hub.run(["sh", "-c", "cat >> /etc/hosts"], stdin=addresses)
    let_in(site.hub, folder)

    joined = type_in(site.hub, weft, steps["join"], folder).out
    assert "gpu-1 has joined the network default" in joined
    assert "gpu-2 has joined the network default" in joined
    assert set(site.hub_nodes()) == {"hub", "gpu-1", "gpu-2"} and not (folder / "token").exists()
    # As soon as both know each other; a member that has just come may not be known yet.
    wait_for(lambda: "yes: a job would run" in type_in(
        site.hub, weft, steps["preflight"], folder, check=False).out, 20, "the pre-flight's yes")
    ran = type_in(site.hub, weft, steps["run"], folder).out
    for name in ("gpu-1", "gpu-2"):
        assert f"{name}: all 2 ranks have met" in ran, ran
    left = type_in(site.hub, weft, steps["leave"], folder).out
    assert left.count("Left the network default") == 2
    assert set(site.hub_nodes()) == {"hub"}


def let_in(host: Host, folder: Path) -> None:
    """An SSH client that finds the key of `folder`, and asks nothing."""
    host.run(["sh", "-c", "mkdir -p /etc/ssh && cat > /etc/ssh/ssh_config"],
             stdin=f"IdentityFile {folder}/key\nStrictHostKeyChecking no\nLogLevel ERROR\n"
                   "UserKnownHostsFile /dev/null\n")


def test_mpirun_over_the_overlay(site: Site, weft: Path, job: Path) -> None:
    """Open MPI starts a rank on each node, and their sum passes through the tunnel alone, and in
    the class of collectives where the node that sends has a rate."""
    needs("dropbear", "ssh", "ssh-keygen", "mpirun")
    subprocess.run(["ssh-keygen", "-q", "-ted25519", "-N", "", "-f", job / "key"], check=True)
    nodes = site.join("gpu-1", "gpu-2")
    for node in nodes:
        serve_ssh(node.host, weft, job)
        let_in(node.host, job)
        node.host.run(["nft", "-f", "-"], stdin="table inet strict {\nchain in {\n"
                      'type filter hook input priority 0;\niifname "wan" meta l4proto tcp drop\n'
                      "}\n}\n")
    steps = blocks("recipes/launchers.md", "sh")
    (job / "sum.py").write_text(blocks("recipes/launchers.md", "py")["sum.py"])
    nodes[0].insist_ping(nodes[1].address())
    type_in(nodes[0].host, weft, steps["hostfile"], job)
    site.hub.run([weft, "node", "set", "gpu-1", "--rate", "1Gbit"])
    wait_for(lambda: nodes[0].status()["self"]["rates"]["bitsPerSecond"] == 10**9, 20, "the rate")
    count_classes(nodes[1].host, nodes[0])
    said = type_in(nodes[0].host, weft, steps["mpirun"], job, OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PATH=f"{weft.parent}:/usr/bin:/bin").out
    assert sorted(said.splitlines()) == ["rank 0 of 2 on gpu-1: 3", "rank 1 of 2 on gpu-2: 3"]
    seen = nodes[1].host.run(["nft", "list", "table", "inet", "classes"]).out
    packets = dict(re.findall(r"counter (\w+) {\s*packets (\d+)", seen))
    assert int(packets["collective"]) > 0 and int(packets["other"]) == 0


def count_classes(host: Host, src: AgentNode) -> None:
    """TCP of that node that is no SSH: with the mark of collectives, and without."""
    rules = "tcp sport 22 accept\ntcp dport 22 accept\n" + "".join(
        f"{family} saddr {src.address(version)} meta l4proto tcp {family} dscp {which}\n"
        for family, version in (("ip", 4), ("ip6", 6))
        for which in ("af21 counter name collective", "!= af21 counter name other"))
    host.run(["nft", "-f", "-"], quiet=True, stdin="table inet classes {\n"
             "counter collective { }\ncounter other { }\n"
             f"chain in {{\ntype filter hook input priority 0;\n{rules}}}\n}}\n")


# ---- Slurm --------------------------------------------------------------------------------------

class Slurm:
    """Slurm over the overlay of machines that have joined, by the slurm.conf of the page."""

    def __init__(self, nodes: list[AgentNode], weft: Path) -> None:
        self.weft = weft
        self.login = nodes[0]
        self.config = blocks("recipes/slurm.md", "conf")["slurm.conf"]
        scripts = blocks("recipes/slurm.md", "sh")
        # No PATH leads to it.
        prolog = scripts["weft-prolog"].replace("weft env", f"{weft} env")
        self.node_prolog = scripts["weft-node-prolog"].replace(
            "export PATH=", f"export PATH={weft.parent}:")
        for node, address in zip(nodes, ("10.77.0.2", "10.77.0.3", "10.77.0.4")):
            assert address in self.config
            self.config = self.config.replace(address, f"<{node.name}>")
        for node in nodes:
            self.config = self.config.replace(f"<{node.name}>", node.address())
        for node in nodes:
            self._write(node.host, "/etc/slurm/slurm.conf", self.config)
            self._write(node.host, "/etc/slurm/weft-prolog", prolog)
            self._write(node.host, "/etc/slurm/weft-node-prolog", self.node_prolog)
            self._write(node.host, "/etc/slurm/weft-node-epilog", scripts["weft-node-epilog"])
            # The lab's hosts have no cgroups to look for; nothing here uses any.
            self._write(node.host, "/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
            self._start_munge(node.host)
        self._spawn(self.login.host, "slurmctld", "-D", ready="Running as primary controller")
        for node in nodes[1:]:
            self._spawn(node.host, "slurmd", "-D", "-N", node.name, ready="slurmd started")

    @staticmethod
    def _write(host: Host, path: str, text: str) -> None:
        host.run(["sh", "-c", f"mkdir -p /etc/slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd "
                              f"&& cat > {path} && chmod 755 {path}"], stdin=text)

    @staticmethod
    def _start_munge(host: Host) -> None:
        """The same key everywhere; each host has a /run and an /etc of its own."""
        host.run(["sh", "-c", "install -d -o munge -g munge /run/munge /var/lib/munge && "
                              "echo a key that is the same on all machines > /etc/munge/munge.key "
                              "&& chown munge /etc/munge/munge.key"])
        host.spawn(["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups",
                    "/usr/sbin/munged", "--foreground", "--log-file=/var/lib/munge/log",
                    "--seed-file=/var/lib/munge/seed"], name="munged")
        wait_for(lambda: host.run(["munge", "-n"], check=False, quiet=True).rc == 0, 10, "munged")

    def _spawn(self, host: Host, program: str, *words: str, ready: str) -> None:
        daemon = host.spawn([f"/usr/sbin/{program}", *words], name=program, allow=["error: "],
                            env={"PATH": "/usr/sbin:/usr/bin:/bin"})
        daemon.wait_line(ready, 20)

    def are_idle(self) -> bool:
        said = self.login.host.run(["sinfo", "-h", "-o", "%D %t"], check=False, quiet=True).out
        return said.split() == ["2", "idle"]


def test_slurm_over_the_overlay(site: Site, weft: Path, job: Path) -> None:
    """Its daemons meet on overlay addresses, and a batch job's ranks meet through weft run."""
    needs("slurmctld", "slurmd", "munged", "sbatch")
    slurm = Slurm(site.join("login", "gpu-1", "gpu-2"), weft)
    wait_for(slurm.are_idle, 30, "two idle nodes")
    pages = blocks("recipes/slurm.md", "sh")
    (job / "job.sbatch").write_text(pages["job.sbatch"])
    type_in(slurm.login.host, weft, pages["submit"], job, OMP_NUM_THREADS="1")
    wait_for(lambda: slurm.login.host.run(["squeue", "-h"], quiet=True).out == "", 60,
             "the job to end")
    said = "".join(path.read_text() for path in job.glob("slurm-*.out"))
    assert said.count("all 2 ranks have met") == 2, said
    assert "is yours and stays" not in said  # Each node's variables are its own.
    # The prolog has let the job begin; on a node that reaches nobody it would not.
    gpu = site.lab.host("gpu-2")
    gpu.run(["nft", "-f", "-"], stdin="table inet harm {\nchain in {\n"
            'type filter hook input priority 0;\n'
            'iifname "weft0" meta l4proto { icmp, icmpv6 } drop\n}\n}\n')
    asked = gpu.run(["/etc/slurm/weft-node-prolog"], check=False, env={
        "SLURMD_NODENAME": "gpu-2", "SLURM_JOB_ID": "9", "SLURM_JOB_NODELIST": "gpu-[1-2]",
        "WEFT_PATIENCE": "1"})
    assert asked.rc == 1 and "gpu-2: its agent does not run, or does not reach the hub" in asked.err
    gpu.run(["nft", "delete", "table", "inet", "harm"])
    # What Slurm starts by itself has the variables of the prolog.
    plain = type_in(slurm.login.host, weft, "srun -N 2 env", job).out
    assert plain.count("NCCL_SOCKET_IFNAME==weft0\n") == 2


# ---- containers ---------------------------------------------------------------------------------

def in_container(pod: Host, weft: Path, cwd: Path, text: str, caps: str = CONTAINER,
                 before: str = "", **env: str) -> Result:
    """As a container's start script: few capabilities, a mounted /etc/hosts, no systemd."""
    (cwd / "hosts").write_text("127.0.0.1 localhost\n")
    inside = f"mount --bind {cwd}/hosts /etc/hosts; {before} exec setpriv --bounding-set=-all," + \
        ",".join(f"+{cap}" for cap in caps.split(",")) + f" --inh-caps=-all sh {cwd}/start"
    (cwd / "start").write_text(text)
    return type_in(pod, weft, f"exec unshare -m sh -c '{inside}'", cwd, check=False, **env)


def end_all(host: Host, weft: Path) -> None:
    """As an engine that stops a container does, for what has been started from there."""
    ours = host.run(["readlink", "/proc/self/ns/net"], quiet=True).out.strip()

    # Who watches over another may start it again before it is ended itself.
    def none_left() -> bool:
        n = 0
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(proc / "ns/net") == ours and Path(
                        os.readlink(proc / "exe")).name.startswith(weft.name):
                    n += 1
                    os.kill(int(proc.name), 9)
            except OSError:  # It has ended meanwhile.
                continue
        return n == 0

    wait_for(none_left, 10, f"what runs on {host.name} to end")


def test_a_rented_container(site: Site, lab: Lab, weft: Path, tmp_path: Path) -> None:
    """No UDP, no systemd, few capabilities; and after a restart it is the same node."""
    pages = blocks("recipes/marketplace.md", "sh")
    gpu, = site.join("gpu-1")
    pod = lab.host("pod")
    env = {"WEFT_TOKEN": type_in(site.hub, weft, pages["token"], tmp_path).out.strip(),
           "WEFT_NAME": "pod"}

    lacking = in_container(pod, weft, tmp_path, pages["start"], **env,
                           caps=CONTAINER.removesuffix(",net_admin"))
    assert lacking.rc == 1 and "CAP_NET_ADMIN and access to /dev/net/tun" in lacking.err
    lacking = in_container(pod, weft, tmp_path, pages["start"], **env,
                           before="mount -t tmpfs tmpfs /dev/net;")
    assert lacking.rc == 1 and "the token is not used: cannot open /dev/net/tun" in lacking.err
    assert "pod" not in site.hub_nodes()

    joined = in_container(pod, weft, tmp_path, pages["start"], **env)
    assert joined.rc == 0 and "The hub answers in TLS" in joined.out, joined.err
    node = AgentNode(pod, weft)
    address = node.address()
    gpu.insist_ping(address)
    assert node.peers()["gpu-1"]["path"] == "stream"
    assert "gpu-1.default.weft" in (tmp_path / "hosts").read_text()

    end_all(pod, weft)
    wait_for(lambda: not node.has_interface(), 10, "its interface to go with what has had it")
    assert in_container(pod, weft, tmp_path, pages["start"], **env).rc == 0
    gpu.insist_ping(address, within_s=20)
    pod.run([weft, "leave"])


def test_without_root(site: Site, lab: Lab, weft: Path, tmp_path: Path) -> None:
    """A user without a privilege, in a namespace that pasta carries."""
    if not shutil.which("pasta"):
        pytest.skip("passt is not installed")
    gpu, = site.join("gpu-1")
    login = lab.host("login")
    login.run(["ip", "route", "add", "default", "via", "203.0.113.9"])  # pasta wants one
    home = Path(f"/var/lib/home-{os.getpid()}")  # the host's own, where a user may enter
    token = site.hub.run([weft, "token", "new"]).out
    login.run(["sh", "-c", f"mkdir -p {home}/weft && cat > {home}/weft/token"], stdin=token)
    script = (f"ping -c 20 -i 0.2 {gpu.address()}; {weft} status --json --socket {home}/weft/sock; "
              f"id -u; {weft} run --socket {home}/weft/sock -- env")
    login.run(["sh", "-c", f"cat > {home}/weft/job.sh && chown -R 65534:65534 {home}"],
              stdin=script)
    text = blocks("recipes/marketplace.md", "sh")["rootless"]
    done = login.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                      "env", f"HOME={home}", "WEFT_NAME=login", f"PATH={weft.parent}:/usr/bin:/bin",
                      "sh", "-c", f"cd {home}\n{text}"], check=False, timeout_s=60)
    assert "bytes from" in done.out, done.out + done.err
    # Other lines follow it, and the environment's may have braces too.
    status, _ = json.JSONDecoder().raw_decode(done.out, done.out.index("{"))
    assert status["peers"][0]["path"] == "direct"
    assert "NCCL_SOCKET_IFNAME==weft0" in done.out
    assert login.run(["ip", "link", "show", "weft0"], check=False).rc != 0
