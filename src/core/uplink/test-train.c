/*
 * test-train.c - what a train says of a line, on lines that are simulated datagram by datagram: a
 * queue, a token bucket, other traffic, slow and busy processors at both ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "uplink/train.h"

#define MS     NSEC_PER_MSEC
#define US     NSEC_PER_USEC
#define MBIT   UINT64_C(1000000)
#define SIZE   1450
#define SOCKET (200 * 1024)

/* ---- a line --------------------------------------------------------------------------------- */

struct line {
    uint64_t rate;   /* bit/s */
    uint32_t queue;  /* bytes that may wait; what does not fit is lost */
    uint32_t bucket; /* bytes that go at once, as those of a token bucket; 0: there is none */
    nsec_t delay;
    unsigned busy_percent; /* of the line that other traffic takes */
    bool blocks;           /* what does not fit waits in the sender's socket: its own interface */
    uint64_t sender_max;   /* bit/s that the sender's processor manages; 0: any */
    nsec_t pause_at;       /* the sender does nothing from then on ... */
    nsec_t pause_for;      /* ... for so long */
    nsec_t late_each;      /* the receiver sees what has come only so often; 0: at once */
    unsigned missed_each;  /* one of so many is lost in the receiver's socket; 0: none is */
};

/* What is in it. */
struct traffic {
    const struct line *line;
    unsigned piece; /* datagrams that are sent together */
    double free_at; /* the last datagram has used up the line until then, ns; with credit, earlier
                       than that it has left */
    struct train_marks sent;
    struct train_marks heard;
    uint32_t n_sent;
    uint32_t n_heard;
    uint32_t n_missed;
    uint64_t random;
};

static uint32_t draw(struct traffic *t)
{
    t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(t->random >> 33);
}

/* Bytes that wait at @now. */
static double waiting(const struct traffic *t, double now)
{
    double rate = (double)t->line->rate;

    return t->free_at > now ? (t->free_at - now) * rate / 8e9 : 0;
}

static void arrive(struct traffic *t, double at, uint32_t n)
{
    const struct line *l = t->line;
    struct train_mark m;

    if (l->missed_each > 0 && t->n_heard % l->missed_each == 0)
        t->n_missed++;
    t->n_heard++;
    m = (struct train_mark){
        .at = (nsec_t)at + l->delay, .sent = n - n % t->piece, .heard = t->n_heard};
    if (l->late_each > 0)
        m.at = (m.at / l->late_each + 1) * l->late_each;
    train_marks_add(&t->heard, &m);
}

/* One datagram enters. False: it does not fit, and the sender has to wait. */
static bool enter(struct traffic *t, double now)
{
    const struct line *l = t->line;
    double takes = SIZE * 8e9 / (double)l->rate * 100.0 / (100 - l->busy_percent);
    double credit = (double)l->bucket * 8e9 / (double)l->rate;

    /* Other traffic comes when it comes. */
    if (l->busy_percent > 0)
        takes *= 0.5 + (double)(draw(t) % 1000) / 1000;
    if (l->blocks && waiting(t, now) > SOCKET)
        return false;
    t->n_sent++;
    if (!l->blocks && waiting(t, now) + SIZE > l->queue)
        return true;
    t->free_at = (t->free_at > now - credit ? t->free_at : now - credit) + takes;
    arrive(t, t->free_at > now ? t->free_at : now, t->n_sent - 1);
    return true;
}

/* Sends one train, and evaluates it. */
static struct train_result send_train(
    const struct line *l, const struct train_step *step, struct traffic *t)
{
    double piece_ns = 8e9 * SIZE / (double)step->bits_per_s;
    double each = l->sender_max ? 8e9 * SIZE / (double)l->sender_max : 100;
    double now = 1e9;
    double waited = 0;
    double begin = now;

    *t = (struct traffic){.line = l, .piece = step->at_once, .random = 7};
    while (now - begin < (double)step->ms * 1e6 && (uint64_t)t->n_sent * SIZE < step->bytes) {
        struct train_mark m = {.at = (nsec_t)now, .sent = t->n_sent, .waited = (nsec_t)waited};

        train_marks_add(&t->sent, &m);
        for (unsigned i = 0; i < t->piece; i++) {
            while (!enter(t, now)) {
                now += 1e5;
                waited += 1e5;
            }
            now += each;
        }
        /* It is paced: what it is behind it makes good. */
        if (now < begin + t->n_sent * piece_ns)
            now = begin + t->n_sent * piece_ns;
        if (l->pause_for > 0 && now - begin >= (double)l->pause_at &&
            now - begin < (double)(l->pause_at + l->pause_for))
            now = begin + (double)(l->pause_at + l->pause_for);
    }
    return train_evaluate(&t->sent, &t->heard, SIZE, t->n_missed);
}

