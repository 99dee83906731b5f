/* stun_client.c - see stun_client.h. */
#include "agent/paths/socket/stun_client.h"

#include <string.h>

#include "base/rng.h"

/* Time between tries. RFC 8489 section 6.2.1 begins with 500 ms and doubles it; a hub is near, so
 * ours begins with half of that. After TRIES it is asked as seldom as a server that answers. */
#define RETRY_FIRST (250 * NSEC_PER_MSEC)
#define TRIES       5
#define REFRESH     (30 * NSEC_PER_SEC)
/* So many of the last eight requests that are lost are no accident. */
#define LOST_MANY 2

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

bool stun_view_is_full(const struct stun_view *v)
{
    return __builtin_popcount(v->lost) >= LOST_MANY;
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
        if (v->asked[1].sent_at != 0)
            v->lost = (uint8_t)(v->lost << 1 | 1);
        v->asked[1] = v->asked[0];
        v->asked[0].sent_at = now;
        rng_fill(rng, v->asked[0].id.b, sizeof(v->asked[0].id.b));
        v->due_at = now + (v->n_tries < TRIES ? RETRY_FIRST << v->n_tries : REFRESH);
        v->n_tries++;
        *ret_to = v->server;
        stun_encode_request(&v->asked[0].id, out);
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

/* The one that @id answers, and that waits for its answer; NULL: none. */
static struct stun_asked *find_request(struct stun_view *v, const struct stun_transaction *id)
{
    for (unsigned i = 0; i < 2; i++)
        if (v->asked[i].sent_at != 0 && memcmp(&v->asked[i].id, id, sizeof(*id)) == 0)
            return &v->asked[i];
    return NULL;
}

const struct stun_view *stun_client_take(
    struct stun_client *sc, const uint8_t *msg, size_t len, const struct endpoint *from, nsec_t at)
{
    struct stun_view *v = find(sc, from);
    struct stun_asked *rq;
    struct stun_response resp;

    if (!v || stun_decode_response(&resp, msg, len) != 0 || !(rq = find_request(v, &resp.id)))
        return NULL;
    /* An answer to an earlier request than the one that was answered is late, and not lost. */
    v->lost = (uint8_t)(v->lost << 1);
    if (rq != v->asked && v->asked[0].sent_at == 0) {
        rq->sent_at = 0;
        return NULL;
    }
    v->mapped = resp.mapped;
    v->heard_at = at;
    v->rtt = nsec_max(at - rq->sent_at, 0);
    rq->sent_at = 0;
    v->n_tries = 0;
    v->due_at = at + REFRESH;
    return v;
}
