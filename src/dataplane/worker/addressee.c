/* addressee.c - see addressee.h. */
#include "worker/addressee.h"

#include <errno.h>
#include <stdlib.h>

#include "base/containers.h"
#include "shared/device_state.h"

/* Sources that are remembered; 24 bytes each. */
#define ADDRESSEE_SOURCES 1024

_Static_assert((ADDRESSEE_SOURCES & (ADDRESSEE_SOURCES - 1)) == 0, "a mask of the hash");

int addressee_init(struct addressee *a, uint64_t seed)
{
    *a = (struct addressee){.seed = seed};
    a->sources = calloc(ADDRESSEE_SOURCES, sizeof(*a->sources));
    return a->sources ? 0 : -ENOMEM;
}

void addressee_deinit(struct addressee *a)
{
    free(a->sources);
    a->sources = NULL;
}

static bool is_made_for(
    struct addressee *a, const struct cookie_checker *checker, const uint8_t *msg, size_t len)
{
    a->n_tries++;
    return cookie_check_mac1(checker, msg, len);
}

/* Its own key first, and then the next one, if it has one. */
static struct handshake_to try_device(
    struct addressee *a, struct device *d, const uint8_t *msg, size_t len)
{
    if (is_made_for(a, &d->checker, msg, len))
        return (struct handshake_to){.device = d};
    if (d->next && is_made_for(a, &d->next->checker, msg, len))
        return (struct handshake_to){.device = d, .is_next = true};
    return (struct handshake_to){.device = NULL};
}

/* The remembered device, if it is still there and the message is for it. */
static struct handshake_to find_known(struct addressee *a, const struct list *devices,
    const struct device *known, const uint8_t *msg, size_t len)
{
    struct device *d;

    list_foreach(d, devices, siblings)
        if (d == known)
            return try_device(a, d, msg, len);
    return (struct handshake_to){.device = NULL};
}

/* Tries all other devices. The tries count against all sources together, and against the message's
 * own, if it has an @entry. */
static struct handshake_to search(struct addressee *a, const struct list *devices,
    const struct device *known, struct addressee_source *entry, const uint8_t *msg, size_t len,
    nsec_t now)
{
    struct handshake_to found = {.device = NULL};
    uint64_t before = a->n_tries;
    struct device *d;
    nsec_t n;

    list_foreach(d, devices, siblings) {
        if (known && d == known)
            continue;
        found = try_device(a, d, msg, len);
        if (found.device)
            break;
    }
    n = (nsec_t)(a->n_tries - before);
    rate_pay(&a->tries, now, n * ADDRESSEE_COST);
    if (entry)
        rate_pay(&entry->tries, now, n * ADDRESSEE_SOURCE_COST);
    return found;
}

struct handshake_to addressee_find(struct addressee *a, const struct list *devices,
    const struct ip_addr *from, const uint8_t *msg, size_t len, nsec_t now,
    enum drop_reason *ret_why)
{
    struct ip_addr block = ip_addr_block(from);
    uint64_t source = hash_bytes(a->seed, block.b, sizeof(block.b)) | 1;
    struct addressee_source *slot = &a->sources[source / 2 % ADDRESSEE_SOURCES];
    struct addressee_source *entry = slot->source == source ? slot : NULL;
    const struct device *known = entry ? entry->device : NULL;
    struct handshake_to to = {.device = NULL};

    *ret_why = DROP_MAC1_INVALID;
    /* A node has one device. */
    if (!list_is_empty(devices) && devices->next->next == devices)
        return try_device(a, container_of(devices->next, struct device, siblings), msg, len);
    if (known)
        to = find_known(a, devices, known, msg, len);
    if (to.device)
        return to;
    if (rate_is_spent(&a->tries, now, ADDRESSEE_BURST) ||
        (entry && rate_is_spent(&entry->tries, now, ADDRESSEE_SOURCE_BURST))) {
        *ret_why = DROP_SEARCH_LIMITED;
        return to;
    }
    /* A source that never sent a right message does not take the place of one that did. */
    if (!entry && !slot->device) {
        *slot = (struct addressee_source){.source = source};
        entry = slot;
    }
    to = search(a, devices, known, entry, msg, len, now);
    if (to.device && !entry)
        *slot = (struct addressee_source){.source = source};
    if (to.device)
        slot->device = to.device;
    return to;
}