static struct train_step at_rate(uint64_t rate)
{
    struct train_plan p = {.offered = rate};
    struct train_step step;

    assert_true(train_plan_next(&p, &step));
    return step;
}

static struct train_result train_at(const struct line *l, uint64_t rate)
{
    struct train_step step = at_rate(rate);
    struct traffic t;

    return send_train(l, &step, &t);
}

static void assert_near(uint64_t got, uint64_t want, unsigned percent)
{
    if (got * 100 < want * (100 - percent) || got * 100 > want * (100 + percent))
        fail_msg("%.3f Mbit/s, and not within %u %% of %.3f", (double)got / 1e6, percent,
            (double)want / 1e6);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static void test_marks_are_spread(void **state)
{
    static const uint32_t counts[] = {1, 8, 31, 32, 33, 64, 65, 1000, 5700};

    (void)state;
    for (unsigned k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
        struct train_marks m = {.n = 0};

        for (uint32_t i = 0; i < counts[k]; i++)
            train_marks_add(&m, &(struct train_mark){.at = i, .sent = i});
        assert_in_range(m.n, counts[k] < TRAIN_MARKS_MAX / 2 ? counts[k] : TRAIN_MARKS_MAX / 2,
            TRAIN_MARKS_MAX);
        assert_int_equal(m.items[0].sent, 0);
        for (unsigned i = 1; i < m.n; i++)
            assert_int_equal(m.items[i].sent - m.items[i - 1].sent, m.step);
        assert_true(m.items[m.n - 1].sent + m.step >= counts[k]);
    }
}

/* ---- one train ------------------------------------------------------------------------------ */

static void test_the_line_is_measured(void **state)
{
    static const uint64_t rates[] = {1, 5, 20, 95, 300, 940};
    static const unsigned queues_ms[] = {2, 20, 200};

    (void)state;
    for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        for (unsigned k = 0; k < sizeof(queues_ms) / sizeof(*queues_ms); k++) {
            struct line l = {.rate = rates[i] * MBIT,
                .queue = (uint32_t)(4 * SIZE + rates[i] * MBIT / 8000 * queues_ms[k]),
                .delay = 20 * MS};
            struct train_result r = train_at(&l, l.rate * 15 / 10);

            assert_int_equal(r.verdict, TRAIN_LINE);
            assert_near(r.bits_per_s, l.rate, 7);
        }
}

static void test_a_line_that_carries_all(void **state)
{
    struct line l = {.rate = 100 * MBIT, .queue = 128 << 10};
    struct train_result r = train_at(&l, 40 * MBIT);

    (void)state;
    assert_int_equal(r.verdict, TRAIN_ALL);
    assert_near(r.bits_per_s, 40 * MBIT, 3);
    r = train_at(&l, 109 * MBIT);
    assert_int_equal(r.verdict, TRAIN_CLOSE);
}

/* Up to half of the train is credit. */
static void test_a_token_bucket_does_not_count(void **state)
{
    struct line l = {.rate = 20 * MBIT, .queue = 64 << 10, .bucket = 100 << 10};
    struct train_result r = train_at(&l, 30 * MBIT);

    (void)state;
    assert_int_equal(r.verdict, TRAIN_LINE);
    assert_near(r.bits_per_s, 20 * MBIT, 5);
    /* A bucket that is longer than the train cannot be seen: then all has come. */
    l.bucket = 4 << 20;
    assert_int_equal(train_at(&l, 30 * MBIT).verdict, TRAIN_ALL);
}

/* A processor that sends slowly is not the line. */
static void test_a_slow_sender(void **state)
{
    struct line l = {.rate = 1000 * MBIT, .queue = 1 << 20, .sender_max = 300 * MBIT};
    struct train_result r = train_at(&l, 640 * MBIT);

    (void)state;
    assert_int_equal(r.verdict, TRAIN_ALL);
    assert_near(r.bits_per_s, 300 * MBIT, 3);
}

/* One that was not running for a part of the train has sent no faster than it came. */
static void test_a_sender_that_pauses(void **state)
{
    for (nsec_t at = 0; at < 250; at += 10) {
        struct line l = {
            .rate = 20 * MBIT, .queue = 8 << 10, .pause_at = at * MS, .pause_for = 60 * MS};
        struct train_result r = train_at(&l, 30 * MBIT);

        (void)state;
        if (r.verdict == TRAIN_LINE)
            assert_near(r.bits_per_s, 20 * MBIT, 12);
    }
}

/* What waits for room in the socket waits for the line. */
static void test_the_own_interface_is_the_line(void **state)
{
    struct line l = {.rate = 95 * MBIT, .queue = 1 << 20, .blocks = true};
    struct train_result r = train_at(&l, 160 * MBIT);

    (void)state;
    assert_int_equal(r.verdict, TRAIN_LINE);
    assert_near(r.bits_per_s, 95 * MBIT, 3);
}

static void test_a_receiver_that_loses(void **state)
{
    struct line l = {.rate = 20 * MBIT, .queue = 64 << 10, .missed_each = 20};

    (void)state;
    assert_int_equal(train_at(&l, 30 * MBIT).verdict, TRAIN_NOTHING);
    l.missed_each = 200;
    assert_int_equal(train_at(&l, 30 * MBIT).verdict, TRAIN_LINE);
}

/* What is seen late is seen at wrong times, and never faster than it was by much. */
static void test_a_receiver_that_is_late(void **state)
{
    for (nsec_t each = 1; each <= 40; each++) {
        struct line l = {.rate = 20 * MBIT, .queue = 64 << 10, .late_each = each * MS};
        struct train_result r = train_at(&l, 30 * MBIT);

        (void)state;
        if (each <= 5)
            assert_int_equal(r.verdict, TRAIN_LINE);
        if (r.verdict == TRAIN_LINE)
            assert_near(r.bits_per_s, 20 * MBIT, each <= 5 ? 10 : 30);
    }
}

/* It measures what is left, and no more than the line. */
static void test_other_traffic(void **state)
{
    for (unsigned busy = 10; busy <= 70; busy += 10) {
        struct line l = {.rate = 50 * MBIT, .queue = 128 << 10, .busy_percent = busy};
        struct train_result r = train_at(&l, 75 * MBIT);

        (void)state;
        assert_int_equal(r.verdict, TRAIN_LINE);
        assert_near(r.bits_per_s, 50 * MBIT * (100 - busy) / 100, 10);
    }
}

/* Nothing that a receiver may say leads astray. */
static void test_marks_of_a_liar(void **state)
{
    struct train_marks sent = {.n = 0};
    struct train_marks good = {.n = 0};
    struct train_marks bad;

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        train_marks_add(&sent, &(struct train_mark){.at = i * MS, .sent = i * 10});
        train_marks_add(
            &good, &(struct train_mark){.at = i * 2 * MS, .sent = i * 10, .heard = i * 10 + 1});
    }
    assert_int_equal(train_evaluate(&sent, &good, SIZE, 0).verdict, TRAIN_LINE);
    bad = good;
    bad.n = 100000000;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    bad.n = 7;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    bad.items[bad.n - 2].sent = bad.items[bad.n - 1].sent;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    bad.items[bad.n - 2].heard = 0;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    bad.items[1].at = 0;
    bad.items[2].at = 0;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_LINE);
    bad.items[1].at = 1;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = sent;
    bad.items[1].waited = 1;
    assert_int_equal(train_evaluate(&bad, &good, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    for (unsigned i = 0; i < bad.n; i++)
        bad.items[i].at = 0;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_NOTHING);
    bad = good;
    for (unsigned i = 0; i < bad.n; i++)
        bad.items[i].sent += 4000000000u;
    assert_int_equal(train_evaluate(&sent, &bad, SIZE, 0).verdict, TRAIN_LINE);
    assert_int_equal(
        train_evaluate(&(struct train_marks){.n = 1}, &good, SIZE, 0).verdict, TRAIN_NOTHING);
}

