/* test-pmtu.c - the search, on a virtual clock, over paths of every size and with loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/secret.h"
#include "path/pmtu.h"

#define ANSWERS_MAX 64
#define PATHS       3000
#define MSEC        NSEC_PER_MSEC

/** A path between the machine and somebody who answers its probes. */
struct link {
    struct pmtu pmtu;
    nsec_t now;
    uint64_t seed;
    unsigned carries; /* bytes; 0: nothing at all */
    unsigned loss;    /* of 1000 packets, in each direction */
    unsigned burst;   /* packets that it takes at one moment; 0: any number */
    nsec_t opens;     /* takes none before */
    nsec_t rtt;
    bool has_data; /* a packet each 100 ms, and one back */
    bool is_mute;  /* data gets no answer */
    nsec_t next_data;
    struct {
        struct pmtu_probe probe;
        nsec_t at;
    } answers[ANSWERS_MAX];
    unsigned n_answers;
    nsec_t burst_at; /* when the last probe was sent, and how many with it */
    unsigned n_burst;
    unsigned n_probes;
    unsigned n_sets;
    unsigned used; /* what the machine last said */
};

static const struct pmtu_bounds ethernet = {PMTU_MIN, 1480, 1500};
static const struct pmtu_bounds jumbo = {PMTU_MIN, 1480, 9001};

static uint64_t draw(struct link *l)
{
    struct rng rng = rng_seeded(&l->seed);

    return rng_u64(&rng);
}

static bool is_lost(struct link *l)
{
    return draw(l) % 1000 < l->loss;
}

static void link_start(struct link *l, uint64_t seed, unsigned carries, const struct pmtu_bounds *b)
{
    *l = (struct link){.seed = seed, .carries = carries, .rtt = 20 * MSEC};
    pmtu_init(&l->pmtu, b);
    pmtu_on_path(&l->pmtu, b, l->now);
}

/* Is it there, and has it room for one more? */
static bool is_taken(struct link *l)
{
    l->n_burst = l->burst_at == l->now ? l->n_burst + 1 : 1;
    l->burst_at = l->now;
    return l->now >= l->opens && (l->burst == 0 || l->n_burst <= l->burst);
}

static void send_probe(struct link *l, const struct pmtu_probe *probe)
{
    l->n_probes++;
    assert_true(probe->size <= l->pmtu.bounds.ceiling);
    if (!is_taken(l) || probe->size > l->carries || is_lost(l) || is_lost(l))
        return;
    assert_true(l->n_answers < ANSWERS_MAX);
    l->answers[l->n_answers].probe = *probe;
    l->answers[l->n_answers++].at = l->now + l->rtt;
}

static void drain(struct link *l)
{
    enum pmtu_action action;
    struct pmtu_probe probe;
    unsigned n = 0;

    while ((action = pmtu_next(&l->pmtu, l->now, &probe)) != PMTU_ACTION_NONE) {
        assert_true(++n < 32);
        if (action == PMTU_ACTION_PROBE) {
            send_probe(l, &probe);
        } else {
            l->n_sets++;
            l->used = probe.size;
        }
    }
}

/* The answer that comes first; n_answers: none. */
static unsigned first_answer(const struct link *l)
{
    unsigned first = 0;

    for (unsigned i = 1; i < l->n_answers; i++)
        if (l->answers[i].at < l->answers[first].at)
            first = i;
    return first;
}

static void deliver(struct link *l)
{
    while (l->n_answers > 0) {
        unsigned i = first_answer(l);
        struct pmtu_probe probe = l->answers[i].probe;

        if (l->answers[i].at > l->now)
            return;
        l->answers[i] = l->answers[--l->n_answers];
        pmtu_on_answer(&l->pmtu, &probe, l->now);
    }
}

