"""Would a job run? Sixteen nodes are asked, then one thing after the other is broken.

    hub        203.0.113.10
     |
   [ wan ]
    |   |  ...  |
   n1   n2     n16     203.0.113.11 to .26
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, Result, wait_for
from lab.support import PROGRAMS, ROOT

pytestmark = pytest.mark.namespaces

NODES = 16
CORPUS = ROOT / "test/corpus"
NO = 3  # exit status of a job that would not run
# The wall clock of a program is 30 s ahead; not by faketime(1), which puts a process in between.
AHEAD = {"LD_PRELOAD": next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), ""),
         "FAKETIME": "+30s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
         # It waits on conditions behind ThreadSanitizer's back, which then takes the lock for held.
         "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":report_bugs=0",
         # The sanitizer's library may come second.
         "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
TOPOLOGY = "\n".join([
    "switch wan 203.0.113.0/24 2001:db8::/64", "host hub",
    *(f"host n{i}" for i in range(1, NODES + 1)),
    "link hub wan 203.0.113.10 2001:db8::10",
    *(f"link n{i} wan 203.0.113.{10 + i} 2001:db8::{10 + i}" for i in range(1, NODES + 1))])


class Mesh:
    """A hub and sixteen nodes, all of which have joined."""

    def __init__(self, lab: Lab, weft: Path) -> None:
        self.lab = lab
        self.weft = weft
        self.hub = lab.host("hub")
        self.hub.spawn([weft, "hub", "up", "--public", self.hub.address()],
                       name="hub").wait_line("weft hub is up")
        token = self.hub.run([weft, "token", "new", "--uses", NODES]).out.strip()
        self.agents: dict[str, Daemon] = {}
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: self.join(lab.host(f"n{i}"), token), range(1, NODES + 1)))
        wait_for(lambda: len(self.status("n1")["peers"]) == NODES - 1, 20, "n1 to hear of all")

    def join(self, host: Host, token: str) -> None:
        host.run([self.weft, "join", token, "--name", host.name, "--no-start"])
        self.start(host.name)

    def start(self, name: str, *before: str, env: dict | None = None) -> None:
        """Run the node's agent, with `before` in front of its command line."""
        self.agents[name] = self.lab.host(name).spawn(
            [*before, self.weft, "agent"], name="agent", env=env)
        self.agents[name].wait_line("the hub answers")

    def restart(self, name: str, *before: str, env: dict | None = None) -> None:
        if self.agents[name].running:
            self.agents[name].stop()
        self.start(name, *before, env=env)

    def status(self, name: str) -> dict:
        return json.loads(self.lab.host(name).run([self.weft, "status", "--json"], quiet=True).out)

    def address(self, name: str) -> str:
        return self.status(name)["self"]["address4"]

    def preflight(self, *words: str, env: dict | None = None) -> tuple[Result, dict]:
        done = self.lab.host("n1").run([self.weft, "preflight", "--json", *words], check=False,
                                       env=env, timeout_s=120)
        assert done.rc in (0, NO), done.err
        return done, json.loads(done.out)

    def filter(self, name: str, *rules: str) -> None:
        """What the node does with packets of the overlay that come in; none: as they come."""
        script = "table inet harm {}\ndelete table inet harm\n"
        if rules:
            script += "\n".join(["table inet harm {", "chain in {",
                                 "type filter hook input priority 0;", *rules, "}", "}", ""])
        self.lab.host(name).run(["nft", "-f", "-"], stdin=script)


    def shorten(self, name: str, address: str = "") -> None:
        """Larger packets than 1300 bytes do not go from the node to that address; none: they do."""
        script = "table netdev harm {}\ndelete table netdev harm\n"
        if address:
            script += "\n".join(["table netdev harm {", "chain out {",
                                 "type filter hook egress device weft0 priority 0;",
                                 f"ip daddr {address} ip length > 1300 drop", "}", "}", ""])
        self.lab.host(name).run(["nft", "-f", "-"], stdin=script)


@pytest.fixture(scope="module")
def mesh(weft: Path) -> Iterator[Mesh]:
    with Lab.from_text(TOPOLOGY) as lab:
        yield Mesh(lab, weft)


def grave(report: dict) -> list[dict]:
    """What is more than a note."""
    return [f for f in report["findings"] if f["level"] in ("warn", "no")]


def faults(report: dict) -> set[tuple[str, ...]]:
    """What is graver than a note, each with the nodes that have it."""
    return {(f["fault"], *f["nodes"]) for f in grave(report)}


