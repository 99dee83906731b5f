/* path_edge.c - see path_edge.h. */
#include "test/support/path_edge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct paths owner;
static struct path edge;

struct path *edge_start(void)
{
    owner = (struct paths){.session = 11, .name = "a", .relay_is_usable = true};
    owner.budget.begin = (struct paths_bucket){.interval = 1, .burst = NSEC_PER_SEC};
    owner.budget.answer = owner.budget.mappings = owner.budget.begin;
    edge = (struct path){.owner = &owner, .peer = {.name = "b"}, .nominates = true};
    edge.receiving.session = 77;
    edge.choice.choose_at = edge.choice.alarm_at = edge.relay.move_at = NSEC_NEVER;
    edge.checks.round.next_at = edge.liveness.next_at = edge.slot.next_at = NSEC_NEVER;
    return &edge;
}

void edge_stop(void)
{
    free(edge.pairs.items);
    free(edge.guess.present);
    paths__queue_deinit(&owner);
}

struct path_pair *edge_add(enum candidate_kind kind, const char *text, uint32_t socket)
{
    struct endpoint remote;

    assert_int_equal(endpoint_parse(&remote, text, NULL), 0);
    return path__pair_add(&edge, kind, &remote, socket);
}

void edge_answer(struct path_pair *pair, nsec_t rtt, unsigned n_samples)
{
    pair->rtt = pair->last_rtt = pair->recent.values[0] = rtt;
    pair->n_samples = pair->n_known = n_samples;
    pair->tried_at = EDGE_T0 - rtt;
    pair->valid_at = pair->answered_at = EDGE_T0;
    pair->is_answered = true;
}

void edge_relay(uint8_t n, unsigned here_ms, unsigned there_ms)
{
    if (here_ms != 0)
        owner.self.relays[owner.self.n_relays++] =
            (struct path_relay){.key = {{n}}, .rtt = here_ms * NSEC_PER_MSEC};
    if (there_ms != 0)
        edge.side.relays[edge.side.n_relays++] =
            (struct path_relay){.key = {{n}}, .rtt = there_ms * NSEC_PER_MSEC};
    edge.has_side = true;
}

static int format_frame(char *out, size_t cap, const struct paths_item *item)
{
    static const char *const names[] = {
        "none", "ping", "pong", "nominate", "accept", "leave", "probe", "probe-ack"};
    char to[ENDPOINT_TEXT_MAX];
    char more[4][24] = {""};

    if (item->frame.flags != 0)
        (void)snprintf(more[0], sizeof(more[0]), " flags %u", item->frame.flags);
    if (item->action.hops != 0)
        (void)snprintf(more[1], sizeof(more[1]), " hops %u", item->action.hops);
    if (item->action.len != PATH_FRAME_MIN)
        (void)snprintf(more[2], sizeof(more[2]), " size %zu", item->action.len);
    if (item->action.socket != PATH_SOCKET_MAIN)
        (void)snprintf(more[3], sizeof(more[3]), " by %u", item->action.socket);
    return snprintf(out, cap, "%s %llu to %s%s%s%s%s\n", names[item->frame.kind],
        (unsigned long long)item->frame.transaction, endpoint_format(&item->action.remote, to),
        more[0], more[1], more[2], more[3]);
}

static int format_use(char *out, size_t cap, const struct path_action *a)
{
    char to[ENDPOINT_TEXT_MAX];
    char from[IP_ADDR_TEXT_MAX] = "none";

    if (a->path != PATH_KIND_LAN && a->path != PATH_KIND_DIRECT)
        return snprintf(out, cap, "use %s %u, %lld ms%s\n", path_kind_names[a->path],
            a->via.key.b[0], (long long)(a->via.rtt / NSEC_PER_MSEC),
            a->is_followed ? " followed" : "");
    if (!ip_addr_is_none(&a->local))
        (void)ip_addr_format(&a->local, from);
    return snprintf(out, cap, "use %s %s by %u from %s\n", path_kind_names[a->path],
        endpoint_format(&a->remote, to), a->socket, from);
}

static int format_item(char *out, size_t cap, const struct paths_item *item)
{
    switch (item->action.kind) {
    case PATH_ACTION_SEND:
        return format_frame(out, cap, item);
    case PATH_ACTION_USE:
        return format_use(out, cap, &item->action);
    case PATH_ACTION_OPEN:
        return snprintf(out, cap, "open %u\n", item->action.socket);
    case PATH_ACTION_CLOSE:
        return snprintf(out, cap, "close %u\n", item->action.socket);
    case PATH_ACTION_FRESH:
        return snprintf(out, cap, "fresh\n");
    case PATH_ACTION_LOOK:
        return snprintf(out, cap, "look\n");
    case PATH_ACTION_EVENT:
        return snprintf(
            out, cap, "%s %s\n", item->action.is_warning ? "warning" : "event", item->text);
    case PATH_ACTION_NONE:
    case PATH_ACTION_FITS:
    case PATH_ACTION_KIND_N:
        break;
    }
    fail_msg("an action of kind %d", (int)item->action.kind);
    return 0;
}

void edge_expect(const char *lines)
{
    struct paths_queue *q = &owner.queue;
    char text[8192] = "";
    size_t len = 0;

    while (q->n > 0) {
        struct paths_item *item = &q->items[q->first];

        len += (size_t)format_item(text + len, sizeof(text) - len, item);
        assert_true(len < sizeof(text));
        free(item->text);
        q->first = (q->first + 1) % q->cap;
        q->n--;
    }
    assert_string_equal(text, lines);
}
