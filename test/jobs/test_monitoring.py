"""deploy/monitoring without a network: rules, their faults, the dashboard, and what names what."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from lab.support import DOCS, ROOT

from . import monitoring_cases

FOLDER = ROOT / "deploy/monitoring"
RULES = sorted((FOLDER / "rules").glob("*.yml"))
DASHBOARD = json.loads((FOLDER / "grafana/weft.json").read_text(encoding="utf-8"))
SCHEMA_VERSION = 38  # of Grafana 10
COLUMNS = 24
METRIC = re.compile(r"^\| `(\w+)` \| (\w+) \| [^|]+ \| (.*?) \| .*? \|$", re.MULTILINE)
# What is not in the page: Prometheus' own and its node exporter's, with the labels of their own.
FOREIGN = {"up": set(), "ALERTS": {"alertname", "alertstate"},
           "node_textfile_mtime_seconds": {"file"}}
# Labels of a target. A metric's own "job" is called otherwise beside the target's.
TARGET = {"cluster", "instance", "job"}
USE = re.compile(r"(?<![\w:])((?:weft[_:]|node_textfile_)\w[\w:]*|up|ALERTS)\b(?:\{([^}]*)\})?")
RATE = re.compile(r"\b(?:rate|increase)\(([\w:]+)")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
BOUNDED = re.compile(r"^(sum|max|min|count)\b|^(?:topk|bottomk)\((\d+), ")

promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="prometheus is not installed")


def rules() -> list[dict]:
    return [rule for path in RULES
            for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
            for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}
RECORDED = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
LISTED = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in
          METRIC.findall((DOCS / "METRICS.md").read_text(encoding="utf-8"))}


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def panels() -> list[dict]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]


def exprs() -> Iterator[tuple[str, str]]:
    """All in PromQL, each with where it stands."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    yield from queries()
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield f"${variable['name']}", variable["definition"]


# ---- rules


@promtool
def test_prometheus_takes_them(tmp_path: Path) -> None:
    folder = tmp_path / "monitoring"
    shutil.copytree(FOLDER, folder)
    (folder / "weft.token").write_text("token\n", encoding="utf-8")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes", "-subj", "/CN=hub", "-keyout", tmp_path / "key", "-out", folder / "weft-hub.crt")
    assert f"{len(RULES)} rule files found" in run(
        "promtool", "check", "config", folder / "prometheus.yml")
    run("promtool", "check", "rules", "--lint-fatal", *RULES)


@pytest.mark.skipif(not shutil.which("amtool"), reason="prometheus-alertmanager is not installed")
def test_alertmanager_takes_its_file() -> None:
    run("amtool", "check-config", FOLDER / "alertmanager.yml")
    where = ("amtool", "config", "routes", "test", f"--config.file={FOLDER / 'alertmanager.yml'}")
    assert run(*where, "severity=critical", "alertname=WeftHubDown").split()[-1] == "pager"
    assert run(*where, "severity=warning", "alertname=WeftNotReached").split()[-1] == "team"


@promtool
def test_each_alert_fires_by_its_fault_and_by_no_other(tmp_path: Path) -> None:
    """Silent before it, not before its "for" is over, with its labels, and silent behind it."""
    tried = {one["alertname"] for fault in monitoring_cases.faults(ALERTS).values()
             for one in fault.fires}
    assert tried == set(ALERTS)
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({
        "rule_files": [str(path) for path in RULES], "evaluation_interval": "1m",
        "tests": monitoring_cases.tests(ALERTS)}))
    run("promtool", "test", "rules", file)


@pytest.mark.parametrize("name", ALERTS)
def test_who_is_woken_knows_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert set(alert["labels"]) - {"node", "code"} == {"severity", "scope"}
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert set(alert["annotations"]) == {"summary", "description", "runbook"}
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
    assert anchor in anchors, sorted(anchors)


