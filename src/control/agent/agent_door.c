/* agent_door.c - the node's own socket: `weft status`, `weft run` and `weft leave` ask here. */
#include <errno.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/farewell.h"
#include "agent/status.h"
#include "base/err.h"
#include "mesh/hosts.h"
#include "os/clock.h"
#include "net/offload.h"

static struct status_input look(struct agent *a, struct render_input *render)
{
    agent__look(a);
    *render = agent__render_input(a);
    return (struct status_input){
        .render = render,
        .seen = &a->seen,
        .reach = &a->reach,
        .interface = a->state.interface,
        .engine =
            a->reconcile.engine ? engine_kind_name(engine_kind_of(a->reconcile.engine)) : NULL,
        .engine_why = a->reconcile.why,
        .fault = a->fault.text,
        .keepalive = &a->keepalive.plan,
        .names_left_out = a->names_left_out,
        .stream_why = hub_transport_why(&a->transport),
        .one_way = hub_transport_one_way(&a->transport),
        .hub_heard = hub_link_is_heard(a->hub),
        .hub_silent_for = hub_link_silent_for(a->hub, clock_now()),
        .now = clock_now(),
        .wall = clock_wall(),
    };
}

static void get_status(void *ctx, const struct request *rq, struct response *rs)
{
    struct render_input render;
    struct status_input in = look(ctx, &render);
    const struct agent *a = ctx;
    const struct status_routes routes = agent__status_routes(a);
    struct offloads offloads;
    struct err e = ERR_NULL;

    in.routes = &routes;
    if (a->reconcile.engine && engine_offloads(a->reconcile.engine, &offloads, &e) == 0)
        in.offloads = &offloads;
    response_json(rs, 200, status_encode(&in));
}

/* What is known of the network: for commands of this machine, which have root's socket. */
static void get_snapshot(void *ctx, const struct request *rq, struct response *rs)
{
    const struct agent *a = ctx;

    response_json(rs, 200, snapshot_encode(&a->snapshot));
}

static void get_paths(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct render_input render;
    struct status_input in = look(a, &render);
    const struct node *node = snapshot_find_node(&a->snapshot, rq->params[0]);
    const struct reach_peer *peer = reach_find(&a->reach, rq->params[0]);

    if (!node || !peer) {
        response_refuse(rs, 404, "\"%s\" is no peer of this node", rq->params[0]);
        return;
    }
    response_json(rs, 200, status_encode_paths(&in, a->finder, node, peer));
}

/*
 * Waits for the hub, on purpose: the overlay has to be there until it has
 * answered, and a node that is leaving has nothing else to do.
 */
static void post_leave(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct endpoint api = agent__hub_api(a);
    struct err told = ERR_NULL;
    struct err e = ERR_NULL;
    struct err names;
    char owner[HOSTS_OWNER_MAX];
    int r;

    if (a->is_ending) {
        response_refuse(rs, 409, "the agent is ending already");
        return;
    }
    r = farewell_tell(&a->state, &api, &a->signer, &told);
    if (agent__take_down(a, &names, &e) < 0 || state_remove(a->config->state_dir, &e) < 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("this node has left the network %s%s%s", a->snapshot.network.meta.name,
        r == 0 ? "" : ", but the hub could not be told: ", r == 0 ? "" : err_text(&told));
    agent__finish(a, AGENT_END_LEFT);
    response_json(rs, 200,
        json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "network", a->snapshot.network.meta.name,
            "interface", a->state.interface, "hubTold", (int)(r == 0), "why",
            r == 0 ? "" : err_text(&told), "hostsOwner", hosts_owner(&a->snapshot, owner),
            "namesWhy", names.code == 0 ? "" : err_text(&names)));
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
    if (agent__take_down(a, &names, &e) < 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("the interface %s was taken down", a->state.interface);
    agent__finish(a, AGENT_END_DOWN);
    response_json(rs, 200,
        json_pack("{s:s, s:s}", "interface", a->state.interface, "namesWhy",
            names.code == 0 ? "" : err_text(&names)));
}

static void post_engine(void *ctx, const struct request *rq, struct response *rs)
{
    struct agent *a = ctx;
    struct err e = ERR_NULL;
    int r =
        a->is_ending ? err_set(&e, -ESHUTDOWN, "the agent is ending") : agent__renew_engine(a, &e);

    if (r < 0)
        response_fail(rs, &e);
    else
        response_json(rs, 200,
            json_pack("{s:s, s:s, s:b}", "interface", a->state.interface, "engine",
                engine_kind_name(engine_kind_of(a->reconcile.engine)), "renewed", (int)(r == 0)));
}

/*
 * Three kinds of routes: read, run and administer. What runs a job changes nothing of this node,
 * and goes to the hub with the node's proof; what administers does.
 */
static const struct route routes[] = {
    /* read */
    {"GET", "/v1/status", DOOR_ADMIN, get_status, "the node, its hub and its peers", ROLE_VIEWER},
    {"GET", "/v1/snapshot", DOOR_ADMIN, get_snapshot, "the network as this node knows it",
        ROLE_VIEWER},
    {"GET", "/v1/paths/{name}", DOOR_ADMIN, get_paths, "all that was tried to reach a peer",
        ROLE_VIEWER},
    {"GET", "/v1/jobs", DOOR_ADMIN, agent__jobs, "the jobs of the network, as the hub knows them",
        ROLE_VIEWER},
    {"GET", "/v1/jobs/{job}/rendezvous", DOOR_ADMIN, agent__job_get, "where a job meets",
        ROLE_VIEWER},
    /* run */
    {"POST", "/v1/jobs/{job}/rendezvous", DOOR_ADMIN, agent__job_join,
        "where a job meets; makes it, or begins a new run of it", ROLE_OPERATOR},
    {"DELETE", "/v1/jobs/{job}/rendezvous", DOOR_ADMIN, agent__job_end, "a job's run is over",
        ROLE_OPERATOR},
    /* administer */
    {"POST", "/v1/engine", DOOR_ADMIN, post_engine, "begin the data plane's process anew",
        ROLE_ADMIN},
    {"POST", "/v1/down", DOOR_ADMIN, post_down, "take the interface down, and end", ROLE_ADMIN},
    {"POST", "/v1/leave", DOOR_ADMIN, post_leave, "leave the network", ROLE_ADMIN},
    ROUTES_END,
};

int agent__open_door(struct agent *a, struct err *e)
{
    struct server_config config = {.loop = &a->loop, .routes = routes, .ctx = a};
    int r = server_new(&a->server, &config, e);

    if (r == 0)
        r = server_listen_unix(a->server, a->config->socket_path, e);
    /* Read and run, for members of the group. */
    if (r == 0)
        r = server_listen_users(a->server, a->config->socket_path, ROLE_OPERATOR, e);
    return r;
}
