/* transport_choice.c - see transport_choice.h. */
#include "agent/hublink/transport_choice.h"

/* Time between two requests. */
#define ASK_DOUBT  (400 * NSEC_PER_MSEC) /* while the hub is silent */
#define ASK_LATER  (2 * NSEC_PER_SEC)    /* when it has been silent for REFUSED_AFTER */
#define ASK_RETURN (300 * NSEC_PER_MSEC) /* while UDP may be taken again, or left */
#define ASK_STREAM (5 * NSEC_PER_SEC)    /* on a stream that works */

/* Longest time that an answer may take. */
#define ANSWER_TIME (2 * NSEC_PER_SEC)

/* UDP has failed after so many requests without an answer, and this time. */
#define DEAD_ASKED 5
#define DEAD_AFTER (2 * NSEC_PER_SEC)

/* So many of these requests have to be sent while a stream is open: then the hub is there. */
#define BESIDE_ASKED 4

/*
 * UDP is answered, but no session comes about for this time at each of the hub's endpoints: two
 * handshakes, 5 s apart, were lost.
 */
#define REFUSED_AFTER (12 * NSEC_PER_SEC)

/* UDP is taken again after so many answers in a row. */
#define ANSWERS_ENOUGH 3

/* A return to UDP that lasted less was a mistake: the stream is kept for longer after it. */
#define RETURN_GOOD  (60 * NSEC_PER_SEC)
#define SETTLE_FIRST (30 * NSEC_PER_SEC)
#define SETTLE_MAX   (1800 * NSEC_PER_SEC)

static void take(struct transport_choice *tc, enum transport_kind kind, nsec_t now)
{
    tc->kind = kind;
    tc->taken_at = now;
    tc->suspected_since = 0;
    tc->passes_since = 0;
    tc->n_answered = 0;
    tc->n_asked = 0;
    tc->n_beside = 0;
}

static bool ask(struct transport_choice *tc, nsec_t now, nsec_t each)
{
    if (tc->asked_at != 0 && now - tc->asked_at < each)
        return false;
    tc->asked_at = now;
    tc->n_asked++;
    return true;
}

static void leave_udp(struct transport_choice *tc, nsec_t now)
{
    bool was_mistake = tc->returned_at != 0 && now - tc->returned_at < RETURN_GOOD;

    if (!was_mistake)
        tc->settle_for = 0;
    else if (tc->settle_for == 0)
        tc->settle_for = SETTLE_FIRST;
    else
        tc->settle_for = nsec_min(tc->settle_for * 2, SETTLE_MAX);
    take(tc, TRANSPORT_STREAM, now);
}

static nsec_t pace_of_doubt(const struct transport_choice_facts *f)
{
    if (f->is_stream_open)
        return ASK_RETURN;
    return f->now - f->silent_since < REFUSED_AFTER ? ASK_DOUBT : ASK_LATER;
}

static struct transport_choice_wish poll_udp(
    struct transport_choice *tc, const struct transport_choice_facts *f)
{
    struct transport_choice_wish wish = {.ask = false};
    nsec_t unanswered;
    bool is_refused;

    if (f->silent_since == 0) {
        tc->suspected_since = 0;
        tc->passes_since = 0;
        tc->n_asked = 0;
        tc->n_beside = 0;
        return wish;
    }
    if (tc->suspected_since == 0)
        tc->suspected_since = f->now;
    wish.ask = ask(tc, f->now, pace_of_doubt(f));
    tc->n_beside = f->is_stream_open ? tc->n_beside + wish.ask : 0;
    unanswered = f->now - nsec_max(tc->suspected_since, tc->answered_at);
    is_refused = tc->passes_since != 0 && f->now - tc->passes_since >= REFUSED_AFTER * f->n_ways;
    is_refused = is_refused && !f->is_doubt;
    wish.want_stream = is_refused || (tc->n_asked >= DEAD_ASKED && unanswered >= DEAD_AFTER);
    if (f->is_stream_open && (is_refused || (wish.want_stream && tc->n_beside >= BESIDE_ASKED))) {
        leave_udp(tc, f->now);
        wish.has_changed = true;
    }
    return wish;
}

static struct transport_choice_wish poll_stream(
    struct transport_choice *tc, const struct transport_choice_facts *f)
{
    struct transport_choice_wish wish = {.want_stream = true};
    bool is_returning = tc->n_answered > 0 || !f->is_stream_open;

    if (tc->n_answered > 0 && f->now - tc->answered_at > ANSWER_TIME)
        tc->n_answered = 0;
    wish.ask = ask(tc, f->now, is_returning ? ASK_RETURN : ASK_STREAM);
    if (tc->n_answered < ANSWERS_ENOUGH || f->now - tc->taken_at < tc->settle_for)
        return wish;
    take(tc, TRANSPORT_UDP, f->now);
    tc->returned_at = f->now;
    wish.has_changed = true;
    return wish;
}

struct transport_choice_wish transport_choice_poll(
    struct transport_choice *tc, const struct transport_choice_facts *f)
{
    return tc->kind == TRANSPORT_UDP ? poll_udp(tc, f) : poll_stream(tc, f);
}

void transport_choice_on_answer(struct transport_choice *tc, nsec_t now)
{
    tc->answered_at = now;
    tc->n_asked = 0;
    tc->n_beside = 0;
    if (tc->passes_since == 0)
        tc->passes_since = now;
    if (tc->kind == TRANSPORT_STREAM)
        tc->n_answered++;
}
