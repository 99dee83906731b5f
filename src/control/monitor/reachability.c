/* reachability.c - see reachability.h. */
#include "monitor/reachability.h"

static const char *const state_names[] = {"unknown", "reached", "silent"};

_Static_assert(sizeof(state_names) / sizeof(*state_names) == EDGE_STATE_N, "a name each");

const char *edge_state_name(enum edge_state s)
{
    return state_names[s];
}

static bool turn(struct edge *e, enum edge_state state, nsec_t now)
{
    if (e->state == state)
        return false;
    e->state = state;
    e->since = now;
    return true;
}

uint16_t edge_on_ping(struct edge *e, nsec_t now)
{
    e->seq++;
    e->ring[e->seq % EDGE_WINDOW] = (struct edge_ping){.sent = now};
    if (e->silent_pings == 0)
        e->silent_since = now;
    e->silent_pings++;
    e->n_pings++;
    return e->seq;
}

bool edge_on_answer(struct edge *e, uint16_t seq, nsec_t now)
{
    struct edge_ping *ping = &e->ring[seq % EDGE_WINDOW];

    /* Of a number from before the window its place is another ping's. */
    if ((uint16_t)(e->seq - seq) >= EDGE_WINDOW || ping->sent == 0 || ping->answered)
        return false;
    ping->answered = true;
    e->rtt = nsec_max(now - ping->sent, 1);
    e->silent_pings = 0;
    e->silent_since = 0;
    e->n_answers++;
    return turn(e, EDGE_REACHED, now);
}

bool edge_judge(struct edge *e, nsec_t now)
{
    if (e->silent_pings < EDGE_SILENT_PINGS || now - e->silent_since < EDGE_SILENT_TIME)
        return false;
    return turn(e, EDGE_SILENT, now);
}

unsigned edge_loss_permille(const struct edge *e, nsec_t now)
{
    unsigned n = 0;
    unsigned lost = 0;

    for (unsigned i = 0; i < EDGE_WINDOW; i++) {
        const struct edge_ping *ping = &e->ring[i];

        if (ping->sent == 0 || (!ping->answered && now - ping->sent < EDGE_LATE))
            continue;
        n++;
        lost += !ping->answered;
    }
    return n > 0 ? lost * 1000 / n : 0;
}
