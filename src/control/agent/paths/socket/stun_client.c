/* stun_client.c - see stun_client.h. */
#include "agent/paths/socket/stun_client.h"

#include <string.h>

#include "base/rng.h"

/* Time between tries. RFC 8489 section 6.2.1 begins with 500 ms and doubles it; a hub is near, so
 * ours begins with half of that. After TRIES it is asked as seldom as a server that answers. */
#define RETRY_FIRST (250 * NSEC_PER_MSEC)
#define TRIES       5
#define REFRESH     (30 * NSEC_PER_SEC)

static struct stun_view *find(struct stun_client *sc, const struct endpoint *server)
{
    for (unsigned i = 0; i < sc->n_views; i++)
        if (endpoint_equal(&sc->views[i].server, server))
            return &sc->views[i];
    return NULL;
}

void stun_client_set_servers(
    struct stun_client *sc, const struct endpoint *servers, unsigned n_servers, nsec_t now)
{
    struct stun_client next = STUN_CLIENT_NULL;

    for (unsigned i = 0; i < n_servers && next.n_views < STUN_CLIENT_SERVERS_MAX; i++) {
        const struct stun_view *before = find(sc, &servers[i]);

        if (find(&next, &servers[i]))
            continue;
        next.views[next.n_views++] =
            before ? *before : (struct stun_view){.server = servers[i], .due_at = now};
    }
    *sc = next;
}

void stun_client_restart(struct stun_client *sc, nsec_t now)
{
    for (unsigned i = 0; i < sc->n_views; i++) {
        sc->views[i].due_at = now;
        sc->views[i].n_tries = 0;
    }
}

void stun_client_forget(struct stun_client *sc, nsec_t now)
{
    for (unsigned i = 0; i < sc->n_views; i++)
        sc->views[i] = (struct stun_view){.server = sc->views[i].server, .due_at = now};
}

bool stun_client_next(struct stun_client *sc, nsec_t now, const struct rng *rng,
    struct endpoint *ret_to, uint8_t out[static STUN_REQUEST_SIZE])
{
    for (unsigned i = 0; i < sc->n_views; i++) {
        struct stun_view *v = &sc->views[i];

        if (v->due_at > now)
            continue;
        rng_fill(rng, v->id.b, sizeof(v->id.b));
        v->sent_at = now;
        v->due_at = now + (v->n_tries < TRIES ? RETRY_FIRST << v->n_tries : REFRESH);
        v->n_tries++;
        *ret_to = v->server;
        stun_encode_request(&v->id, out);
        return true;
    }
    return false;
}

nsec_t stun_client_due(const struct stun_client *sc)
{
    nsec_t due = NSEC_NEVER;

    for (unsigned i = 0; i < sc->n_views; i++)
        due = nsec_min(due, sc->views[i].due_at);
    return due;
}

const struct stun_view *stun_client_take(
    struct stun_client *sc, const uint8_t *msg, size_t len, const struct endpoint *from, nsec_t at)
{
    struct stun_view *v = find(sc, from);
    struct stun_response resp;

    if (!v || v->sent_at == 0 || stun_decode_response(&resp, msg, len) != 0 ||
        memcmp(resp.id.b, v->id.b, sizeof(v->id.b)) != 0)
        return NULL;
    v->mapped = resp.mapped;
    v->heard_at = at;
    v->rtt = nsec_max(at - v->sent_at, 0);
    v->sent_at = 0;
    v->n_tries = 0;
    v->due_at = at + REFRESH;
    return v;
}