def preflight_that_finds(mesh: Mesh, wanted: set[tuple[str, ...]], *words: str,
                         env: dict | None = None) -> tuple[Result, dict]:
    """A pre-flight with just these faults.

    On a machine that is busy otherwise links do lose packets, and are slow, for a while: of three
    one has to say what is the matter, and nothing else.
    """
    for _ in range(3):
        done, report = mesh.preflight(*words, env=env)
        if faults(report) == wanted:
            return done, report
        print(f"another finds: {grave(report)}", flush=True)
    raise AssertionError(f"none of three finds {wanted}, but at last {grave(report)}")


def test_sixteen_healthy_nodes(mesh: Mesh) -> None:
    """Every pair measured, and no fault invented."""
    start = time.monotonic()
    done, report = preflight_that_finds(mesh, set())
    elapsed = time.monotonic() - start
    print(f"FIGURE preflight of {NODES} nodes: {elapsed:.1f} s (to be below 30)")
    assert done.rc == 0
    assert len(report["pairs"]) == NODES * (NODES - 1) // 2
    for pair in report["pairs"]:
        there, back = pair["ways"]
        for way in (there, back):
            # An agent gives the peer a route of the path's own MTU: at most 1500 less IPv4's.
            assert 1280 <= way["routeMtu"] == way["packetMax"] <= 1440
            assert 1240 <= way["mss"] <= 1400
        assert there["reached"] and back["reached"] and there["transferred"]
        assert min(*pair["oneStream"].values(), *pair["streams"].values()) > 0


def test_every_fault_is_named(mesh: Mesh) -> None:
    """Six things are wrong at once, each is told once, and of the rest nothing bad is said."""
    addresses = {name: mesh.address(name) for name in ("n3", "n4", "n5", "n6")}
    # Where they come in, some small ones of a flow are merged to one large one by then.
    senders = [f"n{i}" for i in (1, 2, 4, 5, 6, 7, 8, 9, 10)]
    for name in senders:
        mesh.shorten(name, addresses["n3"])
    mesh.filter("n5", f"iifname weft0 ip saddr {addresses['n4']} drop")
    # Every packet of this pair passes, but no more than so many bytes a second.
    mesh.lab.host("n7").run(["tc", "qdisc", "add", "dev", "weft0", "root", "tbf", "rate", "3mbit",
                             "burst", "16kb", "latency", "400ms"])
    # The process that measures has the library, and not the rest of the agent's environment.
    mesh.lab.host("n8").run(["sh", "-c", f"echo {AHEAD['FAKETIME']} > /etc/faketimerc"])
    mesh.restart("n8", env=AHEAD)
    mesh.agents["n8"].allow("this machine's clock is")
    mesh.restart("n9", "prlimit", "--nofile=512:512")
    mesh.agents["n10"].stop()
    try:
        done, report = preflight_that_finds(mesh, {
            ("mtu", "n3"), ("one-way", "n4", "n5"), ("slow", "n7"), ("clock", "n8"),
            ("open-files", "n9"), ("absent", "n10")},
            "--nodes", ",".join(f"n{i}" for i in range(2, 11)))
        # The agent says it by itself, too.
        mesh.agents["n8"].wait_line("this machine's clock is (29|30|31) s ahead of the hub's", 90)
    finally:
        for name in senders:
            mesh.shorten(name)
        mesh.filter("n5")
        mesh.lab.host("n7").run(["tc", "qdisc", "del", "dev", "weft0", "root"])
        mesh.lab.host("n8").run(["rm", "/etc/faketimerc"])
        for name in ("n8", "n9", "n10"):
            mesh.restart(name)
    assert done.rc == NO
    assert report["verdict"] == "no"
    found = {(f["fault"], *f["nodes"]): f for f in grave(report)}
    # Of the sizes that are tried, the largest that passed; some of them may have been lost.
    passed = int(re.search(r"packets of more than (\d+) bytes", found["mtu", "n3"]["text"])[1])
    assert 1200 <= passed <= 1300
    assert "packets from n4 do not reach n5" in found["one-way", "n4", "n5"]["text"]
    assert re.search(r"(29|30)\.\d s ahead", found["clock", "n8"]["text"])
    assert "512 files" in found["open-files", "n9"]["text"]
    assert all(f["fix"] for f in found.values())
    verdicts = {tuple(p["nodes"]): p["verdict"] for p in report["pairs"]}
    assert verdicts["n1", "n2"] in ("ok", "note")
    assert verdicts["n1", "n3"] == "no"
    assert verdicts["n1", "n7"] == "warn"


