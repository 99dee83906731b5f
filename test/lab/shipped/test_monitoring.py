"""deploy/monitoring with a real Prometheus and a real Alertmanager: a fault, its alert, the mend.

    hub ── [ wan ] ──┬── gpu-1      each with a probe that writes for a node exporter
                     ├── gpu-2
                     ├── gpu-3      its probe answers Prometheus itself
                     └── watch      Prometheus, Alertmanager, and who is told

All four are members, whose agents answer Prometheus at their overlay addresses; it has them from
the hub. The files are the shipped ones; in a copy times are divided by FACTOR, so that it ends in
time.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import Daemon, Host, Lab, wait_for
from lab.support import ROOT
from lab.support.agents import HUB_AWAY, Site

pytestmark = pytest.mark.namespaces

SHIPPED = ROOT / "deploy/monitoring"
NODES = ("gpu-1", "gpu-2", "gpu-3")
MEMBERS = (*NODES, "watch")
EXPORTERS = ("gpu-1", "gpu-2")
PROBE = "gpu-3"
TOPOLOGY = """
switch wan 203.0.113.0/24
host hub
host gpu-1 no-v6
host gpu-2 no-v6
host gpu-3 no-v6
host watch no-v6
link hub wan 203.0.113.10
link gpu-1 wan 203.0.113.11
link gpu-2 wan 203.0.113.12
link gpu-3 wan 203.0.113.13
link watch wan 203.0.113.20
"""
# "for" of rules, the intervals of Prometheus and the waits of Alertmanager are so much shorter, and
# intervals two seconds at least. What a rate is over, and the numbers that rules compare, stay. How
# long an alert is kept is for nodes that come back, which takes them as long as ever: a quarter.
FACTOR, KEEP_FACTOR = 120, 4
INTERVAL_LEAST_S = 2
DURATION = re.compile(r"\b(for|keep_firing_for|\w+_interval|\w+_wait): (\d+)([smh])\b")
SECONDS = {"s": 1, "m": 60, "h": 3600}
# What agents are to complain of, by the faults.
COMPLAINTS = [HUB_AWAY, "UDP to the hub", "no direct path, though only direct paths are wanted"]
HUB_STATE = "/var/lib/weft/hub"  # a small disk, which one fault fills
TEXTFILES = "/var/lib/prometheus/node-exporter"
PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9090", "http://127.0.0.1:9093"
PROGRAMS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter", "curl")
# Who is told, at the webhooks of alertmanager.yml: prints whom, what and of which alert.
RECEIVER = """
import http.server, json
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in body["alerts"]:
            labels = alert["labels"]
            print(self.path, alert["status"], labels["alertname"], labels.get("node", "-"),
                  alert["annotations"]["summary"], flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", 9094), Receiver).serve_forever()
"""


def shorter(text: str) -> str:
    def one(match: re.Match) -> str:
        key, had = match[1], int(match[2]) * SECONDS[match[3]]
        least = INTERVAL_LEAST_S if key.endswith("_interval") else 1
        factor = KEEP_FACTOR if key == "keep_firing_for" else FACTOR
        return f"{key}: {max(had // factor, least) if had else 0}s"

    return DURATION.sub(one, text)


class Watch:
    """Prometheus, Alertmanager and the receiver of a lab."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.host = site.lab.host("watch")
        self.folder = folder
        shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
        for path in [*folder.glob("*.yml"), *(folder / "rules").glob("*.yml")]:
            path.write_text(shorter(path.read_text(encoding="utf-8")), encoding="utf-8")
        config = (folder / "prometheus.yml").read_text(encoding="utf-8")
        exporters = [f"{site.lab.host(name).address()}:9100" for name in EXPORTERS]
        probes = [f"{site.nodes[PROBE].address()}:9587"]
        for shown, ours in (
                ("hub.example.org:8443", f"{site.hub.address()}:8443"),
                ('["gpu-1.example.org:9100", "gpu-2.example.org:9100"]', json.dumps(exporters)),
                ('["10.42.0.2:9587", "10.42.0.3:9587"]', json.dumps(probes))):
            assert shown in config
            config = config.replace(shown, ours)
        (folder / "prometheus.yml").write_text(config, encoding="utf-8")
        (folder / "weft.token").write_text(site.hub.run(
            [site.weft, "admin", "new", "prometheus", "--role", "viewer", "--ttl", "365d"]).out)
        site.hub.run(["cp", "/var/lib/weft/hub/tls.crt", folder / "weft-hub.crt"])
        self.receiver = self.host.spawn(["/usr/bin/python3", "-c", RECEIVER], name="receiver")
        self.host.spawn(
            ["prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yml'}",
             f"--storage.path={folder / 'alerts'}", "--web.listen-address=127.0.0.1:9093",
             "--cluster.listen-address=", "--log.level=warn"], name="alertmanager")
        self.host.spawn(
            ["prometheus", f"--config.file={folder / 'prometheus.yml'}",
             f"--storage.tsdb.path={folder / 'series'}", "--web.listen-address=127.0.0.1:9090",
             "--log.level=warn"], name="prometheus")

    def ask(self, url: str):
        done = self.host.run(["curl", "-s", "-m", "5", url], check=False, quiet=True)
        return json.loads(done.out) if done.rc == 0 and done.out.startswith(("[", "{")) else None

    def targets(self) -> dict[tuple[str, str], str]:
        """How each target, by job and instance, is: up, down, unknown."""
        answer = self.ask(f"{PROMETHEUS}/api/v1/targets") or {"data": {"activeTargets": []}}
        return {(one["labels"]["job"], one["labels"]["instance"]): one["health"]
                for one in answer["data"]["activeTargets"]}

    def rules(self) -> list[dict]:
        answer = self.ask(f"{PROMETHEUS}/api/v1/rules") or {"data": {"groups": []}}
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]

    def alerts(self, *names: str, **labels: str) -> list[dict]:
        """Those that Alertmanager has now, of these names and with these labels."""
        return [one for one in self.ask(f"{ALERTMANAGER}/api/v2/alerts") or []
                if (not names or one["labels"]["alertname"] in names)
                and all(one["labels"].get(key) == value for key, value in labels.items())]

    def value(self, expr: str) -> list[float]:
        done = self.host.run(["curl", "-s", "-G", f"{PROMETHEUS}/api/v1/query",
                              "--data-urlencode", f"query={expr}"], quiet=True)
        return [float(one["value"][1]) for one in json.loads(done.out)["data"]["result"]]

    def wait(self, name: str, within_s: float = 60, **labels: str) -> dict:
        """Until the alert fires; tells after which time it did."""
        began = time.monotonic()
        wait_for(lambda: self.alerts(name, **labels), within_s, f"{name} to fire")
        print(f"FIGURE {name} fired {time.monotonic() - began:.1f} s after its fault")
        return self.alerts(name, **labels)[0]

    def wait_mended(self, *names: str, within_s: float = 20) -> None:
        what, began = ", ".join(names) or "all alerts", time.monotonic()
        try:
            wait_for(lambda: not self.alerts(*names), within_s, f"{what} to be over")
        except AssertionError:
            print(json.dumps(self.alerts(*names), indent=1))
            raise
        print(f"FIGURE {what} over {time.monotonic() - began:.1f} s after the mend")


