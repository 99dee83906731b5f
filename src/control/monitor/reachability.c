/* reachability.c - see reachability.h. */
#include "monitor/reachability.h"

static const char *const state_names[] = {"unknown", "reached", "silent"};

_Static_assert(sizeof(state_names) / sizeof(*state_names) == REACHABILITY_STATE_N, "a name each");

const char *reachability_state_name(enum reachability_state s)
{
    return state_names[s];
}

/* Changes the state; returns false if it was the same already. */
static bool turn(struct reachability *r, enum reachability_state state, nsec_t now)
{
    if (r->state == state)
        return false;
    r->state = state;
    r->state_since = now;
    return true;
}

uint16_t reachability_on_ping(struct reachability *r, nsec_t now)
{
    r->seq++;
    r->ring[r->seq % REACHABILITY_WINDOW] = (struct reachability_ping){.sent_at = now};
    if (r->silent_pings == 0)
        r->silent_since = now;
    r->silent_pings++;
    r->n_pings++;
    return r->seq;
}

bool reachability_on_answer(struct reachability *r, uint16_t seq, nsec_t now)
{
    struct reachability_ping *ping = &r->ring[seq % REACHABILITY_WINDOW];

    /* A number from before the window must be refused: its place now belongs to a later ping. */
    if ((uint16_t)(r->seq - seq) >= REACHABILITY_WINDOW || ping->sent_at == 0 || ping->answered)
        return false;
    ping->answered = true;
    r->rtt = nsec_max(now - ping->sent_at, 1);
    r->silent_pings = 0;
    r->silent_since = 0;
    r->n_answers++;
    return turn(r, REACHABILITY_REACHED, now);
}

bool reachability_judge(struct reachability *r, nsec_t now)
{
    if (r->silent_pings < REACHABILITY_SILENT_PINGS ||
        now - r->silent_since < REACHABILITY_SILENT_FOR)
        return false;
    return turn(r, REACHABILITY_SILENT, now);
}

unsigned reachability_loss_permille(const struct reachability *r, nsec_t now)
{
    unsigned n = 0;
    unsigned lost = 0;

    for (unsigned i = 0; i < REACHABILITY_WINDOW; i++) {
        const struct reachability_ping *ping = &r->ring[i];

        if (ping->sent_at == 0 || (!ping->answered && now - ping->sent_at < REACHABILITY_LATE_FOR))
            continue;
        n++;
        lost += !ping->answered;
    }
    return n > 0 ? lost * 1000 / n : 0;
}