def test_wrong_interface(mesh: Mesh) -> None:
    """By the variables of the job, as NCCL and Gloo read them."""
    few = ("--quick", "--nodes", "n2,n3")
    done, report = preflight_that_finds(mesh, {("nccl-interface", f"n{i}") for i in (1, 2, 3)},
                                        *few, env={"NCCL_SOCKET_IFNAME": "wan"})
    assert done.rc == NO
    assert "NCCL would take wan" in report["findings"][0]["text"]
    # Without weft run NCCL takes both, and Gloo where the host's name leads.
    done, report = mesh.preflight(*few, "--plain")
    assert done.rc == NO
    assert {f["fault"] for f in grave(report)} == {"nccl-interface", "gloo-interface"}
    good = {"NCCL_SOCKET_IFNAME": "=weft0", "GLOO_SOCKET_IFNAME": "weft0"}
    done, report = preflight_that_finds(mesh, set(), *few, "--plain", env=good)
    assert done.rc == 0
    # On this node the limits are those of the shell in which the job would be started.
    done = mesh.lab.host("n1").run(
        ["prlimit", "--nofile=512:512", mesh.weft, "preflight", "--json", *few], check=False)
    assert done.rc == NO
    [finding] = grave(json.loads(done.out))
    assert (finding["fault"], finding["nodes"]) == ("open-files", ["n1"])


def test_who_may_ask(mesh: Mesh) -> None:
    """The service is there for members on the overlay alone, and for one coordinator at a time."""
    n1, n2 = mesh.lab.host("n1"), mesh.lab.host("n2")
    listening = n2.run(["ss", "-Hlntu", "sport", "=", ":51829"], quiet=True).out
    assert len(listening.splitlines()) == 2
    assert all(f"{mesh.address('n2')}%weft0:51829" in line for line in listening.splitlines())
    ask = PROGRAMS / "refused_orders.py"
    said = n1.run(["/usr/bin/python3", ask, mesh.address("n2")]).out.splitlines()
    assert said == ["light before a session: refused", "session: ok", "second session: refused",
                    "sink with another id: refused", "no order: refused",
                    "ping of the session: answered with 56 bytes",
                    "ping of another session: silence"]


def test_programs_of_a_member_give_no_orders(mesh: Mesh) -> None:
    """Any user of its machine sends from n1's address: it gives no order, and is in no way."""
    n1, n3 = mesh.lab.host("n1"), mesh.lab.host("n3")
    script = PROGRAMS / "refused_orders.py"
    program = n1.spawn(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                        "/usr/bin/python3", "-u", script, "--without-key", mesh.address("n2")],
                       name="stranger")
    program.wait_line("^holding", 60)
    said = program.lines()
    assert "has to be proven with the node's key" in said[0]
    assert said[1] == "a guess: the proof is not that of the node with that address"
    assert said[2] == "facts: refused"
    # While its connections are open another member measures there.
    done = n3.run([mesh.weft, "preflight", "--json", "--nodes", "n2", "--force"], check=False,
                  timeout_s=120)
    pairs = json.loads(done.out)["pairs"]
    assert len(pairs) == 1 and all(way["reached"] for way in pairs[0]["ways"])
    program.kill9()


LISTENER = """
import socket
sock = socket.create_server(("", 6379))
print("listening", flush=True)
while True:
    print("a connection from", sock.accept()[1][0], flush=True)
"""


def test_no_order_leads_elsewhere(mesh: Mesh) -> None:
    """A member does not have another connect to that one's own services, nor to its neighbours'."""
    n1 = mesh.lab.host("n1")
    listeners = [mesh.lab.host(name).spawn(["/usr/bin/python3", "-c", LISTENER], name="listener")
                 for name in ("n2", "n3")]
    for listener in listeners:
        listener.wait_line("listening")
    script = PROGRAMS / "misdirected_orders.py"
    places = [f"{host}:6379" for host in ("127.0.0.1", "203.0.113.12", "203.0.113.13",
                                          mesh.address("n2"), mesh.address("n3"))]
    said = n1.run(["/usr/bin/python3", script, mesh.address("n2"), mesh.address("n3"),
                   *places]).out.splitlines()
    assert len(said) == len(places) + 5
    assert not [line for line in said if line.endswith((" measured", " told"))]
    # They would have been heard.
    for name, listener in zip(("n2", "n3"), listeners, strict=True):
        mesh.lab.host(name).run(["/usr/bin/python3", "-c",
                                 "import socket; socket.create_connection(('127.0.0.1', 6379))"])
        listener.wait_line("a connection from 127.0.0.1")
        assert sum("a connection" in line for line in listener.lines()) == 1
        listener.stop()