/* One event. */
static void turn(struct link *l, nsec_t until)
{
    nsec_t due = pmtu_due(&l->pmtu);

    /* A deadline in the past would be a loop without end. */
    assert_true(due > l->now || due == NSEC_NEVER);
    due = nsec_min(due, until);
    if (l->n_answers > 0)
        due = nsec_min(due, l->answers[first_answer(l)].at);
    if (l->has_data)
        due = nsec_min(due, nsec_max(l->next_data, l->now));
    l->now = nsec_max(due, l->now);
    deliver(l);
    if (l->has_data && l->now >= l->next_data) {
        pmtu_on_data(&l->pmtu, true, l->carries > 0 && !l->is_mute, l->now);
        l->next_data = l->now + 100 * MSEC;
    }
    drain(l);
}

static void run(struct link *l, nsec_t duration)
{
    nsec_t until = l->now + duration;

    drain(l);
    while (l->now < until)
        turn(l, until);
}

static void run_until_settled(struct link *l, nsec_t limit)
{
    nsec_t until = l->now + limit;

    drain(l);
    while (l->now < until && l->pmtu.state != PMTU_STATE_SETTLED)
        turn(l, until);
    assert_int_equal(l->pmtu.state, PMTU_STATE_SETTLED);
    assert_int_equal(l->used, l->pmtu.size);
}

/* How far below the truth a result may be: what the search does not look at any closer. */
static unsigned shortfall(unsigned carries)
{
    return carries < 1280 ? 80 : 8;
}

static void assert_right(const struct link *l)
{
    unsigned best = l->carries < l->pmtu.bounds.ceiling ? l->carries : l->pmtu.bounds.ceiling;

    if (l->used > best || l->used + shortfall(best) < best)
        fail_msg("%u is used on a path of %u", l->used, best);
}

static void test_common_sizes_are_found_at_once(void **state)
{
    static const unsigned sizes[] = {1280, 1400, 1460, 1480, 1492, 1500, 8500, 9000};
    struct link l;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        link_start(&l, i, sizes[i], &jumbo);
        run(&l, NSEC_PER_SEC);
        assert_int_equal(l.used, sizes[i]);
    }
    /* A path of the machine's own size takes one round trip. */
    link_start(&l, 1, 1500, &ethernet);
    run(&l, 21 * MSEC);
    assert_int_equal(l.pmtu.state, PMTU_STATE_SETTLED);
    assert_int_equal(l.used, 1500);
}

static void test_odd_sizes_are_bisected(void **state)
{
    static const unsigned sizes[] = {1201, 1300, 1379, 1424, 1470, 1499, 1600, 4352, 8000, 8999};
    struct link l;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        link_start(&l, i, sizes[i], &jumbo);
        run_until_settled(&l, 10 * NSEC_PER_SEC);
        assert_right(&l);
    }
}

/* Loss costs time, but brings neither a size that does not pass nor a much smaller one. */
static void test_every_path_with_loss(void **state)
{
    unsigned n_wrong = 0;
    struct link l;

    for (uint64_t seed = 1; seed <= PATHS; seed++) {
        link_start(&l, seed, 0, seed % 2 ? &jumbo : &ethernet);
        l.carries = PMTU_MIN + (unsigned)(draw(&l) % (seed % 3 ? 400 : 8000));
        l.loss = (unsigned)(draw(&l) % 50);
        l.rtt = (nsec_t)(1 + draw(&l) % 300) * MSEC;
        l.has_data = true;
        run_until_settled(&l, 60 * NSEC_PER_SEC);
        run(&l, 30 * NSEC_PER_SEC);
        if (l.used > l.carries)
            fail_msg("seed %llu: %u is used on a path of %u", (unsigned long long)seed, l.used,
                l.carries);
        n_wrong += l.used + shortfall(l.carries) < l.carries && l.used < l.pmtu.bounds.ceiling;
    }
    /* Three probes of one size are lost at 10 % together once in a thousand. */
    if (n_wrong > PATHS / 50)
        fail_msg("%u of %u paths were taken for smaller than they are", n_wrong, PATHS);
}

