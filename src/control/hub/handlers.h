/*
 * handlers.h - what answers the calls of the hub's API: a function for each row of routes.c.
 *
 * Each is a route_fn whose ctx is a struct handlers. What it takes and answers is in docs/API.md.
 * Those who ask are divided by how they reach the hub (api/route.h), and the files with them:
 *
 *     handlers_public.c   machines that are no members yet, over TLS
 *     handlers_member.c   members, over their network's interface
 *     handlers_jobs.c     members, about where the processes of a job meet
 *     handlers_admin.c    administrators: networks, join tokens, nodes
 *     handlers_access.c   administrators: who may administer or join, and who did what
 *     handlers_move.c     administrators: where the hub will be
 *     handlers_objects.c  administrators: objects, read and written
 *
 * Theory of operation. A handler that only reads reads the model, and answers at once. One that
 * writes checks by the model, hands a commit to the store, and answers when it is on the disk
 * (later.h). Handlers call the parts below; no part calls a handler.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/route.h"
#include "base/rng.h"
#include "hub/arrivals.h"

struct admin_tokens;
struct audit;
struct enrol;
struct err;
struct hub_hooks;
struct identity;
struct jobs;
struct model;
struct model_network;
struct model_node;
struct networks;
struct publics;
struct reports;
struct server;
struct streams;
struct uv_loop_s;
struct watcher;

/** Longest path of a file in the hub's state directory, with the terminating zero. */
#define HANDLERS_PATH_MAX 512

/** What the handlers work on. The hub fills it in before the first request, and owns the parts. */
struct handlers {
    struct uv_loop_s *loop;          /* pins: for what waits for the disk */
    const char *state_dir;           /* pins */
    const struct route *routes;      /* pins: to list them; they may lead back here */
    const struct hub_hooks *hooks;   /* pins: the data half */
    const struct identity *identity; /* pins: the hub's TLS key */
    struct model *model;             /* pins, like all that follow */
    struct audit *audit;
    struct reports *reports;
    struct watcher *watcher;
    struct enrol *enrol;
    struct admin_tokens *admins;
    struct networks *networks;
    struct publics *publics;
    struct streams *streams;
    struct jobs *jobs;
    const struct server *server; /* counts for the metrics; NULL: there is none */
    struct rng rng;              /* for secrets; used on any thread */
    uint16_t udp_port;           /* where WireGuard and the relay listen */
    uint16_t api_port;           /* TCP; known once the hub listens */

    /* The handlers' own. */
    struct arrivals arrivals; /* who has come to the jobs' present runs */
    bool is_rotating;         /* the token in STATE/admin.token is being replaced */
    bool is_announcing;       /* STATE/move.json is being written */
};

/** handlers_deinit() - forget what is the handlers' own. Idempotent. */
void handlers_deinit(struct handlers *h);

/* handlers_public.c */
void handlers_health(void *ctx, const struct request *rq, struct response *rs);
void handlers_enrol(void *ctx, const struct request *rq, struct response *rs);
void handlers_leave_public(void *ctx, const struct request *rq, struct response *rs);
void handlers_stream(void *ctx, const struct request *rq, struct response *rs);

/* handlers_member.c */
void handlers_watch(void *ctx, const struct request *rq, struct response *rs);
void handlers_report(void *ctx, const struct request *rq, struct response *rs);
void handlers_heard(void *ctx, const struct request *rq, struct response *rs);
void handlers_leave(void *ctx, const struct request *rq, struct response *rs);
void handlers_wg(void *ctx, const struct request *rq, struct response *rs);

/* handlers_jobs.c */
void handlers_jobs_join(void *ctx, const struct request *rq, struct response *rs);
void handlers_jobs_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_network_jobs(void *ctx, const struct request *rq, struct response *rs);
void handlers_jobs_get(void *ctx, const struct request *rq, struct response *rs);
void handlers_jobs_end(void *ctx, const struct request *rq, struct response *rs);

/* handlers_move.c */
void handlers_move_get(void *ctx, const struct request *rq, struct response *rs);
void handlers_move_put(void *ctx, const struct request *rq, struct response *rs);

/* handlers_admin.c */
void handlers_networks_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_networks_add(void *ctx, const struct request *rq, struct response *rs);
void handlers_networks_remove(void *ctx, const struct request *rq, struct response *rs);
void handlers_tokens_add(void *ctx, const struct request *rq, struct response *rs);
void handlers_nodes_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_nodes_add(void *ctx, const struct request *rq, struct response *rs);
void handlers_nodes_remove(void *ctx, const struct request *rq, struct response *rs);
void handlers_snapshot(void *ctx, const struct request *rq, struct response *rs);
void handlers_metrics(void *ctx, const struct request *rq, struct response *rs);

/* handlers_access.c */
void handlers_admins_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_admins_add(void *ctx, const struct request *rq, struct response *rs);
void handlers_admins_remove(void *ctx, const struct request *rq, struct response *rs);
void handlers_admin_file_rotate(void *ctx, const struct request *rq, struct response *rs);
void handlers_audit(void *ctx, const struct request *rq, struct response *rs);
void handlers_tokens_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_tokens_remove(void *ctx, const struct request *rq, struct response *rs);
void handlers_backup(void *ctx, const struct request *rq, struct response *rs);
void handlers_routes_list(void *ctx, const struct request *rq, struct response *rs);

/* handlers_objects.c */
void handlers_objects_list(void *ctx, const struct request *rq, struct response *rs);
void handlers_objects_get(void *ctx, const struct request *rq, struct response *rs);
void handlers_objects_put(void *ctx, const struct request *rq, struct response *rs);

/* ---- what several of them need ---------------------------------------------------------------
 *
 * handlers.c. Each fills in @rs with the refusal when it returns NULL. */

/** handlers_find_network() - lends the network of the path's first part; NULL: 404. */
struct model_network *handlers_find_network(
    const struct handlers *h, const struct request *rq, struct response *rs);

/** handlers_find_node() - lends the node of the path's second part; NULL: 404. */
struct model_node *handlers_find_node(
    struct model_network *net, const struct request *rq, struct response *rs);

/**
 * handlers_find_machine() - lends the node whose overlay address the request comes from
 *
 * That it is the node itself that asks, and no other program of its machine, is not checked.
 *
 * Return: NULL: no member but the hub itself has that address (403).
 */
struct model_node *handlers_find_machine(const struct request *rq, struct response *rs);

/**
 * handlers_find_member() - lends the member that asks, and notes that it was heard
 *
 * Return: NULL: no member has that address (403), or the request does not prove to come from it
 * (401).
 */
struct model_node *handlers_find_member(
    struct handlers *h, const struct request *rq, struct response *rs);

/** handlers_refuse_newcomer() - why a machine is not taken in: @r is ENROL_E_* or negative errno.
 */
void handlers_refuse_newcomer(struct response *rs, int r, const struct err *e);

/** handlers_refuse_network() - why a network is not made: @r is what networks_add() says. */
void handlers_refuse_network(struct response *rs, int r, const struct err *e);
