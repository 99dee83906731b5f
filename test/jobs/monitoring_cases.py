"""A fault for each alert of deploy/monitoring, in figures, for promtool.

A cluster of a hub, two nodes and a budget is healthy from minute 0 to 29, has the fault from 30 to
69, and is healthy again until 120. A counter that a fault moves grows by so much in each minute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FAULT_AT, MENDED_AT, END = 30, 70, 120
TARGET = {"cluster": "east"}
HUB = TARGET | {"instance": "hub:8443", "job": "weft-hub"}
HUB_2 = HUB | {"instance": "hub-2:8443"}
NODE = TARGET | {"instance": "gpu-1:9100", "job": "weft-node"}
NETWORK = {"cluster": "east", "network": "default"}
FILE = {"file": "/var/lib/prometheus/node-exporter/weft-probe.prom"}


def series(name: str, **labels: str) -> str:
    return f"{name}{{{', '.join(f'{key}={labels[key]!r}' for key in sorted(labels))}}}"


def gauge(healthy: object, faulty: object) -> str:
    """promtool's notation: so long the one, so long the other, and the first again; _: nothing."""
    return (f"{healthy}x{FAULT_AT - 1} {faulty}x{MENDED_AT - FAULT_AT - 1} "
            f"{healthy}x{END - MENDED_AT}")


def counter(step: int) -> str:
    """Stands, grows by `step` in each minute of the fault, and stands."""
    grown = step * (MENDED_AT - FAULT_AT)
    return f"0x{FAULT_AT - 1} {step}+{step}x{MENDED_AT - FAULT_AT - 1} {grown}x{END - MENDED_AT}"


STEADY = f"0+60x{END}"  # 60 in each minute, as time itself
# File times: one that follows time, and one that stands still while there is the fault.
STUCK = (f"0+60x{FAULT_AT - 1} {60 * FAULT_AT}x{MENDED_AT - FAULT_AT - 1} "
         f"{60 * MENDED_AT}+60x{END - MENDED_AT}")
HALF_ANSWERED = (f"0+60x{FAULT_AT - 1} {60 * FAULT_AT}+30x{MENDED_AT - FAULT_AT - 1} "
                 f"{60 * FAULT_AT + 30 * (MENDED_AT - FAULT_AT)}+60x{END - MENDED_AT}")


def hub(name: str, **labels: str) -> str:
    return series(name, **HUB, **labels)


def net(name: str) -> str:
    return hub(name, network="default")


def node(name: str, **labels: str) -> str:
    return series(name, **NODE, **labels)


PEER = {"node": "gpu-2", "family": "ipv4"}
# All that is well, which each fault is put into.
HEALTHY: Mapping[str, str] = {
    hub("up"): gauge(1, 1),
    node("up"): gauge(1, 1),
    net("weft_agents"): gauge(2, 2),
    hub("weft_watches"): gauge(2, 2),
    net("weft_agents_silent"): gauge(0, 0),
    net("weft_agents_failing"): gauge(0, 0),
    net("weft_agents_never_applied"): gauge(0, 0),
    net("weft_path_alarms"): gauge(0, 0),
    net("weft_edge_ends_fallen"): gauge(0, 0),
    net("weft_edge_ends_failing"): gauge(0, 0),
    net("weft_edge_ends_unreached"): gauge(0, 0),
    hub("weft_streams"): gauge(0, 0),
    hub("weft_store_refuses"): gauge(0, 0),
    hub("weft_store_behind_seconds"): gauge(0.1, 0.1),
    hub("weft_damaged_records"): gauge(0, 0),
    hub("weft_kubernetes_leading"): gauge(1, 1),
    # What these count is never well: it stands.
    hub("weft_kubernetes_failed_total"): gauge(3, 3),
    hub("weft_rendezvous_commits_failed_total"): gauge(3, 3),
    hub("weft_rendezvous_restarts_total"): gauge(3, 3),
    hub("weft_api_connections_refused_total"): gauge(3, 3),
    hub("weft_enrolments_refused_total"): gauge(3, 3),
    hub("weft_edge_parts_left_out_total"): gauge(3, 3),
    hub("weft_traffic_left_out_total"): gauge(3, 3),
    hub("weft_budget_share", network="default", exported_job="llama"): gauge(0.5, 0.5),
    node("weft_probe_reached", **PEER): gauge(1, 1),
    # A machine whose IPv6 is off.
    node("weft_probe_reached", node="gpu-2", family="ipv6"): gauge(0, 0),
    node("weft_probe_pings_total", **PEER): STEADY,
    node("weft_probe_answers_total", **PEER): STEADY,
    # A pass that fails is made again, and mostly succeeds.
    node("weft_agent_passes_failing"): gauge(1, 1),
    node("weft_agent_foreign_peers_removed_total"): gauge(3, 3),
    node("node_textfile_mtime_seconds", **FILE): STEADY,
}