/* Probes that never left say nothing about their sizes: what was not lost with others counts. */
static void test_lost_bursts_cost_time_alone(void **state)
{
    static const unsigned sizes[] = {1280, 1420, 1460, 1500, 8896};
    struct link l;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        /* The other end does not listen yet. */
        link_start(&l, i, sizes[i], &jumbo);
        l.opens = 900 * MSEC;
        run(&l, 2 * NSEC_PER_SEC);
        assert_int_equal(l.used, sizes[i]);
        l.opens = l.now + 2500 * MSEC;
        pmtu_on_path(&l.pmtu, &jumbo, l.now);
        run(&l, 5 * NSEC_PER_SEC);
        assert_int_equal(l.used, sizes[i]);
        /* A queue on the way has room for the first few of each round. */
        for (unsigned burst = 2; burst <= 5; burst++) {
            link_start(&l, i, sizes[i], &jumbo);
            l.burst = burst;
            run(&l, 3 * NSEC_PER_SEC);
            assert_int_equal(l.used, sizes[i]);
        }
    }
}

static void test_black_hole_is_answered_in_time(void **state)
{
    struct link l;

    for (uint64_t seed = 1; seed <= PATHS; seed++) {
        nsec_t began;

        link_start(&l, seed, 1500, &ethernet);
        l.rtt = (nsec_t)(1 + draw(&l) % 300) * MSEC;
        l.has_data = true;
        l.is_mute = seed % 2;
        run(&l, (nsec_t)(5000 + draw(&l) % 20000) * MSEC);
        assert_int_equal(l.used, 1500);
        l.carries = 1280 + (unsigned)(draw(&l) % 200);
        for (began = l.now; l.used > l.carries && l.now - began < PMTU_HOLE_MAX;)
            run(&l, 10 * MSEC);
        if (l.used > l.carries)
            fail_msg(
                "seed %llu: still %u on a path of %u", (unsigned long long)seed, l.used, l.carries);
        run_until_settled(&l, 20 * NSEC_PER_SEC);
        assert_right(&l);
    }
}

static void test_larger_again(void **state)
{
    struct link l;

    link_start(&l, 1, 1400, &ethernet);
    l.has_data = true;
    run(&l, 60 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1400);
    l.carries = 1500;
    run(&l, 120 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1500);
    /* After a black hole sooner: it may have been mere loss. */
    l.carries = 1300;
    run(&l, 20 * NSEC_PER_SEC);
    assert_right(&l);
    l.carries = 1500;
    run(&l, 70 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1500);
}

/* A path that dies says nothing about sizes. */
static void test_dead_path_changes_nothing(void **state)
{
    unsigned n_probes;
    struct link l;

    link_start(&l, 1, 1460, &ethernet);
    l.has_data = true;
    run(&l, 10 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1460);
    l.carries = 0;
    run(&l, 120 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1460);
    n_probes = l.n_probes;
    run(&l, 600 * NSEC_PER_SEC);
    assert_true(l.n_probes - n_probes < 400);
    l.carries = 1460;
    run(&l, 61 * NSEC_PER_SEC);
    assert_int_equal(l.pmtu.state, PMTU_STATE_SETTLED);
    assert_int_equal(l.used, 1460);
}

static void test_idle_path_is_left_alone(void **state)
{
    unsigned n_probes;
    struct link l;

    link_start(&l, 1, 1500, &ethernet);
    run(&l, 2 * NSEC_PER_SEC);
    n_probes = l.n_probes;
    run(&l, 3600 * NSEC_PER_SEC);
    assert_int_equal(l.n_probes, n_probes);
    /* With data again it is looked at at once: it may have changed meanwhile. */
    l.carries = 1400;
    l.has_data = true;
    run(&l, 3 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1400);
}

static void test_busy_path_costs_little(void **state)
{
    unsigned n_probes;
    struct link l;

    link_start(&l, 1, 1500, &ethernet);
    l.has_data = true;
    run(&l, 2 * NSEC_PER_SEC);
    n_probes = l.n_probes;
    run(&l, 400 * NSEC_PER_SEC);
    assert_in_range(l.n_probes - n_probes, 90, 101);
    assert_int_equal(l.n_sets, 2); /* the assumed size, and the measured one */
}

