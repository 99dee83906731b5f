/* relay_select.c - see relay_select.h. */
#include "agent/paths/edge/relay_select.h"

#include <string.h>

/* At least so many relays besides the hub are kept ready, if there are as many. */
#define STANDBYS 2

/* A relay's RTT is reported anew when it has changed by more than a quarter and more than this. */
#define RTT_CHANGE (3 * NSEC_PER_MSEC)

/* ---- which are kept ready ------------------------------------------------------------------- */

/* The nearest direct relay that is no standby yet, and that an edge may begin to use; NULL: none is
 * left. */
static struct relay_fact *nearest_relay(struct relay_fact *relays, size_t n)
{
    struct relay_fact *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (relays[i].is_direct && !relays[i].is_closed && !relays[i].is_standby &&
            (!best || relays[i].rtt < best->rtt))
            best = &relays[i];
    return best;
}

void relay_select_standbys(struct relay_fact *relays, size_t n)
{
    struct relay_fact *next;
    unsigned n_standbys = 0;

    for (size_t i = 0; i < n; i++) {
        relays[i].is_standby = relays[i].is_direct && relays[i].is_used;
        n_standbys += relays[i].is_standby && !relays[i].is_closed ? 1 : 0;
    }
    for (; n_standbys < STANDBYS && (next = nearest_relay(relays, n)); n_standbys++)
        next->is_standby = true;
}

/* ---- what is told --------------------------------------------------------------------------- */

static bool is_rtt_changed(nsec_t before, nsec_t now)
{
    nsec_t difference = before > now ? before - now : now - before;

    return (before == 0) != (now == 0) || difference > nsec_max(RTT_CHANGE, before / 4);
}

static void add_relay(struct relay_select *rs, struct path_side *side, struct path_relay relay)
{
    for (unsigned i = 0; i < rs->n_reported; i++)
        if (x25519_public_equal(&rs->reported[i].key, &relay.key) &&
            !is_rtt_changed(rs->reported[i].rtt, relay.rtt))
            relay.rtt = rs->reported[i].rtt;
    side->relays[side->n_relays++] = relay;
}

void relay_select_tell(struct relay_select *rs, const struct relay_hub *hub,
    const struct relay_fact *relays, size_t n, struct path_side *side)
{
    side->n_relays = 0;
    if (!x25519_public_is_none(&hub->key) && !hub->is_dead)
        add_relay(rs, side, (struct path_relay){.key = hub->key, .rtt = hub->rtt, .mtu = hub->mtu});
    for (size_t i = 0; i < n && side->n_relays < PATH_RELAYS_MAX; i++)
        if (relays[i].is_standby && relays[i].has_session)
            add_relay(rs, side,
                (struct path_relay){
                    .key = relays[i].key, .rtt = relays[i].rtt, .mtu = relays[i].mtu});
    memcpy(rs->reported, side->relays, side->n_relays * sizeof(rs->reported[0]));
    rs->n_reported = side->n_relays;
}

/* ---- is the hub alive? ----------------------------------------------------------------------- */

/* Time between two requests: after an answer, without an answer, and to a hub that is dead. */
#define ASK_ACTIVE (300 * NSEC_PER_MSEC)
#define ASK_AGAIN  (200 * NSEC_PER_MSEC)
#define ASK_DEAD   (1000 * NSEC_PER_MSEC)

/* The hub is dead when the next request is due after so many without an answer. */
#define DEAD_ASKED 4

/* The hub's relay is in use for this time after the last data. */
#define ACTIVE_FOR (5 * NSEC_PER_SEC)

void hub_liveness_look(struct hub_liveness *h, const struct endpoint *hub, uint64_t n_bytes,
    bool has_other, nsec_t now)
{
    h->hub = *hub;
    if (n_bytes != h->n_bytes)
        h->moved_at = now;
    h->n_bytes = n_bytes;
    h->has_other = has_other;
}

static bool is_hub_watched(const struct hub_liveness *h, nsec_t now)
{
    const struct ip_addr *addr = &h->hub.addr;

    /* A loopback address is the near end of the stream in TLS, which tells by itself when it
     * breaks. */
    if (endpoint_is_none(&h->hub) || (ip_addr_is_v4(addr) && addr->b[12] == 127))
        return false;
    return h->is_dead || (h->has_other && h->moved_at != 0 && now - h->moved_at < ACTIVE_FOR);
}

nsec_t hub_liveness_due(const struct hub_liveness *h, nsec_t now)
{
    return is_hub_watched(h, now) ? h->next_at : NSEC_NEVER;
}

bool hub_liveness_tick(struct hub_liveness *h, nsec_t now)
{
    if (!is_hub_watched(h, now)) {
        h->n_unanswered = 0;
        h->next_at = now;
        h->is_dead = false;
        return false;
    }
    if (now < h->next_at)
        return false;
    h->is_dead |= h->n_unanswered++ >= DEAD_ASKED;
    h->next_at = now + (h->is_dead ? ASK_DEAD : ASK_AGAIN);
    return true;
}

bool hub_liveness_on_answer(struct hub_liveness *h, const struct endpoint *from, nsec_t now)
{
    if (!endpoint_equal(from, &h->hub))
        return false;
    h->n_unanswered = 0;
    h->next_at = now + ASK_ACTIVE;
    h->is_dead = false;
    return true;
}
