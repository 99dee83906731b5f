"""What docs/OPERATIONS.md and docs/TROUBLESHOOTING.md say, tried.

    hub       203.0.113.10, 2001:db8::10; with the packet filter of the page
     |
   [ wan ]
    |    |   |
  gpu-2  a   b     a: a NAT; b: a NAT that lets no UDP through
         |   |
      gpu-1  gpu-3
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, wait_for
from lab.support import DOCS, PROGRAMS, ROOT
from lab.support.agents import Site
from lab.support.pages import blocks

pytestmark = pytest.mark.namespaces

TOPOLOGY = """
switch wan 203.0.113.0/24 2001:db8::/64
switch lan-a 10.1.0.0/24 gateway=a
switch lan-b 10.2.0.0/24 gateway=b
host hub
host gpu-1
host gpu-2
host gpu-3
nat a port-restricted out=wan
nat b port-restricted out=wan udp=blocked
link hub wan 203.0.113.10 2001:db8::10
link gpu-2 wan 203.0.113.12
link a wan 203.0.113.8
link b wan 203.0.113.9
link a lan-a 10.1.0.1
link b lan-b 10.2.0.1
link gpu-1 lan-a 10.1.0.11
link gpu-3 lan-b 10.2.0.11
"""
# Where nothing forgets it is not there; it is brought about in lab/paths/test_keepalive.py.
FORGOTTEN = "weft_nat_forgotten_seconds"
METRIC = re.compile(r"^\| `(\w+)` \| (\w+) \| [^|]+ \| (.*?) \| (.*?) \|$", re.MULTILINE)
FETCH = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
sock = context.wrap_socket(socket.create_connection(("203.0.113.10", 8443), 10),
                           server_hostname="hub")
sock.sendall(b"GET /v1/metrics HTTP/1.1\\r\\nHost: hub\\r\\nAuthorization: Bearer "
             + open(sys.argv[2], "rb").read().strip() + b"\\r\\n\\r\\n")
print(sock.makefile().read())
"""


@pytest.fixture(scope="module")
def site(weft: Path) -> Iterator[Site]:
    with Lab.from_text(TOPOLOGY) as lab:
        filters = blocks("OPERATIONS.md", "nft")
        lab.host("hub").run(["nft", "-f", "-"], stdin=filters["hub"])
        for name in ("gpu-1", "gpu-2"):
            lab.host(name).run(["nft", "-f", "-"], stdin=filters["node"])
        made = Site(lab, weft)
        made.join("gpu-1", "gpu-2", words={"gpu-1": ["--engine", "userspace"]})
        yield made


# A status whose only finding is that this machine's cores are full.
CORES_ARE_FULL = re.compile(r"\nFINDINGS\nnote +WEFT-CPU-001 .*\n.*\n$")


def shape(text: str) -> list[str]:
    """Lines without what differs from run to run: numbers, units, addresses, the widths of columns.
    """
    text = CORES_ARE_FULL.sub("", text)
    text = re.sub(r"^keepalive .*$", "keepalive", text, flags=re.MULTILINE)
    text = re.sub(r"\b[0-9a-f]*:[0-9a-f:]+\b", "A", text)
    text = re.sub(r"\d+(?:\.\d+)*(?: (?:s|min|B|[KMGT]iB)\b)?", "N", text)
    return [" ".join(line.split()) for line in text.strip().split("\n")]


def test_healthy_answers(site: Site) -> None:
    """Each command of TROUBLESHOOTING.md's first look answers as it is shown there."""
    site.wait_paths({("gpu-1", "gpu-2"): {"direct"}}, 10)
    site.nodes["gpu-1"].reaches(site.nodes["gpu-2"])
    host = site.nodes["gpu-1"].host
    shown = list(blocks("TROUBLESHOOTING.md", "console").values())
    assert len(shown) == 4
    for block in shown:
        command, _, answer = block.partition("\n")
        words = command.removeprefix("$ weft ").split()
        said = ""

        def agrees() -> bool:
            nonlocal said
            said = host.run([site.weft, *words], check=False, quiet=True).out
            return shape(said) == shape(answer)

        try:
            wait_for(agrees, 20, f"weft {words[0]} to answer as the page shows it")
        except AssertionError:
            print(json.dumps({"page": shape(answer), "program": shape(said)}, indent=1))
            raise


