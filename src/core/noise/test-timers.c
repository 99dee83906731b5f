/* test-timers.c - section 6 on a virtual clock. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/secret.h"
#include "noise/timers.h"
#include "wire/wg.h"

#define S     NSEC_PER_SEC
#define MS    NSEC_PER_MSEC
#define START (1000 * S)

/** A peer's timers, and the control thread that serves them. */
struct fixture {
    struct timers t;
    uint64_t seed;
    struct rng rng;
};

static void fixture_init(struct fixture *f)
{
    f->seed = 42;
    f->rng = rng_seeded(&f->seed);
    timers_init(&f->t);
    assert_true(timers_due(&f->t) == NSEC_NEVER);
}

static void initiate(struct fixture *f, nsec_t now)
{
    timers_on_initiation_sent(&f->t, now, &f->rng);
}

/* As initiator: a whole handshake at @now. */
static void session(struct fixture *f, nsec_t now)
{
    initiate(f, now);
    timers_on_other_received(&f->t, now);
    timers_on_session_derived(&f->t, now);
    timers_on_handshake_complete(&f->t, now);
}

/*
 * Polls at every deadline until there is something to do, which must be within
 * [@from, @to]; returns what. A watch looks in between, for nothing.
 */
static unsigned poll_between(struct fixture *f, nsec_t from, nsec_t to, nsec_t *ret_at)
{
    nsec_t due = timers_due(&f->t);

    while (due < from) {
        assert_int_equal(timers_poll(&f->t, nsec_max(due, START)), 0);
        assert_true(timers_due(&f->t) > due);
        due = timers_due(&f->t);
    }
    if (due < from || due > to)
        fail_msg("due at %lld ms, not within %lld and %lld", (long long)(due / MS),
            (long long)(from / MS), (long long)(to / MS));
    /* Nothing happens before its time. */
    assert_int_equal(timers_poll(&f->t, due - 1), 0);
    if (ret_at)
        *ret_at = due;
    return timers_poll(&f->t, due);
}

static void test_wanted(void **state)
{
    struct fixture f;

    fixture_init(&f);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_false(timers_on_rekey_wanted(&f.t));
    assert_true(timers_due(&f.t) <= START);
    assert_int_equal(timers_poll(&f.t, START), TIMERS_SEND_INITIATION);
    initiate(&f, START);
    assert_int_equal(timers_poll(&f.t, START), 0);
    /* Asked again at once: not before Rekey-Timeout, even when the session is there by then. */
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_int_equal(timers_poll(&f.t, START + S), 0);
    timers_on_session_derived(&f.t, START + S);
    timers_on_handshake_complete(&f.t, START + S);
    assert_int_equal(timers_poll(&f.t, START + 6 * S), 0);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_int_equal(timers_poll(&f.t, START + 6 * S), TIMERS_SEND_INITIATION);
}

static void test_rate_limit(void **state)
{
    struct fixture f;

    fixture_init(&f);
    /* Our response counts as a handshake message too. */
    timers_on_response_sent(&f.t, START);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_int_equal(poll_between(&f, START + 5 * S, START + 5 * S, NULL), TIMERS_SEND_INITIATION);
}

/* 6.4: 5 s and up to a third of one, 19 times, then the packets are dropped. */
static void test_retransmit(void **state)
{
    nsec_t now = START;
    nsec_t least = NSEC_NEVER;
    nsec_t most = 0;
    unsigned n = 0;
    unsigned actions;
    struct fixture f;

    fixture_init(&f);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_int_equal(timers_poll(&f.t, now), TIMERS_SEND_INITIATION);
    initiate(&f, now);
    for (;;) {
        nsec_t at;

        actions = poll_between(&f, now + 5 * S, now + 5 * S + 333 * MS, &at);
        least = nsec_min(least, at - now);
        most = nsec_max(most, at - now);
        now = at;
        if (actions != TIMERS_SEND_INITIATION)
            break;
        initiate(&f, now);
        n++;
    }
    assert_int_equal(actions, TIMERS_DROP_STAGED);
    assert_int_equal(n, 19);
    assert_true(now - START >= WG_REKEY_ATTEMPT_TIME);
    assert_true(most - least > 100 * MS);
    /* The keys go, three times Reject-After-Time later; then nothing is left to do. */
    assert_int_equal(poll_between(&f, now + 540 * S, now + 540 * S, NULL), TIMERS_ZERO_KEYS);
    assert_true(timers_due(&f.t) == NSEC_NEVER);
    assert_int_equal(timers_poll(&f.t, now + 1000 * S), 0);
}

