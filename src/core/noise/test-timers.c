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
    (void)timers_on_data_sent(&f.t, START);
    (void)timers_on_data_received(&f.t, START);
    (void)timers_on_rekey_wanted(&f.t);
    initiate(&f, START + 10 * S);
    timers_clear(&f.t);
    assert_true(timers_due(&f.t) == NSEC_NEVER);
    assert_int_equal(timers_poll(&f.t, START + 10000 * S), 0);
    assert_true(f.t.has_handshake);
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
        cmocka_unit_test(test_confirmed),
        cmocka_unit_test(test_last_minute),
        cmocka_unit_test(test_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