/* ---- one after the other -------------------------------------------------------------------- */

/* Sends as many as the plan wants. */
static unsigned carry_out(struct train_plan *p, const struct line *l, uint64_t *ret_bytes)
{
    struct train_step step;
    unsigned n = 0;

    *ret_bytes = 0;
    while (train_plan_next(p, &step)) {
        struct traffic t;
        struct train_result r = send_train(l, &step, &t);

        assert_true(step.bytes <= TRAIN_BYTES_MAX && step.ms >= 1 && step.ms <= 1000);
        *ret_bytes += (uint64_t)t.n_sent * SIZE;
        train_plan_take(p, &r);
        assert_true(++n <= TRAIN_PLAN_MAX);
    }
    return n;
}

static void test_a_plan_finds_the_line(void **state)
{
    static const uint64_t rates[] = {1, 2, 7, 10, 11, 20, 45, 100, 250, 600, 940, 1500};

    (void)state;
    for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        struct line l = {.rate = rates[i] * MBIT, .queue = 256 << 10, .delay = 10 * MS};
        struct train_plan p;
        uint64_t bytes;

        train_plan_begin(&p, 0);
        (void)carry_out(&p, &l, &bytes);
        assert_true(p.is_line);
        assert_near(p.bits_per_s, l.rate, 8);
        assert_true(bytes < 40u << 20);
        /* Once it is known one train will do. */
        train_plan_begin(&p, p.bits_per_s);
        assert_int_equal(carry_out(&p, &l, &bytes), 1);
        assert_near(p.bits_per_s, l.rate, 8);
    }
}

