/* routes.c - the hub's calls: one row each, as docs/API.md lists them. */
#include "hub/doors.h"
#include "hub/hub_internal.h"

#define ALL (DOOR_PUBLIC | DOOR_OVERLAY | DOOR_ADMIN)

const struct route hub__routes[] = {
    {"GET", "/v1/health", ALL, door_health, "is the hub there?"},
    {"POST", "/v1/enrol", DOOR_PUBLIC, door_enrol, "let a machine with a token in"},
    {"GET", "/v1/stream/{network}", DOOR_PUBLIC, door_stream,
        "a member's datagrams in TLS, where its UDP is blocked"},

    {"GET", "/v1/watch", DOOR_OVERLAY, door_watch, "a node's view, and what changes in it"},
    {"PUT", "/v1/status", DOOR_OVERLAY, door_report, "what a node reports"},
    {"GET", "/v1/heard/{transaction}", DOOR_OVERLAY, door_heard,
        "has that STUN request come by UDP?"},
    {"POST", "/v1/leave", DOOR_OVERLAY, door_leave, "remove the node that asks"},
    {"GET", "/v1/jobs", DOOR_OVERLAY, door_jobs_list, "the jobs of the member's network"},
    {"GET", "/v1/jobs/{job}/rendezvous", DOOR_OVERLAY, door_jobs_get, "where a job meets"},
    {"POST", "/v1/jobs/{job}/rendezvous", DOOR_OVERLAY, door_jobs_join,
        "where a job meets; makes it, or begins a new run of it"},
    {"DELETE", "/v1/jobs/{job}/rendezvous", DOOR_OVERLAY, door_jobs_end, "a job's run is over"},

    {"GET", "/v1/networks", DOOR_ADMIN, door_networks_list, "all networks"},
    {"POST", "/v1/networks", DOOR_ADMIN, door_networks_add, "make a network"},
    {"DELETE", "/v1/networks/{network}", DOOR_ADMIN, door_networks_remove, "remove a network"},
    {"POST", "/v1/networks/{network}/tokens", DOOR_ADMIN, door_tokens_add, "make a join token"},
    {"GET", "/v1/networks/{network}/nodes", DOOR_ADMIN, door_nodes_list,
        "a network's nodes, as the hub sees them now"},
    {"DELETE", "/v1/networks/{network}/nodes/{name}", DOOR_ADMIN, door_nodes_remove,
        "cut a node off"},
    {"GET", "/v1/networks/{network}/objects/{kind}", DOOR_ADMIN, door_objects_list,
        "all objects of a kind"},
    {"GET", "/v1/networks/{network}/objects/{kind}/{name}", DOOR_ADMIN, door_objects_get,
        "one object"},
    {"PUT", "/v1/networks/{network}/objects/{kind}/{name}", DOOR_ADMIN, door_objects_put,
        "make an object as given"},
    {"GET", "/v1/networks/{network}/snapshots/{name}", DOOR_ADMIN, door_snapshot,
        "what a node sees"},
    {"GET", "/v1/metrics", DOOR_ADMIN, door_metrics, "counters, in Prometheus' text format"},
    ROUTES_END,
};
