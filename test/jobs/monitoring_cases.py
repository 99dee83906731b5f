"""A fault for each alert of deploy/monitoring, in figures, for promtool.

A cluster of three hubs, some nodes and a budget is healthy from minute 0 to 29, has the fault from
30 to 69, and is healthy again until 120. What is healthy is just below the bound of its alert, and
what is faulty just above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FAULT_AT, MENDED_AT, END = 30, 70, 120
TARGET = {"cluster": "east"}
HUBS = [TARGET | {"instance": f"{name}:8443", "job": "weft-hub"}
        for name in ("hub", "hub-2", "hub-3")]
HUB, *OTHER_HUBS = HUBS  # the one that has the faults of a single hub, and those that have none
NODE = TARGET | {"instance": "gpu-1:9100", "job": "weft-node"}
AGENT = TARGET | {"instance": "gpu-1", "job": "weft-agent", "node": "gpu-1", "network": "default"}
PROBE = TARGET | {"instance": "10.42.0.2:9587", "job": "weft-probe"}
NETWORK = {"cluster": "east", "network": "default"}
FILE = {"file": "/var/lib/prometheus/node-exporter/weft-probe.prom"}


def series(name: str, **labels: str) -> str:
    return f"{name}{{{', '.join(f'{key}={labels[key]!r}' for key in sorted(labels))}}}"


def gauge(healthy: object, faulty: object) -> str:
    """promtool's notation: so long the one, so long the other, and the first again."""
    return (f"{healthy}x{FAULT_AT - 1} {faulty}x{MENDED_AT - FAULT_AT - 1} "
            f"{healthy}x{END - MENDED_AT}")


def steady(value: object) -> str:
    return gauge(value, value)


def counter(faulty: float, healthy: float = 0) -> str:
    """Grows in each minute of the fault by the one, in each other by the other."""
    had = FAULT_AT * healthy
    has = had + (MENDED_AT - FAULT_AT) * faulty
    return (f"0+{healthy}x{FAULT_AT - 1} {had}+{faulty}x{MENDED_AT - FAULT_AT - 1} "
            f"{has}+{healthy}x{END - MENDED_AT}")


# One in some twenty minutes: less than one in the time that a rule looks back.
SELDOM = counter(0.05)
# Not scraped during the fault: "_" is no value.
ABSENT = f"1x{FAULT_AT - 1} _x{MENDED_AT - FAULT_AT} 1x{END - MENDED_AT}"
# Only during the fault, and gone at once behind it.
PRESENT = f"_x{FAULT_AT} 1x{MENDED_AT - FAULT_AT - 1} stale"
# When a file was written: a minute ago, and during the fault never again.
STUCK = (f"-60+60x{FAULT_AT - 1} {60 * (FAULT_AT - 1)}x{MENDED_AT - FAULT_AT - 1} "
         f"{60 * (MENDED_AT - 1)}+60x{END - MENDED_AT}")


def hub(name: str, **labels: str) -> str:
    return series(name, **HUB, **labels)


def node(name: str, **labels: str) -> str:
    return series(name, **NODE, **labels)


def agent(name: str, **labels: str) -> str:
    return series(name, **AGENT, **labels)


def of_all_hubs(name: str, values: Iterable[object], **labels: str) -> dict[str, str]:
    """What each hub tells while all is well."""
    return {series(name, **one, **labels): steady(value)
            for one, value in zip(HUBS, values, strict=True)}


