/*
 * handlers.h - what answers the calls of the hub's API: a function for each row of routes.c.
 *
 * Each is a route_fn whose ctx is a struct handlers. What it takes and answers is in docs/API.md.
 * Those who ask are divided by how they reach the hub (api/content/route.h), and the files with
 * them:
 *
 *     handlers_public.c   machines that are no members yet, over TLS
 *     handlers_member.c   members, over their network's interface
 *     handlers_jobs.c     members, about where the processes of a job meet
 *     handlers_admin.c    administrators: networks, join tokens, nodes
 *     handlers_access.c   administrators: who may administer or join, and who did what
 *     handlers_move.c     administrators: where the hub will be
 *     handlers_traffic.c  administrators: what the edges have moved; all on a page for a browser
 *     objects.c           administrators: objects, read and written
 *
 * Theory of operation. A handler that only reads reads the model, and answers at once. One that
 * writes checks by the model, hands a commit to the store, and answers when it is on the disk
 * (reply.h). Handlers call the parts below; no part calls a handler.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"
#include "base/secret.h"

struct model_network;
struct model_node;

/** Longest path of a file in the hub's state directory, with the terminating zero. */
#define HANDLERS_PATH_MAX 512

/** What the handlers work on. The hub fills it in before the first request, and owns the parts. */
struct handlers {
    struct disk_works *disk;         /* pins: what waits for the disk */
    const char *state_dir;           /* pins */
    const struct route *routes;      /* pins: to list them; they may lead back here */
    struct overlay *overlay;         /* pins: the data half; NULL: there is none */
    const struct identity *identity; /* pins: the hub's TLS key */
    struct model *model;             /* pins, like all that follow */
    struct audit *audit;
    struct reports *reports;
    struct watcher *watcher;
    struct enrol *enrol;
    struct admin_tokens *admins;
    struct networks *networks;
    const struct owners *owners;
    struct public_addresses *public_addresses;
    struct streams *streams;
    struct jobs *jobs;
    struct traffic_book *traffic;
    const struct spending *spending;
    const json_t *price_table;               /* NULL: there is none */
    const struct server *server;             /* counts for the metrics; NULL: there is none */
    const struct resource_counts *resources; /* for the metrics; NULL: it shows no resources */
    struct rng rng;                          /* for secrets; used on any thread */
    uint16_t udp_port;                       /* where WireGuard and the relay listen */
    uint16_t api_port;                       /* TCP; known once the hub listens */

    /* The handlers' own. */
    bool is_rotating;   /* the token in STATE/admin.token is being replaced */
    bool is_announcing; /* STATE/move.json is being written */
};

/* ---- handlers_public.c ---- */

/**
 * handlers_health() - GET /v1/health: is the hub there, and does it take changes?
 *
 * 503 while its store does not take what is to be written; with "?live=1" 200 all the same.
 */
void handlers_health(void *ctx, const struct request *rq, struct response *rs);