def start_probe(site: Site, host: Host) -> Daemon:
    """As weft-probe.service with the options of the page; the exporter reads it through a link."""
    where = "/run/weft-probe/weft.prom" if host.name in EXPORTERS else "overlay"
    return host.spawn([site.weft, "probe", "--report", "--metrics", where, "--user", "root"],
                      name="probe", allow=["does not answer", "hub"])


def start_exporter(host: Host) -> Daemon:
    return host.spawn(["prometheus-node-exporter", "--collector.disable-defaults",
                       "--collector.textfile", f"--collector.textfile.directory={TEXTFILES}",
                       "--log.level=error"], name="exporter")


@contextmanager
def dropped(host: Host, rule: str, hook: str = "input") -> Iterator[None]:
    """Packets that match are dropped at this machine."""
    host.run(["nft", "-f", "-"], quiet=True, stdin=(
        "table inet fault {\nchain fault {\n"
        f"type filter hook {hook} priority -300\n{rule} drop\n}}\n}}\n"))
    yield
    host.run(["nft", "delete", "table", "inet", "fault"], quiet=True)


@pytest.fixture
def site(weft: Path) -> Iterator[Site]:
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    with Lab.from_text(TOPOLOGY, capture=False) as lab:
        lab.host("hub").run(["mkdir", "-p", HUB_STATE])
        lab.host("hub").run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", HUB_STATE])
        made = Site(lab, weft)
        made.join(*MEMBERS, allow={name: COMPLAINTS for name in MEMBERS},
                  options=["--metrics", "overlay"])
        yield made