/* Who keeps wanting to send keeps the retries going. */
static void test_retransmit_goes_on(void **state)
{
    nsec_t now = START;
    struct fixture f;

    fixture_init(&f);
    (void)timers_on_rekey_wanted(&f.t);
    assert_int_equal(timers_poll(&f.t, now), TIMERS_SEND_INITIATION);
    for (unsigned i = 0; i < 50; i++) {
        initiate(&f, now);
        (void)timers_on_rekey_wanted(&f.t);
        assert_int_equal(poll_between(&f, now + 5 * S, now + 6 * S, &now), TIMERS_SEND_INITIATION);
    }
}

/* 6.5: data came, nothing went out for 10 s: one keepalive. */
static void test_passive_keepalive(void **state)
{
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    assert_true(timers_on_data_received(&f.t, START + S));
    assert_int_equal(poll_between(&f, START + 11 * S, START + 11 * S, NULL), TIMERS_SEND_KEEPALIVE);
    timers_on_keepalive_sent(&f.t, START + 11 * S);
    assert_true(timers_due(&f.t) == START + 540 * S);

    /* More data while one is owed: another, 10 s after the first. */
    assert_true(timers_on_data_received(&f.t, START + 20 * S));
    assert_false(timers_on_data_received(&f.t, START + 22 * S));
    assert_int_equal(poll_between(&f, START + 30 * S, START + 30 * S, NULL), TIMERS_SEND_KEEPALIVE);
    timers_on_keepalive_sent(&f.t, START + 30 * S);
    assert_int_equal(poll_between(&f, START + 40 * S, START + 40 * S, NULL), TIMERS_SEND_KEEPALIVE);
    assert_true(timers_due(&f.t) == START + 540 * S);

    /* An answer of our own takes its place. */
    assert_true(timers_on_data_received(&f.t, START + 50 * S));
    (void)timers_on_data_sent(&f.t, START + 51 * S);
    timers_on_other_received(&f.t, START + 52 * S);
    assert_int_equal(timers_poll(&f.t, START + 60 * S), 0);
}

/* A keepalive calls for no keepalive. */
static void test_keepalive_received(void **state)
{
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    timers_on_other_received(&f.t, START + S);
    assert_true(timers_due(&f.t) == START + 540 * S);
}

/* 6.5: data went out, and 15 s of silence. */
static void test_unanswered(void **state)
{
    nsec_t at;
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    assert_true(timers_on_data_sent(&f.t, START + 10 * S));
    assert_false(timers_on_data_sent(&f.t, START + 20 * S));
    assert_int_equal(
        poll_between(&f, START + 25 * S, START + 25 * S + 333 * MS, &at), TIMERS_SEND_INITIATION);
    initiate(&f, at);

    fixture_init(&f);
    session(&f, START);
    assert_true(timers_on_data_sent(&f.t, START + 10 * S));
    timers_on_other_received(&f.t, START + 20 * S);
    assert_int_equal(timers_poll(&f.t, START + 30 * S), 0);
    assert_true(timers_due(&f.t) == START + 540 * S);
}

/* Packets to and fro: the control thread is woken once, then only at deadlines. */
static void test_busy_peer_is_quiet(void **state)
{
    unsigned reported = 0;
    unsigned polled = 0;
    nsec_t armed = NSEC_NEVER;
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    for (unsigned i = 0; i < 100000; i++) {
        nsec_t now = START + (nsec_t)i * MS;
        bool tell = timers_on_data_sent(&f.t, now);

        tell |= timers_on_data_received(&f.t, now + MS / 2);
        reported += tell;
        if (tell || now >= armed) {
            assert_int_equal(timers_poll(&f.t, now), 0);
            armed = timers_due(&f.t);
            polled++;
        }
    }
    assert_int_equal(reported, 1);
    /* 100 seconds; a deadline is 10 or 15 s after a stamp. */
    assert_in_range(polled, 2, 15);
}

