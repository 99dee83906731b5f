/* path_json.c - see path_json.h. */
#include "agent/paths/edge/path_json.h"

#include "agent/paths/edge/edges.h"
#include "path/paths.h"

static json_t *encode_milliseconds(nsec_t t)
{
    return t == 0 ? json_null() : json_real((double)(t / NSEC_PER_USEC) / 1000.0);
}

static json_t *encode_pair(const struct path_pair_view *pair, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    json_t *tried = pair->tried_at == 0
                        ? json_null()
                        : json_integer((json_int_t)((now - pair->tried_at) / NSEC_PER_SEC));

    return json_pack("{s:s, s:s, s:b, s:s, s:o, s:f, s:o, s:I, s:I}", "endpoint",
        endpoint_format(&pair->remote.endpoint, text), "type",
        candidate_kind_name(pair->remote.kind), "ownSocket",
        (int)(pair->socket != PATH_SOCKET_MAIN), "verdict", path_verdict_name(pair->verdict),
        "rttMs", encode_milliseconds(pair->rtt), "loss", pair->loss_permille / 1000.0,
        "triedSecondsAgo", tried, "pings", (json_int_t)pair->n_pings, "pongs",
        (json_int_t)pair->n_pongs);
}

static json_t *encode_relay(const struct path_relay_view *relay, const char *name)
{
    return json_pack("{s:s, s:s, s:o, s:o}", "name", name, "verdict",
        path_verdict_name(relay->verdict), "rttMs", encode_milliseconds(relay->here), "peerRttMs",
        encode_milliseconds(relay->there));
}

json_t *path_json_pairs(const struct edges *e, const char *node, nsec_t now)
{
    const struct peer_entry *peer = peer_table_find(&e->peers, node);
    struct path_pair_view pairs[PATHS_PAIRS_MAX];
    json_t *items = peer ? json_array() : NULL;
    size_t n = items ? paths_pairs(e->paths, &peer->key, pairs, PATHS_PAIRS_MAX) : 0;

    for (size_t i = 0; items && i < n; i++)
        if (json_array_append_new(items, encode_pair(&pairs[i], now)) < 0)
            items = (json_decref(items), NULL);
    return items;
}

json_t *path_json_relays(const struct edges *e, const char *node)
{
    const struct peer_entry *peer = peer_table_find(&e->peers, node);
    struct path_relay_view relays[PATH_RELAYS_MAX];
    json_t *items = json_array();
    size_t n = peer ? paths_relays(e->paths, &peer->key, relays, PATH_RELAYS_MAX) : 0;

    for (size_t i = 0; items && i < n; i++) {
        json_t *item = encode_relay(&relays[i], edges_name_of(e, &relays[i].key));

        if (json_array_append_new(items, item) < 0)
            items = (json_decref(items), NULL);
    }
    return items;
}
