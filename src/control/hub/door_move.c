/* door_move.c - where the hub will be: announced to its nodes before it moves. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "os/log.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"
#include "hub/later.h"
#include "hub/networks.h"
#include "hub/request.h"
#include "os/clock.h"

/* Nodes that are named; the rest is counted. */
#define NAMED_MAX 100

static json_t *texts_of(const struct hub_places *places)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < places->n; i++)
        json_array_append_new(list, json_string(places->items[i].text));
    return list;
}

/* Who listens has been told; who comes back is told then. */
static json_t *count_told(struct hub *hub, size_t *ret_n, size_t *ret_told)
{
    json_t *untold = json_array();

    for (size_t i = 0; i < hub->model.networks.n; i++) {
        struct model_network *net = model_network_at(&hub->model, i);

        for (size_t k = 0; k < net->nodes.n; k++) {
            const struct model_node *node = model_node_at(net, k);

            if (node->pub.spec.hub)
                continue;
            *ret_n += 1;
            *ret_told += watch_is_open(node);
            if (!watch_is_open(node) && json_array_size(untold) < NAMED_MAX)
                json_array_append_new(untold,
                    json_sprintf("%s/%s", net->pub.spec.meta.name, node->pub.spec.meta.name));
        }
    }
    return untold;
}

static void answer(struct hub *hub, struct response *rs)
{
    size_t n = 0;
    size_t told = 0;
    json_t *untold = count_told(hub, &n, &told);

    response_json(rs, 200,
        json_pack("{s:o, s:o, s:I, s:I, s:o}", "public", texts_of(&hub->publics.here), "next",
            texts_of(&hub->publics.next), "nodes", (json_int_t)n, "told", (json_int_t)told,
            "untold", untold));
}

void door_move_get(void *ctx, const struct request *rq, struct response *rs)
{
    answer(ctx, rs);
}

/* Somebody announces it. */
struct move_call {
    struct later later;
    struct hub_places next;
};

static void announce(struct later *l, const struct store_answer *a, struct response *rs)
{
    struct move_call *call = container_of(l, struct move_call, later);
    struct hub *hub = l->hub;
    struct err e = ERR_NULL;
    char path[512];
    int r;

    if (a->r != 0) {
        later_fail(rs, a);
        return;
    }
    r = publics_announce(&hub->publics, &call->next, hub__path(hub, path, "move.json"), &e);
    if (r == 0)
        r = networks_refresh(hub, clock_now(), &e);
    if (r != 0) {
        response_fail(rs, &e);
        return;
    }
    if (call->next.n > 0)
        log_info("%s announces that this hub will be at %s", l->rq.caller.name,
            call->next.items[0].text);
    else
        log_info("%s announces that this hub stays", l->rq.caller.name);
    answer(hub, rs);
}

static void note_move(struct later *l, const struct request *rq, struct response *rs)
{
    struct err e = ERR_NULL;

    l->done = announce;
    if (audit_note(&l->hub->audit, "change", "file/move.json", l->rq.now, later_store, l, &e) == 0)
        later_wait(l);
    else
        response_fail(rs, &e);
}

void door_move_put(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct hub_places next;
    struct move_call *call;
    struct err e = ERR_NULL;

    if (move_request_decode(&next, rq->body, hub->config.udp_port, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    call = later_new(ctx, rq, rs, sizeof(*call), note_move);
    if (!call)
        return;
    call->next = next;
    later_begin(&call->later, rq, rs);
}
