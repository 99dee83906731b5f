/*
 * path_send.c - frames out: each is put into the node's queue, which its owner empties.
 */
#include "path/path_internal.h"
#include "path/path_pair_internal.h"
#include "path/paths_internal.h"

static struct paths_item *add_frame(
    struct path *pp, enum path_frame_kind kind, uint32_t socket, const struct endpoint *remote)
{
    struct paths_item *item = paths__add(pp->owner, pp, PATH_ACTION_SEND);

    if (!item)
        return NULL;
    item->action.socket = socket;
    item->action.remote = *remote;
    item->action.len = PATH_FRAME_MIN;
    item->frame.kind = kind;
    item->frame.session = pp->owner->session;
    item->frame.echo = pp->receiving.session;
    item->frame.sequence = ++pp->sending.sequence;
    pp->sending.n_frames++;
    return item;
}

uint64_t path__next_transaction(struct path *pp)
{
    return ++pp->sending.transaction;
}

/* NULL: no memory. */
static struct paths_item *add_ping(
    struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now)
{
    struct paths_item *item = add_frame(pp, PATH_FRAME_PING, socket, remote);

    if (!item)
        return NULL;
    item->frame.transaction = path__next_transaction(pp);
    item->frame.clock = (uint64_t)now;
    if (pp->choice.is_moved)
        item->frame.flags |= PATH_FRAME_MOVED;
    return item;
}

bool path__may_ping(struct path *pp, const struct path_pair *pair, unsigned n, nsec_t now)
{
    return path__pair_has_answered(pair, now) ||
           paths__may_send(pp->owner, &pair->remote.endpoint, n, false, now);
}

void path__ping(struct path *pp, struct path_pair *pair, nsec_t now)
{
    struct paths_item *item = add_ping(pp, pair->socket, &pair->remote.endpoint, now);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    if (pair->is_answered)
        item->frame.flags |= PATH_FRAME_ANSWERED;
    path__pair_on_ping(pair, pp->sending.transaction, now);
}

void path__open(struct path *pp, const struct path_pair *pair, uint8_t hops, nsec_t now)
{
    struct paths_item *item = add_ping(pp, pair->socket, &pair->remote.endpoint, now);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    item->action.hops = hops;
}

void path__ping_loose(struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now)
{
    (void)add_ping(pp, socket, remote, now);
    pp->sending.n_guesses++;
    pp->owner->counters.guesses++;
}

void path__tell(struct path *pp, const struct path_pair *pair, enum path_frame_kind kind,
    uint8_t flags, uint64_t transaction, nsec_t now)
{
    struct paths_item *item = add_frame(pp, kind, pair->socket, &pair->remote.endpoint);

    if (!item)
        return;
    item->action.local = pair->contact.local;
    item->frame.flags = flags;
    item->frame.transaction = transaction;
    item->frame.clock = (uint64_t)now;
}

bool path__probe(
    struct path *pp, const struct path_pair *pair, uint16_t size, uint64_t *ret_probe, nsec_t now)
{
    struct paths_item *item = add_frame(pp, PATH_FRAME_PROBE, pair->socket, &pair->remote.endpoint);

    if (!item)
        return false;
    item->action.local = pair->contact.local;
    item->action.len = size;
    item->action.dont_fragment = true;
    /* What a relay passes on to this node has to fit, too. */
    if (pp->peer.is_relay)
        item->frame.flags |= PATH_FRAME_WHOLE;
    item->frame.transaction = path__next_transaction(pp);
    item->frame.clock = (uint64_t)now;
    *ret_probe = pp->sending.transaction;
    return true;
}

void path__answer(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    size_t len, nsec_t now)
{
    bool is_probe = f->kind == PATH_FRAME_PROBE;
    const struct path_pair *pair = path__pair_find(pp, in->socket, &in->from);
    struct paths_item *item;
    nsec_t held = now - in->at;

    if (!paths__may_answer(pp->owner, now))
        return;
    item = add_frame(pp, is_probe ? PATH_FRAME_PROBE_ACK : PATH_FRAME_PONG, in->socket, &in->from);
    if (!item)
        return;
    item->action.local = in->local;
    item->frame.transaction = f->transaction;
    item->frame.echo = f->session;
    item->frame.clock = f->clock;
    item->frame.held_us = held > 0 && held < NSEC_PER_SEC ? (uint32_t)(held / NSEC_PER_USEC) : 0;
    item->frame.observed = in->from;
    item->frame.size = is_probe ? (uint16_t)len : 0;
    if (is_probe && (f->flags & PATH_FRAME_WHOLE)) {
        item->action.len = len;
        item->action.dont_fragment = true;
    }
    if (pair && pair->id == pp->choice.pair)
        item->frame.flags |= PATH_FRAME_IN_USE;
}