def test_routes_and_inhibitions_name_alerts_that_exist() -> None:
    config = yaml.safe_load((FOLDER / "alertmanager.yml").read_text(encoding="utf-8"))
    scopes = {alert["labels"]["scope"] for alert in ALERTS.values()}
    for rule in config["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            label, _, values = re.fullmatch(r'(\w+) (=~?) "([^"]+)"', matcher).groups()
            known = {"alertname": set(ALERTS), "scope": scopes}[label]
            assert set(values.split("|")) <= known, matcher


def test_the_operators_rule_has_them_all() -> None:
    made = run(ROOT / "tools/gen-prometheus-rule", ROOT)
    kept = FOLDER / "kubernetes/prometheus-rule.yaml"
    assert kept.read_text(encoding="utf-8") == made, "run `make docs`"
    assert [r for g in yaml.safe_load(made)["spec"]["groups"] for r in g["rules"]] == rules()


def test_each_finding_has_its_alert() -> None:
    """Those of docs/HEALTH.md that somebody has to act on, each in findings.yml or elsewhere."""
    made = run(ROOT / "tools/gen-finding-rules", ROOT)
    assert (FOLDER / "rules/findings.yml").read_text(encoding="utf-8") == made, "run `make docs`"
    told = dict(re.findall(r"^### (WEFT-[A-Z0-9]+-\d+): .*\n\nSeverity: (\w+)\.",
                           (DOCS / "HEALTH.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert told
    own = {rule["labels"]["code"]: rule["labels"]["severity"] for rule in ALERTS.values()
           if "code" in rule["labels"]}
    tool = runpy.run_path(str(ROOT / "tools/gen-finding-rules"))
    elsewhere, at_nodes = tool["ELSEWHERE"], tool["AT_NODES"]
    assert set(elsewhere.values()) <= set(ALERTS) and at_nodes <= set(told)
    wanted = {code: severity for code, severity in told.items() if severity != "note"}
    assert own == {code: severity for code, severity in wanted.items()
                   if code not in elsewhere and code not in at_nodes}


# ---- names


def labels_of(name: str) -> set[str]:
    """Those that a metric, or a rule that records, may have."""
    if name in RECORDED:
        return {label for one, _ in USE.findall(RECORDED[name]) for label in labels_of(one)}
    if name in FOREIGN:
        return TARGET | FOREIGN[name]
    kind = re.sub("_(bucket|sum|count)$", "", name)
    if name != kind and LISTED.get(kind, ("",))[0] == "histogram":
        return TARGET | {"le"} | LISTED[kind][1]
    assert name in LISTED, f"{name} is not in docs/METRICS.md"
    return TARGET | {f"exported_{one}" if one in TARGET else one for one in LISTED[name][1]}


@pytest.mark.parametrize("where, expr", exprs())
def test_metrics_and_labels_are_those_of_the_page(where: str, expr: str) -> None:
    used = USE.findall(expr)
    assert used, expr
    known: set[str] = set()
    for name, matchers in used:
        assert ":" not in name or name in RECORDED, f"nothing records {name}"
        has = labels_of(name)
        known |= has
        for label in re.findall(r'(\w+)(?:=~|!~|!=|=)"', matchers):
            assert label in has, f"{name} has no label {label}"
    for group in GROUPED.findall(expr):
        assert set(group.split(", ")) <= known, f"no metric of {expr} has all of {group}"
    for name in RATE.findall(expr):
        kind = re.sub("_bucket$", "", name)
        assert LISTED[kind][0] in ("counter", "histogram"), f"{name} is no counter"
    for label in re.findall(r"label_values\(.*, (\w+)\)$", expr):
        assert label in known, f"{expr} has no label {label}"


def test_a_typing_mistake_is_found() -> None:
    """The test above finds one in a metric, a label, a group and a recorded name."""
    for wrong in ("weft_path_alarm > 0", 'weft_path_alarms{net="x"}', "weft:no_such:sum > 0",
                  "sum by (networks) (weft_path_alarms)", "rate(weft_path_alarms[5m])"):
        with pytest.raises(AssertionError):
            test_metrics_and_labels_are_those_of_the_page("here", wrong)


# ---- the dashboard


def test_the_dashboard_is_one_of_grafana_10() -> None:
    assert DASHBOARD["schemaVersion"] == SCHEMA_VERSION
    assert DASHBOARD["title"] == "Weft" and DASHBOARD["uid"] == "weft" and DASHBOARD["id"] is None
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids) and all(isinstance(one, int) for one in ids)
    assert [p["title"] for p in DASHBOARD["panels"] if p["type"] == "row"] == [
        "Cluster", "Pairs", "Nodes", "Jobs", "Hub"]
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels():
        where = panel["title"]
        assert panel["type"] in ("stat", "timeseries", "table"), where
        assert panel["title"] and panel["datasource"] == source, where
        assert {"defaults", "overrides"} <= set(panel["fieldConfig"]), where
        assert panel["options"] and panel["targets"], where
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs), where
        for target in panel["targets"]:
            assert target["datasource"] == source and target["expr"], where
            assert target["instant"] != target["range"], where
            assert target["format"] == ("table" if panel["type"] == "table" else "time_series")


def test_no_panel_covers_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert set(place) == {"h", "w", "x", "y"}, panel["title"]
        assert place["w"] > 0 and place["h"] > 0 and place["x"] >= 0 and place["y"] >= 0
        assert place["x"] + place["w"] <= COLUMNS, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} covers {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_its_variables_exist_and_are_used() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert set(variables) == {"datasource", "cluster", "network", "node", "peer", "job"}
    text = json.dumps(DASHBOARD)
    used = set(VARIABLE.findall(text)) - {"__all", "__rate_interval"}
    assert used == set(variables)
    # A variable asks with those before it only.
    before: set[str] = set()
    for name, variable in variables.items():
        if variable["type"] == "query":
            assert set(VARIABLE.findall(variable["definition"])) <= before, name
            assert variable["query"]["query"] == variable["definition"], name
        before.add(name)


@pytest.mark.parametrize("where, expr", queries())
def test_a_query_asks_for_few_series(where: str, expr: str) -> None:
    """As many as there are paths, hubs or networks; of nodes and pairs, 100 at most."""
    bounded = BOUNDED.match(expr)
    assert bounded or expr.startswith('up{cluster=~"$cluster",job="weft-hub"}'), expr
    if bounded[1] if bounded else False:
        for group in re.findall(r"^sum by \(([^)]*)\)", expr):
            assert "node" not in group and "peer" not in group, expr
            assert "instance" not in group or 'job="weft-hub"' in expr or "relay" in expr, expr
    elif bounded:
        assert int(bounded[2]) <= 100, expr


@promtool
def test_prometheus_parses_each_query(tmp_path: Path) -> None:
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": [
        {"record": f"weft:query{number}:any",
         "expr": VARIABLE.sub("x", expr.replace("$__rate_interval", "1m"))}
        for number, (_, expr) in enumerate(queries())]}]}))
    run("promtool", "check", "rules", file)


