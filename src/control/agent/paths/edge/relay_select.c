/* relay_select.c - see relay_select.h. */
#include "agent/paths/edge/relay_select.h"

#include <string.h>

/* At least so many relays besides the hub are kept ready, if there are as many. */
#define STANDBYS 2

/* A relay's RTT is reported anew when it has changed by more than a quarter and more than this. */
#define RTT_NEWS (3 * NSEC_PER_MSEC)

/* ---- which are kept ready ------------------------------------------------------------------- */

/* The nearest direct relay that is no standby yet; NULL: none is left. */
static struct relay_fact *nearest(struct relay_fact *relays, size_t n)
{
    struct relay_fact *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (relays[i].is_direct && !relays[i].is_standby && (!best || relays[i].rtt < best->rtt))
            best = &relays[i];
    return best;
}

void relay_select_standbys(struct relay_fact *relays, size_t n)
{
    struct relay_fact *next;
    unsigned n_standbys = 0;

    for (size_t i = 0; i < n; i++) {
        relays[i].is_standby = relays[i].is_direct && relays[i].is_used;
        n_standbys += relays[i].is_standby ? 1 : 0;
    }
    for (; n_standbys < STANDBYS && (next = nearest(relays, n)); n_standbys++)
        next->is_standby = true;
}

/* ---- what is told --------------------------------------------------------------------------- */

static bool is_rtt_news(nsec_t before, nsec_t now)
{
    nsec_t difference = before > now ? before - now : now - before;

    return (before == 0) != (now == 0) || difference > nsec_max(RTT_NEWS, before / 4);
}

static void add(struct relay_select *rs, struct path_side *side, struct path_relay relay)
{
    for (unsigned i = 0; i < rs->n_told; i++)
        if (x25519_public_equal(&rs->told[i].key, &relay.key) &&
            !is_rtt_news(rs->told[i].rtt, relay.rtt))
            relay.rtt = rs->told[i].rtt;
    side->relays[side->n_relays++] = relay;
}

void relay_select_tell(struct relay_select *rs, const struct relay_hub *hub,
    const struct relay_fact *relays, size_t n, struct path_side *side)
{
    side->n_relays = 0;
    if (!x25519_public_is_none(&hub->key) && !hub->is_dead)
        add(rs, side, (struct path_relay){.key = hub->key, .rtt = hub->rtt, .mtu = hub->mtu});
    for (size_t i = 0; i < n && side->n_relays < PATH_RELAYS_MAX; i++)
        if (relays[i].is_standby && relays[i].has_session)
            add(rs, side,
                (struct path_relay){
                    .key = relays[i].key, .rtt = relays[i].rtt, .mtu = relays[i].mtu});
    memcpy(rs->told, side->relays, side->n_relays * sizeof(rs->told[0]));
    rs->n_told = side->n_relays;
}