def test_alerts_fire_and_are_over(site: Site, tmp_path: Path) -> None:
    exporters = {}
    for name in NODES:
        host = site.lab.host(name)
        if name in EXPORTERS:
            host.run(["mkdir", "-p", TEXTFILES, "/run/weft-probe"], quiet=True)
            host.run(["ln", "-s", "/run/weft-probe/weft.prom", f"{TEXTFILES}/weft-probe.prom"],
                     quiet=True)
            exporters[name] = start_exporter(host)
        start_probe(site, host)
    site.wait_paths({(a, b): {"lan", "direct"} for a in NODES for b in NODES if a < b}, 30)
    watch = Watch(site, tmp_path / "monitoring")

    healthy(watch)
    only_members_ask(site)
    machines_fail(site, watch, exporters["gpu-2"])
    packets_are_dropped(site, watch)
    hub_killed(site, watch)
    told(watch)


def healthy(watch: Watch) -> None:
    """All targets answer, all rules can be evaluated, each kind of metric is there, none fires."""
    # The hub tells of the agents; the one on Prometheus' own machine is asked there.
    wanted = {("weft-hub", "203.0.113.10:8443"), *(("weft-agent", name) for name in MEMBERS)}
    wait_for(lambda: wanted <= set(watch.targets()), 30, "the hub's targets to be found")
    wait_for(lambda: set(watch.targets().values()) == {"up"}, 30, "all targets to be up")
    assert len(watch.targets()) == len(wanted) + len(EXPORTERS) + 1
    for metric in ("weft_agents", "weft_probe_reached", "weft_agent_passes_failing",
                   'weft_agent_peer_rtt_seconds{network="default"}',
                   'node_textfile_mtime_seconds{file=~".*/weft-[a-z]+[.]prom"}'):
        wait_for(lambda m=metric: watch.value(f"count({m})"), 30, f"{metric} to be scraped")
    wait_for(lambda: watch.rules() and all(rule["health"] == "ok" for rule in watch.rules()), 30,
             "all rules to be evaluated")
    # Three probes, and of each the three other members and the hub; of four agents the others.
    for expr, is_wanted in (('count(weft_probe_reached{family="ipv4"} == 1)', 12),
                            ("count(weft_agent_peer_session == 1)", 12),
                            ("weft:agents_away:sum", 0), ("weft:edge_ends_direct:ratio", 1)):
        wait_for(lambda e=expr, w=is_wanted: watch.value(e) == [w], 30, f"{expr} to be {is_wanted}")
    [longest] = watch.value('max(scrape_duration_seconds{job="weft-agent"})')
    print(f"FIGURE the longest scrape of an agent: {longest * 1000:.1f} ms")
    # While they have settled a pair may have been late; from now on no alert.
    watch.wait_mended()


def only_members_ask(site: Site) -> None:
    """At the overlay address there are figures, for members, and nothing else."""
    watch, gpu = site.nodes["watch"], site.nodes["gpu-1"]
    at = f"http://{gpu.address()}:9586"

    def ask(host: Host, *words: str) -> str:
        return host.run(["curl", "-s", "-m", "5", "-w", "%{http_code}", *words], check=False,
                        quiet=True).out

    assert ask(watch.host, f"{at}/metrics").endswith("200")
    assert 'weft_agent_peer_path{peer="gpu-2",path="' in ask(watch.host, f"{at}/v1/metrics")
    assert ask(watch.host, f"{at}/v1/status").endswith("404")
    assert ask(watch.host, "-X", "POST", f"{at}/v1/down").endswith("404")
    assert ask(watch.host, "-H", "Host: evil.example", f"{at}/metrics").endswith("403")
    # In TLS, where that is wanted.
    probe = gpu.host.spawn([site.weft, "probe", "--metrics", "127.0.0.1:9600", "--metrics-tls",
                            "/run/weft", "--user", "root"], name="tls-probe", allow=[""])
    probe.wait_line("figures for Prometheus are at https://127.0.0.1:9600/metrics")
    secret = ["--cacert", "/run/weft/tls.crt", "--resolve", "hub:9600:127.0.0.1"]
    assert ask(gpu.host, *secret, "https://hub:9600/metrics").endswith("200")
    assert ask(gpu.host, "http://127.0.0.1:9600/metrics").endswith("000")
    probe.stop()
    # Who gets there by another way than the tunnel is no member.
    assert ask(gpu.host, "--interface", gpu.host.address(), f"{at}/metrics").endswith("403")