PEER = {"node": "gpu-2", "family": "ipv4"}
BUDGET = {"network": "default", "exported_job": "llama"}
# All that is well, which each fault is put into.
HEALTHY: Mapping[str, str] = {
    **of_all_hubs("up", [1, 1, 1]),
    node("up"): steady(1),
    agent("up"): steady(1),
    series("up", **PROBE): steady(1),
    # The third hub has not heard yet of who came last. Each agent listens to one of them.
    **of_all_hubs("weft_agents", [2, 2, 1], network="default"),
    **of_all_hubs("weft_agents", [1, 1, 1], network="lab"),
    **of_all_hubs("weft_watches", [1, 1, 1]),
    **of_all_hubs("weft_path_alarms", [0, 0, 0], network="default"),
    # Of several hubs each counts all of a network.
    **of_all_hubs("weft_findings", [600, 600, 500], network="default", code="WEFT-PATH-003",
                  severity="warning"),
    **of_all_hubs("weft_findings", [400, 400, 400], network="default", code="WEFT-NODE-001",
                  severity="critical"),
    **of_all_hubs("weft_findings", [900, 900, 900], network="default", code="WEFT-COST-001",
                  severity="note"),
    **of_all_hubs("weft_streams", [0, 0, 0]),
    **of_all_hubs("weft_kubernetes_leading", [1, 0, 0]),
    **of_all_hubs("weft_budget_share", [0.79, 0.5, 0.5], **BUDGET),
    hub("weft_store_refuses"): steady(0),
    hub("weft_store_behind_seconds"): steady(10),
    hub("weft_damaged_records"): steady(0),
    # What these count is never well: it stands.
    hub("weft_kubernetes_failed_total"): steady(3),
    hub("weft_rendezvous_commits_failed_total"): steady(3),
    hub("weft_rendezvous_restarts_total"): steady(3),
    hub("weft_api_connections_refused_total"): steady(3),
    hub("weft_edge_parts_left_out_total"): steady(3),
    hub("weft_traffic_left_out_total"): steady(3),
    # People mistype tokens.
    hub("weft_enrolments_refused_total"): counter(0.95, healthy=0.95),
    node("weft_probe_reached", **PEER): steady(1),
    # A machine whose IPv6 is off.
    node("weft_probe_reached", node="gpu-2", family="ipv6"): steady(0),
    node("weft_probe_pings_total", **PEER): counter(60, healthy=60),
    node("weft_probe_answers_total", **PEER): counter(58, healthy=58),
    # A pass that fails is made again, and mostly succeeds.
    node("weft_agent_passes_failing"): steady(2),
    node("weft_agent_foreign_peers_removed_total"): steady(3),
    node("node_textfile_mtime_seconds", **FILE): f"-60+60x{END}",
    agent("weft_agent_hub_reachable"): steady(1),
    # A pair that is idle, one whose next handshake is due, and one that has just been sent to.
    agent("weft_agent_peer_handshake_age_seconds", peer="gpu-3"): steady(9000),
    agent("weft_agent_peer_unanswered_seconds", peer="gpu-3"): steady(0),
    agent("weft_agent_peer_handshake_age_seconds", peer="gpu-2"): steady(180),
    agent("weft_agent_peer_unanswered_seconds", peer="gpu-2"): steady(40),
    agent("weft_agent_peer_handshake_age_seconds", peer="gpu-4"): steady(9000),
    agent("weft_agent_peer_unanswered_seconds", peer="gpu-4"): steady(30),
    # All passes take less than a second; of those that fail the time says nothing.
    agent("weft_agent_pass_seconds_bucket", le="1", result="changed"): counter(10, healthy=10),
    agent("weft_agent_pass_seconds_bucket", le="5", result="changed"): counter(10, healthy=10),
    agent("weft_agent_pass_seconds_bucket", le="+Inf", result="changed"): counter(10, healthy=10),
    agent("weft_agent_pass_seconds_bucket", le="1", result="failed"): counter(0),
    agent("weft_agent_pass_seconds_bucket", le="5", result="failed"): counter(0),
    agent("weft_agent_pass_seconds_bucket", le="+Inf", result="failed"): counter(10, healthy=10),
}


@dataclass(frozen=True)
class Fault:
    """What is otherwise while there is the fault, and which alerts fire then, with their labels."""

    differs: Mapping[str, str]
    fires: list[Mapping[str, str]]
    # They fire as soon as their "for" is over, and no longer than the fault; false where that is
    # not so, since a rate has to rise first, and to fall.
    is_exact: bool = True
    kept_min: int = 0  # so long they go on after it, by their "keep_firing_for"
    value: int | None = None  # what the alert's summary has as the number, where that is tried


def alert(name: str, **labels: str) -> Mapping[str, str]:
    return {"alertname": name, **labels}


def of_hub(metric: str, values: str, name: str, severity: str, scope: str = "hub",
           is_exact: bool = True) -> Fault:
    """One number of one hub is not as it should be."""
    return Fault({hub(metric): values}, [alert(name, **HUB, severity=severity, scope=scope)],
                 is_exact)


def of_network(metric: str, name: str, severity: str) -> Fault:
    """Two of a network are not as they should be; of one of them a second hub knows, too."""
    return Fault({series(metric, **one, network="default"): gauge(0, known)
                  for one, known in zip(HUBS, (2, 1, 0), strict=True)},
                 [alert(name, **NETWORK, severity=severity, scope="network")], value=2)