static void test_another_path_starts_anew(void **state)
{
    struct pmtu_probe old;
    struct link l;

    link_start(&l, 1, 9000, &jumbo);
    run(&l, NSEC_PER_SEC);
    assert_int_equal(l.used, 9000);
    old = (struct pmtu_probe){9000, l.pmtu.epoch, l.now};
    l.carries = 1500;
    pmtu_on_path(&l.pmtu, &jumbo, l.now);
    drain(&l);
    assert_int_equal(l.used, 1480); /* assumed, before any answer */
    /* A late answer of the old path proves nothing about this one. */
    pmtu_on_answer(&l.pmtu, &old, l.now + MSEC);
    run(&l, 2 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1500);
    pmtu_on_path_lost(&l.pmtu);
    l.n_probes = 0;
    run(&l, 100 * NSEC_PER_SEC);
    assert_int_equal(l.n_probes, 0);
}

/* Answers to what was never asked, in any state, do no harm beyond the bounds. */
/* The machine's own link has become another one, or is known at last. */
static void test_other_ceiling(void **state)
{
    struct link l;

    link_start(&l, 1, 9001, &ethernet);
    l.has_data = true;
    run_until_settled(&l, 10 * NSEC_PER_SEC);
    assert_int_equal(l.used, 1500);
    pmtu_set_ceiling(&l.pmtu, 9001, l.now);
    run(&l, 2 * NSEC_PER_SEC);
    assert_int_equal(l.used, 9001);
    pmtu_set_ceiling(&l.pmtu, 1400, l.now);
    drain(&l);
    assert_int_equal(l.used, 1400);
}

static void test_answers_out_of_bounds(void **state)
{
    struct link l;

    link_start(&l, 7, 1500, &ethernet);
    for (int i = 0; i < 100000; i++) {
        struct pmtu_probe any = {(uint16_t)draw(&l), l.pmtu.epoch, l.now};

        pmtu_on_answer(&l.pmtu, &any, l.now);
        drain(&l);
        assert_in_range(l.pmtu.size, PMTU_MIN, 1500);
        run(&l, (nsec_t)(draw(&l) % 400) * MSEC);
        l.has_data = draw(&l) % 2;
        if (draw(&l) % 20 == 0)
            l.carries = (unsigned)(draw(&l) % 1600);
    }
}

/* ---- step by step --------------------------------------------------------------------------- */

#define T0            (100 * NSEC_PER_SEC)
#define RTT           (20 * MSEC)
#define PROBES(...)   ((const uint16_t[]){__VA_ARGS__, 0})
#define NO_PROBES     ((const uint16_t[]){0})
#define LATER_ROUND   (250 * MSEC) /* that long is waited for answers once the RTT is known */
#define AFTER_ANSWER  (2 * RTT + 100 * MSEC)
#define ALL_FROM_1380 1380, 1400, 1420, 1440, 1450, 1460, 1480, 1492, 1500

/* Exactly these probes are sent at @now. */
static void assert_probes(struct pmtu *p, nsec_t now, const uint16_t *sizes)
{
    enum pmtu_action action;
    struct pmtu_probe probe;
    unsigned n = 0;

    while ((action = pmtu_next(p, now, &probe)) != PMTU_ACTION_NONE)
        if (action == PMTU_ACTION_PROBE) {
            assert_int_equal(probe.size, sizes[n]);
            assert_int_equal(probe.epoch, p->epoch);
            assert_true(probe.sent_at == now);
            n++;
        }
    assert_int_equal(sizes[n], 0);
}

/* Nothing is to be done before @at, which is when the round ends; then these probes are sent. */
static void assert_round(struct pmtu *p, nsec_t at, const uint16_t *sizes)
{
    assert_true(pmtu_due(p) == at);
    assert_probes(p, at - 1, NO_PROBES);
    assert_probes(p, at, sizes);
}

/* The other end has got a probe of that size, which was sent a round trip ago. */
static void answer(struct pmtu *p, uint16_t size, nsec_t now)
{
    struct pmtu_probe probe = {size, p->epoch, now - RTT};

    pmtu_on_answer(p, &probe, now);
}

