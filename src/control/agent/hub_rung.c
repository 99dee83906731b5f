/* hub_rung.c - see hub_rung.h. */
#include "agent/hub_rung.h"

/* Between two requests: while the hub is silent, while coming back, and on a stream that works. */
#define ASK_DOUBT   (400 * NSEC_PER_MSEC)
#define ASK_LATER   (2 * NSEC_PER_SEC) /* when it has been silent for REFUSED_AFTER */
#define ASK_RETURN  (300 * NSEC_PER_MSEC)
#define ASK_STREAM  (5 * NSEC_PER_SEC)
#define ANSWER_TIME (2 * NSEC_PER_SEC) /* longer than any way to a hub takes */

/* So many unanswered, for so long, and UDP has failed. */
#define DEAD_ASKED 5
#define DEAD_AFTER (2 * NSEC_PER_SEC)

/* So many of them beside a stream that is open: the hub is there, and UDP to it fails. */
#define BESIDE_ASKED 4

/* Answered, but no session for so long, by each way: two handshakes are lost, 5 s apart. */
#define REFUSED_AFTER (12 * NSEC_PER_SEC)

/* So many answers in a row, and UDP is taken again. */
#define ANSWERS_ENOUGH 3

/* A return that lasted shorter was a mistake. */
#define RETURN_GOOD  (60 * NSEC_PER_SEC)
#define SETTLE_FIRST (30 * NSEC_PER_SEC)
#define SETTLE_MAX   (1800 * NSEC_PER_SEC)

static void take(struct hub_rung *hr, enum hub_rung_kind kind, nsec_t now)
{
    hr->kind = kind;
    hr->since = now;
    hr->suspected = 0;
    hr->passes_since = 0;
    hr->n_answered = 0;
    hr->n_asked = 0;
    hr->n_beside = 0;
}

static bool ask(struct hub_rung *hr, nsec_t now, nsec_t each)
{
    if (hr->asked != 0 && now - hr->asked < each)
        return false;
    hr->asked = now;
    hr->n_asked++;
    return true;
}

static void leave_udp(struct hub_rung *hr, nsec_t now)
{
    bool was_mistake = hr->returned != 0 && now - hr->returned < RETURN_GOOD;

    if (!was_mistake)
        hr->settle = 0;
    else if (hr->settle == 0)
        hr->settle = SETTLE_FIRST;
    else
        hr->settle = nsec_min(hr->settle * 2, SETTLE_MAX);
    take(hr, HUB_RUNG_STREAM, now);
}

static nsec_t pace_of_doubt(const struct hub_rung_facts *f)
{
    if (f->is_stream_open)
        return ASK_RETURN;
    return f->now - f->silent < REFUSED_AFTER ? ASK_DOUBT : ASK_LATER;
}

static struct hub_rung_wish look_at_udp(struct hub_rung *hr, const struct hub_rung_facts *f)
{
    struct hub_rung_wish wish = {.ask = false};
    nsec_t unanswered;
    bool is_refused;

    if (f->silent == 0) {
        hr->suspected = 0;
        hr->passes_since = 0;
        hr->n_asked = 0;
        hr->n_beside = 0;
        return wish;
    }
    if (hr->suspected == 0)
        hr->suspected = f->now;
    wish.ask = ask(hr, f->now, pace_of_doubt(f));
    hr->n_beside = f->is_stream_open ? hr->n_beside + wish.ask : 0;
    unanswered = f->now - nsec_max(hr->suspected, hr->answered);
    is_refused = hr->passes_since != 0 && f->now - hr->passes_since >= REFUSED_AFTER * f->n_ways;
    is_refused = is_refused && !f->is_doubt;
    wish.want_stream = is_refused || (hr->n_asked >= DEAD_ASKED && unanswered >= DEAD_AFTER);
    if (f->is_stream_open && (is_refused || (wish.want_stream && hr->n_beside >= BESIDE_ASKED))) {
        leave_udp(hr, f->now);
        wish.changed = true;
    }
    return wish;
}

static struct hub_rung_wish look_at_stream(struct hub_rung *hr, const struct hub_rung_facts *f)
{
    struct hub_rung_wish wish = {.want_stream = true};
    bool is_returning = hr->n_answered > 0 || !f->is_stream_open;

    if (hr->n_answered > 0 && f->now - hr->answered > ANSWER_TIME)
        hr->n_answered = 0;
    wish.ask = ask(hr, f->now, is_returning ? ASK_RETURN : ASK_STREAM);
    if (hr->n_answered < ANSWERS_ENOUGH || f->now - hr->since < hr->settle)
        return wish;
    take(hr, HUB_RUNG_UDP, f->now);
    hr->returned = f->now;
    wish.changed = true;
    return wish;
}

struct hub_rung_wish hub_rung_look(struct hub_rung *hr, const struct hub_rung_facts *f)
{
    return hr->kind == HUB_RUNG_UDP ? look_at_udp(hr, f) : look_at_stream(hr, f);
}

void hub_rung_on_answer(struct hub_rung *hr, nsec_t now)
{
    hr->answered = now;
    hr->n_asked = 0;
    hr->n_beside = 0;
    if (hr->passes_since == 0)
        hr->passes_since = now;
    if (hr->kind == HUB_RUNG_STREAM)
        hr->n_answered++;
}
