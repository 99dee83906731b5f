/*
 * doors.h - the handlers behind the hub's doors; the table that leads to them is in routes.c.
 *
 * Each is a route_fn whose ctx is the hub. What they take and answer is in docs/API.md.
 */
#pragma once

#include "api/route.h"

struct err;
struct hub;
struct model_network;
struct model_node;

/* door_public.c */
void door_health(void *ctx, const struct request *rq, struct response *rs);
void door_enrol(void *ctx, const struct request *rq, struct response *rs);
void door_leave_public(void *ctx, const struct request *rq, struct response *rs);
void door_stream(void *ctx, const struct request *rq, struct response *rs);

/** door_refuse_newcomer() - why a machine is not taken in: ENROL_E_* or negative errno, with words.
 */
void door_refuse_newcomer(struct response *rs, int r, const struct err *e);

/* door_member.c */
void door_watch(void *ctx, const struct request *rq, struct response *rs);
void door_report(void *ctx, const struct request *rq, struct response *rs);
void door_heard(void *ctx, const struct request *rq, struct response *rs);
void door_leave(void *ctx, const struct request *rq, struct response *rs);
void door_wg(void *ctx, const struct request *rq, struct response *rs);

/**
 * door_member() - who asks, seen by that
 *
 * Return: NULL when it is no member, and @rs says 403, or does not prove to be it (401).
 */
struct model_node *door_member(struct hub *hub, const struct request *rq, struct response *rs);

/* door_jobs.c */
void door_jobs_join(void *ctx, const struct request *rq, struct response *rs);
void door_jobs_list(void *ctx, const struct request *rq, struct response *rs);
void door_network_jobs(void *ctx, const struct request *rq, struct response *rs);
void door_jobs_get(void *ctx, const struct request *rq, struct response *rs);
void door_jobs_end(void *ctx, const struct request *rq, struct response *rs);

/* door_move.c */
void door_move_get(void *ctx, const struct request *rq, struct response *rs);
void door_move_put(void *ctx, const struct request *rq, struct response *rs);

/* door_admin.c */
void door_networks_list(void *ctx, const struct request *rq, struct response *rs);
void door_networks_add(void *ctx, const struct request *rq, struct response *rs);
void door_networks_remove(void *ctx, const struct request *rq, struct response *rs);
void door_tokens_add(void *ctx, const struct request *rq, struct response *rs);
void door_nodes_list(void *ctx, const struct request *rq, struct response *rs);
void door_nodes_add(void *ctx, const struct request *rq, struct response *rs);
void door_nodes_remove(void *ctx, const struct request *rq, struct response *rs);
void door_snapshot(void *ctx, const struct request *rq, struct response *rs);
void door_metrics(void *ctx, const struct request *rq, struct response *rs);

/** door_refuse_network() - why a network is not made: what networks_add() says, with words. */
void door_refuse_network(struct response *rs, int r, const struct err *e);

/** door_find_network() - the network of the path's first part; NULL: @rs says 404. */
struct model_network *door_find_network(
    struct hub *hub, const struct request *rq, struct response *rs);

/** door_find_node() - the node of the path's second part; NULL: @rs says 404. */
struct model_node *door_find_node(
    struct model_network *net, const struct request *rq, struct response *rs);

/* door_access.c */
void door_admins_list(void *ctx, const struct request *rq, struct response *rs);
void door_admins_add(void *ctx, const struct request *rq, struct response *rs);
void door_admins_remove(void *ctx, const struct request *rq, struct response *rs);
void door_admin_file_rotate(void *ctx, const struct request *rq, struct response *rs);
void door_audit(void *ctx, const struct request *rq, struct response *rs);
void door_tokens_list(void *ctx, const struct request *rq, struct response *rs);
void door_tokens_remove(void *ctx, const struct request *rq, struct response *rs);
void door_backup(void *ctx, const struct request *rq, struct response *rs);
void door_routes_list(void *ctx, const struct request *rq, struct response *rs);

/* door_objects.c */
void door_objects_list(void *ctx, const struct request *rq, struct response *rs);
void door_objects_get(void *ctx, const struct request *rq, struct response *rs);
void door_objects_put(void *ctx, const struct request *rq, struct response *rs);
