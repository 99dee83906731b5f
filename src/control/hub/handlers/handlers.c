/* handlers.c - see handlers.h: what several handlers need. */
#include "hub/handlers/handlers.h"

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/model/model.h"
#include "hub/model/proof.h"
#include "hub/networks/networks.h"
#include "hub/watch/reports.h"
#include "os/clock.h"

void handlers_deinit(struct handlers *h)
{
}

struct model_network *handlers_find_network(
    const struct handlers *h, const struct request *rq, struct response *rs)
{
    struct model_network *net = model_find_network(h->model, rq->params[0]);

    if (!net)
        response_refuse(rs, 404, "there is no network \"%s\" on this hub", rq->params[0]);
    return net;
}

struct model_node *handlers_find_node(
    struct model_network *net, const struct request *rq, struct response *rs)
{
    struct model_node *node = model_find_node(net, rq->params[1]);

    if (!node)
        response_refuse(
            rs, 404, "network \"%s\" has no node \"%s\"", net->pub.spec.meta.name, rq->params[1]);
    return node;
}

struct model_node *handlers_find_machine(const struct request *rq, struct response *rs)
{
    struct model_network *net = rq->listener_ctx;
    struct model_node *node = model_find_address(net, &rq->from.addr);
    char text[IP_ADDR_TEXT_MAX];

    if (node && !node->pub.spec.hub)
        return node;
    response_refuse(rs, 403, "%s is the address of no node of network \"%s\"",
        ip_addr_format(&rq->from.addr, text), net->pub.spec.meta.name);
    return NULL;
}

struct model_node *handlers_find_member(
    struct handlers *h, const struct request *rq, struct response *rs)
{
    struct model_node *node = handlers_find_machine(rq, rs);

    if (!node || !proof_take(node, rq, rs))
        return NULL;
    reports_seen(h->reports, node, rq->now, clock_wall_s());
    return node;
}

void handlers_refuse_newcomer(struct response *rs, int r, const struct err *e)
{
    static const int statuses[] = {
        [ENROL_E_DENIED] = 401,
        [ENROL_E_TAKEN] = 409,
        [ENROL_E_GONE] = 410,
        [ENROL_E_FULL] = 507,
        [ENROL_E_TOO_OFT] = 429,
        [ENROL_E_TOKENS] = 409,
    };

    if (r > 0)
        response_refuse(rs, statuses[r], "%s", err_text(e));
    else
        response_fail(rs, e);
}

void handlers_refuse_network(struct response *rs, int r, const struct err *e)
{
    if (r == NETWORKS_E_EXISTS)
        response_refuse(rs, 409, "%s", err_text(e));
    else
        response_fail(rs, e);
}

/* ---- routes ---------------------------------------------------------------------------------- */

#define ALL (API_ACCESS_PUBLIC | API_ACCESS_OVERLAY | API_ACCESS_ADMIN)