def bench(mesh: Mesh, *words: str, rc: int = 0) -> Result:
    done = mesh.lab.host("n1").run([mesh.weft, "bench", *words], check=False, timeout_s=120)
    assert done.rc == rc, done.out + done.err
    return done


LATE = "no TCP connection to it came about beside the overlay within 0.8 s"


def test_bench_of_a_few(mesh: Mesh, tmp_path: Path) -> None:
    """Every direction has a rate, the bare line is measured beside it, and the sums are right."""
    svg = tmp_path / "matrix.svg"
    few = ("--nodes", "n2,n3", "--ms", "100", "--allreduce", "2")
    report = json.loads(bench(mesh, *few, "--json", "--svg", str(svg)).out)
    assert report["nodes"] == ["n1", "n2", "n3"]
    for pair in report["pairs"]:
        for what in ("oneStream", "streams", "bothWays"):
            assert min(pair[what].values()) > 0
        assert 0 < pair["rttMinUs"] <= pair["rttMedianUs"] <= pair["rttP99Us"]
        number = pair["nodes"][1][1:]
        # A member that is too busy to answer in time is not measured there, which is said.
        if "why" in pair["underlay"]:
            assert pair["underlay"] == {"why": LATE}
            continue
        assert pair["underlay"]["via"] in (f"203.0.113.{10 + int(number)}",
                                           f"2001:db8::{10 + int(number)}")
        assert min(pair["underlay"]["oneStream"].values()) > 0
        assert pair["underlay"]["oneStreamCostPercent"] <= 100
    for algorithm in ("ring", "tree"):
        done = report["allReduce"][algorithm]
        assert done["done"], done["why"]
        assert done["busBitsPerSecond"] == pytest.approx(done["algBitsPerSecond"] * 4 / 3, rel=1e-6)
    assert svg.read_text().count("<title>n") == 6
    said = bench(mesh, "n2", "--ms", "50", "--no-underlay", "--allreduce", "0",
                 "--expect", "900Gbit", rc=NO).out
    assert "fail: n1 to n2: " in said
    assert "2 members, 1 pair, " in said
    assert '"n1" is this node itself' in bench(mesh, "n1", rc=1).err
    runs = json.loads(bench(mesh, "--history", "--json").out)["runs"]
    assert [run["members"] for run in runs] == [3, 2]
    assert [run["failures"] for run in runs] == [0, 2]


def test_congestion_control_of_a_route(mesh: Mesh) -> None:
    """What a route names counts, and not what the machine would take."""
    n1 = mesh.lab.host("n1")
    of_machine = n1.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).out.strip()
    known = n1.run(["cat", "/proc/sys/net/ipv4/tcp_available_congestion_control"]).out.split()
    other = next((name for name in sorted(known) if name != of_machine), of_machine)
    routes = [line.split() for line in
              n1.run(["ip", "-4", "route", "show", "dev", "weft0"]).out.splitlines()]
    for route in routes:
        n1.run(["ip", "route", "change", *route, "dev", "weft0", "congctl", other])
    try:
        done = bench(mesh, "n2", "--ms", "50", "--no-underlay", "--allreduce", "0", "--json")
        assert json.loads(done.out)["pairs"][0]["congestion"] == [other, of_machine]
        _, report = mesh.preflight("--nodes", "n2", "--force")
        assert report["pairs"][0]["ways"][0]["congestion"] == other
        assert report["pairs"][0]["congestion"] == [other, of_machine]
    finally:
        for route in routes:
            n1.run(["ip", "route", "change", *route, "dev", "weft0"])


FAKE_MPIRUN = """#!/bin/sh
# Prints what all_reduce_perf of nccl-tests would, as it was recorded.
cp "$2" {0}/hostfile
echo "$NCCL_SOCKET_IFNAME $OMPI_MCA_btl_tcp_if_include $*" > {0}/words
cat {1}
"""