def machines_fail(site: Site, watch: Watch, exporter: Daemon) -> None:
    """At the same time an agent and a node exporter end, and the hub's disk is full."""
    node, exporting = site.nodes["gpu-3"], site.lab.host("gpu-2")
    node.agent.kill9()
    exporter.kill9()
    site.daemon.allow("no space left")
    site.hub.run(["sh", "-c", f"cat /dev/zero > {HUB_STATE}/fill"], check=False, quiet=True)
    wait_for(lambda: site.hub.run([site.weft, "token", "new"], check=False).rc != 0, 20,
             "the hub to refuse a change")
    alert = watch.wait("WeftNodesAway")
    assert alert["annotations"]["summary"] == "1 nodes do not listen to any hub"
    assert alert["annotations"]["runbook"].startswith("docs/TROUBLESHOOTING.md#")
    watch.wait("WeftAgentAway", instance="gpu-3", node="gpu-3", network="default")
    watch.wait("WeftNodeMetricsAway", instance=f"{exporting.address()}:9100")
    watch.wait("WeftStoreRefuses", severity="critical")
    # Its data plane goes on, and so does its probe.
    assert watch.value('up{job="weft-probe"}') == [1]
    assert not watch.value('weft_agent_peer_session{instance="gpu-3"}')
    site.hub.run(["rm", f"{HUB_STATE}/fill"])
    start_exporter(exporting)
    node.start(allow=COMPLAINTS)
    watch.wait_mended("WeftNodesAway", "WeftAgentAway", "WeftNodeMetricsAway", "WeftStoreRefuses",
                      within_s=60)


def packets_are_dropped(site: Site, watch: Watch) -> None:
    """Where only direct paths are wanted, UDP between two; and pings to a third."""
    a, b, c = (site.lab.host(name) for name in NODES)
    site.set_topology("mesh")
    with dropped(a, f"ip saddr {b.address()} meta l4proto udp", "prerouting"), \
            dropped(c, 'iifname "weft0" icmp type echo-request'):
        for name in EXPORTERS:
            watch.wait("WeftNotReached", node=c.name,
                       instance=f"{site.lab.host(name).address()}:9100")
        watch.wait("WeftPathAlarm", network="default")
    site.set_topology("auto")
    watch.wait_mended("WeftPathAlarm", "WeftNotReached", within_s=60)


def hub_killed(site: Site, watch: Watch) -> None:
    """What nodes say meanwhile is there, and nobody is told of it."""
    site.daemon.kill9()
    watch.wait("WeftHubDown", instance="203.0.113.10:8443")
    watch.wait("WeftNotReached", node="hub")
    wait_for(lambda: {one["status"]["state"] for one in watch.alerts(node="hub")}
             == {"suppressed"}, 10, "the nodes' alerts to be inhibited")
    assert [one["status"]["state"] for one in watch.alerts("WeftHubDown")] == ["active"]
    site.start_hub()
    watch.wait_mended("WeftHubDown", "WeftNotReached", within_s=60)


def told(watch: Watch) -> None:
    """Who is woken, who is not, and that each was told of the end."""
    def has_all() -> bool:
        lines = watch.receiver.lines()
        return all(any(line.startswith(f"/{to} {what} {name} ") for line in lines)
                   for what in ("firing", "resolved")
                   for to, name in (("team", "WeftNodesAway"), ("team", "WeftAgentAway"),
                                    ("pager", "WeftPathAlarm"), ("team", "WeftNotReached"),
                                    ("pager", "WeftStoreRefuses"), ("pager", "WeftHubDown")))

    wait_for(has_all, 30, "everybody to be told of the end")
    assert not [line for line in watch.receiver.lines() if "WeftNotReached hub" in line]
