/* timers.c - see timers.h. */
#include "timers.h"

#include "base/secret.h"
#include "wire/wg.h"

/* As the kernel counts: the first try is not among them. */
#define MAX_ATTEMPTS ((unsigned)(WG_REKEY_ATTEMPT_TIME / WG_REKEY_TIMEOUT))

/* 6.5: the first data message without an answer, and this much silence, call for a new handshake.
 */
#define ANSWER_TIMEOUT (WG_KEEPALIVE_TIMEOUT + WG_REKEY_TIMEOUT)

/* 6.3: all keys are forgotten when no new ones came for this long. */
#define ZERO_KEYS_AFTER (3 * WG_REJECT_AFTER_TIME)

/* A stamp of 0 means that nothing is owed, so no stamp may be 0. */
static nsec_t stamp_of(nsec_t now)
{
    return nsec_max(now, 1);
}

/* Stores only what changes: the cache line is shared by all workers. */
static void settle(_Atomic nsec_t *stamp)
{
    if (atomic_load_explicit(stamp, memory_order_relaxed) != 0)
        atomic_store(stamp, 0);
}

static void traverse(struct timers *t, nsec_t now)
{
    if (atomic_load_explicit(&t->persistent_interval, memory_order_relaxed) != 0)
        atomic_store_explicit(&t->traversed_at, now, memory_order_relaxed);
}

/* A stamp was stored: true if nobody watches yet. Pairs with stamps_due(). */
static bool begin_watch(struct timers *t)
{
    return !atomic_load(&t->is_watched) && !atomic_exchange(&t->is_watched, true);
}

void timers_init(struct timers *t)
{
    *t = (struct timers){
        .retransmit_due = NSEC_NEVER,
        .zero_keys_due = NSEC_NEVER,
    };
}

bool timers_on_data_sent(struct timers *t, nsec_t now)
{
    settle(&t->keepalive_since);
    traverse(t, now);
    if (atomic_load_explicit(&t->unanswered_since, memory_order_relaxed) != 0)
        return false;
    atomic_store(&t->unanswered_since, stamp_of(now));
    return begin_watch(t);
}

void timers_on_keepalive_sent(struct timers *t, nsec_t now)
{
    traverse(t, now);
}

bool timers_on_data_received(struct timers *t, nsec_t now)
{
    timers_on_other_received(t, now);
    if (atomic_load_explicit(&t->keepalive_since, memory_order_relaxed) != 0) {
        if (!atomic_load_explicit(&t->needs_another, memory_order_relaxed))
            atomic_store(&t->needs_another, true);
        return false;
    }
    atomic_store(&t->keepalive_since, stamp_of(now));
    return begin_watch(t);
}

void timers_on_other_received(struct timers *t, nsec_t now)
{
    settle(&t->unanswered_since);
    traverse(t, now);
}

bool timers_on_rekey_wanted(struct timers *t)
{
    return !atomic_load_explicit(&t->wants_initiation, memory_order_relaxed) &&
           !atomic_exchange(&t->wants_initiation, true);
}

bool timers_on_last_minute(struct timers *t)
{
    if (atomic_load_explicit(&t->is_last_minute, memory_order_relaxed) ||
        atomic_exchange(&t->is_last_minute, true))
        return false;
    return timers_on_rekey_wanted(t);
}

void timers_on_session_confirmed(struct timers *t, nsec_t now)
{
    atomic_store(&t->confirmed_at, stamp_of(now));
}

void timers_on_initiation_sent(struct timers *t, nsec_t now, const struct rng *rng)
{
    t->initiation_sent_at = now;
    t->has_sent_handshake = true;
    t->jitter = (nsec_t)(rng_u32(rng) % (uint32_t)WG_REKEY_TIMEOUT_JITTER);
    t->retransmit_due = now + WG_REKEY_TIMEOUT + t->jitter;
    atomic_store(&t->wants_initiation, false);
    settle(&t->keepalive_since);
    traverse(t, now);
}

void timers_on_response_sent(struct timers *t, nsec_t now)
{
    t->initiation_sent_at = now;
    t->has_sent_handshake = true;
    settle(&t->keepalive_since);
    traverse(t, now);
}

void timers_on_session_derived(struct timers *t, nsec_t now)
{
    t->zero_keys_due = now + ZERO_KEYS_AFTER;
}

static void complete(struct timers *t, nsec_t at)
{
    t->retransmit_due = NSEC_NEVER;
    t->attempts = 0;
    t->handshake_at = at;
    t->has_handshake = true;
    atomic_store(&t->is_last_minute, false);
    atomic_store(&t->wants_initiation, false);
}

void timers_on_handshake_complete(struct timers *t, nsec_t now)
{
    complete(t, now);
    /* The initiator speaks at once, which settles any keepalive. */
    settle(&t->keepalive_since);
}

void timers_set_persistent_keepalive(struct timers *t, nsec_t interval, nsec_t now)
{
    if (atomic_load(&t->persistent_interval) == 0)
        atomic_store(&t->traversed_at, now - interval);
    atomic_store(&t->persistent_interval, interval);
}

void timers_clear(struct timers *t)
{
    /* Workers may be stamping at this very moment: field by field, not timers_init(). */
    settle(&t->unanswered_since);
    settle(&t->keepalive_since);
    settle(&t->traversed_at);
    settle(&t->confirmed_at);
    atomic_store(&t->needs_another, false);
    atomic_store(&t->wants_initiation, false);
    atomic_store(&t->is_last_minute, false);
    atomic_store(&t->is_watched, false);
    t->retransmit_due = NSEC_NEVER;
    t->zero_keys_due = NSEC_NEVER;
    t->attempts = 0;
    t->has_sent_handshake = false;
}