/* The deadline that was armed before a stamp moved is never too late for it. */
static void test_never_late(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);
        nsec_t armed = NSEC_NEVER;
        nsec_t received = 0; /* our own record: data received and nothing sent since */
        nsec_t now = START;
        struct fixture f;

        fixture_init(&f);
        session(&f, now);
        for (unsigned i = 0; i < 2000; i++) {
            bool tell = false;

            now += rng_u32(&rng) % 3000 * MS;
            if (now >= armed) {
                unsigned actions = timers_poll(&f.t, armed);

                if (actions & TIMERS_SEND_INITIATION)
                    session(&f, armed);
                if (actions & (TIMERS_SEND_INITIATION | TIMERS_SEND_KEEPALIVE))
                    received = 0;
                now = armed;
                armed = timers_due(&f.t);
            }
            switch (rng_u32(&rng) % 4) {
            case 0:
                tell = timers_on_data_sent(&f.t, now);
                received = 0;
                break;
            case 1:
                tell = timers_on_data_received(&f.t, now);
                received = received ? received : now;
                break;
            }
            if (tell) {
                (void)timers_poll(&f.t, now);
                armed = timers_due(&f.t);
            }
            if (received && now < received + 10 * S && armed > received + 10 * S)
                fail_msg("seed %llu, step %u: a keepalive is owed since %lld ms, armed for %lld ms",
                    (unsigned long long)seed, i, (long long)(received / MS),
                    (long long)(armed / MS));
        }
    }
}

#define N_WORKERS 3
#define N_EVENTS  100000

/** What the workers and the control thread of the test below share. */
struct threaded {
    struct fixture f;
    _Atomic nsec_t clock;      /* virtual: every event moves it a little */
    _Atomic unsigned reported; /* times that a worker told the control thread */
    _Atomic unsigned n_done;   /* workers that ended */
};

static void *threaded_worker(void *arg)
{
    struct threaded *s = arg;

    for (unsigned i = 0; i < N_EVENTS; i++) {
        nsec_t now = atomic_fetch_add(&s->clock, 50 * MS);
        bool tell =
            i % 3 ? timers_on_data_received(&s->f.t, now) : timers_on_data_sent(&s->f.t, now);

        if (i % 1000 == 0)
            tell |= timers_on_rekey_wanted(&s->f.t);
        if (tell)
            atomic_fetch_add(&s->reported, 1);
    }
    atomic_fetch_add(&s->n_done, 1);
    return NULL;
}

/* However the two sides interleave, a stamp that is left at the end has a deadline in time. */
static void test_no_lost_wake(void **state)
{
    struct threaded s = {.clock = START};
    pthread_t threads[N_WORKERS];
    nsec_t armed = NSEC_NEVER;
    nsec_t keepalive;
    unsigned seen = 0;
    bool is_over;

    fixture_init(&s.f);
    session(&s.f, START);
    for (unsigned i = 0; i < N_WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, threaded_worker, &s), 0);
    do {
        unsigned reported;
        nsec_t now;

        is_over = atomic_load(&s.n_done) == N_WORKERS;
        reported = atomic_load(&s.reported);
        now = atomic_load(&s.clock);
        if (reported != seen || now >= armed) {
            if (timers_poll(&s.f.t, now) & TIMERS_SEND_INITIATION)
                session(&s.f, now);
            armed = timers_due(&s.f.t);
            seen = reported;
        }
    } while (!is_over);
    for (unsigned i = 0; i < N_WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    keepalive = atomic_load(&s.f.t.keepalive_since);
    assert_true(keepalive == 0 || armed <= keepalive + 10 * S + S);
    assert_true(atomic_load(&s.f.t.is_watched) || keepalive == 0);
}

