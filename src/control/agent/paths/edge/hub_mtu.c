/* hub_mtu.c - see hub_mtu.h. */
#include "agent/paths/edge/hub_mtu.h"

#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

/* Of a probe that only says what was found; longer than a frame without padding, as all are. */
#define TELL_SIZE (PATH_FRAME_MIN + 8)

void hub_mtus_init(struct hub_mtus *w, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct rng *rng)
{
    *w = (struct hub_mtus){.secret = *secret, .own = *own, .rng = *rng};
    w->run = rng_u64(&w->rng) | 1;
}

static void free_way(struct hub_mtu *way)
{
    path_keys_wipe(&way->keys);
    free(way);
}

void hub_mtus_deinit(struct hub_mtus *w)
{
    while (w->n > 0)
        free_way(w->items[--w->n]);
    secret_wipe(&w->secret, sizeof(w->secret));
}

void hub_mtus_keep(struct hub_mtus *w, const struct x25519_public *keys, unsigned n)
{
    for (unsigned i = 0; i < w->n;) {
        bool is_there = false;

        for (unsigned k = 0; k < n; k++)
            is_there |= x25519_public_equal(&w->items[i]->key, &keys[k]);
        if (is_there) {
            i++;
            continue;
        }
        free_way(w->items[i]);
        w->items[i] = w->items[--w->n];
    }
}

static struct hub_mtu *find(const struct hub_mtus *w, const struct x25519_public *key)
{
    for (unsigned i = 0; i < w->n; i++)
        if (x25519_public_equal(&w->items[i]->key, key))
            return w->items[i];
    return NULL;
}

static struct hub_mtu *add(struct hub_mtus *w, const struct x25519_public *key)
{
    struct hub_mtu *way = w->n < HUB_MTU_MAX ? calloc(1, sizeof(*way)) : NULL;

    if (!way || !path_keys_derive(&way->keys, &w->secret, &w->own, key)) {
        free(way);
        return NULL;
    }
    way->key = *key;
    w->items[w->n++] = way;
    return way;
}

bool hub_mtus_look(struct hub_mtus *w, const struct x25519_public *key,
    const struct hub_mtu_facts *facts, const struct pmtu_driver_limits *limits, nsec_t now)
{
    struct hub_mtu *way = find(w, key);
    uint16_t before = way ? way->pmtu.mtu : 0;

    if (endpoint_is_none(&facts->at)) {
        if (way)
            pmtu_driver_on_path_lost(&way->pmtu);
        return before != 0;
    }
    if (!way && facts->has_session)
        way = add(w, key);
    if (!way)
        return false;
    if (facts->has_session && !pmtu_driver_on_path(&way->pmtu, &facts->at, limits, now))
        pmtu_driver_set_limits(&way->pmtu, limits, now);
    pmtu_driver_on_data(
        &way->pmtu, facts->tx_bytes != way->tx_bytes, facts->rx_bytes != way->rx_bytes, now);
    way->rx_bytes = facts->rx_bytes;
    way->tx_bytes = facts->tx_bytes;
    return false;
}

uint16_t hub_mtus_of(const struct hub_mtus *w, const struct x25519_public *key)
{
    const struct hub_mtu *way = find(w, key);

    return way && way->pmtu.pmtu.is_measured ? way->pmtu.mtu : 0;
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A probe of @len bytes that says what was found so far. */
static bool seal(struct hub_mtus *w, const struct hub_mtu *way, uint64_t id, size_t len,
    nsec_t wall, nsec_t now, struct hub_mtu_frame *ret)
{
    struct path_frame f = {.kind = PATH_FRAME_PROBE,
        .flags = PATH_FRAME_WHOLE,
        .size = wall != 0 ? hub_mtus_of(w, &way->key) : 0,
        .transaction = id,
        .session = w->run,
        .clock = (uint64_t)now};
    struct xchacha_nonce nonce;

    if (len < PATH_FRAME_MIN || len > PATH_FRAME_MAX)
        return false;
    w->sequence = (uint64_t)nsec_max(wall, (nsec_t)w->sequence + 1);
    f.sequence = w->sequence;
    rng_fill(&w->rng, nonce.b, sizeof(nonce.b));
    ret->to = way->pmtu.remote;
    ret->len = len;
    return path_frame_seal(&way->keys, &f, &nonce, len, ret->bytes);
}

/* The next frame of one way. */
static bool next_of(struct hub_mtus *w, struct hub_mtu *way, struct hub_mtu_frame *ret,
    bool *ret_is_new, nsec_t wall, nsec_t now)
{
    enum pmtu_driver_wish wish;
    struct pmtu_probe probe;
    uint16_t payload;

    while ((wish = pmtu_driver_next(&way->pmtu, &probe, &payload, now)) != PMTU_DRIVER_NONE) {
        uint64_t id = rng_u64(&w->rng);

        if (wish == PMTU_DRIVER_USE) {
            *ret_is_new = true;
            way->owes = true;
        } else if (seal(w, way, id, payload, wall, now, ret)) {
            pmtu_driver_on_sent(&way->pmtu, &probe, id);
            return true;
        }
    }
    if (!way->owes || wall == 0 || hub_mtus_of(w, &way->key) == 0)
        return false;
    /* Nobody waits for the answer: if it is lost, the next probe says it again. */
    way->owes = false;
    return seal(w, way, 0, TELL_SIZE, wall, now, ret);
}

bool hub_mtus_next(
    struct hub_mtus *w, struct hub_mtu_frame *ret, bool *ret_is_new, nsec_t wall, nsec_t now)
{
    for (unsigned i = 0; i < w->n; i++)
        if (next_of(w, w->items[i], ret, ret_is_new, wall, now))
            return true;
    return false;
}

bool hub_mtus_on_frame(struct hub_mtus *w, uint8_t *frame, size_t len, nsec_t now)
{
    struct path_tag tag;
    struct path_frame f;

    if (!path_frame_read_tag(frame, len, &tag))
        return false;
    for (unsigned i = 0; i < w->n; i++) {
        struct hub_mtu *way = w->items[i];

        if (!secret_equal(way->keys.receive_tag.b, tag.b, sizeof(tag.b)))
            continue;
        /* A shorter answer says nothing of the way back. */
        if (path_frame_open(&way->keys, frame, len, &f) && f.kind == PATH_FRAME_PROBE_ACK &&
            f.echo == w->run && len >= f.size)
            (void)pmtu_driver_on_fits(&way->pmtu, f.transaction, true, now);
        return true;
    }
    return false;
}

nsec_t hub_mtus_due(const struct hub_mtus *w)
{
    nsec_t due = NSEC_NEVER;

    for (unsigned i = 0; i < w->n; i++)
        due = nsec_min(due, pmtu_driver_due(&w->items[i]->pmtu));
    return due;
}
