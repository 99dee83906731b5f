/* destinations.c - see destinations.h. */
#include "path/destinations.h"

#include <string.h>

#include "base/htab.h"

/* What a cheap frame costs, in the time until it has come back. */
#define COST_CHEAP (NSEC_PER_SEC / DESTINATIONS_PER_SECOND / DESTINATIONS_CHEAP)
#define BURST      (DESTINATIONS_BURST * DESTINATIONS_CHEAP * COST_CHEAP)

static struct ip_addr counted_as(const struct ip_addr *addr)
{
    struct ip_addr as = *addr;

    if (!ip_addr_is_v4(addr))
        memset(as.b + 8, 0, 8);
    return as;
}

static unsigned set_of(const struct destinations *d, const struct ip_addr *as)
{
    return (unsigned)(hash_bytes(d->seed, as->b, sizeof(as->b)) % DESTINATIONS_SETS);
}

static bool is_whole(const struct destination *place, nsec_t now)
{
    return place->rate.full_at <= now;
}

/* The place of an address, or one that is taken for it; NULL: none is free. */
static struct destination *find_place(
    struct destinations *d, unsigned set, const struct ip_addr *as, nsec_t now)
{
    struct destination *places = d->places[set];
    struct destination *oldest = NULL;

    for (unsigned i = 0; i < DESTINATIONS_WAYS; i++) {
        if (ip_addr_equal(&places[i].addr, as))
            return &places[i];
        if (is_whole(&places[i], now) && (!oldest || places[i].answered_at < oldest->answered_at))
            oldest = &places[i];
    }
    if (oldest)
        *oldest = (struct destination){.addr = *as};
    return oldest;
}

static bool has_answered(const struct destination *place, nsec_t now)
{
    return place && place->answered_at != 0 && now - place->answered_at < DESTINATIONS_ANSWERED_FOR;
}

bool destinations_take(
    struct destinations *d, const struct ip_addr *to, unsigned n_frames, bool is_guess, nsec_t now)
{
    struct ip_addr as = counted_as(to);
    unsigned set = set_of(d, &as);
    struct destination *place = find_place(d, set, &as, now);
    struct rate *rate = place ? &place->rate : &d->others[set];
    bool is_cheap = is_guess || has_answered(place, now);
    nsec_t cost = (nsec_t)n_frames * (is_cheap ? 1 : DESTINATIONS_CHEAP) * COST_CHEAP;

    if (rate_is_spent(rate, now, BURST - cost))
        return false;
    rate_pay(rate, now, cost);
    return true;
}

void destinations_on_answer(struct destinations *d, const struct ip_addr *from, nsec_t now)
{
    struct ip_addr as = counted_as(from);
    struct destination *place = find_place(d, set_of(d, &as), &as, now);

    if (place)
        *place = (struct destination){.addr = as, .answered_at = now};
}