/** handlers_enrol() - POST /v1/enrol: let a machine with a token in. */
void handlers_enrol(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_leave_public() - POST /v1/leave/{network}/{key}
 *
 * Remove the node that asks, which has no way through its tunnel.
 */
void handlers_leave_public(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_stream() - GET /v1/stream/{network}
 *
 * A member's datagrams in TLS, where its UDP is blocked.
 */
void handlers_stream(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_member.c ---- */

/** handlers_watch() - GET /v1/watch: a node's view, and what changes in it. */
void handlers_watch(void *ctx, const struct request *rq, struct response *rs);

/** handlers_edges() - GET /v1/networks/{network}/edges: how they are. */
void handlers_edges(void *ctx, const struct request *rq, struct response *rs);

/** handlers_events() - GET /v1/networks/{network}/events: what has happened to them. */
void handlers_events(void *ctx, const struct request *rq, struct response *rs);

/** handlers_report() - PUT /v1/status: what a node reports. */
void handlers_report(void *ctx, const struct request *rq, struct response *rs);

/** handlers_heard() - GET /v1/heard/{transaction}: has that STUN request come by UDP? */
void handlers_heard(void *ctx, const struct request *rq, struct response *rs);

/** handlers_leave() - POST /v1/leave: remove the node that asks. */
void handlers_leave(void *ctx, const struct request *rq, struct response *rs);

/** handlers_wg() - GET /v1/wg: a node's peers, for "wg syncconf". */
void handlers_wg(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_jobs.c ---- */

/**
 * handlers_jobs_join() - POST /v1/jobs/{job}/rendezvous
 *
 * Where a job meets; makes it, or begins a new run of it.
 */
void handlers_jobs_join(void *ctx, const struct request *rq, struct response *rs);

/** handlers_jobs_list() - GET /v1/jobs: the jobs of the member's network. */
void handlers_jobs_list(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_network_jobs() - GET /v1/networks/{network}/jobs
 *
 * A network's jobs, what they keep, and limits they met.
 */
void handlers_network_jobs(void *ctx, const struct request *rq, struct response *rs);

/** handlers_jobs_get() - GET /v1/jobs/{job}/rendezvous: where a job meets. */
void handlers_jobs_get(void *ctx, const struct request *rq, struct response *rs);

/** handlers_jobs_nccl() - POST /v1/jobs/{job}/nccl: what NCCL took on a node of a job. */
void handlers_jobs_nccl(void *ctx, const struct request *rq, struct response *rs);

/** handlers_jobs_presence() - PUT /v1/jobs/{job}/rendezvous: a command of a job says how it is. */
void handlers_jobs_presence(void *ctx, const struct request *rq, struct response *rs);

/** handlers_jobs_end() - DELETE /v1/jobs/{job}/rendezvous: a job's run is over. */
void handlers_jobs_end(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_move.c ---- */

/** handlers_move_get() - GET /v1/move: where the hub will be, and who has been told. */
void handlers_move_get(void *ctx, const struct request *rq, struct response *rs);

/** handlers_move_put() - PUT /v1/move: tell all nodes where the hub will be. */
void handlers_move_put(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_admin.c ---- */

/** handlers_networks_list() - GET /v1/networks: all networks. */
void handlers_networks_list(void *ctx, const struct request *rq, struct response *rs);

/** handlers_networks_add() - POST /v1/networks: make a network. */
void handlers_networks_add(void *ctx, const struct request *rq, struct response *rs);

/** handlers_networks_remove() - DELETE /v1/networks/{network}: remove a network. */
void handlers_networks_remove(void *ctx, const struct request *rq, struct response *rs);

/** handlers_tokens_add() - POST /v1/networks/{network}/tokens: make a join token. */
void handlers_tokens_add(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_nodes_list() - GET /v1/networks/{network}/nodes
 *
 * A network's nodes, as the hub sees them now.
 */
void handlers_nodes_list(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_nodes_add() - POST /v1/networks/{network}/nodes
 *
 * Add a stock WireGuard by its public key.
 */
void handlers_nodes_add(void *ctx, const struct request *rq, struct response *rs);

/** handlers_nodes_remove() - DELETE /v1/networks/{network}/nodes/{name}: cut a node off. */
void handlers_nodes_remove(void *ctx, const struct request *rq, struct response *rs);

/** handlers_snapshot() - GET /v1/networks/{network}/snapshots/{name}: what a node sees. */
void handlers_snapshot(void *ctx, const struct request *rq, struct response *rs);

/** handlers_metrics() - GET /v1/metrics: counters, in Prometheus' text format. */
void handlers_metrics(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_access.c ---- */

/** handlers_admins_list() - GET /v1/admin-tokens: who may administer from afar. */
void handlers_admins_list(void *ctx, const struct request *rq, struct response *rs);

/** handlers_admins_add() - POST /v1/admin-tokens: make an admin token. */
void handlers_admins_add(void *ctx, const struct request *rq, struct response *rs);

/** handlers_admins_remove() - DELETE /v1/admin-tokens/{name}: end an admin token. */
void handlers_admins_remove(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_admin_file_rotate() - POST /v1/admin-token-file
 *
 * Replace the token in STATE/admin.token.
 */
void handlers_admin_file_rotate(void *ctx, const struct request *rq, struct response *rs);

/** handlers_audit() - GET /v1/audit: who changed what, and who was refused. */
void handlers_audit(void *ctx, const struct request *rq, struct response *rs);

/** handlers_tokens_list() - GET /v1/networks/{network}/tokens: the join tokens of a network. */
void handlers_tokens_list(void *ctx, const struct request *rq, struct response *rs);

/** handlers_tokens_remove() - DELETE /v1/networks/{network}/tokens/{id}: end a join token. */
void handlers_tokens_remove(void *ctx, const struct request *rq, struct response *rs);

/** handlers_backup() - POST /v1/backup: copy all that the hub keeps to STATE/backup. */
void handlers_backup(void *ctx, const struct request *rq, struct response *rs);

/** handlers_routes_list() - GET /v1/routes: these calls, and who may make them. */
void handlers_routes_list(void *ctx, const struct request *rq, struct response *rs);

/* ---- handlers_traffic.c ---- */

/** handlers_traffic() - GET /v1/networks/{network}/traffic: what its edges have moved, by day. */
void handlers_traffic(void *ctx, const struct request *rq, struct response *rs);

/** handlers_page() - GET /v1/networks/{network}/page: the same and more, as a page for people. */
void handlers_page(void *ctx, const struct request *rq, struct response *rs);

/* ---- objects.c ---- */

/** handlers_objects_list() - GET /v1/networks/{network}/objects/{kind}: all objects of a kind. */
void handlers_objects_list(void *ctx, const struct request *rq, struct response *rs);

/** handlers_objects_get() - GET /v1/networks/{network}/objects/{kind}/{name}: one object. */
void handlers_objects_get(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_objects_put() - PUT /v1/networks/{network}/objects/{kind=Network}/{name}
 *
 * Make or change a network as given.
 */
void handlers_objects_put(void *ctx, const struct request *rq, struct response *rs);

/**
 * handlers_objects_remove() - DELETE /v1/networks/{network}/objects/{kind}/{name}
 *
 * Remove one object of any kind.
 */
void handlers_objects_remove(void *ctx, const struct request *rq, struct response *rs);

/* ---- what several of them need ---------------------------------------------------------------
 *
 * handlers.c. Each fills in @rs with the refusal when it returns NULL. */

/** handlers_find_network() - lends the network of the path's first part; NULL: 404. */
const struct model_network *handlers_find_network(
    const struct handlers *h, const struct request *rq, struct response *rs);

/** handlers_find_node() - lends the node of the path's two parts; NULL: 404. */
const struct model_node *handlers_find_node(
    const struct handlers *h, const struct request *rq, struct response *rs);

/**
 * handlers_read_number() - the number of that name in the query, or *@ret as it is
 *
 * Return: false: @rs says that it is none from @min to @max.
 */
bool handlers_read_number(const struct request *rq, const char *name, uint64_t min, uint64_t max,
    uint64_t *ret, struct response *rs);

/**
 * handlers_find_machine() - lends the node whose overlay address the request comes from
 *
 * That it is the node itself that asks, and no other program of its machine, is not checked.
 *
 * Return: NULL: no member but the hub itself has that address (403).
 */
const struct model_node *handlers_find_machine(const struct request *rq, struct response *rs);

/**
 * handlers_find_member() - lends the member that asks, and notes that it was heard
 *
 * Return: NULL: no member has that address (403), or the request does not prove to come from it
 * (401).
 */
const struct model_node *handlers_find_member(
    struct handlers *h, const struct request *rq, struct response *rs);

/** handlers_node() - the node with its status, a new reference; NULL: no memory. */
json_t *handlers_node(const struct model_node *node);

/** handlers_nodes() - what handlers_nodes_list() answers; a new reference. */
json_t *handlers_nodes(struct handlers *h, const struct model_network *net, nsec_t now);

/** handlers_jobs() - what handlers_network_jobs() answers, a new reference; NULL: another hub
 * serves them. */
json_t *handlers_jobs(struct handlers *h, const struct model_network *net);

/** handlers_refuse_newcomer() - why a machine is not taken in: @r is ENROL_E_* or negative errno.
 */
void handlers_refuse_newcomer(struct response *rs, int r, const struct err *e);

/**
 * handlers_refuse() - why something is not done
 * @r:		what there are words for in @e: an outcome of the part that was asked, or negative
 * errno
 * @statuses:	of each outcome; NULL: 409 for all
 */
void handlers_refuse(struct response *rs, int r, const struct err *e, const int statuses[]);

/* ---- the table of the hub's calls: one row each, as docs/API.md lists them ------------------- */

/*
 * It stands above the handlers: a handler that tells of the table is lent it.
 */

/** All of them; the ctx of each is a struct handlers. Ends with ROUTES_END. */
extern const struct route routes[];

/* ---- a node is removed, with what is known about it ------------------------------------------ */

/**
 * node_removal_leave() - answer a request of @node itself by removing it
 * @rs:		the answer, or that it comes later
 *
 * One that has done nothing but enrol, some minutes ago at most, gives the use of its token back:
 * to a token at most sixteen times in a run of the hub.
 */
void node_removal_leave(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node);

/** node_removal_by_admin() - the same because an administrator asks, unless it is the hub. */
void node_removal_by_admin(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node);

/* ---- what is counted on other threads for GET /v1/metrics ------------------------------------ */

/** What the writer of Kubernetes' resources has done; it counts on a thread of its own. */
struct resource_counts {
    atomic_bool is_leading;       /* this hub is the one that writes them */
    _Atomic uint64_t n_applied;   /* writes of metadata and spec */
    _Atomic uint64_t n_status;    /* writes of one writer's part of a status */
    _Atomic uint64_t n_failed;    /* of both, those that failed */
    _Atomic uint64_t n_requests;  /* changes that people wished there */
    _Atomic uint64_t n_refused;   /* of them, those that the hub has refused */
    _Atomic uint64_t n_conflicts; /* fields that others own and that differ from what the hub has */
};