def metrics(host: Host, socket: str) -> str:
    """What the hub, or the agent, of a machine tells on its socket."""
    done = host.run(["/usr/bin/python3", PROGRAMS / "ask.py", "GET", "http://weft/v1/metrics",
                     socket], quiet=True)
    return done.out.partition("\n")[2]


def hub_metrics(site: Site) -> str:
    return metrics(site.hub, "/run/weft/hub.sock")


def test_packet_filters(site: Site) -> None:
    """With those of the page: a direct path, a probe, a pre-flight; a stream; nothing else."""
    gpu1, gpu2 = site.nodes["gpu-1"], site.nodes["gpu-2"]
    site.wait_paths({("gpu-1", "gpu-2"): {"direct"}}, 10)
    gpu1.reaches(gpu2)
    gpu2.reaches(gpu1, version=6)
    wait_for(lambda: gpu1.host.run([site.weft, "probe", "--once"], check=False).rc == 0, 10,
             "every member to answer")
    wait_for(lambda: "yes: a job would run" in gpu2.host.run(
        [site.weft, "preflight"], check=False).out, 20, "the pre-flight's yes")

    token = site.hub.run([site.weft, "token", "new"], quiet=True).out.strip()
    gpu3 = site.lab.host("gpu-3")
    assert "The hub answers in TLS" in gpu3.run([site.weft, "join", token]).out
    assert gpu3.run([site.weft, "leave"]).rc == 0
    tracked = site.hub.run(["conntrack", "-L", "-p", "udp"]).out
    outside = [line for line in tracked.splitlines() if "=127." not in line]
    assert not [line for line in outside if "port=51820" in line]
    # What the page does not let in does not get in.
    assert gpu2.host.run(["timeout", "2", "bash", "-c", ": > /dev/tcp/203.0.113.10/2379"],
                         check=False).rc != 0


def test_ports(site: Site) -> None:
    """What `weft hub up --ports` prints is what the hub listens on for everybody."""
    printed = site.hub.run([site.weft, "hub", "up", "--ports"]).out
    wanted = {tuple(line.split("\t")[0].split()) for line in printed.splitlines()}
    opened = set()
    for line in site.hub.run(["ss", "-Hlntu"], quiet=True).out.splitlines():
        protocol, _, _, _, at = line.split()[:5]
        address, _, port = at.rpartition(":")
        if address in ("*", "0.0.0.0", "[::]"):
            opened.add((protocol, port))
    assert opened == wanted


def told(text: str) -> dict[str, tuple[str, str]]:
    """Type and meaning of each metric of an exposition."""
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.MULTILINE))
    return {name: (kind, helps[name]) for name, kind in
            re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)}


