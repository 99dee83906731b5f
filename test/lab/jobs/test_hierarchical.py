"""Training in two islands of two nodes, 50 ms and 100 Mbit/s between them, by a plan.

   n1  n2            n3  n4
    |   |             |   |
   [lan-a]-- a --[wan]-- b --[lan-b]
                  |
                 hub

The addresses of the nodes are private ones, and routed between the islands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Daemon, Lab, wait_for
from lab.support import ROOT
from lab.support.agents import HUB_AWAY, AgentNode, Site
from lab.support.topologies import two_islands

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(),
                       reason="python3-torch is not installed"),
]

NODES = ("n1", "n2", "n3", "n4")
TOPOLOGY = two_islands("delay=12.5ms rate=100mbit queue=2m")


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        site = Site(lab, weft)
        site.join(*NODES, allow={"n3": [HUB_AWAY, "UDP to the hub fails, and so does TLS"]})
        site.nodes["n1"].reaches(site.nodes["n4"], within_s=30)
        site.wait_paths({("n1", "n2"): {"lan"}, ("n3", "n4"): {"lan"}}, 30)
        wait_for(lambda: all(knows_its_island(node) for node in site.nodes.values()), 30,
                 "each node to know its island")
        yield site


def knows_its_island(node: AgentNode) -> bool:
    """What --island-lan goes by; the round trips have to have been short for once."""
    said = node.host.run([node.weft, "islands", "--json"], quiet=True).out
    mates = {"n1": ["n1", "n2"], "n2": ["n1", "n2"], "n3": ["n3", "n4"], "n4": ["n3", "n4"]}
    return mates[node.name] in [sorted(island["nodes"]) for island in json.loads(said)["islands"]]


def start(site: Site, name: str, job: str, nnodes: str, *words: object,
          weft: tuple[object, ...] = ()) -> Daemon:
    """weft: words for weft run."""
    return site.lab.host(name).spawn(
        [site.weft, "run", "--nnodes", nnodes, "--job", job, *weft, "torchrun", "--rdzv_conf",
         "is_host=false,last_call_timeout=3", ROOT / "examples/train_hierarchical.py", *words],
        name=job, env={"OMP_NUM_THREADS": "1"}, allow=[""])


def end_of(jobs: dict[str, Daemon], within_s: float = 120) -> dict:
    """All of them succeed; what rank 0 says at the end."""
    wait_for(lambda: not any(j.running for j in jobs.values()), within_s, "the job to end")
    for name, daemon in jobs.items():
        assert daemon.rc == 0, f"{name}: " + "\n".join(daemon.lines()[-20:])
    [result] = [json.loads(line) for j in jobs.values() for line in j.lines()
                if line.startswith('{"world"')]
    return result


def said(jobs: dict[str, Daemon], pattern: str) -> list[re.Match[str]]:
    """Lines that begin with `pattern`, of all nodes."""
    return [match for job in jobs.values() for line in job.lines()
            if (match := re.match(pattern, line))]


def pair(a: str, b: str, rtt_us: int, rate: int) -> dict:
    """As `weft bench --json` has it."""
    return {"nodes": [a, b], "rttMedianUs": rtt_us, "streams": None,
            "oneStream": {"outBitsPerSecond": rate, "inBitsPerSecond": rate}}


def recorded() -> dict:
    return {"nodes": list(NODES), "pairs": [
        pair(a, b, *((300, 10**9) if {a, b} in ({"n1", "n2"}, {"n3", "n4"}) else (50000, 10**8)))
        for i, a in enumerate(NODES) for b in NODES[i + 1:]]}


def test_a_hostfile(site: Site) -> None:
    lines = site.nodes["n1"].run("env", "--hostfile").out.splitlines()
    assert sorted(lines) == sorted(f"{site.nodes[name].address()} slots=1" for name in NODES)


def test_a_plan_of_what_is_measured(site: Site) -> None:
    """Two nodes, one in each island: they are told not to average in each step."""
    plan = json.loads(site.nodes["n1"].run(
        "plan", "--params", "7B", "--transport", "gloo", "--nodes", "n3", "--json").out)
    assert [island["ring"] for island in plan["islands"]] == [["n1"], ["n3"]]
    assert not plan["everyStep"]["advised"]
    assert plan["exchange"]["forms"]["fp32"]["seconds"] > 28e9 * 8 / 100e6


def test_one_plan_for_all_nodes(site: Site) -> None:
    """`weft run --params`: one node measures and plans, and all nodes get the same."""
    jobs = [site.lab.host(name).spawn(
        [site.weft, "run", "--nnodes", "4", "--job", "agree", "--params", "7B", "sh", "-c",
         "cat $WEFT_PLAN; echo; test -n $WEFT_PLAN"], name="agree", allow=[""]) for name in NODES]
    wait_for(lambda: not any(j.running for j in jobs), 120, "all nodes to have a plan")
    plans = ["\n".join(line for line in j.lines() if not line.startswith("weft run: "))
             for j in jobs]
    assert [j.rc for j in jobs] == [0] * 4 and len(set(plans)) == 1
    plan = json.loads(plans[0])
    assert sorted(n for island in plan["islands"] for n in island["ring"]) == list(NODES)
    assert not plan["everyStep"]["advised"]
    assert all(any("the job is told by WEFT_PLAN" in line for line in j.lines()) for j in jobs)


def test_a_job_across_a_wan_is_warned(site: Site, tmp_path: Path) -> None:
    """By what was last measured, before it starts; refused where that was asked for."""
    words = ("run", "--nnodes", "4", "--job", "wan", "--state", str(tmp_path))
    done = site.nodes["n1"].run(*words, "true")
    assert "and no rate has been measured by this machine" in done.err
    assert "a round trip to n" in done.err and "crosses" not in done.err
    (tmp_path / "measured.json").write_text("{}")
    done = site.nodes["n1"].run(*words, "true")
    assert "no rate has been measured" in done.err and "weft plan: " not in done.err, done
    (tmp_path / "measured.json").write_text(json.dumps(recorded()))
    done = site.nodes["n1"].run(*words, "true")
    assert "note: averaging the gradients of 1B weights in each step across 2 islands" in done.err
    assert "and 10 % is allowed; islands that exchange each" in done.err
    assert "averaging" not in site.nodes["n1"].run(*words, "--wan", "allow", "true").err
    done = site.nodes["n1"].run(*words, "--wan", "refuse", "sh", "-c", "echo started", check=False)
    assert (done.rc, done.out) == (3, "")
    assert "weft run: not started: averaging the gradients" in done.err


@pytest.fixture(scope="module")
def plan(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of both islands, as a file."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "matrix.json").write_text(json.dumps(recorded()))
    text = site.nodes["n1"].run("plan", "--params", "7B", "--transport", "gloo", "--matrix",
                                str(folder / "matrix.json"), "--json").out
    assert json.loads(text)["everyStep"]["best"] == "hierarchical"
    (folder / "plan.json").write_text(text)
    return folder / "plan.json"


def test_names_of_the_island(site: Site) -> None:
    """`weft run --island-lan`: those of this node's island lead to the private network."""
    asked = "; ".join([*(f"getent ahostsv4 {name} | head -1" for name in (
        "n1.default.weft", "n2", "n2.default.weft", "n3")), "echo $WEFT_ISLAND_IFNAME",
                       "cat $WEFT_ISLAND_LAN"])
    host = site.nodes["n1"].host

    def run(*words: str) -> list[str]:
        done = host.run([site.weft, "run", *words, "sh", "-c", asked], quiet=True)
        return [line.split()[0] for line in done.out.splitlines() if line]

    overlay = {name: site.nodes[name].address() for name in NODES}
    assert run("--island-lan") == [overlay["n1"], "10.1.0.12", "10.1.0.12", overlay["n3"], "lan-a",
                                   "10.1.0.12"]
    assert host.run(["getent", "ahostsv4", "n2"], quiet=True).out.startswith(overlay["n2"])
    # The agent writes its file anew, as when a node joins, and the job's one follows.
    job = host.spawn([site.weft, "run", "--island-lan", "sh", "-c",
                      "while sleep 0.2; do cat /etc/hosts | tr '\\n' ' '; echo; done"],
                     name="names", allow=[""])
    job.wait_line(r".*10\.1\.0\.12\sn2\.default")
    host.run(["sh", "-c", "echo 192.0.2.7 other > /run/h; cat /etc/hosts >> /run/h; "
                          "cp /run/h /etc/hosts.new; mv /etc/hosts.new /etc/hosts"], quiet=True)
    job.wait_line(r"# weft run.* 192\.0\.2\.7 other .*10\.1\.0\.12\sn2\.default")
    job.stop()