def of_cluster(metric: str, values: str, name: str, scope: str) -> Fault:
    """All hubs together have too many, or too few."""
    return Fault({hub(metric): values}, [alert(name, **TARGET, severity="warning", scope=scope)])


def of_node(differs: Mapping[str, str], name: str, is_exact: bool = True, **labels: str) -> Fault:
    return Fault(differs, [alert(name, **NODE, **labels, severity="warning", scope="node")],
                 is_exact)


def of_budget(share: float, *fires: tuple[str, str]) -> Fault:
    return Fault({hub("weft_budget_share", **BUDGET): gauge(0.79, share)}, [
        alert(name, cluster="east", **BUDGET, severity=severity, scope="cost")
        for name, severity in fires])


FAULTS: Mapping[str, Fault] = {
    "no hub is left": Fault(
        {series("up", **one): gauge(1, 0) for one in HUBS},
        [alert("WeftHubDown", **one, severity="critical", scope="hub") for one in HUBS],
        kept_min=1),
    "one of three hubs is down": of_hub(
        "up", gauge(1, 0), "WeftHubOfSeveralDown", "warning"),
    "no hub is scraped": Fault(
        {series("up", **one): ABSENT for one in HUBS},
        [alert("WeftHubUnknown", job="weft-hub", severity="warning", scope="hub")],
        is_exact=False),
    "the hub's disk is full": of_hub(
        "weft_store_refuses", gauge(0, 1), "WeftStoreRefuses", "critical"),
    "the hub does not hear from etcd": of_hub(
        "weft_store_behind_seconds", gauge(10, 10.1), "WeftStoreBehind", "warning"),
    "a record is damaged": of_hub(
        "weft_damaged_records", gauge(0, 1), "WeftStoreDamaged", "critical"),
    "the disk refuses what jobs write": of_hub(
        "weft_rendezvous_commits_failed_total", SELDOM, "WeftJobsNotKept", "critical", "jobs",
        is_exact=False),
    "a process of rendezvous ends": of_hub(
        "weft_rendezvous_restarts_total", SELDOM, "WeftRendezvousRestarted", "warning", "jobs",
        is_exact=False),
    "too many connections": of_hub(
        "weft_api_connections_refused_total", SELDOM, "WeftConnectionsRefused", "warning",
        is_exact=False),
    "somebody tries tokens": of_hub(
        "weft_enrolments_refused_total", counter(1.05, healthy=0.95), "WeftEnrolmentsRefused",
        "warning", is_exact=False),
    "no room for edges": of_hub(
        "weft_edge_parts_left_out_total", SELDOM, "WeftReportsLeftOut", "warning",
        is_exact=False),
    "no room for traffic": of_hub(
        "weft_traffic_left_out_total", SELDOM, "WeftReportsLeftOut", "warning", is_exact=False),
    "writes to Kubernetes fail": of_hub(
        "weft_kubernetes_failed_total", SELDOM, "WeftKubernetesFails", "warning", is_exact=False),
    "no hub has the lease": of_cluster(
        "weft_kubernetes_leading", gauge(1, 0), "WeftKubernetesNobodyLeads", "hub"),
    "most of a budget is spent": of_budget(0.8, ("WeftBudgetNear", "warning")),
    "a budget is spent": of_budget(
        1, ("WeftBudgetNear", "warning"), ("WeftBudgetSpent", "critical")),
    "an agent has ended": of_cluster(
        "weft_watches", gauge(1, 0), "WeftNodesAway", "network"),
    "a pair that has to be direct is not": of_network(
        "weft_path_alarms", "WeftPathAlarm", "critical"),
    # All pings are lost then, and one alert of that is enough.
    "a member does not answer": of_node(
        {node("weft_probe_reached", **PEER): gauge(1, 0),
         node("weft_probe_answers_total", **PEER): counter(0, healthy=58)},
        "WeftNotReached", node="gpu-2"),
    "some pings are lost": of_node(
        {node("weft_probe_answers_total", **PEER): counter(56, healthy=58)},
        "WeftPingsLost", is_exact=False, **PEER),
    "a node cannot make its interface": of_node(
        {node("weft_agent_passes_failing"): gauge(2, 3)}, "WeftInterfaceFails"),
    "a probe has ended": of_node(
        {node("node_textfile_mtime_seconds", **FILE): STUCK}, "WeftNodeMetricsStale",
        is_exact=False, **FILE),
    "a node exporter has ended": of_node({node("up"): gauge(1, 0)}, "WeftNodeMetricsAway"),
    "an agent does not answer Prometheus": Fault(
        {agent("up"): gauge(1, 0)},
        [alert("WeftAgentAway", **AGENT, severity="warning", scope="node")]),
    "a probe does not answer Prometheus": Fault(
        {series("up", **PROBE): gauge(1, 0)},
        [alert("WeftProbeAway", **PROBE, severity="warning", scope="node")]),
    "a node does not hear its hub": Fault(
        {agent("weft_agent_hub_reachable"): gauge(1, 0)},
        [alert("WeftHubUnreached", **AGENT, severity="warning", scope="node")]),
    "a handshake is too old, and what is sent is not answered": Fault(
        {agent("weft_agent_peer_handshake_age_seconds", peer="gpu-2"): gauge(180, 181)},
        [alert("WeftHandshakeStale", **{**AGENT, "node": "gpu-2"}, peer="gpu-2",
               severity="warning", scope="node")]),
    "passes take long": Fault(
        {agent("weft_agent_pass_seconds_bucket", le="1", result="changed"): counter(
            0, healthy=10)},
        [alert("WeftApplySlow", **TARGET, instance="gpu-1", severity="warning", scope="node")],
        is_exact=False),
    "a hub finds more than it can tell one by one": Fault(
        {series("weft_findings", **one, network="default", code="WEFT-PATH-003",
                severity="warning"): gauge(600, known)
         for one, known in zip(HUBS, (600, 601, 500), strict=True)},
        [alert("WeftFindingsLeftOut", **NETWORK, severity="warning", scope="network")]),
}
# How a finding's subject is written, by the scope of its alert.
SUBJECTS = {"hub": "hub", "network": "gpu-1--gpu-2", "jobs": "llama"}