def test_metrics(site: Site, tmp_path: Path) -> None:
    """METRICS.md has those that hub, agent and probe tell, and no other, each with its labels."""
    listed = {name: (kind, meaning, labels) for name, kind, labels, meaning in
              METRIC.findall((DOCS / "METRICS.md").read_text(encoding="utf-8"))
              # This hub's store is a file; and for GPUs see test/lab/health/test_gpus.py.
              if not name.startswith(("weft_kubernetes_", "weft_agent_gpu_"))
              and name != FORGOTTEN}
    file = Path("/run/weft.prom")
    probe = site.nodes["gpu-1"].host.spawn(
        [site.weft, "probe", "--metrics", file, "--user", "root"], name="probe",
        allow=["gpu-3 does not answer"])  # It has left; this one has not heard of it yet.
    host = site.nodes["gpu-1"].host
    wait_for(lambda: "weft_probe_rtt_seconds{" in host.run(
        ["cat", file], check=False, quiet=True).out, 20, "the probe's metrics")
    wait_for(lambda: "weft_agent_peer_jitter_seconds{" in metrics(host, "/run/weft/agent.sock"), 90,
             "the agent to measure its path to a peer")
    network = json.loads(site.hub.run([site.weft, "get", "Network", "default"], quiet=True).out)
    network["spec"]["budgets"] = [{"bytesPerDay": 1}]  # It is spent, and that is found.
    site.hub.run([site.weft, "apply", "-f", "-"], stdin=json.dumps(network))
    wait_for(lambda: "weft_budget_share{" in hub_metrics(site) and
             "weft_finding{" in hub_metrics(site), 90, "the hub to look at the budget")
    text = hub_metrics(site) + metrics(host, "/run/weft/agent.sock") + host.run(
        ["cat", file], quiet=True).out
    probe.stop()
    text = "\n".join(line for line in text.split("\n") if FORGOTTEN not in line)
    assert told(text) == {name: (kind, meaning) for name, (kind, meaning, _) in listed.items()}
    for name, labels in re.findall(r"^(weft_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        had = [f"`{label}`" for label in re.findall(r'(\w+)="', labels)]
        if name not in listed:  # One line of a histogram.
            name = re.sub("_(bucket|sum|count)$", "", name)
            assert listed[name][0] == "histogram"
            had = [label for label in had if label != "`le`"]
        assert ", ".join(had) == listed[name][2], name


def test_scraping(site: Site, tmp_path: Path) -> None:
    """A viewer's token, the hub's certificate and its name are what a client needs."""
    token, crt = tmp_path / "token", tmp_path / "hub.crt"
    token.write_text(site.hub.run(
        [site.weft, "admin", "new", "prometheus", "--role", "viewer", "--ttl", "365d"]).out)
    site.hub.run(["cp", "/var/lib/weft/hub/tls.crt", crt])
    page = (DOCS / "OPERATIONS.md").read_text(encoding="utf-8")
    config = (ROOT / "deploy/monitoring/prometheus.yml").read_text(encoding="utf-8")
    assert "--role viewer --ttl 365d" in page and "server_name: hub\n" in config
    gpu2 = site.nodes["gpu-2"].host
    done = gpu2.run(["/usr/bin/python3", "-c", FETCH, crt, token])
    assert "weft_nodes{" in done.out


def test_without_the_hub(site: Site) -> None:
    """A direct pair goes on: another mapping, agent and data plane; then the hub is back."""
    gpu1, gpu2 = site.nodes["gpu-1"], site.nodes["gpu-2"]
    site.wait_paths({("gpu-1", "gpu-2"): {"direct"}}, 10)
    for node in (gpu1, gpu2):
        node.agent.allow("the hub does not answer|UDP to the hub")
    there = gpu2.address()
    token = site.hub.run([site.weft, "token", "new"], quiet=True).out
    site.daemon.kill9()
    site.lab.nat("a").flush_mappings()
    gpu1.insist_ping(there)
    for lost in ("the agent", "the agent and its data plane"):
        gpu1.agent.stop()
        gpu1.insist_ping(there)
        if "data plane" in lost:
            # It has another port then, of which only the hub could have told gpu-2.
            gpu2.host.run(["nft", "insert", "rule", "inet", "filter", "input", "meta", "l4proto",
                           "udp", "accept"])
            gpu1.host.run(["ip", "link", "del", "weft0"])
        gpu1.agent = gpu1.host.spawn([site.weft, "agent"], name="agent",
                                     allow=["the hub does not answer|UDP to the hub"])
        wait_for(lambda: gpu1.host.run([site.weft, "status"], check=False, quiet=True).rc == 0, 10,
                 "the agent to answer")
        gpu1.insist_ping(there)
        site.wait_paths({("gpu-1", "gpu-2"): {"direct"}}, 20)
    refused = site.lab.host("gpu-3").run([site.weft, "join", "-"], stdin=token, check=False)
    assert refused.rc == 1 and "the hub cannot be asked" in refused.err
    site.start_hub()
    for node in (gpu1, gpu2):
        wait_for(lambda n=node: n.status()["hub"]["reachable"], 60, "the hub to be heard again")