static void begin(struct pmtu *p)
{
    pmtu_init(p, &ethernet);
    pmtu_on_path(p, &ethernet, T0);
    assert_probes(p, T0, PROBES(1200, 1280, ALL_FROM_1380));
}

/* Without any answer from now on; returns when it has settled. */
static nsec_t settle_unanswered(struct pmtu *p)
{
    struct pmtu_probe probe;
    nsec_t now = 0;

    while (p->state != PMTU_STATE_SETTLED) {
        now = pmtu_due(p);
        assert_true(now < 2 * T0);
        while (pmtu_next(p, now, &probe) != PMTU_ACTION_NONE)
            continue;
    }
    return now;
}

static void assert_settled(const struct pmtu *p, uint16_t size, nsec_t raise_at)
{
    assert_int_equal(p->state, PMTU_STATE_SETTLED);
    assert_int_equal(p->size, size);
    assert_int_equal(p->next, 0);
    assert_true(p->raise_at == raise_at);
    assert_true(p->is_measured);
    assert_int_equal(p->doubted, 0);
    assert_true(p->quiet_for == 0);
}

/* Two rounds that bring nothing new are waited for, and the second one is a reason to use less. */
static void test_rounds_of_a_sweep(void **state)
{
    struct pmtu p;
    nsec_t now = T0 + RTT;

    begin(&p);
    answer(&p, 1400, now);
    now += AFTER_ANSWER;
    assert_round(&p, now, PROBES(1420, 1440, 1500));
    assert_int_equal(p.n_tries, 1);
    assert_int_equal(p.size, 1480);
    now += LATER_ROUND;
    assert_round(&p, now, PROBES(1420, 1440, 1500));
    assert_int_equal(p.n_tries, 2);
    assert_int_equal(p.size, 1400);
    assert_int_equal(p.reported, 1400);
    /* Halves between what passed and the next size, three times each. */
    for (unsigned i = 0; i < 3; i++) {
        now += LATER_ROUND;
        assert_round(&p, now, PROBES(1408));
        assert_int_equal(p.state, PMTU_STATE_BISECT);
        assert_true(p.is_measured);
    }
    now += LATER_ROUND;
    assert_round(&p, now, NO_PROBES);
    assert_settled(&p, 1400, now + 90 * NSEC_PER_SEC);
}

/* A round that proves a larger size counts as the first without a new one. */
static void test_a_later_round_proves_more(void **state)
{
    struct pmtu p;
    nsec_t now = T0 + RTT;

    begin(&p);
    answer(&p, 1400, now);
    now += AFTER_ANSWER;
    assert_round(&p, now, PROBES(1420, 1440, 1500));
    answer(&p, 1440, now + RTT);
    now += RTT + AFTER_ANSWER;
    assert_round(&p, now, PROBES(1450, 1460, 1500));
    assert_int_equal(p.n_tries, 1);
    assert_int_equal(p.size, 1480);
}

/* Nothing was heard of the first round at all: the next one that is heard of is the first. */
static void test_a_lost_round_is_no_try(void **state)
{
    struct pmtu p;
    nsec_t now = T0 + NSEC_PER_SEC;

    begin(&p);
    assert_round(&p, now, PROBES(1200, 1280, 1500));
    assert_int_equal(p.n_tries, 1);
    answer(&p, 1280, now + RTT);
    now += RTT + AFTER_ANSWER;
    assert_round(&p, now, PROBES(ALL_FROM_1380));
    assert_int_equal(p.n_tries, 0);
    assert_int_equal(p.size, 1480);
}