def of_finding(name: str, rule: Mapping) -> Fault:
    """Two of three hubs find it, and tell it at the same time; a hub's own is told by that hub."""
    had = rule["labels"]
    is_of_hub = had["scope"] == "hub"
    subject = "gpu-2" if "node" in had else SUBJECTS[had["scope"]]
    found = {"network": "default", "code": had["code"], "severity": had["severity"],
             "subject": subject}
    labels = {**had, "subject": subject, "cluster": "east",
              **({"instance": HUB["instance"]} if is_of_hub else {"network": "default"}),
              **({"node": subject} if "node" in had else {})}
    return Fault({series("weft_finding", **one, **found): PRESENT
                  for one in (HUBS[:1] if is_of_hub else HUBS[:2])}, [alert(name, **labels)])


def faults(alerts: Mapping[str, Mapping]) -> Mapping[str, Fault]:
    """All of them; those by which findings are told are made of their rules."""
    return {**FAULTS, **{f"found: {name}": of_finding(name, rule)
                         for name, rule in alerts.items() if "code" in rule["labels"]}}


def minutes(duration: str) -> int:
    """Of a "for": 0m, 15m."""
    return int(re.fullmatch(r"(\d+)m", duration)[1])


def firing(at: int, fires: list[Mapping[str, str]]) -> dict:
    """At that minute these alerts fire, and no other."""
    return {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}m", "exp_samples": [
        {"labels": series("ALERTS", alertstate="firing", **labels), "value": 1}
        for labels in fires]}


def tests(alerts: Mapping[str, Mapping]) -> list[dict]:
    """promtool's tests of all faults; `alerts` are the rules by their names."""
    made = []
    for name, fault in faults(alerts).items():
        looks = [firing(FAULT_AT - 1, []), firing(MENDED_AT - 1, fault.fires), firing(END - 1, [])]
        if fault.is_exact:
            wait = max(minutes(alerts[one["alertname"]]["for"]) for one in fault.fires)
            looks += [firing(FAULT_AT + wait - 1, [])] if wait > 0 else []
            looks += [firing(FAULT_AT + wait, fault.fires),
                      firing(MENDED_AT + fault.kept_min - 1, fault.fires),
                      firing(MENDED_AT + fault.kept_min, [])]
        if fault.value is not None:
            [fired] = fault.fires
            looks += [{"expr": alerts[fired["alertname"]]["expr"], "eval_time": f"{FAULT_AT}m",
                       "exp_samples": [{"labels": series("", **NETWORK), "value": fault.value}]}]
        made.append({"name": name, "interval": "1m", "promql_expr_test": looks, "input_series": [
            {"series": one, "values": values}
            for one, values in {**HEALTHY, **fault.differs}.items()]})
    return made
