/* agent_api.c - the node's own socket, and its port for Prometheus: agent_api_open() of
 * agent_core.h. */
#include "agent/agent_core.h"

#include <errno.h>

#include "agent/leave.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "hub/record/request.h"
#include "mesh/names/hosts.h"

static void get_status(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct render_input render;
    struct status_input in;
    json_t *status;

    agent_core_see_offloads(a);
    agent_core_poll(a);
    render = agent_core_render_input(a);
    in = agent_core_status_input(a, &render, a->clock());
    status = status_encode(&in);
    node_jobs_tell(&a->running, json_object_get(status, "jobs"));
    response_json(rs, 200, status);
}

static void get_metrics(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct render_input render = agent_core_render_input(a);
    const struct node_metrics_facts facts = {.render = &render,
        .seen = &a->seen,
        .reach = &a->reach,
        .now = a->clock(),
        .wall = a->wall_clock()};
    struct metrics m = METRICS_NULL;

    if (!metrics_port_admits(&a->metrics, rq, rs))
        return;
    pass_metrics_add_samples(&a->pass_metrics, a->pass.n_failed, a->reconcile.n_foreign, &m);
    meter_add_metrics(&a->meter.meter, &m);
    metrics_add(
        &m, METRIC_AGENT_HUB_REACHABLE, hub_link_view(a->hubs.serving->link, facts.now).is_heard);
    node_metrics_add_peers(&m, &facts);
    node_metrics_add_gpus(&m, node_gpus_seen(a->gpus), facts.wall / NSEC_PER_SEC);
    observe_add_metrics(&a->seen, &a->snapshot, &m);
    response_text(rs, 200, metrics_take(&m), "text/plain; version=0.0.4");
}

/* All that is known of the network. The socket is root's, so it is for commands of this machine. */
static void get_snapshot(void *ctx, const struct request *rq, struct response *rs)
{
    const struct agent *a = ctx;

    response_json(rs, 200, snapshot_encode(&a->snapshot));
}

static void get_paths(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    const struct reach_peer *peer;
    const struct node *node;

    agent_core_poll(a);
    node = snapshot_find_node(&a->snapshot, rq->params[0]);
    peer = reach_find(&a->reach, rq->params[0]);
    if (!node || !peer)
        response_refuse(rs, 404, "\"%s\" is no peer of this node", rq->params[0]);
    else
        response_json(rs, 200, status_paths_encode(a, node, peer, a->clock()));
}

/*
 * Blocks the loop until the hub has answered, on purpose: the overlay has to be there until then,
 * and a node that is leaving has nothing else to do.
 */
static void post_leave(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    const struct node *hub = snapshot_find_node(&a->snapshot, a->hubs.serving->name);
    struct endpoint api = {.port = 0};
    struct err unheard = ERR_NULL;
    struct err e = ERR_NULL;
    struct err names;
    char owner[HOSTS_OWNER_MAX];
    int r;

    if (a->is_ending) {
        response_refuse(rs, 409, "the agent is ending already");
        return;
    }
    if (hub && hub->hub)
        api = (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
    r = leave_tell_hub(&a->state, &a->snapshot, &api, &a->hubs.serving->signer, &unheard);
    if (agent_core_take_down(a, &names, &e) < 0 || state_remove(a->config->state_dir, &e) < 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("this node has left the network %s%s%s", a->snapshot.network.meta.name,
        r == 0 ? "" : ", but the hub could not be told: ", r == 0 ? "" : err_text(&unheard));
    agent_core_finish(a, AGENT_END_LEFT);
    response_json(rs, 200,
        json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s}", "network", a->snapshot.network.meta.name,
            "node", a->snapshot.self, "interface", a->state.interface, "hubTold", (int)(r == 0),
            "why", r == 0 ? "" : err_text(&unheard), "hostsOwner",
            hosts_owner(&a->state.snapshot, owner), "namesWhy",
            names.code == 0 ? "" : err_text(&names)));
}