/* Without any answer nothing is known: the size stays, and the sweep is repeated. */
static void test_silence_says_nothing_of_sizes(void **state)
{
    struct pmtu p;
    nsec_t now = T0;

    begin(&p);
    for (unsigned i = 1; i <= 2; i++) {
        now += NSEC_PER_SEC;
        assert_round(&p, now, PROBES(1200, 1280, 1500));
        assert_int_equal(p.n_tries, i);
        assert_int_equal(p.size, 1480);
    }
    now += NSEC_PER_SEC;
    assert_round(&p, now, NO_PROBES);
    assert_int_equal(p.state, PMTU_STATE_SILENT);
    assert_true(p.quiet_for == NSEC_PER_SEC);
    now += NSEC_PER_SEC;
    assert_round(&p, now, PROBES(1200, 1280, ALL_FROM_1380));
    answer(&p, 1500, now + RTT);
    /* There is no larger size to be tried later. */
    assert_settled(&p, 1500, NSEC_NEVER);
}

/* Between two sizes of which the larger seemed to fail: it passes after all, and so may more. */
static void test_a_late_answer_while_halving(void **state)
{
    struct pmtu p;
    nsec_t now = T0 + RTT;

    begin(&p);
    answer(&p, 1400, now);
    now += AFTER_ANSWER;
    for (unsigned i = 0; i < 2; i++, now += LATER_ROUND)
        assert_round(&p, now, PROBES(1420, 1440, 1500));
    assert_round(&p, now, PROBES(1408));
    answer(&p, 1400, now + RTT);
    assert_int_equal(p.low, 1400);
    answer(&p, 1420, now + RTT);
    assert_int_equal(p.state, PMTU_STATE_BISECT);
    assert_int_equal(p.low, 1420);
    assert_int_equal(p.high, 1440);
    assert_int_equal(p.size, 1420);
    assert_int_equal(p.confirmed_at, now + RTT);
    assert_probes(&p, now + RTT, PROBES(1428));
    answer(&p, 1500, now + 2 * RTT);
    assert_settled(&p, 1500, NSEC_NEVER);
}

/* In a silence any answer ends it, and the next one is as short as the first. */
static void test_an_answer_in_a_silence(void **state)
{
    struct pmtu p;
    nsec_t now = T0;

    begin(&p);
    for (unsigned i = 0; i < 2; i++) {
        while (p.state != PMTU_STATE_SILENT) {
            struct pmtu_probe probe;

            now = pmtu_due(&p);
            while (pmtu_next(&p, now, &probe) != PMTU_ACTION_NONE)
                continue;
        }
        assert_true(p.quiet_for == NSEC_PER_SEC);
        assert_true(pmtu_due(&p) == now + NSEC_PER_SEC);
        answer(&p, 1400, now + RTT);
        assert_true(p.quiet_for == 0);
        assert_round(&p, now + RTT, PROBES(1200, 1280, ALL_FROM_1380));
    }
}

/* For two round trips and a tenth of a second, from a quarter of a second up to three. */
static void test_how_long_answers_are_waited_for(void **state)
{
    static const struct {
        int answered, ends, next; /* ms after the first round has begun */
    } cases[] = {{20, 160, 410}, {75, 325, 575}, {76, 328, 580}, {200, 700, 1200},
        {900, 1000, 2900}, {1449, 2000, 4998}, {1450, 2000, 5000}, {1900, 2000, 5000}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pmtu p;

        begin(&p);
        if (cases[i].answered > 1000)
            assert_round(&p, T0 + NSEC_PER_SEC, PROBES(1200, 1280, 1500));
        pmtu_on_answer(&p, &(struct pmtu_probe){1492, p.epoch, T0}, T0 + cases[i].answered * MSEC);
        assert_round(&p, T0 + cases[i].ends * MSEC, PROBES(1500));
        assert_true(pmtu_due(&p) == T0 + cases[i].next * MSEC);
    }
}

/* Neither is asked for when no data was sent in the five seconds before. */
static void test_data_that_moves(void **state)
{
    for (unsigned late = 0; late < 2; late++) {
        struct pmtu p;
        nsec_t at;

        begin(&p);
        answer(&p, 1400, T0 + RTT);
        (void)settle_unanswered(&p);
        at = p.raise_at;
        p.confirmed_at = at;
        pmtu_on_data(&p, true, true, at - 5 * NSEC_PER_SEC + late);
        assert_true(pmtu_due(&p) == (late ? at : NSEC_NEVER));
        p.raise_at = NSEC_NEVER;
        pmtu_on_data(&p, true, true, at - 1 * NSEC_PER_SEC + late);
        assert_true(pmtu_due(&p) == (late ? at + 4 * NSEC_PER_SEC : NSEC_NEVER));
    }
}

