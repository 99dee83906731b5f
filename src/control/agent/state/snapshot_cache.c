/* snapshot_cache.c - see snapshot_cache.h. */
#include "agent/state/snapshot_cache.h"

#include <errno.h>
#include <string.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"
#include "mesh/snapshot/watch_event.h"

#define RETRY (30 * NSEC_PER_SEC)

/* Is that object this node, with a key of this machine? @self: as the hub describes it. */
static int check_self(const struct state *st, const struct node *self, struct err *e)
{
    const struct node *known = snapshot_self(&st->snapshot);

    if (strcmp(self->meta.name, known->meta.name) != 0 ||
        strcmp(self->meta.network, known->meta.network) != 0)
        return err_set(e, -EINVAL, "they are about \"%s\" in \"%s\", and this is \"%s\" in \"%s\"",
            self->meta.name, self->meta.network, known->meta.name, known->meta.network);
    if (!state_is_own_key(st, &self->key))
        return err_set(e, -EINVAL, "they give \"%s\" another key than it has", self->meta.name);
    return 0;
}

static int check_blocks(const struct network *joined, const struct network *said, struct err *e)
{
    char text[4][IP_PREFIX_TEXT_MAX];

    if (ip_prefix_equal(&joined->cidr4, &said->cidr4) &&
        ip_prefix_equal(&joined->cidr6, &said->cidr6))
        return 0;
    return err_set(e, -EINVAL,
        "they give the network the blocks %s and %s, and at the join it had %s and %s",
        ip_prefix_format(&said->cidr4, text[0]), ip_prefix_format(&said->cidr6, text[1]),
        ip_prefix_format(&joined->cidr4, text[2]), ip_prefix_format(&joined->cidr6, text[3]));
}

static int check_addresses(const struct network *joined, const struct node *node, struct err *e)
{
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];

    if (ip_prefix_has(&joined->cidr4, &node->address4) &&
        ip_prefix_has(&joined->cidr6, &node->address6))
        return 0;
    return err_set(e, -EINVAL,
        "they give \"%s\" the addresses %s and %s, and not both are in the network's blocks",
        node->meta.name, ip_addr_format(&node->address4, a4), ip_addr_format(&node->address6, a6));
}

static int check_snapshot(const struct network *joined, const struct snapshot *s, struct err *e)
{
    int r = check_blocks(joined, &s->network, e);

    for (size_t i = 0; r == 0 && i < s->nodes.n; i++)
        r = check_addresses(joined, &s->nodes.items[i]->node, e);
    return r;
}

int snapshot_cache_check_event(const struct state *st, const struct watch_event *ev, struct err *e)
{
    const struct network *joined = &st->snapshot.network;
    const struct object *put = &ev->object;
    int r = 0;

    if (ev->kind == WATCH_EVENT_SNAPSHOT) {
        r = check_self(st, snapshot_self(&ev->snapshot), e);
        return r == 0 ? check_snapshot(joined, &ev->snapshot, e) : r;
    }
    if (ev->kind != WATCH_EVENT_PUT)
        return 0;
    if (put->kind == &network_kind)
        return check_blocks(joined, &put->network, e);
    if (put->kind != &node_kind)
        return 0;
    if (strcmp(put->node.meta.name, st->snapshot.self) == 0)
        r = check_self(st, &put->node, e);
    return r == 0 ? check_addresses(joined, &put->node, e) : r;
}

int snapshot_cache_load(struct snapshot_cache *sc, const char *dir, const struct state *st,
    struct snapshot *ret, struct err *e)
{
    struct err why = ERR_NULL;
    json_t *json;
    int r;

    *sc = (struct snapshot_cache){.dir = dir, .due_at = NSEC_NEVER};
    r = state_read_snapshot(ret, dir, &why);
    if (r == 0) {
        r = check_self(st, snapshot_self(ret), &why);
        if (r < 0)
            snapshot_deinit(ret);
    }
    if (r == 0 && check_snapshot(&st->snapshot.network, ret, &why) == 0) {
        /* The snapshot is the agent's own; what it lends is const for others. */
        ((struct node *)(uintptr_t)snapshot_self(ret))->key = snapshot_self(&st->snapshot)->key;
        return 0;
    }
    if (r == 0) {
        /* An earlier version took it of a hub. The next one overwrites it. */
        log_warning("the kept objects are not used: %s", err_text(&why));
        snapshot_deinit(ret);
    }
    if (r < 0) {
        sc->is_damaged = true;
        log_error("%s; it is left as it is, and what is heard is not kept until it is removed",
            err_text(&why));
    }
    json = snapshot_encode(&st->snapshot);
    r = json ? snapshot_decode(ret, json, NULL, e) : -ENOMEM;
    json_decref(json);
    return r;
}

void snapshot_cache_on_change(struct snapshot_cache *sc, bool is_status, nsec_t now)
{
    nsec_t each = is_status ? SNAPSHOT_CACHE_STATUS_EACH : SNAPSHOT_CACHE_EACH;
    nsec_t next = sc->saved_at == 0 ? 0 : sc->saved_at + each;

    sc->due_at = nsec_min(sc->due_at, nsec_max(now + SNAPSHOT_CACHE_DELAY, next));
}

void snapshot_cache_save(struct snapshot_cache *sc, const struct snapshot *s, nsec_t now)
{
    struct err e = ERR_NULL;

    sc->due_at = NSEC_NEVER;
    if (sc->is_damaged)
        return;
    sc->saved_at = now;
    if (state_write_snapshot(s, sc->dir, &e) == 0)
        return;
    log_limited(&sc->limit, now, LOG_LEVEL_WARNING, "the snapshot is not kept, trying again: %s",
        err_text(&e));
    sc->due_at = now + RETRY;
}