static void test_persistent(void **state)
{
    struct fixture f;

    fixture_init(&f);
    timers_set_persistent_keepalive(&f.t, 25 * S, START);
    assert_int_equal(poll_between(&f, START, START, NULL), TIMERS_SEND_KEEPALIVE);
    /* Nothing could be sent: it is not asked for all the time. */
    assert_int_equal(poll_between(&f, START + 25 * S, START + 25 * S, NULL), TIMERS_SEND_KEEPALIVE);
    /* Any authentic packet, either way, puts it off. */
    timers_on_other_received(&f.t, START + 30 * S);
    assert_int_equal(poll_between(&f, START + 55 * S, START + 55 * S, NULL), TIMERS_SEND_KEEPALIVE);
    timers_on_keepalive_sent(&f.t, START + 56 * S);
    assert_true(timers_due(&f.t) == START + 81 * S);
    /* A new interval, then off. */
    timers_set_persistent_keepalive(&f.t, 5 * S, START + 57 * S);
    assert_true(timers_due(&f.t) == START + 61 * S);
    timers_set_persistent_keepalive(&f.t, 0, START + 58 * S);
    assert_true(timers_due(&f.t) == NSEC_NEVER);
}

/* Each packet that is authentic or leaves puts a persistent keepalive off by its interval. */
static void test_persistent_is_put_off(void **state)
{
    const nsec_t interval = 2 * S;
    struct fixture f;

    fixture_init(&f);
    timers_set_persistent_keepalive(&f.t, interval, START);
    assert_int_equal(timers_poll(&f.t, START - 1), 0);
    assert_int_equal(timers_poll(&f.t, START), TIMERS_SEND_KEEPALIVE);
    (void)timers_on_data_sent(&f.t, START + S);
    assert_true(timers_due(&f.t) == START + S + interval);
    (void)timers_on_data_received(&f.t, START + 2 * S);
    assert_true(timers_due(&f.t) == START + 2 * S + interval);
    initiate(&f, START + 3 * S);
    assert_true(timers_due(&f.t) == START + 3 * S + interval);
    timers_on_response_sent(&f.t, START + 4 * S);
    assert_true(timers_due(&f.t) == START + 4 * S + interval);
    timers_on_keepalive_sent(&f.t, START + 5 * S);
    assert_true(timers_due(&f.t) == START + 5 * S + interval);
    timers_on_other_received(&f.t, START + 6 * S);
    assert_true(timers_due(&f.t) == START + 6 * S + interval);
    /* Without an interval nothing is recorded. */
    fixture_init(&f);
    timers_on_keepalive_sent(&f.t, START);
    assert_true(atomic_load(&f.t.traversed_at) == 0);
}

/* What is sent for another reason takes the place of the keepalive that is owed. */
static void test_keepalive_is_settled(void **state)
{
    struct fixture f;

    fixture_init(&f);
    (void)timers_on_data_received(&f.t, START);
    initiate(&f, START);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
    (void)timers_on_data_received(&f.t, START);
    timers_on_response_sent(&f.t, START);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
    (void)timers_on_data_received(&f.t, START);
    timers_on_handshake_complete(&f.t, START);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
    (void)timers_on_data_received(&f.t, START);
    (void)timers_on_data_received(&f.t, START);
    timers_set_persistent_keepalive(&f.t, 5 * S, START + 10 * S);
    /* Both are due: one keepalive is sent. */
    assert_int_equal(timers_poll(&f.t, START + 10 * S), TIMERS_SEND_KEEPALIVE);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
}

/* At the very start of the clock a stamp is one all the same, a nanosecond later. */
static void test_start_of_the_clock(void **state)
{
    struct fixture f;

    fixture_init(&f);
    assert_true(timers_on_data_received(&f.t, 0));
    assert_true(atomic_load(&f.t.keepalive_since) == 1);
    assert_false(timers_on_data_sent(&f.t, 0));
    assert_true(atomic_load(&f.t.unanswered_since) == 1);
    timers_on_session_confirmed(&f.t, 0);
    assert_true(timers_due(&f.t) == INT64_MIN);
    assert_int_equal(timers_poll(&f.t, 0), 0);
    assert_true(f.t.has_handshake);
    assert_int_equal(f.t.handshake_at, 1);
}

