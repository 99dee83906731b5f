/*
 * metrics.h - all figures that Weft has for Prometheus, and the one writer of its text format.
 *
 * A metric is one row here. Samples are added in whatever order is handy: those of one metric
 * stand together in the text, behind its help. docs/METRICS.md is made from the rows.
 *
 * Source: Prometheus' text exposition format, version 0.0.4.
 *
 * Pure: figures in, text out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* clang-format off */
/* X(NAME, name, type, unit, labels, help): samples have the labels in this order. */
#define METRICS_HUB(X) \
    X(PATH_ALARMS, "weft_path_alarms", GAUGE, "edge ends", "network", \
        "ends of edges that report no direct path, though one is demanded") \
    X(EDGE_ENDS_FALLEN, "weft_edge_ends_fallen", GAUGE, "edge ends", "network", \
        "ends of edges that had a direct path and have lost it") \
    X(EDGE_ENDS_FAILING, "weft_edge_ends_failing", GAUGE, "edge ends", "network", \
        "ends of edges that their agents do not apply") \
    X(EDGE_ENDS_UNREACHED, "weft_edge_ends_unreached", GAUGE, "edge ends", "network", \
        "ends of edges whose probes get no answer through the tunnel") \
    X(AGENTS, "weft_agents", GAUGE, "nodes", "network", \
        "members that run an agent: all but hubs and stock WireGuards") \
    X(AGENTS_FAILING, "weft_agents_failing", GAUGE, "nodes", "network", \
        "nodes whose agents cannot apply what they are told") \
    X(AGENTS_NEVER_APPLIED, "weft_agents_never_applied", GAUGE, "nodes", "network", \
        "nodes whose agents have applied nothing since they joined") \
    X(AGENTS_SILENT, "weft_agents_silent", GAUGE, "nodes", "network", \
        "nodes whose agents have stopped to report") \
    X(EDGE_ENDS, "weft_edge_ends", GAUGE, "edge ends", "network, path", \
        "ends of edges, by how their agents reach the other end") \
    X(EDGE_EVENTS, "weft_edge_events_total", COUNTER, "events", "type", \
        "events of edges and agents") \
    X(FINDINGS, "weft_findings", GAUGE, "findings", "network, code, severity", \
        "what is found wrong now, by its code (HEALTH.md)") \
    X(FINDING, "weft_finding", GAUGE, "1", "network, code, severity, subject", \
        "1 for each thing that is found wrong now, the gravest 1,000 of a network") \
    X(NAT_NODES, "weft_nat_nodes", GAUGE, "nodes", "network, provider, region", \
        "nodes behind a NAT whose memory was measured") \
    X(NAT_FORGOTTEN, "weft_nat_forgotten_seconds", GAUGE, "seconds", \
        "network, provider, region", \
        "after so long a silent UDP mapping was forgotten, the least that was measured there") \
    X(EDGE_PARTS, "weft_edge_parts", GAUGE, "parts", "", "what is said about edges, in memory") \
    X(EDGE_PARTS_LEFT_OUT, "weft_edge_parts_left_out_total", COUNTER, "parts", "", \
        "what was said about edges and had no room") \
    X(BUDGET_SHARE, "weft_budget_share", GAUGE, "ratio", "network, job", \
        "how much of the day's budget is spent, by job; 1: all of it") \
    X(TRAFFIC_SENT_BYTES, "weft_traffic_sent_bytes_total", COUNTER, "bytes", "network, path", \
        "bytes that nodes have told this hub to have sent") \
    X(TRAFFIC_LEFT_OUT, "weft_traffic_left_out_total", COUNTER, "sums", "", \
        "sums of bytes that nodes have told and that had no room, or were of a day that is " \
        "not kept") \
    X(NODES, "weft_nodes", GAUGE, "nodes", "network", "members of the network, with the hub") \
    X(API_CONNECTIONS, "weft_api_connections_total", COUNTER, "connections", "", \
        "connections taken") \
    X(API_CONNECTIONS_REFUSED, "weft_api_connections_refused_total", COUNTER, "connections", "", \
        "connections closed at once, over a limit") \
    X(API_CONNECTIONS_CUT, "weft_api_connections_cut_total", COUNTER, "connections", "", \
        "connections ended by a deadline") \
    X(API_REQUESTS, "weft_api_requests_total", COUNTER, "requests", "", "requests answered") \
    X(API_CONNECTIONS_OPEN, "weft_api_connections", GAUGE, "connections", "", "connections open") \
    X(STREAMS, "weft_streams", GAUGE, "connections", "", \
        "members that come in TLS, for want of UDP") \
    X(STREAM_BYTES, "weft_stream_bytes_total", COUNTER, "bytes", "direction", \
        "bytes of datagrams in TLS") \
    X(KUBERNETES_LEADING, "weft_kubernetes_leading", GAUGE, "0 or 1", "", \
        "1: this hub writes the resources in Kubernetes") \
    X(KUBERNETES_APPLIED, "weft_kubernetes_applied_total", COUNTER, "writes", "", \
        "writes of resources, without their status") \
    X(KUBERNETES_STATUS, "weft_kubernetes_status_total", COUNTER, "writes", "", \
        "writes of parts of a status") \
    X(KUBERNETES_FAILED, "weft_kubernetes_failed_total", COUNTER, "writes", "", \
        "writes that failed") \
    X(KUBERNETES_REQUESTS, "weft_kubernetes_wishes_total", COUNTER, "changes", "", \
        "changes that people made to resources") \
    X(KUBERNETES_REFUSED, "weft_kubernetes_refused_total", COUNTER, "changes", "", \
        "of them, those that the hub has refused") \
    X(KUBERNETES_CONFLICTS, "weft_kubernetes_conflicts_total", COUNTER, "resources", "", \
        "resources with a field that somebody owns and that is not as the hub has it") \
    X(STORE_REVISION, "weft_store_revision", GAUGE, "revision", "", "revision of the store") \
    X(STORE_REFUSES, "weft_store_refuses", GAUGE, "0 or 1", "", \
        "1: the store does not take what is to be written, and changes are refused") \
    X(STORE_COMMITS_REFUSED, "weft_store_commits_refused_total", COUNTER, "commits", "", \
        "commits that the store did not take") \
    X(STORE_BEHIND_SECONDS, "weft_store_behind_seconds", GAUGE, "seconds", "", \
        "since it was last known that the hub has heard of all changes in its store") \
    X(STORE_RELISTS, "weft_store_relists_total", COUNTER, "times", "", \
        "times that changes in the store were lost, and all of it was read again") \
    X(WATCHES, "weft_watches", GAUGE, "watches", "", "nodes that listen") \
    X(WATCH_OVERRUNS, "weft_watch_overruns_total", COUNTER, "watches", "", \
        "watches that were too slow and got a new snapshot") \
    X(WATCHES_RESUMED, "weft_watches_resumed_total", COUNTER, "watches", "", \
        "watches that went on where they broke off, without a snapshot") \
    X(ENROLMENTS, "weft_enrolments_total", COUNTER, "machines", "", "machines let in") \
    X(ENROLMENTS_REFUSED, "weft_enrolments_refused_total", COUNTER, "machines", "", \
        "machines refused") \
    X(DAMAGED_RECORDS, "weft_damaged_records", GAUGE, "records", "", \
        "records of the store that cannot be understood, and are set aside")

