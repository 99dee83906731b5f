/* daily.c - see daily.h. */
#include "mesh/object/daily.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"
#include "mesh/object/traffic.h"

#define RTT_US_MAX 60000000u

/* Bytes of one sample as it is kept, and of a peer's name, with what goes around them, at most. */
#define SAMPLE_BYTES 104
#define NAME_BYTES   (NAME_MAX_LEN + 8)

void daily_deinit(struct daily *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->items[i]);
    free(d->items);
    *d = (struct daily)DAILY_NULL;
}

static int compare_name(const void *item, const void *wanted)
{
    const struct daily_peer *const *p = item;

    return strcmp((*p)->name, wanted);
}

const struct daily_peer *daily_find(const struct daily *d, const char *peer)
{
    bool found;
    size_t i = sorted_place(d->items, d->n, sizeof(*d->items), compare_name, peer, &found);

    return found ? d->items[i] : NULL;
}

/* Makes room for one more peer, at the expense of the one that was measured longest ago, if that
 * was before @day: maybe it is a member no more. */
static void make_space(struct daily *d, int32_t day)
{
    size_t oldest = 0;

    for (size_t i = 1; i < d->n; i++)
        if (d->items[i]->days[d->items[i]->n - 1].day <
            d->items[oldest]->days[d->items[oldest]->n - 1].day)
            oldest = i;
    if (d->n < DAILY_PEERS_MAX || d->items[oldest]->days[d->items[oldest]->n - 1].day >= day)
        return;
    free(d->items[oldest]);
    d->n--;
    memmove(&d->items[oldest], &d->items[oldest + 1], (d->n - oldest) * sizeof(*d->items));
}

/* NULL: there is no room, or no memory. */
static struct daily_peer *open_peer(struct daily *d, const char *name, int32_t day)
{
    struct daily_peer **items;
    struct daily_peer *made;
    bool found;
    size_t i = sorted_place(d->items, d->n, sizeof(*d->items), compare_name, name, &found);

    if (found)
        return d->items[i];
    make_space(d, day);
    i = sorted_place(d->items, d->n, sizeof(*d->items), compare_name, name, &found);
    made = d->n < DAILY_PEERS_MAX ? calloc(1, sizeof(*made)) : NULL;
    items = made ? sorted_open(d->items, d->n, sizeof(*d->items), i, &d->cap) : NULL;
    if (!items) {
        free(made);
        return NULL;
    }
    (void)snprintf(made->name, sizeof(made->name), "%s", name);
    d->items = items;
    d->items[i] = made;
    d->n++;
    return made;
}

static void drop_oldest(struct daily_peer *p, unsigned n)
{
    p->n -= n;
    memmove(p->days, p->days + n, p->n * sizeof(*p->days));
}