static void test_a_plan_follows_a_line_that_has_changed(void **state)
{
    static const uint64_t known[] = {5, 20, 80, 400};

    (void)state;
    for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
        struct line l = {.rate = 50 * MBIT, .queue = 128 << 10};
        struct train_plan p;
        uint64_t bytes;

        train_plan_begin(&p, known[i] * MBIT);
        (void)carry_out(&p, &l, &bytes);
        assert_true(p.is_line);
        assert_near(p.bits_per_s, l.rate, 8);
    }
}

static void test_a_fast_line_is_left_alone(void **state)
{
    struct line l = {.rate = 10000 * MBIT, .queue = 4 << 20};
    struct train_plan p;
    uint64_t bytes;

    (void)state;
    train_plan_begin(&p, 0);
    assert_int_equal(carry_out(&p, &l, &bytes), 5);
    assert_false(p.is_line);
    assert_true(p.bits_per_s >= TRAIN_FAST);
    assert_true(bytes < 24u << 20);
    /* With a processor that is slower than that it is known to carry as much at least. */
    l.sender_max = 500 * MBIT;
    train_plan_begin(&p, 0);
    (void)carry_out(&p, &l, &bytes);
    assert_false(p.is_line);
    assert_near(p.bits_per_s, 500 * MBIT, 5);
}

static void test_a_plan_without_answers_ends(void **state)
{
    struct train_plan p;
    unsigned n = 0;

    (void)state;
    train_plan_begin(&p, 0);
    for (struct train_step step; train_plan_next(&p, &step); n++)
        train_plan_take(&p, &(struct train_result){.verdict = TRAIN_NOTHING});
    assert_int_equal(n, 2);
    assert_int_equal(p.bits_per_s, 0);
    assert_false(p.is_line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_spread),
        cmocka_unit_test(test_the_line_is_measured),
        cmocka_unit_test(test_a_line_that_carries_all),
        cmocka_unit_test(test_a_token_bucket_does_not_count),
        cmocka_unit_test(test_a_slow_sender),
        cmocka_unit_test(test_a_sender_that_pauses),
        cmocka_unit_test(test_the_own_interface_is_the_line),
        cmocka_unit_test(test_a_receiver_that_loses),
        cmocka_unit_test(test_a_receiver_that_is_late),
        cmocka_unit_test(test_other_traffic),
        cmocka_unit_test(test_marks_of_a_liar),
        cmocka_unit_test(test_a_plan_finds_the_line),
        cmocka_unit_test(test_a_plan_follows_a_line_that_has_changed),
        cmocka_unit_test(test_a_fast_line_is_left_alone),
        cmocka_unit_test(test_a_plan_without_answers_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