/* A watch is armed for the earlier of what is owed, and for no later than Keepalive-Timeout. */
static void test_watch(void **state)
{
    struct fixture f;

    fixture_init(&f);
    assert_int_equal(timers_poll(&f.t, START), 0);
    assert_true(timers_on_data_sent(&f.t, START + S));
    assert_true(atomic_load(&f.t.is_watched));
    assert_true(timers_due(&f.t) == START + 10 * S);
    assert_int_equal(timers_poll(&f.t, START + 10 * S), 0);
    assert_true(timers_due(&f.t) == START + 16 * S);
    assert_false(timers_on_data_received(&f.t, START + 2 * S));
    assert_false(timers_on_data_sent(&f.t, START + 3 * S));
    assert_true(timers_due(&f.t) == START + 18 * S);
    assert_false(timers_on_data_received(&f.t, START + 4 * S));
    assert_true(timers_due(&f.t) == START + 14 * S);
    /* Nothing is owed any more: who stamps next has to tell. */
    (void)timers_on_data_sent(&f.t, START + 5 * S);
    timers_on_other_received(&f.t, START + 6 * S);
    assert_true(timers_due(&f.t) == NSEC_NEVER);
    assert_false(atomic_load(&f.t.is_watched));
    assert_true(timers_on_data_received(&f.t, START + 7 * S));
}

/* The wish that an initiation fulfils is over; the next one counts anew. */
static void test_wishes(void **state)
{
    struct fixture f;

    fixture_init(&f);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_true(timers_due(&f.t) == INT64_MIN);
    initiate(&f, START);
    assert_true(timers_due(&f.t) == START + WG_REKEY_TIMEOUT + f.t.jitter);
    assert_true(f.t.initiation_sent_at == START);
    assert_true(f.t.has_sent_handshake);
    assert_in_range(f.t.jitter, 0, WG_REKEY_TIMEOUT_JITTER - 1);
    assert_true(timers_on_rekey_wanted(&f.t));
    /* While it is under way its repetition takes care of the wish. */
    assert_true(timers_due(&f.t) == START + WG_REKEY_TIMEOUT + f.t.jitter);
    timers_on_handshake_complete(&f.t, START + S);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_true(timers_due(&f.t) == START + WG_REKEY_TIMEOUT);
    assert_int_equal(timers_poll(&f.t, START + WG_REKEY_TIMEOUT - 1), 0);
    assert_int_equal(timers_poll(&f.t, START + WG_REKEY_TIMEOUT), TIMERS_SEND_INITIATION);
    assert_true(timers_on_last_minute(&f.t));
    /* Who wants one already is not told again in the last minute. */
    timers_clear(&f.t);
    assert_true(timers_on_rekey_wanted(&f.t));
    assert_false(timers_on_last_minute(&f.t));
}

/* Tries are counted from the last handshake, or from the last time that somebody began. */
static void test_attempts(void **state)
{
    nsec_t at = START;
    struct fixture f;

    fixture_init(&f);
    for (unsigned i = 1; i <= 3; i++) {
        initiate(&f, at);
        at = f.t.retransmit_due;
        assert_int_equal(timers_poll(&f.t, at), TIMERS_SEND_INITIATION);
        assert_int_equal(f.t.attempts, i);
        assert_true(f.t.retransmit_due == NSEC_NEVER);
    }
    timers_on_session_confirmed(&f.t, at);
    (void)timers_on_last_minute(&f.t);
    assert_int_equal(timers_poll(&f.t, at), 0);
    assert_int_equal(f.t.attempts, 0);
    /* The new session has a last minute of its own. */
    assert_true(timers_on_last_minute(&f.t));
    f.t.attempts = 5;
    at += WG_REKEY_TIMEOUT;
    assert_int_equal(timers_poll(&f.t, at), TIMERS_SEND_INITIATION);
    assert_int_equal(f.t.attempts, 0);
}

/* What is given up: no keepalive is owed, and keys that were to end earlier still do. */
static void test_given_up(void **state)
{
    const unsigned most = (unsigned)(WG_REKEY_ATTEMPT_TIME / WG_REKEY_TIMEOUT);
    struct fixture f;
    nsec_t at;

    fixture_init(&f);
    timers_on_session_derived(&f.t, START);
    initiate(&f, START + 100 * S);
    at = f.t.retransmit_due;
    (void)timers_on_data_received(&f.t, at - S);
    f.t.attempts = most + 1;
    assert_int_equal(timers_poll(&f.t, at), TIMERS_DROP_STAGED);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
    assert_true(f.t.retransmit_due == NSEC_NEVER);
    assert_true(f.t.zero_keys_due == START + 540 * S);
    initiate(&f, START + 200 * S);
    f.t.attempts = most;
    assert_int_equal(timers_poll(&f.t, f.t.retransmit_due - 1), 0);
    assert_int_equal(timers_poll(&f.t, f.t.retransmit_due), TIMERS_SEND_INITIATION);
    assert_int_equal(f.t.attempts, most + 1);
    assert_int_equal(timers_poll(&f.t, START + 540 * S - 1), 0);
    assert_int_equal(timers_poll(&f.t, START + 540 * S), TIMERS_ZERO_KEYS);
    assert_true(f.t.zero_keys_due == NSEC_NEVER);
}