def test_islands_by_a_plan(site: Site, plan: Path) -> None:
    """The job is in the islands of the plan, whose own traffic stays off the overlay.

    The leader of one is lost: its island goes on with who is left, from the last exchange. When the
    node is back it joins them.
    """
    words = ("2:4", "--hidden", 256, "--steps", 160, "--interval", 10, "--lr", "1e-2", "--form",
             "int8", "--pause", "1", "--timeout", 8, "--checkpoint", "/var/lib/weft/planned.pt")
    weft = ("--plan", plan, "--island-lan")
    jobs = {name: start(site, name, "planned", *words, weft=weft) for name in NODES}
    wait_for(lambda: said(jobs, r"step +20/.* world 4"), 90, "four nodes to train")
    inside = site.nodes["n2"].host.run(["ss", "-tnH", "state", "established"], quiet=True).out
    assert re.search(r"10\.1\.0\.12:\d+ +10\.1\.0\.11:\d+", inside), inside

    # Power off: not a word to anybody.
    site.lab.link("n3").down()
    jobs.pop("n3").kill9()
    again = wait_for(lambda: said(jobs, r"3 ranks in 2 islands, .* from step (\d+)"), 90,
                     "the others to begin again")[0]
    assert int(again[1]) >= 20
    site.lab.link("n3").up()
    jobs["n3"] = start(site, "n3", "planned", *words, weft=weft)
    back = wait_for(lambda: said(jobs, r"4 ranks in 2 islands, .* from step ([1-9]\d*)"), 90,
                    "the node to be back")[-1]
    assert int(back[1]) >= int(again[1])
    found = end_of(jobs)
    assert (found["world"], found["islands"], found["same_weights"]) == (4, 2, True)
    # A byte a weight and a scale for each 256, at each exchange since then.
    exchanges = (160 - int(back[1])) // 10
    assert 1.0 < found["exchangedBytes"] / 74000 / exchanges < 1.1
    print(f"FIGURE hierarchical training: {found['stepsPerSecond']} steps/s")