def test_a_sweep_and_its_verdict(mesh: Mesh, tmp_path: Path) -> None:
    """Over TCP for real; by nccl-tests from its recorded output, since no GPU is here."""
    quick = ("n2", "--ms", "50", "--no-underlay", "--allreduce", "0", "--sweep", "--json")
    found = mesh.lab.host("n1").run([mesh.weft, "bench", *quick], check=False, timeout_s=120)
    sweep = json.loads(found.out)["sweep"]
    assert sweep["by"] == "tcp" and sweep["sizes"][0]["bytes"] == 8
    assert len(sweep["sizes"]) == 10 or sweep["why"]
    assert sweep["bestBusGBps"] == max(size["busGBps"] for size in sweep["sizes"]) > 0
    assert found.rc == {"pass": 0, "fail": NO}[sweep["verdict"]]
    print(f"FIGURE bench --sweep: {sweep['text']}")
    recorded = CORPUS / "nccl-tests/p4d-tcp"
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(FAKE_MPIRUN.format(tmp_path, recorded))
    mpirun.chmod(0o755)
    done = mesh.lab.host("n1").run(
        [mesh.weft, "bench", *quick, "--nccl-tests", "docker run nccl all_reduce_perf"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout_s=120)
    sweep = json.loads(done.out)["sweep"]
    assert (sweep["by"], sweep["network"], len(sweep["sizes"])) == ("nccl-tests", "Socket", 28)
    assert sweep["verdict"] == "none"  # nobody says what this machine should give
    assert (tmp_path / "hostfile").read_text() == "".join(
        f"{mesh.address(name)} slots=1\n" for name in ("n1", "n2"))
    words = (tmp_path / "words").read_text()
    assert words.startswith("=weft0 weft0 --hostfile ") and " -np 2 " in words
    assert " -x NCCL_SOCKET_IFNAME " in words
    assert words.endswith(" docker run nccl all_reduce_perf -b 8 -e 1G -f 2 -g 1\n")


def test_a_sweep_that_is_interrupted(mesh: Mesh, tmp_path: Path) -> None:
    """It leaves nothing behind, however it ends."""
    left = tmp_path / "left"
    left.mkdir()
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f'#!/bin/sh\ncp "$2" {tmp_path}/hostfile.new\n'
                      f'mv {tmp_path}/hostfile.new {tmp_path}/hostfile\nexec sleep 600\n')
    mpirun.chmod(0o755)
    for end in ("interrupt", "kill9"):
        bench = mesh.lab.host("n1").spawn(
            [mesh.weft, "bench", "n2", "--ms", "50", "--no-underlay", "--allreduce", "0", "--sweep",
             "--json", "--nccl-tests", "all_reduce_perf"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(left)}, name="bench")
        wait_for((tmp_path / "hostfile").exists, 60, "mpirun to be started")
        assert len((tmp_path / "hostfile").read_text().splitlines()) == 2
        getattr(bench, end)()
        wait_for(lambda b=bench: not b.running, 20, "weft bench to end")
        assert list(left.iterdir()) == []
        (tmp_path / "hostfile").unlink()


def test_no_bench_beside_a_job(mesh: Mesh) -> None:
    """Traffic of somebody else's is not disturbed; a pre-flight then measures no throughput."""
    far = mesh.address("n3")
    server = mesh.lab.host("n3").spawn(["iperf3", "-s", "-1", "--forceflush"], name="iperf3")
    server.wait_line("listening")
    job = mesh.lab.host("n2").spawn(["iperf3", "-u", "-b", "60M", "-t", "600", "--forceflush", "-c",
                                     far],
                                    name="job")
    job.wait_line("connected to")
    said = bench(mesh, "n2", rc=1).err
    assert "pass over the overlay of n2, perhaps a job's" in said
    assert "--force" in said
    done, report = preflight_that_finds(mesh, set(), "--nodes", "n2,n3")
    assert done.rc == 0
    assert "live" in {f["fault"] for f in report["findings"]}
    assert all(pair["oneStream"] is None for pair in report["pairs"])
    job.kill9()


def test_a_running_job_is_named(mesh: Mesh) -> None:
    """Though it is root's, of whose processes the agent's user sees nothing; until it has ended."""
    def names_job() -> bool:
        done = mesh.lab.host("n1").run([mesh.weft, "preflight", "--nodes", "n2,n3", "--json"],
                                       check=False, quiet=True, timeout_s=120)
        return any(f["fault"] == "live" and "a job of weft run" in f["text"] and "n2" in f["text"]
                   for f in json.loads(done.out)["findings"])

    assert not names_job()
    job = mesh.lab.host("n2").spawn(
        [mesh.weft, "run", "--nnodes", "2", "--job", "live", "sh", "-c",
         "echo started; exec sleep 600"], name="run", allow=[""])
    job.wait_line("started")
    wait_for(names_job, 60, "the job to be named")
    job.kill9()
    wait_for(lambda: not names_job(), 60, "the job to be gone")
