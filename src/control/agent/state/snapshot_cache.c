/* snapshot_cache.c - see snapshot_cache.h. */
#include "agent/state/snapshot_cache.h"

#include <errno.h>
#include <string.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"

#define RETRY (30 * NSEC_PER_SEC)

int snapshot_cache_check_self(const struct state *st, const struct node *self, struct err *e)
{
    const struct node *known = snapshot_self(&st->snapshot);

    if (strcmp(self->meta.name, known->meta.name) != 0 ||
        strcmp(self->meta.network, known->meta.network) != 0)
        return err_set(e, -EINVAL, "they are about \"%s\" in \"%s\", and this is \"%s\" in \"%s\"",
            self->meta.name, self->meta.network, known->meta.name, known->meta.network);
    if (!x25519_public_equal(&self->key, &known->key))
        return err_set(e, -EINVAL, "they give \"%s\" another key than it has", self->meta.name);
    return 0;
}

int snapshot_cache_load(struct snapshot_cache *sc, const char *dir, const struct state *st,
    struct snapshot *ret, struct err *e)
{
    struct err damaged = ERR_NULL;
    json_t *json;
    int r;

    *sc = (struct snapshot_cache){.dir = dir, .due_at = NSEC_NEVER};
    r = state_read_snapshot(ret, dir, &damaged);
    if (r == 0) {
        r = snapshot_cache_check_self(st, snapshot_self(ret), &damaged);
        if (r == 0)
            return 0;
        snapshot_deinit(ret);
    }
    if (r < 0) {
        sc->is_damaged = true;
        log_error("%s; it is left as it is, and what is heard is not kept until it is removed",
            err_text(&damaged));
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