@dataclass(frozen=True)
class Fault:
    """What is otherwise while there is the fault, and what fires then: alerts and their labels."""

    differs: Mapping[str, str]
    fires: Mapping[str, Mapping[str, str]]
    # The first alert fires as soon as its "for" is over; false where a rate has to rise first.
    is_exact: bool = True
    healthy: Mapping[str, str] = field(default_factory=dict)  # beside HEALTHY


def alert(**labels: str) -> Mapping[str, str]:
    return labels


FAULTS: Mapping[str, Fault] = {
    "the only hub is down": Fault(
        {hub("up"): gauge(1, 0)},
        {"WeftHubDown": alert(**HUB, severity="critical", scope="hub")}),
    "one of two hubs is down": Fault(
        {hub("up"): gauge(1, 0)},
        {"WeftHubOfSeveralDown": alert(**HUB, severity="warning", scope="hub")},
        healthy={series("up", **HUB_2): gauge(1, 1)}),
    "no hub is scraped": Fault(
        {hub("up"): f"1x{FAULT_AT - 1} _x{MENDED_AT - FAULT_AT} 1x{END - MENDED_AT}"},
        {"WeftHubUnknown": alert(job="weft-hub", severity="warning", scope="hub")},
        is_exact=False),
    "the hub's disk is full": Fault(
        {hub("weft_store_refuses"): gauge(0, 1)},
        {"WeftStoreRefuses": alert(**HUB, severity="critical", scope="hub")}),
    "the hub does not hear from etcd": Fault(
        {hub("weft_store_behind_seconds"): gauge(0.1, 11)},
        {"WeftStoreBehind": alert(**HUB, severity="warning", scope="hub")}),
    "a record is damaged": Fault(
        {hub("weft_damaged_records"): gauge(0, 1)},
        {"WeftStoreDamaged": alert(**HUB, severity="critical", scope="hub")}),
    "the disk refuses what jobs write": Fault(
        {hub("weft_rendezvous_commits_failed_total"): counter(1)},
        {"WeftJobsNotKept": alert(**HUB, severity="critical", scope="jobs")}, is_exact=False),
    "a process of rendezvous ends": Fault(
        {hub("weft_rendezvous_restarts_total"): counter(1)},
        {"WeftRendezvousRestarted": alert(**HUB, severity="warning", scope="jobs")},
        is_exact=False),
    "too many connections": Fault(
        {hub("weft_api_connections_refused_total"): counter(5)},
        {"WeftConnectionsRefused": alert(**HUB, severity="warning", scope="hub")},
        is_exact=False),
    "somebody tries tokens": Fault(
        {hub("weft_enrolments_refused_total"): counter(3)},
        {"WeftEnrolmentsRefused": alert(**HUB, severity="warning", scope="hub")}, is_exact=False),
    "no room for edges": Fault(
        {hub("weft_edge_parts_left_out_total"): counter(1)},
        {"WeftReportsLeftOut": alert(**HUB, severity="warning", scope="hub")}, is_exact=False),
    "no room for traffic": Fault(
        {hub("weft_traffic_left_out_total"): counter(1)},
        {"WeftReportsLeftOut": alert(**HUB, severity="warning", scope="hub")}, is_exact=False),
    "writes to Kubernetes fail": Fault(
        {hub("weft_kubernetes_failed_total"): counter(1)},
        {"WeftKubernetesFails": alert(**HUB, severity="warning", scope="hub")}, is_exact=False),
    "no hub has the lease": Fault(
        {hub("weft_kubernetes_leading"): gauge(1, 0)},
        {"WeftKubernetesNobodyLeads": alert(**TARGET, severity="warning", scope="hub")}),
    "most of a budget is spent": Fault(
        {hub("weft_budget_share", network="default", exported_job="llama"): gauge(0.5, 0.8)},
        {"WeftBudgetNear": alert(**NETWORK, exported_job="llama", severity="warning",
                                 scope="cost")}),
    "a budget is spent": Fault(
        {hub("weft_budget_share", network="default", exported_job="llama"): gauge(0.5, 1.01)},
        {"WeftBudgetSpent": alert(**NETWORK, exported_job="llama", severity="critical",
                                  scope="cost"),
         "WeftBudgetNear": alert(**NETWORK, exported_job="llama", severity="warning",
                                 scope="cost")}),
    "an agent has ended": Fault(
        {hub("weft_watches"): gauge(2, 1)},
        {"WeftNodesAway": alert(**TARGET, severity="warning", scope="network")}),
    "an agent says nothing": Fault(
        {net("weft_agents_silent"): gauge(0, 1)},
        {"WeftAgentSilent": alert(**NETWORK, severity="warning", scope="network")}),
    "an agent cannot apply": Fault(
        {net("weft_agents_failing"): gauge(0, 1)},
        {"WeftAgentFails": alert(**NETWORK, severity="warning", scope="network")}),
    "an agent has never come": Fault(
        {net("weft_agents_never_applied"): gauge(0, 1)},
        {"WeftAgentNeverApplied": alert(**NETWORK, severity="warning", scope="network")}),
    "a pair that has to be direct is not": Fault(
        {net("weft_path_alarms"): gauge(0, 2)},
        {"WeftPathAlarm": alert(**NETWORK, severity="critical", scope="network")}),
    "a pair falls": Fault(
        {net("weft_edge_ends_fallen"): gauge(0, 2)},
        {"WeftEdgesFell": alert(**NETWORK, severity="warning", scope="network")}),
    "an edge is not applied": Fault(
        {net("weft_edge_ends_failing"): gauge(0, 1)},
        {"WeftEdgesNotApplied": alert(**NETWORK, severity="warning", scope="network")}),
    "a probe gets no answer, as the hub has it": Fault(
        {net("weft_edge_ends_unreached"): gauge(0, 1)},
        {"WeftEdgesUnreached": alert(**NETWORK, severity="critical", scope="network")}),
    "a node's UDP is blocked": Fault(
        {hub("weft_streams"): gauge(0, 1)},
        {"WeftUdpBlocked": alert(**TARGET, severity="warning", scope="network")}),
    "a member does not answer": Fault(
        {node("weft_probe_reached", **PEER): gauge(1, 0)},
        {"WeftNotReached": alert(**NODE, node="gpu-2", severity="warning", scope="node")}),
    "half of the pings are lost": Fault(
        {node("weft_probe_answers_total", **PEER): HALF_ANSWERED},
        {"WeftPingsLost": alert(**NODE, **PEER, severity="warning", scope="node")},
        is_exact=False),
    "a node cannot make its interface": Fault(
        {node("weft_agent_passes_failing"): gauge(1, 3)},
        {"WeftInterfaceFails": alert(**NODE, severity="warning", scope="node")}),
    "somebody adds peers": Fault(
        {node("weft_agent_foreign_peers_removed_total"): counter(1)},
        {"WeftForeignPeers": alert(**NODE, severity="warning", scope="node")}, is_exact=False),
    "a probe has ended": Fault(
        {node("node_textfile_mtime_seconds", **FILE): STUCK},
        {"WeftNodeMetricsStale": alert(**NODE, **FILE, severity="warning", scope="node")},
        is_exact=False),
    "a node exporter has ended": Fault(
        {node("up"): gauge(1, 0)},
        {"WeftNodeMetricsAway": alert(**NODE, severity="warning", scope="node")}),
}


def minutes(duration: str) -> int:
    """Of a "for": 0m, 15m."""
    return int(re.fullmatch(r"(\d+)m", duration)[1])


def firing(at: int, fires: Mapping[str, Mapping[str, str]]) -> dict:
    """At that minute these alerts fire, and no other."""
    return {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}m", "exp_samples": [
        {"labels": series("ALERTS", alertname=name, alertstate="firing", **labels), "value": 1}
        for name, labels in fires.items()]}


def tests(waits: Mapping[str, str]) -> list[dict]:
    """promtool's tests of all faults; `waits` is "for" of each alert."""
    made = []
    for name, fault in FAULTS.items():
        looks = [firing(FAULT_AT - 1, {}), firing(MENDED_AT - 1, fault.fires), firing(END - 1, {})]
        if fault.is_exact:
            wait = max(minutes(waits[one]) for one in fault.fires)
            looks += [firing(FAULT_AT + wait, fault.fires)]
            looks += [firing(FAULT_AT + wait - 1, {})] if wait > 0 else []
        had = {**HEALTHY, **fault.healthy, **fault.differs}
        made.append({"name": name, "interval": "1m", "promql_expr_test": looks, "input_series": [
            {"series": one, "values": values} for one, values in had.items()]})
    return made
