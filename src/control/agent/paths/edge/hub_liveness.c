/* hub_liveness.c - see hub_liveness.h. */
#include "agent/paths/edge/hub_liveness.h"

/* Time between two requests: after an answer, without an answer, and to a hub that is dead. */
#define ASK_ACTIVE (300 * NSEC_PER_MSEC)
#define ASK_AGAIN  (200 * NSEC_PER_MSEC)
#define ASK_DEAD   (1000 * NSEC_PER_MSEC)

/* The hub is dead after so many requests without an answer and this time since the first of them.
 */
#define DEAD_ASKED 4
#define DEAD_AFTER (700 * NSEC_PER_MSEC)

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

/* A loopback address is the near end of the stream in TLS, which tells by itself when it breaks. */
static bool is_stream(const struct hub_liveness *h)
{
    return ip_addr_is_v4(&h->hub.addr) && h->hub.addr.b[12] == 127;
}

static bool is_watched(const struct hub_liveness *h, nsec_t now)
{
    if (endpoint_is_none(&h->hub) || is_stream(h))
        return false;
    return h->is_dead || (h->has_other && h->moved_at != 0 && now - h->moved_at < ACTIVE_FOR);
}

nsec_t hub_liveness_due(const struct hub_liveness *h, nsec_t now)
{
    return is_watched(h, now) ? h->next_at : NSEC_NEVER;
}

bool hub_liveness_tick(struct hub_liveness *h, nsec_t now)
{
    if (!is_watched(h, now)) {
        h->n_unanswered = 0;
        h->next_at = now;
        h->is_dead = false;
        return false;
    }
    if (now < h->next_at)
        return false;
    if (h->n_unanswered >= DEAD_ASKED && now - h->unanswered_since >= DEAD_AFTER)
        h->is_dead = true;
    if (h->n_unanswered++ == 0)
        h->unanswered_since = now;
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