static void post_down(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;
    struct err names;

    if (a->is_ending) {
        response_refuse(rs, 409, "the agent is ending already");
        return;
    }
    if (agent_core_take_down(a, &names, &e) < 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("the interface %s was taken down", a->state.interface);
    agent_core_finish(a, AGENT_END_DOWN);
    response_json(rs, 200,
        json_pack("{s:s, s:s}", "interface", a->state.interface, "namesWhy",
            names.code == 0 ? "" : err_text(&names)));
}

static void post_engine(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;
    int r = a->is_ending ? err_set(&e, -ESHUTDOWN, "the agent is ending")
                         : agent_core_renew_engine(a, &e);

    if (r < 0)
        response_fail(rs, &e);
    else
        response_json(rs, 200,
            json_pack("{s:s, s:s, s:b}", "interface", a->state.interface, "engine",
                engine_kind_names[a->reconcile.engine->ops->kind], "renewed", (int)(r == 0)));
}

/* ---- jobs: the hub answers ------------------------------------------------------------------ */

static void get_jobs(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    job_calls_begin(&a->jobs, "GET", NULL, NULL, NULL, rs);
}

static void get_job(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    node_jobs_start(&a->running, rq->params[0], rq->caller.pid);
    job_calls_begin(&a->jobs, "GET", rq->params[0], "rendezvous", NULL, rs);
}

static void post_job(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    /* Who asks for a dry run is about to run nothing. */
    if (parse_name(rq->params[0], "job", NULL) == 0 &&
        !json_is_true(json_object_get(rq->body, "dryRun"))) {
        node_jobs_begin(&a->running, rq->params[0], rq->caller.pid, rq->now);
        poll_plan_request(&a->poll, rq->now);
    }
    job_calls_begin(&a->jobs, "POST", rq->params[0], "rendezvous", rq->body, rs);
}

/* It is of a job's log, and shown here and by the hub: checked once, as the hub does. */
static void post_nccl(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct nccl_request said;
    struct err e = ERR_NULL;

    if (nccl_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    node_jobs_set_nccl(&a->running, rq->params[0], rq->caller.pid, nccl_request_encode(&said));
    job_calls_begin(&a->jobs, "POST", rq->params[0], "nccl", rq->body, rs);
}

static void put_job(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    node_jobs_start(&a->running, rq->params[0], rq->caller.pid);
    job_calls_begin(&a->jobs, "PUT", rq->params[0], "rendezvous", rq->body, rs);
}

/* The hub checks it. */
static void put_samples(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    job_calls_begin(&a->jobs, "PUT", rq->params[0], "samples", rq->body, rs);
}

static void delete_job(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    /* What it has moved up to now is its own. */
    agent_core_poll(a);
    node_jobs_end(&a->running, rq->params[0], rq->caller.pid);
    poll_plan_request(&a->poll, a->clock());
    job_calls_begin(&a->jobs, "DELETE", rq->params[0], "rendezvous", NULL, rs);
}

/* ---- health: the hub answers ----------------------------------------------------------------- */

/* The hub checks it. */
static void put_drain(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;

    job_calls_drain(&a->jobs, rq->body, rs);
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* Whoever may ask here may have this node measure; a program that only sends from the node's
 * address may not. */
static void post_proofs(void *ctx, const struct request *rq, struct response *rs)
{
    const struct agent *a = ctx;
    struct err e = ERR_NULL;
    json_t *answer = NULL;

    if (node_measure_prove(&a->state.secret, &a->snapshot, rq->body, &answer, &e) != 0)
        response_fail(rs, &e);
    else
        response_json(rs, 200, answer);
}

/* What `weft bench --sample` has measured. */
static void post_daily(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;

    if (node_daily_take(&a->daily, &a->snapshot, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    hub_set_on_self(&a->hubs);
    response_empty(rs);
}

/* What `weft bench --uplink` has measured. */
static void post_uplink(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;

    if (node_uplink_take(&a->uplink, &a->snapshot, rq->body, a->clock(),
            a->wall_clock() / NSEC_PER_SEC, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    poll_plan_request(&a->poll, a->clock());
    response_empty(rs);
}

/* ---- the routes ----------------------------------------------------------------------------- */

/*
 * Three kinds of routes. Those that read change nothing. Those that run a job change nothing of
 * this node; they go to the hub with the node's proof. Those that administer change this node.
 */
static const struct route routes[] = {
    /* read */
    {"GET", "/v1/status", API_ACCESS_ADMIN, get_status, "the node, its hub and its peers",
        ROLE_VIEWER},
    {"GET", "/v1/metrics", API_ACCESS_ADMIN | API_ACCESS_METRICS, get_metrics,
        "its passes, its peers and what was moved, for Prometheus", ROLE_VIEWER},
    {"GET", "/metrics", API_ACCESS_ADMIN | API_ACCESS_METRICS, get_metrics,
        "the same, where Prometheus looks by itself", ROLE_VIEWER},
    {"GET", "/v1/snapshot", API_ACCESS_ADMIN, get_snapshot, "the network as this node knows it",
        ROLE_VIEWER},
    {"GET", "/v1/paths/{name}", API_ACCESS_ADMIN, get_paths, "all that was tried to reach a peer",
        ROLE_VIEWER},
    {"GET", "/v1/jobs", API_ACCESS_ADMIN, get_jobs,
        "the jobs of the network, as the hub knows them", ROLE_VIEWER},
    {"GET", "/v1/jobs/{job}/rendezvous", API_ACCESS_ADMIN, get_job, "where a job meets",
        ROLE_VIEWER},
    /* run */
    {"POST", "/v1/jobs/{job}/rendezvous", API_ACCESS_ADMIN, post_job,
        "where a job meets; makes it, or begins a new run of it", ROLE_OPERATOR},
    {"PUT", "/v1/jobs/{job}/rendezvous", API_ACCESS_ADMIN, put_job,
        "a command of a job is there, or has ended; how its others are", ROLE_OPERATOR},
    {"POST", "/v1/jobs/{job}/nccl", API_ACCESS_ADMIN, post_nccl,
        "which network NCCL took in a job that runs here", ROLE_OPERATOR},
    {"PUT", "/v1/jobs/{job}/samples", API_ACCESS_ADMIN, put_samples,
        "what a command of a job has moved in some seconds, and how its processes are",
        ROLE_OPERATOR},
    {"DELETE", "/v1/jobs/{job}/rendezvous", API_ACCESS_ADMIN, delete_job, "a job's run is over",
        ROLE_OPERATOR},
    {"POST", "/v1/measure/proofs", API_ACCESS_ADMIN, post_proofs,
        "proofs that this node orders a measurement", ROLE_OPERATOR},
    {"POST", "/v1/measure/daily", API_ACCESS_ADMIN, post_daily,
        "what a line carries today, to be told to the hub", ROLE_OPERATOR},
    {"POST", "/v1/measure/uplink", API_ACCESS_ADMIN, post_uplink,
        "what trains to a peer have shown of this node's uplink", ROLE_OPERATOR},
    /* administer */
    {"PUT", "/v1/drain", API_ACCESS_ADMIN, put_drain,
        "how this node's health check is; it asks to be drained, or to be given work again",
        ROLE_ADMIN},
    {"POST", "/v1/engine", API_ACCESS_ADMIN, post_engine, "begin the data plane's process anew",
        ROLE_ADMIN},
    {"POST", "/v1/down", API_ACCESS_ADMIN, post_down, "take the interface down, and end",
        ROLE_ADMIN},
    {"POST", "/v1/leave", API_ACCESS_ADMIN, post_leave, "leave the network", ROLE_ADMIN},
    ROUTES_END,
};

int agent_api_open(struct server **ret, struct agent *a, struct err *e)
{
    struct server_config config = {.loop = &a->loop, .routes = routes, .ctx = a};
    int r = metrics_place_server(ret, &a->config->metrics, &config, e);

    if (r == 0)
        r = server_listen_unix(*ret, a->config->socket_path, ROLE_ADMIN, e);
    /* Members of the group may read, and run jobs. */
    if (r == 0)
        r = server_listen_unix(*ret, a->config->socket_path, ROLE_OPERATOR, e);
    if (r == 0)
        metrics_port_init(&a->metrics, &a->config->metrics, *ret, &a->snapshot);
    return r;
}