#define METRICS_OVERLAY(X) \
    X(DROPS, "weft_drops_total", COUNTER, "packets", "reason", "packets that went no further") \
    X(OFFLOAD, "weft_offload", GAUGE, "0 or 1", "interface, offload, why", \
        "whether a segmentation offload of the kernel is in use, and why not") \
    X(RELAY_PACKETS, "weft_relay_packets_total", COUNTER, "datagrams", "", \
        "datagrams forwarded between nodes, unread") \
    X(RELAY_BYTES, "weft_relay_bytes_total", COUNTER, "bytes", "", \
        "bytes of them, without UDP and IP headers") \
    X(RELAY_LEASES, "weft_relay_leases", GAUGE, "indices", "", \
        "receiver indices that are forwarded at the moment") \
    X(RELAY_LINE_RATE, "weft_relay_line_bits_per_second", GAUGE, "bit/s", "", \
        "what the relay forwards, with UDP and IPv4 headers, over the last seconds") \
    X(RELAY_LINE_CAPACITY, "weft_relay_line_capacity_bits_per_second", GAUGE, "bit/s", "", \
        "what its line can carry in each direction, as it was told (--line) or as was " \
        "measured; 0: it is not known") \
    X(RELAY_REFUSED, "weft_relay_refused_total", COUNTER, "datagrams", "", \
        "datagrams of the relay that the kernel's send queue had no space for") \
    X(STUN_ANSWERS, "weft_stun_answers_total", COUNTER, "answers", "", "STUN requests answered")