# ---- the other files


def test_files_name_files_that_are_there() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    assert set(compose["services"]) == {"prometheus", "alertmanager", "grafana"}
    for name, service in compose["services"].items():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), f"{name} has no version"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            known = (FOLDER / source).exists() if source[0] == "." else source in compose["volumes"]
            assert known, volume
    for path in FOLDER.rglob("kustomization.yaml"):
        made = yaml.safe_load(path.read_text(encoding="utf-8"))
        files = [*made["resources"], *(one["path"] for one in made.get("patches", [])),
                 *(f for one in made.get("configMapGenerator", []) for f in one["files"])]
        assert all((path.parent / file).is_file() for file in files), path


def test_monitors_give_the_jobs_of_the_rules() -> None:
    """The rules go by the jobs of prometheus.yml, and the PodMonitors make them of pods."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    monitors = {one["metadata"]["name"]: one["spec"] for one in yaml.safe_load_all(
        (FOLDER / "kubernetes/pod-monitors.yaml").read_text(encoding="utf-8"))}
    named = {job for _, expr in exprs() for job in re.findall(r'\bjob="([^"]+)"', expr)}
    assert set(jobs) == named
    # Pods write nothing for a node exporter.
    assert set(monitors) == named - {"weft-node"}
    for name, monitor in monitors.items():
        [endpoint] = monitor["podMetricsEndpoints"]
        assert {"targetLabel": "job", "replacement": name} in endpoint["relabelings"]
        assert endpoint.get("scheme") == jobs[name].get("scheme")
        assert endpoint.get("path") == jobs[name].get("metrics_path")
    assert monitors["weft-hub"]["podMetricsEndpoints"][0]["tlsConfig"]["serverName"] == \
        jobs["weft-hub"]["tls_config"]["server_name"]
    # What finds the agents asks the hub as what asks it for its own figures.
    [found] = jobs["weft-agent"]["http_sd_configs"]
    assert found["tls_config"] == jobs["weft-hub"]["tls_config"]
    assert found["authorization"] == jobs["weft-hub"]["authorization"] | {"type": "Bearer"}
    assert {"source_labels": ["node"], "target_label": "instance"} in \
        jobs["weft-agent"]["relabel_configs"]


def kustomized(folder: Path) -> list[dict]:
    done = subprocess.run(["kubectl", "kustomize", folder], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0 and re.search("unknown|invalid Kustomization", done.stderr):
        pytest.skip("this kubectl's kustomize is too old")
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_kustomize_makes_them(tmp_path: Path) -> None:
    """The folder by itself, and the component in an overlay of deploy/kubernetes."""
    deploy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", deploy)
    kinds = sorted(one["kind"] for one in kustomized(deploy / "monitoring"))
    assert kinds == ["ConfigMap", "PodMonitor", "PodMonitor", "PodMonitor", "PrometheusRule"]
    overlay = deploy / "kubernetes/overlays/one-hub"
    line = re.search(r"components: \[.*\]", (
        FOLDER / "kubernetes/ports/kustomization.yaml").read_text(encoding="utf-8"))[0]
    with (overlay / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    made = {(one["kind"], one["metadata"]["name"]): one for one in kustomized(overlay)}
    [rule] = made["NetworkPolicy", "weft-metrics"]["spec"]["ingress"]
    ports = []
    for name in ("weft-agent", "weft-probe"):
        [container] = made["DaemonSet", name]["spec"]["template"]["spec"]["containers"]
        assert container["args"][-2:] == ["--metrics", "$(HOST_IP)"]
        assert container["env"][0]["name"] == "HOST_IP"
        [port] = container["ports"]
        assert port["name"] == "metrics"
        ports.append(port["containerPort"])
    assert ports == [one["port"] for one in rule["ports"]] == default_ports()


def default_ports() -> list[int]:
    """Those of --metrics ADDRESS without a port: the agent's and the probe's."""
    header = (ROOT / "src/control/agent/node_metrics.h").read_text(encoding="utf-8")
    return [int(found) for found in re.findall(
        r"#define METRICS_PORT_(?:AGENT|PROBE) (\d+)", header)]


@pytest.mark.skipif(not shutil.which("systemd-analyze"),
                    reason="systemd-analyze is not installed")
def test_units_verify() -> None:
    units = sorted((FOLDER / "node").glob("weft-agent-metrics.*"))
    assert len(units) == 2
    said = run("systemd-analyze", "verify", "--man=no", *units)
    assert "weft-agent-metrics" not in said, said


def test_a_stopped_probe_leaves_its_file() -> None:
    """By whose age WeftNodeMetricsStale goes: of a file that is gone no age is known."""
    unit = (ROOT / "deploy/systemd" / "weft-probe.service.in").read_text(encoding="utf-8")
    assert "\nRuntimeDirectoryPreserve=yes\n" in unit