/* A size is answered while smaller ones wait to be sent: they need not be any more. */
static void test_an_answer_before_all_is_sent(void **state)
{
    const struct {
        uint16_t answered;
        const uint16_t *sent; /* after that */
    } cases[] = {{1200, PROBES(1280, ALL_FROM_1380)}, {1280, PROBES(ALL_FROM_1380)},
        {1440, PROBES(1450, 1460, 1480, 1492, 1500)}, {1500, NO_PROBES}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        enum pmtu_action action;
        struct pmtu_probe probe;
        struct pmtu p;

        pmtu_init(&p, &ethernet);
        pmtu_on_path(&p, &ethernet, T0);
        do {
            action = pmtu_next(&p, T0, &probe);
            assert_int_not_equal(action, PMTU_ACTION_NONE);
        } while (action != PMTU_ACTION_PROBE);
        assert_int_equal(p.next, 1280);
        answer(&p, cases[i].answered, T0 + RTT);
        if (cases[i].answered == 1500)
            assert_settled(&p, 1500, NSEC_NEVER);
        assert_probes(&p, T0 + RTT, cases[i].sent);
    }
}

/* The size in use is not confirmed: a sweep up to it begins at once. */
static nsec_t begin_doubt(struct pmtu *p, nsec_t now)
{
    nsec_t at = p->confirmed_at + 4 * NSEC_PER_SEC;

    pmtu_on_data(p, true, true, now);
    assert_round(p, at, PROBES(p->size));
    assert_int_equal(p->state, PMTU_STATE_CONFIRM);
    at += LATER_ROUND;
    assert_round(p, at, PROBES(1200, 1280, 1380, 1400));
    assert_int_equal(p->doubted, 1400);
    return at;
}

/* A larger size is tried again after 90 s, or after 60 s where it was only just given up. */
static void test_when_a_larger_size_is_tried_again(void **state)
{
    struct pmtu p;
    nsec_t now;

    begin(&p);
    answer(&p, 1400, T0 + RTT);
    now = settle_unanswered(&p);
    assert_settled(&p, 1400, now + 90 * NSEC_PER_SEC);
    /* It passes after all. */
    now = begin_doubt(&p, now) + RTT;
    answer(&p, 1400, now);
    assert_settled(&p, 1400, now + 90 * NSEC_PER_SEC);
    /* It does not: less does. */
    now = begin_doubt(&p, now) + RTT;
    answer(&p, 1380, now);
    now = settle_unanswered(&p);
    assert_settled(&p, 1380, now + 60 * NSEC_PER_SEC);
}

/* Data is sent and nothing comes back for a second: the size is confirmed after 2 s already. */
static void test_nothing_comes_back(void **state)
{
    static const struct {
        nsec_t sent; /* all since the last answer */
        nsec_t heard;
        nsec_t confirm;
    } cases[] = {
        {500 * MSEC, 600 * MSEC, 4000 * MSEC},
        {500 * MSEC, 0, 2000 * MSEC},
        {1500 * MSEC, 0, 2500 * MSEC},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nsec_t answered = T0 + RTT;
        struct pmtu p;

        begin(&p);
        answer(&p, 1500, answered);
        pmtu_on_data(&p, true, false, answered + cases[i].sent);
        if (cases[i].heard != 0)
            pmtu_on_data(&p, false, true, answered + cases[i].heard);
        assert_round(&p, answered + cases[i].confirm, PROBES(1500));
        assert_int_equal(p.state, PMTU_STATE_CONFIRM);
    }
}

