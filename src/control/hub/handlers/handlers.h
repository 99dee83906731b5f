/*
 * handlers.h - what answers the calls of the hub's API: a function for each row of routes.c.
 *
 * Each is a route_fn whose ctx is a struct handlers. What it takes and answers is in docs/API.md.
 * Those who ask are divided by how they reach the hub (api/content/route.h), and the files with
 * them:
 *
 *     handlers_public.c   machines that are no members yet, over TLS
 *     handlers_member.c   members, over their network's interface
 *     drain.c             members, about their health checks
 *     handlers_jobs.c     members, about where the processes of a job meet
 *     handlers_admin.c    administrators: networks, join tokens, nodes
 *     handlers_access.c   administrators: who may administer or join, and who did what
 *     handlers_move.c     administrators: where the hub will be
 *     handlers_traffic.c  administrators: what the edges have moved; all on a page for a browser
 *     objects.c           administrators: objects, read and written
 *     handlers_web.c      browsers: the page, who is at it, and what it is told
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
#include "hub/record/record.h"

struct audit_before;
struct model_network;
struct live;
struct model_node;
struct store_op;
struct token_secret;
struct web_access;
struct web_grant;

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
    struct web_access *web; /* who is at the page; NULL: it is off */
    struct live *live;      /* NULL: likewise */
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

/* ---- the rows of routes.c say which call each answers ---------------------------------------- */

/** A route_fn whose ctx is a struct handlers. */
typedef void handler_fn(void *ctx, const struct request *rq, struct response *rs);

/* handlers_public.c */
handler_fn handlers_health, handlers_enrol, handlers_leave_public, handlers_stream;

/* handlers_member.c */
handler_fn handlers_watch, handlers_edges, handlers_edge_history, handlers_events,
    handlers_findings, handlers_nat, handlers_report, handlers_heard, handlers_leave, handlers_wg;

/* drain.c */
handler_fn handlers_drain;

/* handlers_jobs.c */
handler_fn handlers_jobs_join, handlers_jobs_list, handlers_network_jobs, handlers_jobs_get,
    handlers_jobs_nccl, handlers_jobs_presence, handlers_jobs_samples, handlers_jobs_end;

/* handlers_move.c */
handler_fn handlers_move_get, handlers_move_put;

/* handlers_admin.c */
handler_fn handlers_networks_list, handlers_networks_add, handlers_networks_remove,
    handlers_tokens_add, handlers_nodes_list, handlers_nodes_add, handlers_nodes_remove,
    handlers_snapshot, handlers_metrics, handlers_targets;

/* handlers_access.c */
handler_fn handlers_admins_list, handlers_admins_add, handlers_admins_remove,
    handlers_admin_file_rotate, handlers_audit, handlers_tokens_list, handlers_tokens_remove,
    handlers_backup, handlers_routes_list;

/* handlers_traffic.c */
handler_fn handlers_traffic, handlers_page;

/* handlers_web.c */
handler_fn handlers_web_index, handlers_web_file, handlers_web_login, handlers_web_offer,
    handlers_web_session, handlers_web_logout, handlers_live;

/* objects.c */
handler_fn handlers_objects_list, handlers_objects_get, handlers_objects_put,
    handlers_objects_remove;

/* ---- what several of them need ---------------------------------------------------------------
 *
 * handlers.c. Each fills in @rs with the refusal when it returns NULL. */

/** handlers_find_network() - lends the network of the path's first part; NULL: 404. */
const struct model_network *handlers_find_network(
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

/**
 * handlers_hold() - have a commit be made after all others that do so in the network, not beside
 * them
 * @op:		to be a part of it: the record of the network's address cursor, unchanged, at the
 *		revision that it has now. Each enrolment changes that record
 * @value:	for the caller to free()
 *
 * Return: how many operations that is, 0 or 1.
 */
size_t handlers_hold(const struct model_network *net, struct store_op *op,
    char key[static RECORD_KEY_MAX], char **value);

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

/* ---- around each request: who makes it, and what the audit log is told of it ----------------- */

/*
 * The hub hands these to its server (api/server/server.h); a ctx is a struct handlers.
 */

/** access_identify() - who has this admin token? */
enum caller_verdict access_identify(
    void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret);

/** access_identify_page() - whose session of the page does the header Cookie hold? */
bool access_identify_page(void *ctx, const char *cookie, nsec_t now, struct caller *ret);

/** access_begin() - from now on what is committed is this request's doing. */
void access_begin(void *ctx, const struct request *rq);

/** access_admits() - does an admin token keep its pace? Of changes only; reading is free. */
bool access_admits(
    void *ctx, const struct route *row, const struct request *rq, struct response *rs);

/** access_end() - it is over; a refusal that is worth knowing of is noted. */
void access_end(
    void *ctx, const struct request *rq, const struct route *row, const struct response *rs);

/** access_before() - what a record is before it is changed: of audit.h; @ctx is the hub. */
void access_before(void *ctx, const char *key, struct audit_before *ret);

/** access_refused() - a request that @rs refuses is noted; @operation: its route. */
void access_refused(
    struct handlers *h, const struct request *rq, const char *operation, const struct response *rs);

/** access_by_node() - the request turned out to be that member's. */
void access_by_node(struct handlers *h, const struct request *rq, const struct model_node *node);

/** access_by_token() - it came with the secret of a join token, if the hub knows it. */
void access_by_token(
    struct handlers *h, const struct request *rq, const struct token_secret *secret);

/* ---- the page ------------------------------------------------------------------------------- */

/** handlers_web_begin() - from now on there is one; both are pinned. */
void handlers_web_begin(struct handlers *h, struct web_access *web, struct live *live);

/** web_login_url() - a URL with a new login, which is a secret; free(). NULL: no memory. @grant:
 * its mark is filled in. */
char *web_login_url(struct handlers *h, struct web_grant *grant, uint32_t ttl_s, nsec_t now);

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