#define METRICS_RENDEZVOUS(X) \
    X(RENDEZVOUS_JOBS, "weft_rendezvous_jobs", GAUGE, "jobs", "", \
        "jobs, the default ones included") \
    X(RENDEZVOUS_CONNECTIONS, "weft_rendezvous_connections", GAUGE, "connections", "", \
        "connections to jobs") \
    X(RENDEZVOUS_STORE_REQUESTS, "weft_rendezvous_store_requests_total", COUNTER, "requests", "", \
        "requests of TCPStore") \
    X(RENDEZVOUS_ETCD_REQUESTS, "weft_rendezvous_etcd_requests_total", COUNTER, "requests", "", \
        "requests of etcd") \
    X(RENDEZVOUS_HUNG_UP, "weft_rendezvous_hung_up_total", COUNTER, "connections", "", \
        "connections that were ended or refused") \
    X(RENDEZVOUS_ACCEPTS_DEFERRED, "weft_rendezvous_accepts_deferred_total", COUNTER, "times", \
        "", \
        "times that nothing was accepted for a while, for want of descriptors") \
    X(RENDEZVOUS_UNSAVED, "weft_rendezvous_unsaved", GAUGE, "changes", "", \
        "changes not on the disk yet") \
    X(RENDEZVOUS_COMMITS, "weft_rendezvous_commits_total", COUNTER, "commits", "", \
        "commits of changes in jobs") \
    X(RENDEZVOUS_COMMITS_FAILED, "weft_rendezvous_commits_failed_total", COUNTER, "commits", "", \
        "of them, those that the disk refused") \
    X(RENDEZVOUS_RESTARTS, "weft_rendezvous_restarts_total", COUNTER, "processes", "", \
        "processes of rendezvous that ended, and were started again")

#define METRICS_AGENT(X) \
    X(AGENT_TRAFFIC_BYTES, "weft_agent_traffic_bytes_total", COUNTER, "bytes", \
        "peer, job, path, direction", \
        "bytes of WireGuard's messages, by the other node; begins anew each day (UTC)") \
    X(AGENT_PASS_SECONDS, "weft_agent_pass_seconds", HISTOGRAM, "seconds", "result", \
        "how long it took to make the interface what the hub wants") \
    X(AGENT_PASSES_FAILING, "weft_agent_passes_failing", GAUGE, "passes", "", \
        "passes that have failed one after the other; 0: the last one succeeded") \
    X(PEER_RECEIVED, "weft_peer_received_total", COUNTER, "datagrams", "peer", \
        "WireGuard's data messages that have come from the other node, since the data plane " \
        "began; not beside the kernel's WireGuard, which does not count them") \
    X(PEER_LOST, "weft_peer_lost_total", COUNTER, "datagrams", "peer", \
        "those that the other node has sent, by their counters, and that have not come") \
    X(PEER_REORDERED, "weft_peer_reordered_total", COUNTER, "datagrams", "peer", \
        "of those that have come, those that came behind one that was sent after them") \
    X(SOCKET_DROPS, "weft_socket_drops_total", COUNTER, "datagrams", "", \
        "what arrived and had no room in this machine's own socket; merged datagrams are one") \
    X(AGENT_FOREIGN_PEERS_REMOVED, "weft_agent_foreign_peers_removed_total", COUNTER, "peers", \
        "", \
        "peers that somebody else had added to the interface") \
    X(AGENT_HUB_REACHABLE, "weft_agent_hub_reachable", GAUGE, "0 or 1", "", \
        "1: the hub that serves this node answers it") \
    X(AGENT_PEERS, "weft_agent_peers", GAUGE, "peers", "", \
        "members that this node may talk to, without the hubs") \
    X(AGENT_PEERS_LEFT_OUT, "weft_agent_peers_left_out", GAUGE, "peers", "", \
        "peers of which nothing is told here, for want of room") \
    X(AGENT_PEER_SESSION, "weft_agent_peer_session", GAUGE, "0 or 1", "peer", \
        "1: there is a session with the peer, and it answers; 0: none, or no answer, and then " \
        "its path, RTT, loss and MTU are not told") \
    X(AGENT_PEER_HANDSHAKE_AGE, "weft_agent_peer_handshake_age_seconds", GAUGE, "seconds", \
        "peer", "since the last handshake; an idle pair makes none") \
    X(AGENT_PEER_UNANSWERED, "weft_agent_peer_unanswered_seconds", GAUGE, "seconds", "peer", \
        "for how long what is sent to the peer has had no answer; 0: it has") \
    X(AGENT_PEER_PATH, "weft_agent_peer_path", GAUGE, "1", "peer, path", \
        "how the peer is reached") \
    X(AGENT_PEER_SINCE, "weft_agent_peer_since_timestamp_seconds", GAUGE, \
        "seconds since 1970", "peer", "since when the peer is reached so") \
    X(AGENT_PEER_ALARM, "weft_agent_peer_alarm", GAUGE, "0 or 1", "peer", \
        "1: only a direct path is wanted, and there is none") \
    X(AGENT_PEER_RTT, "weft_agent_peer_rtt_seconds", GAUGE, "seconds", "peer", \
        "round trip on the path in use, where it is measured") \
    X(AGENT_PEER_RTT_QUANTILE, "weft_agent_peer_rtt_quantile_seconds", GAUGE, "seconds", \
        "peer, quantile", \
        "round trips of the last ten minutes on a direct path, at most 256 of them: 0.5, half " \
        "took no longer; 0.99") \
    X(AGENT_PEER_JITTER, "weft_agent_peer_jitter_seconds", GAUGE, "seconds", "peer", \
        "by how much one of these round trips differed from the one before, on average") \
    X(AGENT_PEER_LOSS, "weft_agent_peer_loss_ratio", GAUGE, "ratio", "peer", \
        "share of the measuring packets that are lost on the path in use; 1: all") \
    X(AGENT_PEER_MTU, "weft_agent_peer_mtu_bytes", GAUGE, "bytes", "peer", \
        "largest packet that is sent to the peer through the tunnel") \
    X(AGENT_PEER_BYTES, "weft_agent_peer_bytes_total", COUNTER, "bytes", "peer, direction", \
        "bytes of WireGuard's messages; begins anew with the data plane's process") \
    X(AGENT_GPU_USE, "weft_agent_gpu_use_ratio", GAUGE, "ratio", "gpu", \
        "share of the time in which the GPU works, over most of a minute while programs use it; " \
        "NCCL's waiting counts as work") \
    X(AGENT_GPU_MEMORY, "weft_agent_gpu_memory_bytes", GAUGE, "bytes", "gpu", \
        "memory of the GPU") \
    X(AGENT_GPU_MEMORY_USED, "weft_agent_gpu_memory_used_bytes", GAUGE, "bytes", "gpu", \
        "of it, what programs have") \
    X(AGENT_GPU_ERRORS, "weft_agent_gpu_uncorrected_errors", GAUGE, "errors", "gpu", \
        "errors of the GPU's memory that cannot be corrected, since its driver was loaded") \
    X(AGENT_GPU_FAULT, "weft_agent_gpu_fault", GAUGE, "1", "gpu, xid", \
        "1 for each kind of fault that the GPU has reported in the last hour, by NVIDIA's number")