/* What was measured once is what is looked for after a silence; more is a matter of later. */
static void test_silence_of_a_measured_path(void **state)
{
    struct pmtu p;
    nsec_t now;

    begin(&p);
    answer(&p, 1400, T0 + RTT);
    now = begin_doubt(&p, settle_unanswered(&p));
    for (unsigned i = 0; i < 2; i++) {
        now += LATER_ROUND;
        assert_round(&p, now, PROBES(1200, 1280, 1400));
    }
    now += LATER_ROUND;
    assert_round(&p, now, NO_PROBES);
    assert_int_equal(p.state, PMTU_STATE_SILENT);
    assert_int_equal(p.size, 1400);
    now += NSEC_PER_SEC;
    assert_round(&p, now, PROBES(1200, 1280, 1380, 1400));
}

/* A ceiling that rises is searched up to from the size in use; one that falls, from below. */
static void test_another_ceiling_is_searched_for(void **state)
{
    nsec_t now = T0 + RTT;
    uint16_t epoch;
    struct pmtu p;

    begin(&p);
    answer(&p, 1500, now);
    epoch = p.epoch;
    pmtu_set_ceiling(&p, 1500, now);
    assert_settled(&p, 1500, NSEC_NEVER);
    assert_int_equal(p.epoch, epoch);
    pmtu_set_ceiling(&p, 9000, now);
    assert_int_equal(p.epoch, epoch + 1);
    assert_int_equal(p.size, 1500);
    assert_probes(&p, now, PROBES(8500, 8896, 9000));
    answer(&p, 9000, now + RTT);
    assert_settled(&p, 9000, NSEC_NEVER);
    pmtu_set_ceiling(&p, 1400, now);
    assert_int_equal(p.size, 1400);
    assert_probes(&p, now, PROBES(1200, 1280, 1380, 1400));
    /* While it is looked for: anew. */
    answer(&p, 1280, now + RTT);
    pmtu_set_ceiling(&p, 1460, now + RTT);
    assert_int_equal(p.size, 1400);
    assert_probes(&p, now + RTT, PROBES(1200, 1280, 1380, 1400, 1420, 1440, 1450, 1460));
    /* Without a path, and in a silence, it is for later. */
    pmtu_on_path_lost(&p);
    assert_int_equal(p.next, 0);
    pmtu_set_ceiling(&p, 1420, now + RTT);
    assert_int_equal(p.state, PMTU_STATE_NONE);
    assert_true(pmtu_due(&p) == NSEC_NEVER);
    assert_probes(&p, now + RTT, NO_PROBES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common_sizes_are_found_at_once),
        cmocka_unit_test(test_odd_sizes_are_bisected),
        cmocka_unit_test(test_every_path_with_loss),
        cmocka_unit_test(test_lost_bursts_cost_time_alone),
        cmocka_unit_test(test_black_hole_is_answered_in_time),
        cmocka_unit_test(test_larger_again),
        cmocka_unit_test(test_dead_path_changes_nothing),
        cmocka_unit_test(test_idle_path_is_left_alone),
        cmocka_unit_test(test_busy_path_costs_little),
        cmocka_unit_test(test_another_path_starts_anew),
        cmocka_unit_test(test_other_ceiling),
        cmocka_unit_test(test_answers_out_of_bounds),
        cmocka_unit_test(test_rounds_of_a_sweep),
        cmocka_unit_test(test_a_later_round_proves_more),
        cmocka_unit_test(test_a_lost_round_is_no_try),
        cmocka_unit_test(test_silence_says_nothing_of_sizes),
        cmocka_unit_test(test_a_late_answer_while_halving),
        cmocka_unit_test(test_an_answer_in_a_silence),
        cmocka_unit_test(test_how_long_answers_are_waited_for),
        cmocka_unit_test(test_data_that_moves),
        cmocka_unit_test(test_an_answer_before_all_is_sent),
        cmocka_unit_test(test_when_a_larger_size_is_tried_again),
        cmocka_unit_test(test_nothing_comes_back),
        cmocka_unit_test(test_silence_of_a_measured_path),
        cmocka_unit_test(test_another_ceiling_is_searched_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
