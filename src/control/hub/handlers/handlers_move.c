/* handlers_move.c - where the hub will be: announced to its nodes before it moves. */
#include <stdio.h>

#include "api/server/server.h"
#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks.h"
#include "hub/networks/public_addresses.h"
#include "hub/record/request.h"
#include "hub/watch/watch.h"
#include "os/clock.h"
#include "os/log.h"

/* How many nodes that have not been told are named; the others are only counted. */
#define NAMED_MAX 100

/* Which nodes have been told: those that have a watch open. The others are told when they return.
 */
static json_t *count_informed(struct handlers *h, size_t *ret_n, size_t *ret_informed)
{
    json_t *uninformed = json_array();

    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);

        for (size_t k = 0; k < net->nodes.n; k++) {
            const struct model_node *node = model_node_at(net, k);

            if (node->spec.hub)
                continue;
            *ret_n += 1;
            *ret_informed += watch_is_open(node);
            if (!watch_is_open(node) && json_array_size(uninformed) < NAMED_MAX)
                json_array_append_new(
                    uninformed, json_sprintf("%s/%s", net->spec.meta.name, node->spec.meta.name));
        }
    }
    return uninformed;
}

void handlers_move_get(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    size_t n = 0;
    size_t informed = 0;
    json_t *uninformed = count_informed(h, &n, &informed);

    response_json(rs, 200,
        json_pack("{s:o, s:o, s:I, s:I, s:o}", "public",
            hub_places_encode(&h->public_addresses->here), "next",
            hub_places_encode(&h->public_addresses->next), "nodes", (json_int_t)n, "told",
            (json_int_t)informed, "untold", uninformed));
}

/* The hub's next places, on their way to the disk. */
struct move_call {
    struct reply reply;
    struct hub_places next;
    bool is_forced;               /* names may lead nowhere yet */
    char path[HANDLERS_PATH_MAX]; /* of move.json */
    int r;                        /* of writing it */
    struct err e;                 /* with its words */
};

static void write_places(void *arg)
{
    struct move_call *call = arg;

    call->r = call->is_forced ? 0 : public_addresses_check(&call->next, &call->e);
    if (call->r == 0)
        call->r = public_addresses_write(&call->next, call->path, &call->e);
}

/* The file was written, or not. If it was, tell the nodes. */
static void on_written(void *arg)
{
    struct move_call *call = arg;
    struct reply *l = &call->reply;
    struct response rs = {0};

    l->h->is_announcing = false;
    if (call->r == 0) {
        public_addresses_set_next(l->h->public_addresses, &call->next);
        reply_act(l, true);
        call->r = networks_refresh(l->h->networks, clock_now(), &call->e);
        reply_act(l, false);
    }
    if (call->r != 0) {
        response_fail(&rs, &call->e);
    } else {
        log_info("%s announces that this hub %s%s", l->rq.caller.name,
            call->next.n > 0 ? "will be at " : "stays",
            call->next.n > 0 ? call->next.items[0].text : "");
        handlers_move_get(l->h, &l->rq, &rs);
    }
    reply_end(l, &rs);
}

static void announce(struct reply *l, struct response *rs)
{
    struct move_call *call = container_of(l, struct move_call, reply);

    (void)snprintf(call->path, sizeof(call->path), "%s/move.json", l->h->state_dir);
    /* One at a time: else nodes might be told one place, and the file hold the other. */
    if (l->h->is_announcing) {
        response_refuse(rs, 409, "%s is being written just now: try again", call->path);
        return;
    }
    if (disk_work(l->h->disk, write_places, on_written, call) != 0) {
        response_refuse(rs, 500, "no memory to write %s", call->path);
        return;
    }
    l->h->is_announcing = true;
    l->is_waiting = true;
}

static void note_move(struct reply *l, const struct request *rq, struct response *rs)
{
    struct move_call *call = container_of(l, struct move_call, reply);
    struct err e = ERR_NULL;

    /* A second try has no query any more. */
    if (request_query(rq, "force"))
        call->is_forced = true;
    if (move_request_decode(&call->next, rq->body, l->h->udp_port, &e) == 0)
        reply_note(l, "change", "file/move.json", announce, rs);
    else
        response_fail(rs, &e);
}

void handlers_move_put(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct move_call), note_move, NULL);
}