#define METRICS_PROBE(X) \
    X(PROBE_REACHED, "weft_probe_reached", GAUGE, "0 or 1", "node, family", \
        "1: the member answers pings, 0: it does not") \
    X(PROBE_RTT_SECONDS, "weft_probe_rtt_seconds", GAUGE, "seconds", "node, family", \
        "round trip of the last answer, of a member that answers") \
    X(PROBE_PINGS, "weft_probe_pings_total", COUNTER, "pings", "node, family", "pings sent") \
    X(PROBE_ANSWERS, "weft_probe_answers_total", COUNTER, "pings", "node, family", \
        "pings answered")
#define METRICS(X) \
    METRICS_HUB(X) METRICS_OVERLAY(X) METRICS_RENDEZVOUS(X) METRICS_AGENT(X) METRICS_PROBE(X)
/* clang-format on */

enum metric {
#define X(NAME, name, type, unit, labels, help) METRIC_##NAME,
    METRICS(X)
#undef X
        METRIC_N,
};

/** Figures that are being written. What fails is remembered, as by struct str. */
struct metrics {
    struct str samples[METRIC_N]; /* of each metric, its lines */
};

#define METRICS_NULL                                                                               \
    {                                                                                              \
        .samples = { STR_NULL }                                                                    \
    }

/** A histogram: how many values were at most as large as each bound. */
struct metrics_histogram {
    const double *bounds; /* ascending; @n_bounds of them */
    const uint64_t *n;    /* values between two bounds; those above the last one come last */
    size_t n_bounds;
    double sum; /* of all values */
};

/** The values of a sample's labels, as many as its row names. */
#define METRIC_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/** metrics_add() - one sample of a metric without labels. */
void metrics_add(struct metrics *m, enum metric which, double value);

/** metrics_add_labelled() - one sample, with METRIC_LABELS(), which may hold any text. */
void metrics_add_labelled(
    struct metrics *m, enum metric which, const char *const *labels, double value);

/** metrics_add_histogram() - all samples of a histogram. */
void metrics_add_histogram(struct metrics *m, enum metric which, const char *const *labels,
    const struct metrics_histogram *h);

/**
 * metrics_take() - all samples; @m is empty afterwards
 *
 * Return: gives it, free() it; NULL when there was no memory for one of them.
 */
char *metrics_take(struct metrics *m);