/* 6.1: not more than one handshake message per Rekey-Timeout. */
static nsec_t initiation_allowed_at(const struct timers *t)
{
    return t->has_sent_handshake ? t->initiation_sent_at + WG_REKEY_TIMEOUT : INT64_MIN;
}

/* 6.4: the initiation had no answer. Repeat it, or give up. */
static unsigned poll_retransmit(struct timers *t, nsec_t now)
{
    if (now < t->retransmit_due)
        return 0;
    t->retransmit_due = NSEC_NEVER;
    /* Somebody still wants to send: the 90 seconds count from the last wish. */
    if (atomic_exchange(&t->wants_initiation, false))
        t->attempts = 0;
    if (t->attempts <= MAX_ATTEMPTS) {
        t->attempts++;
        return TIMERS_SEND_INITIATION;
    }
    settle(&t->keepalive_since);
    if (t->zero_keys_due == NSEC_NEVER)
        t->zero_keys_due = now + ZERO_KEYS_AFTER;
    return TIMERS_DROP_STAGED;
}

/* 6.2, 6.5: a worker asked for a handshake, or nobody answered our data. */
static unsigned poll_initiation(struct timers *t, nsec_t now)
{
    nsec_t since = atomic_load(&t->unanswered_since);

    if (since != 0 && now >= since + ANSWER_TIMEOUT + t->jitter &&
        atomic_compare_exchange_strong(&t->unanswered_since, &since, 0))
        atomic_store(&t->wants_initiation, true);
    if (t->retransmit_due != NSEC_NEVER || now < initiation_allowed_at(t) ||
        !atomic_exchange(&t->wants_initiation, false))
        return 0;
    t->attempts = 0;
    return TIMERS_SEND_INITIATION;
}

/* 6.5: data came, and we had nothing to say for Keepalive-Timeout. */
static unsigned poll_passive_keepalive(struct timers *t, nsec_t now)
{
    nsec_t since = atomic_load(&t->keepalive_since);
    bool again;

    if (since == 0 || now < since + WG_KEEPALIVE_TIMEOUT)
        return 0;
    again = atomic_exchange(&t->needs_another, false);
    if (!atomic_compare_exchange_strong(&t->keepalive_since, &since, again ? stamp_of(now) : 0))
        return 0;
    return TIMERS_SEND_KEEPALIVE;
}

static unsigned poll_persistent_keepalive(struct timers *t, nsec_t now)
{
    nsec_t interval = atomic_load(&t->persistent_interval);

    if (interval == 0 || now < atomic_load(&t->traversed_at) + interval)
        return 0;
    atomic_store(&t->traversed_at, now);
    settle(&t->keepalive_since);
    return TIMERS_SEND_KEEPALIVE;
}

unsigned timers_poll(struct timers *t, nsec_t now)
{
    nsec_t confirmed_at = atomic_exchange(&t->confirmed_at, 0);
    unsigned actions = 0;

    t->polled_at = now;
    if (confirmed_at != 0)
        complete(t, confirmed_at);
    if (now >= t->zero_keys_due) {
        t->zero_keys_due = NSEC_NEVER;
        actions |= TIMERS_ZERO_KEYS;
    }
    actions |= poll_persistent_keepalive(t, now);
    actions |= poll_passive_keepalive(t, now);
    /* One after the other: a repeated initiation answers any wish for a new one. */
    actions |= poll_retransmit(t, now);
    if (!(actions & TIMERS_SEND_INITIATION))
        actions |= poll_initiation(t, now);
    return actions;
}

/* The earliest deadline that the workers' stamps ask for; ends the watch when there is none. */
static nsec_t stamps_due(struct timers *t)
{
    nsec_t unanswered = atomic_load(&t->unanswered_since);
    nsec_t keepalive = atomic_load(&t->keepalive_since);
    nsec_t due;

    if (unanswered == 0 && keepalive == 0) {
        atomic_store(&t->is_watched, false);
        /* A stamp that came in between: its worker saw a watch, so it is ours to see. */
        unanswered = atomic_load(&t->unanswered_since);
        keepalive = atomic_load(&t->keepalive_since);
        if (unanswered == 0 && keepalive == 0)
            return NSEC_NEVER;
    }
    atomic_store(&t->is_watched, true);
    /*
     * A watch is for both stamps: one that is set while we wait for the other
     * asks for nothing earlier than Keepalive-Timeout from now.
     */
    due = t->polled_at + WG_KEEPALIVE_TIMEOUT;
    if (unanswered != 0)
        due = nsec_min(due, unanswered + ANSWER_TIMEOUT + t->jitter);
    if (keepalive != 0)
        due = nsec_min(due, keepalive + WG_KEEPALIVE_TIMEOUT);
    return due;
}

nsec_t timers_due(struct timers *t)
{
    nsec_t interval = atomic_load(&t->persistent_interval);
    nsec_t due = nsec_min(t->retransmit_due, t->zero_keys_due);

    due = nsec_min(due, stamps_due(t));
    if (interval != 0)
        due = nsec_min(due, atomic_load(&t->traversed_at) + interval);
    /* While an initiation is under way, its repetition takes care of the wish. */
    if (atomic_load(&t->wants_initiation) && t->retransmit_due == NSEC_NEVER)
        due = nsec_min(due, initiation_allowed_at(t));
    if (atomic_load(&t->confirmed_at) != 0)
        due = INT64_MIN;
    return due;
}
