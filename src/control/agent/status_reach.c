/* status_reach.c - see status_reach.h. */
#include "agent/status_reach.h"

#include <stdio.h>

#include "agent/paths/edge/reach.h"
#include "agent/status_cells.h"
#include "agent/status_rates.h"

static json_t *encode_rtt(const struct reach_peer *peer, nsec_t rtt)
{
    return peer->is_measured ? json_real((double)(rtt / NSEC_PER_USEC) / 1000) : json_null();
}

static json_t *encode_loss(const struct reach_peer *peer)
{
    return peer->is_measured ? json_real(peer->loss_permille / 1000.0) : json_null();
}

/* The name of the node that relays; null where none does. */
static json_t *encode_relay(const struct reach_peer *peer)
{
    return peer->relay[0] != '\0' ? json_string(peer->relay) : json_null();
}

json_t *status_reach_encode(const struct reach_peer *peer, uint64_t rate, nsec_t now)
{
    return json_pack("{s:s, s:o, s:s, s:I, s:o, s:o, s:o, s:o}", "path", path_kind_name(peer->kind),
        "relay", encode_relay(peer), "why", peer->why, "sinceSeconds",
        (json_int_t)((now - peer->since) / NSEC_PER_SEC), "rttMs", encode_rtt(peer, peer->rtt),
        "leastRttMs", encode_rtt(peer, peer->least_rtt), "loss", encode_loss(peer),
        "rateBitsPerSecond", status_rates_encode_one(rate));
}

const char *status_reach_path(const json_t *peer, char buf[static STATUS_REACH_PATH_MAX])
{
    const char *relay = status_cells_text(peer, "relay", NULL);

    (void)snprintf(buf, STATUS_REACH_PATH_MAX, "%.40s%s%.64s", status_cells_text(peer, "path", "?"),
        relay ? " via " : "", relay ? relay : "");
    return buf;
}