static bool is_same(const struct daily_sample *a, const struct daily_sample *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool daily_put(struct daily *d, const char *peer, const struct daily_sample *s)
{
    struct daily_peer *p = open_peer(d, peer, s->day);
    unsigned i;

    if (!p)
        return false;
    for (i = p->n; i > 0 && p->days[i - 1].day > s->day; i--)
        continue;
    if (i > 0 && p->days[i - 1].day == s->day) {
        if (is_same(&p->days[i - 1], s))
            return false;
        p->days[i - 1] = *s;
        return true;
    }
    if (p->n > 0 && s->day <= p->days[p->n - 1].day - DAILY_DAYS_MAX)
        return false;
    if (p->n == DAILY_DAYS_MAX) {
        drop_oldest(p, 1);
        i -= i > 0;
    }
    memmove(&p->days[i + 1], &p->days[i], (p->n - i) * sizeof(*p->days));
    p->days[i] = *s;
    p->n++;
    for (i = 0; p->days[i].day <= p->days[p->n - 1].day - DAILY_DAYS_MAX; i++)
        continue;
    drop_oldest(p, i);
    return true;
}

/* By how much less was carried, of the ways that were measured both times. */
static bool compare_rates(const uint32_t less[static 2], const uint32_t more[static 2], int *ret)
{
    double with = 0;
    double without = 0;

    for (unsigned way = 0; way < 2; way++) {
        if (less[way] == 0 || more[way] == 0)
            continue;
        with += less[way];
        without += more[way];
    }
    if (without <= 0)
        return false;
    *ret = (int)(100 * (without - with) / without);
    return true;
}

bool daily_cost_percent(const struct daily_sample *s, int *ret)
{
    return compare_rates(s->tunnel_kbit, s->raw_kbit, ret);
}

bool daily_tls_cost_percent(const struct daily_sample *s, int *ret)
{
    return compare_rates(s->tls_kbit, s->tunnel_kbit, ret);
}

/* ---- as it is shown -------------------------------------------------------------------------- */

static json_t *encode_rates(const uint32_t kbit[static 2])
{
    if (kbit[0] == 0 && kbit[1] == 0)
        return NULL;
    return json_pack("[I, I]", (json_int_t)kbit[0] * 1000, (json_int_t)kbit[1] * 1000);
}

static json_t *encode_us(uint32_t us)
{
    return us > 0 ? json_integer(us) : NULL;
}

json_t *daily_sample_encode(const struct daily_sample *s)
{
    char day[TRAFFIC_DAY_TEXT_MAX];
    json_t *cost = NULL;
    json_t *tls_cost = NULL;
    int percent;

    if (daily_cost_percent(s, &percent))
        cost = json_integer(percent);
    if (daily_tls_cost_percent(s, &percent))
        tls_cost = json_integer(percent);
    return json_pack("{s:s, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "day",
        traffic_day_format(s->day, day), "tunnelBitsPerSecond", encode_rates(s->tunnel_kbit),
        "rawBitsPerSecond", encode_rates(s->raw_kbit), "tunnelRttUs", encode_us(s->tunnel_rtt_us),
        "rawRttUs", encode_us(s->raw_rtt_us), "costPercent", cost, "tlsBitsPerSecond",
        encode_rates(s->tls_kbit), "tlsCostPercent", tls_cost);
}

json_t *daily_peer_encode(const struct daily_peer *p)
{
    json_t *days = json_array();

    for (unsigned i = 0; i < p->n; i++)
        fields_append(&days, daily_sample_encode(&p->days[i]));
    return days;
}

/* ---- as it is reported and kept -------------------------------------------------------------- */

/* [day, tunnel there, back, raw there, back, RTT in the tunnel, raw, with TLS there, back] */
#define SAMPLE_NUMBERS_MIN 7
#define SAMPLE_NUMBERS     9

json_t *daily_sample_encode_short(const struct daily_sample *s)
{
    return json_pack("[I, I, I, I, I, I, I, I, I]", (json_int_t)s->day,
        (json_int_t)s->tunnel_kbit[0], (json_int_t)s->tunnel_kbit[1], (json_int_t)s->raw_kbit[0],
        (json_int_t)s->raw_kbit[1], (json_int_t)s->tunnel_rtt_us, (json_int_t)s->raw_rtt_us,
        (json_int_t)s->tls_kbit[0], (json_int_t)s->tls_kbit[1]);
}

json_t *daily_encode(const struct daily *d, size_t max)
{
    json_t *json = json_object();
    size_t names = d->n * NAME_BYTES;
    size_t n_samples = max > names ? (max - names) / SAMPLE_BYTES : 0;
    size_t each = d->n > 0 && n_samples > d->n ? n_samples / d->n : 1;

    for (size_t i = 0; json && i < d->n && n_samples > 0; i++) {
        const struct daily_peer *p = d->items[i];
        unsigned n = p->n > each ? (unsigned)each : p->n;
        json_t *days = json_array();

        for (unsigned k = p->n - n; k < p->n; k++)
            fields_append(&days, daily_sample_encode_short(&p->days[k]));
        n_samples -= n;
        fields_set(&json, p->name, days);
    }
    return json;
}

int daily_sample_decode(
    struct daily_sample *ret, const json_t *json, const char *where, struct err *e)
{
    static const json_int_t most[SAMPLE_NUMBERS] = {TRAFFIC_DAY_MAX, DAILY_KBIT_MAX, DAILY_KBIT_MAX,
        DAILY_KBIT_MAX, DAILY_KBIT_MAX, RTT_US_MAX, RTT_US_MAX, DAILY_KBIT_MAX, DAILY_KBIT_MAX};
    json_int_t numbers[SAMPLE_NUMBERS] = {0};
    size_t n = json_array_size(json);

    if (n != SAMPLE_NUMBERS_MIN && n != SAMPLE_NUMBERS)
        return err_set(e, -EINVAL, "%s: a day is no array of %d or %d numbers", where,
            SAMPLE_NUMBERS_MIN, SAMPLE_NUMBERS);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(json, i);

        numbers[i] = json_integer_value(item);
        if (!json_is_integer(item) || numbers[i] < 0 || numbers[i] > most[i])
            return err_set(e, -EINVAL,
                "%s: number %zu of a day is not a whole number from 0 to %lld", where, i,
                (long long)most[i]);
    }
    *ret = (struct daily_sample){.day = (int32_t)numbers[0],
        .tunnel_kbit = {(uint32_t)numbers[1], (uint32_t)numbers[2]},
        .raw_kbit = {(uint32_t)numbers[3], (uint32_t)numbers[4]},
        .tunnel_rtt_us = (uint32_t)numbers[5],
        .raw_rtt_us = (uint32_t)numbers[6],
        .tls_kbit = {(uint32_t)numbers[7], (uint32_t)numbers[8]}};
    return 0;
}

static int decode_peer(
    struct daily *d, const char *peer, const json_t *days, const char *where, struct err *e)
{
    const json_t *item;
    size_t i;
    int r = node_check_name(peer, e);

    if (r == 0 && (!json_is_array(days) || json_array_size(days) > DAILY_DAYS_MAX))
        r = err_set(e, -EINVAL, "%s: what is of \"%.63s\" is no array of at most %d days", where,
            peer, DAILY_DAYS_MAX);
    if (r != 0)
        return r;
    json_array_foreach(days, i, item) {
        struct daily_sample s;

        r = daily_sample_decode(&s, item, where, e);
        if (r != 0)
            return r;
        (void)daily_put(d, peer, &s);
    }
    return 0;
}

int daily_decode(struct daily *ret, const json_t *json, const char *where, struct err *e)
{
    struct daily d = DAILY_NULL;
    const char *peer;
    json_t *days;

    if (json_object_size(json) > DAILY_PEERS_MAX)
        return err_set(e, -EINVAL, "%s: days of more than %d nodes", where, DAILY_PEERS_MAX);
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)json, peer, days) {
        int r = decode_peer(&d, peer, days, where, e);

        if (r != 0) {
            daily_deinit(&d);
            return r;
        }
    }
    *ret = d;
    return 0;
}
