/* lease.c - see lease.h. */
#include "lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

struct lease {
    struct keyed keyed;    /* owns the key */
    struct heap_link link; /* in by_end */
    uint32_t ttl_seconds;  /* how long, from the last begin */
};

static void lease_free(struct lease *le)
{
    free(le->keyed.key);
    free(le);
}

void leases_deinit(struct leases *l)
{
    for (size_t i = 0; i < l->by_key.n; i++)
        lease_free(container_of(l->by_key.items[i], struct lease, keyed));
    keys_deinit(&l->by_key);
    heap_deinit(&l->by_end);
    *l = (struct leases)LEASES_NULL;
}

static struct lease *find(const struct leases *l, const char *key)
{
    struct keyed *k = keys_find(&l->by_key, key);

    return k ? container_of(k, struct lease, keyed) : NULL;
}

static void drop(struct leases *l, struct lease *le)
{
    heap_remove(&l->by_end, &le->link);
    keys_remove(&l->by_key, &le->keyed);
    lease_free(le);
}

static struct lease *add(struct leases *l, const char *key)
{
    struct lease *le = calloc(1, sizeof(*le));

    if (!le)
        return NULL;
    le->keyed.key = strdup(key);
    if (!le->keyed.key || keys_add(&l->by_key, &le->keyed) != 0) {
        lease_free(le);
        return NULL;
    }
    return le;
}

static nsec_t end_of(const struct lease *le, nsec_t now)
{
    return now + le->ttl_seconds * NSEC_PER_SEC;
}

int leases_set(struct leases *l, const char *key, uint32_t ttl_seconds, nsec_t now)
{
    struct lease *le = find(l, key);

    if (ttl_seconds == 0) {
        if (le)
            drop(l, le);
        return 0;
    }
    if (!le)
        le = add(l, key);
    if (!le)
        return -ENOMEM;
    le->ttl_seconds = ttl_seconds;
    return heap_set(&l->by_end, &le->link, end_of(le, now));
}

bool leases_keep(struct leases *l, const char *key, nsec_t now)
{
    struct lease *le = find(l, key);

    /* Moving a member that is armed allocates nothing, so it cannot fail. */
    return le && heap_set(&l->by_end, &le->link, end_of(le, now)) == 0;
}

nsec_t leases_due(const struct leases *l)
{
    return heap_due(&l->by_end);
}

size_t leases_ended(const struct leases *l, nsec_t now, const char **ret, size_t cap)
{
    size_t n = 0;

    if (heap_due(&l->by_end) > now)
        return 0;
    /* A walk over all of them is fine: it happens only when at least one has ended. */
    for (size_t i = 0; i < l->by_key.n && n < cap; i++) {
        const struct lease *le = container_of(l->by_key.items[i], struct lease, keyed);

        if (le->link.due <= now)
            ret[n++] = le->keyed.key;
    }
    return n;
}