def test_other_ways(site: Site) -> None:
    """The same with a sharded optimizer, and DiLoCo between nodes: two jobs at the same time."""
    pairs = {"sharded": ("n1", "n2"), "diloco": ("n3", "n4")}
    jobs = {mode: {name: start(site, name, mode, "2", "--mode", mode, "--hidden", 64, "--steps",
                               300, "--interval", 50, "--lr", "1e-2", "--form", "fp32")
                   for name in names} for mode, names in pairs.items()}
    for mode in pairs:
        found = end_of(jobs[mode])
        assert (found["world"], found["same_weights"]) == (2, True)
        assert found["islands"] == (2 if mode == "diloco" else 1)
        assert (found["exchangedBytes"] > 0) == (mode == "diloco")


def test_the_speedtest_of_two_ranks(site: Site) -> None:
    """examples/speedtest.py across the WAN: it says payload, and no more than the line carries."""
    jobs = [site.lab.host(name).spawn(
        [site.weft, "run", "--nnodes", "2", "--job", "speed", "torchrun",
         ROOT / "examples/speedtest.py", "--size", 4 << 20, "--rounds", 3], name="speed",
        env={"OMP_NUM_THREADS": "1"}, allow=[""]) for name in ("n1", "n3")]
    wait_for(lambda: not any(j.running for j in jobs), 120, "the speedtest to end")
    assert [j.rc for j in jobs] == [0, 0], "\n".join(jobs[0].lines()[-20:])
    [found] = [json.loads(line) for j in jobs for line in j.lines() if line.startswith('{"bytes"')]
    assert (found["bytes"], found["backend"]) == (4 << 20, "gloo")
    # The line has 100 Mbit/s, and carries headers, too. Its queue fills before a round's end.
    for rate in (*found["oneWayMbit"].values(), found["bothWaysMbit"]):
        assert 0 < rate < 100
    print(f"FIGURE speedtest.py over 100 Mbit/s, 25 ms each way: {found}")