const struct route routes[] = {
    {"GET", "/v1/health", ALL, handlers_health, "is the hub there?"},
    {"POST", "/v1/enrol", API_ACCESS_PUBLIC, handlers_enrol, "let a machine with a token in"},
    {"GET", "/v1/stream/{network}", API_ACCESS_PUBLIC, handlers_stream,
        "a member's datagrams in TLS, where its UDP is blocked"},

    {"POST", "/v1/leave/{network}/{key}", API_ACCESS_PUBLIC, handlers_leave_public,
        "remove the node that asks, which has no way through its tunnel"},

    {"GET", "/v1/watch", API_ACCESS_OVERLAY, handlers_watch,
        "a node's view, and what changes in it"},
    {"PUT", "/v1/status", API_ACCESS_OVERLAY, handlers_report, "what a node reports"},
    {"GET", "/v1/heard/{transaction}", API_ACCESS_OVERLAY, handlers_heard,
        "has that STUN request come by UDP?"},
    {"GET", "/v1/wg", API_ACCESS_OVERLAY, handlers_wg, "a node's peers, for \"wg syncconf\""},
    {"POST", "/v1/leave", API_ACCESS_OVERLAY, handlers_leave, "remove the node that asks"},
    {"GET", "/v1/jobs", API_ACCESS_OVERLAY, handlers_jobs_list, "the jobs of the member's network"},
    {"GET", "/v1/jobs/{job}/rendezvous", API_ACCESS_OVERLAY, handlers_jobs_get,
        "where a job meets"},
    {"POST", "/v1/jobs/{job}/rendezvous", API_ACCESS_OVERLAY, handlers_jobs_join,
        "where a job meets; makes it, or begins a new run of it"},
    {"POST", "/v1/jobs/{job}/nccl", API_ACCESS_OVERLAY, handlers_jobs_nccl,
        "which network NCCL took on a node of a job"},
    {"PUT", "/v1/jobs/{job}/rendezvous", API_ACCESS_OVERLAY, handlers_jobs_presence,
        "a command of a job is there, or has ended; how its others are"},
    {"DELETE", "/v1/jobs/{job}/rendezvous", API_ACCESS_OVERLAY, handlers_jobs_end,
        "a job's run is over"},

    {"GET", "/v1/networks", API_ACCESS_ADMIN, handlers_networks_list, "all networks", ROLE_VIEWER,
        ROUTE_SCOPE_FILTERED},
    {"POST", "/v1/networks", API_ACCESS_ADMIN, handlers_networks_add, "make a network", ROLE_ADMIN},
    {"DELETE", "/v1/networks/{network}", API_ACCESS_ADMIN, handlers_networks_remove,
        "remove a network", ROLE_ADMIN, ROUTE_SCOPE_NETWORK},
    {"POST", "/v1/networks/{network}/tokens", API_ACCESS_ADMIN, handlers_tokens_add,
        "make a join token", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/tokens", API_ACCESS_ADMIN, handlers_tokens_list,
        "the join tokens of a network", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"DELETE", "/v1/networks/{network}/tokens/{id}", API_ACCESS_ADMIN, handlers_tokens_remove,
        "end a join token", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/nodes", API_ACCESS_ADMIN, handlers_nodes_list,
        "a network's nodes, as the hub sees them now", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"POST", "/v1/networks/{network}/nodes", API_ACCESS_ADMIN, handlers_nodes_add,
        "add a stock WireGuard by its public key", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/jobs", API_ACCESS_ADMIN, handlers_network_jobs,
        "a network's jobs, what they keep, and limits they met", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"DELETE", "/v1/networks/{network}/nodes/{name}", API_ACCESS_ADMIN, handlers_nodes_remove,
        "cut a node off", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/objects/{kind}", API_ACCESS_ADMIN, handlers_objects_list,
        "all objects of a kind", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/objects/{kind}/{name}", API_ACCESS_ADMIN, handlers_objects_get,
        "one object", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"PUT", "/v1/networks/{network}/objects/{kind=Network}/{name}", API_ACCESS_ADMIN,
        handlers_objects_put, "make or change a network as given", ROLE_ADMIN, ROUTE_SCOPE_NETWORK},
    {"PUT", "/v1/networks/{network}/objects/{kind}/{name}", API_ACCESS_ADMIN, handlers_objects_put,
        "make an object as given", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"DELETE", "/v1/networks/{network}/objects/{kind=Network}/{name}", API_ACCESS_ADMIN,
        handlers_objects_remove, "remove a network", ROLE_ADMIN, ROUTE_SCOPE_NETWORK},
    {"DELETE", "/v1/networks/{network}/objects/{kind}/{name}", API_ACCESS_ADMIN,
        handlers_objects_remove, "remove an object", ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/edges", API_ACCESS_ADMIN, handlers_edges,
        "a network's edges, and how they are", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/events", API_ACCESS_ADMIN, handlers_events,
        "what has happened to a network's edges and agents", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/traffic", API_ACCESS_ADMIN, handlers_traffic,
        "what a network's edges have moved, by day", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/page", API_ACCESS_ADMIN, handlers_page,
        "all of this on a page for a browser", ROLE_VIEWER, ROUTE_SCOPE_NETWORK, .is_page = true},
    {"GET", "/v1/networks/{network}/snapshots/{name}", API_ACCESS_ADMIN, handlers_snapshot,
        "what a node sees", ROLE_VIEWER, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/admin-tokens", API_ACCESS_ADMIN, handlers_admins_list,
        "who may administer from afar", ROLE_VIEWER},
    {"POST", "/v1/admin-tokens", API_ACCESS_ADMIN, handlers_admins_add, "make an admin token",
        ROLE_ADMIN},
    {"DELETE", "/v1/admin-tokens/{name}", API_ACCESS_ADMIN, handlers_admins_remove,
        "end an admin token", ROLE_ADMIN},
    {"POST", "/v1/admin-token-file", API_ACCESS_ADMIN, handlers_admin_file_rotate,
        "replace the token in STATE/admin.token", ROLE_ADMIN},
    {"POST", "/v1/backup", API_ACCESS_ADMIN, handlers_backup,
        "copy all that the hub keeps to STATE/backup", ROLE_ADMIN},
    {"GET", "/v1/move", API_ACCESS_ADMIN, handlers_move_get,
        "where the hub will be, and who has been told", ROLE_ADMIN},
    {"PUT", "/v1/move", API_ACCESS_ADMIN, handlers_move_put, "tell all nodes where the hub will be",
        ROLE_ADMIN},
    {"GET", "/v1/audit", API_ACCESS_ADMIN, handlers_audit, "who changed what, and who was refused",
        ROLE_VIEWER, ROUTE_SCOPE_FILTERED},
    {"GET", "/v1/routes", API_ACCESS_ADMIN, handlers_routes_list,
        "these calls, and who may make them", ROLE_VIEWER, ROUTE_SCOPE_FILTERED},
    {"GET", "/v1/metrics", API_ACCESS_ADMIN, handlers_metrics,
        "counters, in Prometheus' text format", ROLE_VIEWER},
    ROUTES_END,
};
