/* uplink.c - see uplink.h. */
#include "uplink/uplink.h"

#include <stddef.h>
#include <string.h>

#include "base/traffic.h"
#include "uplink/train.h"

const char *const uplink_state_names[] = {"unknown", "fast", "found"};
_Static_assert(
    sizeof(uplink_state_names) / sizeof(*uplink_state_names) == UPLINK_STATE_N, "a name each");

uint64_t uplink_round(uint64_t bits_per_s)
{
    uint64_t unit = 1;

    while (bits_per_s / unit >= 1000)
        unit *= 10;
    return bits_per_s - bits_per_s % unit;
}

void uplink_put(struct uplink *u, const struct uplink_train *train)
{
    /* A clock that was set back makes what was before it useless. */
    while (u->n > 0 && u->items[u->n - 1].at_s > train->at_s)
        u->n--;
    if (u->n == UPLINK_TRAINS_MAX) {
        memmove(&u->items[0], &u->items[1], (UPLINK_TRAINS_MAX - 1) * sizeof(*u->items));
        u->n--;
    }
    u->items[u->n++] = *train;
}

void uplink_forget(struct uplink *u)
{
    u->n = 0;
}

static bool counts(const struct uplink_train *t, int64_t wall_s)
{
    return t->at_s <= wall_s && wall_s - t->at_s < UPLINK_KEEP_S;
}

static bool is_slower_than(uint64_t slow, uint64_t fast)
{
    return (double)slow * UPLINK_AGREE < (double)fast * 100;
}

/* The first of those that count to the same peer. */
static bool is_first_of_peer(const struct uplink *u, unsigned i, const bool *is_in)
{
    for (unsigned k = 0; k < i; k++)
        if (is_in[k] && strcmp(u->items[k].peer, u->items[i].peer) == 0)
            return false;
    return true;
}

/* Fills in @ret, which has its rate, with the trains that agree on that. False: too few do. */
static bool agree(const struct uplink *u, int64_t wall_s, struct uplink_estimate *ret)
{
    bool is_in[UPLINK_TRAINS_MAX] = {false};

    ret->n_trains = ret->n_peers = 0;
    for (unsigned i = 0; i < u->n; i++) {
        const struct uplink_train *t = &u->items[i];

        is_in[i] = counts(t, wall_s) && t->is_line && t->bits_per_s <= ret->bits_per_s &&
                   !is_slower_than(t->bits_per_s, ret->bits_per_s);
        if (!is_in[i])
            continue;
        ret->n_trains++;
        ret->n_peers += is_first_of_peer(u, i, is_in);
        ret->at_s = t->at_s;
    }
    return ret->n_trains >= UPLINK_TRAINS_MIN && ret->n_peers >= UPLINK_PEERS_MIN;
}

/* The peer whose last train was faster than @rate; NULL: there is none. */
static const char *find_faster(const struct uplink *u, uint64_t rate, int64_t wall_s)
{
    for (unsigned i = 0; i < u->n; i++) {
        const struct uplink_train *t = &u->items[i];
        bool is_last = counts(t, wall_s);

        for (unsigned k = i + 1; is_last && k < u->n; k++)
            is_last = strcmp(u->items[k].peer, t->peer) != 0;
        if (is_last && is_slower_than(rate, t->bits_per_s))
            return t->peer;
    }
    return NULL;
}

struct uplink_estimate uplink_estimate(const struct uplink *u, int64_t wall_s)
{
    bool are_all[UPLINK_TRAINS_MAX] = {false};
    struct uplink_estimate none = {.state = UPLINK_UNKNOWN};
    struct uplink_estimate best = {.state = UPLINK_FOUND};

    for (unsigned i = 0; i < u->n; i++) {
        const struct uplink_train *t = &u->items[i];
        struct uplink_estimate e = {.state = UPLINK_FOUND, .bits_per_s = t->bits_per_s};

        are_all[i] = counts(t, wall_s);
        if (!are_all[i])
            continue;
        none.n_trains++;
        none.n_peers += is_first_of_peer(u, i, are_all);
        none.at_s = t->at_s;
        if (t->bits_per_s >= TRAIN_FAST)
            return (struct uplink_estimate){.state = UPLINK_FAST,
                .bits_per_s = uplink_round(t->bits_per_s),
                .at_s = t->at_s,
                .n_trains = 1,
                .n_peers = 1};
        if (t->is_line && t->bits_per_s >= TRAFFIC_RATE_MIN && t->bits_per_s > best.bits_per_s &&
            agree(u, wall_s, &e))
            best = e;
    }
    if (best.bits_per_s == 0)
        return none;
    none.faster = find_faster(u, best.bits_per_s, wall_s);
    best.bits_per_s = uplink_round(best.bits_per_s);
    return none.faster ? none : best;
}

unsigned uplink_trains_to(const struct uplink *u, const char *peer, int64_t wall_s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < u->n; i++)
        n += counts(&u->items[i], wall_s) && strcmp(u->items[i].peer, peer) == 0;
    return n;
}
