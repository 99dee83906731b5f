/* edge_handshake.c - see edge_handshake.h. */
#include "agent/paths/edge/edge_handshake.h"

/* A handshake that was not completed is begun again after this time. */
#define RETRY NSEC_PER_SEC

/* A session carries nothing after this time (whitepaper 6.1, REJECT_AFTER_TIME). */
#define SESSION_MAX (180 * NSEC_PER_SEC)

void edge_handshake_want(struct edge_handshake *h, bool is_first, nsec_t turn, nsec_t now)
{
    h->wanted_at = now;
    h->due_at = is_first ? now : now + turn;
}

void edge_handshake_want_now(struct edge_handshake *h, nsec_t now)
{
    edge_handshake_want(h, true, 0, now);
}

void edge_handshake_on_moved(struct edge_handshake *h, nsec_t now)
{
    h->wanted_at = now;
}

void edge_handshake_drop(struct edge_handshake *h)
{
    h->due_at = NSEC_NEVER;
}

bool edge_handshake_hasten(struct edge_handshake *h, nsec_t now)
{
    bool is_wanted = edge_handshake_is_wanted(h);

    h->due_at = nsec_min(h->due_at, now);
    return is_wanted;
}

void edge_handshake_on_seen(struct edge_handshake *h, nsec_t seen_at)
{
    h->seen_at = seen_at;
    if (edge_handshake_is_answer(h, seen_at))
        edge_handshake_drop(h);
}

bool edge_handshake_is_answer(const struct edge_handshake *h, nsec_t seen_at)
{
    return seen_at > h->wanted_at;
}

bool edge_handshake_is_wanted(const struct edge_handshake *h)
{
    return h->due_at != NSEC_NEVER;
}

bool edge_handshake_has_session(const struct edge_handshake *h, nsec_t now)
{
    return h->seen_at != 0 && now - h->seen_at < SESSION_MAX;
}

bool edge_handshake_take(struct edge_handshake *h, nsec_t now)
{
    if (now < h->due_at)
        return false;
    h->due_at = now + RETRY;
    return true;
}