static void test_confirmed(void **state)
{
    struct fixture f;

    fixture_init(&f);
    /* We had tried ourselves, then the peer's handshake came through. */
    initiate(&f, START);
    timers_on_other_received(&f.t, START + S);
    timers_on_response_sent(&f.t, START + S);
    timers_on_session_derived(&f.t, START + S);
    timers_on_session_confirmed(&f.t, START + 2 * S);
    assert_true(timers_due(&f.t) <= START + 2 * S);
    assert_int_equal(timers_poll(&f.t, START + 3 * S), 0);
    assert_true(f.t.has_handshake);
    assert_true(f.t.handshake_at == START + 2 * S);
    /* The retry is off; only the keys' end is left. */
    assert_true(timers_due(&f.t) == START + 541 * S);
}

static void test_last_minute(void **state)
{
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    assert_true(timers_on_last_minute(&f.t));
    assert_int_equal(timers_poll(&f.t, START + 165 * S), TIMERS_SEND_INITIATION);
    initiate(&f, START + 165 * S);
    /* Once per session, however much is received. */
    assert_false(timers_on_last_minute(&f.t));
    session(&f, START + 170 * S);
    assert_true(timers_on_last_minute(&f.t));
}

static void test_clear(void **state)
{
    struct fixture f;

    fixture_init(&f);
    session(&f, START);
    timers_set_persistent_keepalive(&f.t, 20000 * S, START);
    (void)timers_on_data_sent(&f.t, START);
    (void)timers_on_data_received(&f.t, START);
    (void)timers_on_data_received(&f.t, START);
    (void)timers_on_last_minute(&f.t);
    initiate(&f, START + 10 * S);
    (void)timers_on_rekey_wanted(&f.t);
    timers_on_session_confirmed(&f.t, START + 11 * S);
    f.t.attempts = 3;
    timers_clear(&f.t);
    assert_true(atomic_load(&f.t.unanswered_since) == 0);
    assert_true(atomic_load(&f.t.keepalive_since) == 0);
    assert_true(atomic_load(&f.t.traversed_at) == 0);
    assert_true(atomic_load(&f.t.confirmed_at) == 0);
    assert_false(atomic_load(&f.t.needs_another));
    assert_false(atomic_load(&f.t.wants_initiation));
    assert_false(atomic_load(&f.t.is_last_minute));
    assert_false(atomic_load(&f.t.is_watched));
    assert_int_equal(f.t.attempts, 0);
    assert_false(f.t.has_sent_handshake);
    assert_true(timers_due(&f.t) == 20000 * S);
    assert_int_equal(timers_poll(&f.t, START + 10000 * S), 0);
    /* What was is not forgotten: the last handshake is told to people. */
    assert_true(f.t.has_handshake);
    assert_true(f.t.handshake_at == START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_rate_limit),
        cmocka_unit_test(test_retransmit),
        cmocka_unit_test(test_retransmit_goes_on),
        cmocka_unit_test(test_passive_keepalive),
        cmocka_unit_test(test_keepalive_received),
        cmocka_unit_test(test_unanswered),
        cmocka_unit_test(test_busy_peer_is_quiet),
        cmocka_unit_test(test_never_late),
        cmocka_unit_test(test_no_lost_wake),
        cmocka_unit_test(test_persistent),
        cmocka_unit_test(test_persistent_is_put_off),
        cmocka_unit_test(test_keepalive_is_settled),
        cmocka_unit_test(test_start_of_the_clock),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_wishes),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_confirmed),
        cmocka_unit_test(test_last_minute),
        cmocka_unit_test(test_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
