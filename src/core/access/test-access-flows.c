/* test-access-flows.c - connections: which are known, for how long, and who gives way. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "access/access_flows.h"

#define AT 1000

static int setup(void **state)
{
    static struct access_flows f;

    f = (struct access_flows)ACCESS_FLOWS_NULL;
    assert_int_equal(access_flows_init(&f, 7), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    access_flows_deinit(*state);
    access_flows_deinit(*state);
    return 0;
}

/* A packet of connection number @i. */
static struct access_packet packet(uint8_t protocol, uint32_t i, enum access_way way)
{
    struct access_packet p = {.kind = ACCESS_PACKET_WHOLE, .way = way, .is_connected = true};

    p.key.local.b[15] = 1;
    memcpy(p.key.remote.b, &i, sizeof(i));
    p.key.local_port = 22;
    p.key.remote_port = 40000;
    p.key.protocol = protocol;
    p.is_icmp = protocol == IP_PROTO_ICMP;
    return p;
}

static bool takes(struct access_flows *f, const struct access_packet *p, uint32_t now_s)
{
    struct access_flow *hint = NULL;

    return access_flows_take(f, p, 1, now_s, &hint);
}

static void begin(struct access_flows *f, const struct access_packet *p, uint32_t now_s)
{
    access_flows_begin(f, p, false, 1, now_s);
}

static void test_an_answer(void **state)
{
    struct access_flows *f = *state;
    struct access_packet asks = packet(IP_PROTO_TCP, 1, ACCESS_OUT);
    struct access_packet answers = packet(IP_PROTO_TCP, 1, ACCESS_IN);
    struct access_packet other = packet(IP_PROTO_UDP, 1, ACCESS_IN);

    assert_false(takes(f, &answers, AT));
    assert_false(access_flows_has(f, &answers.key, AT));
    begin(f, &asks, AT);
    assert_true(access_flows_has(f, &answers.key, AT));
    assert_true(takes(f, &answers, AT));
    assert_true(takes(f, &asks, AT));
    assert_false(takes(f, &other, AT));
    other = packet(IP_PROTO_TCP, 1, ACCESS_IN);
    other.key.remote_port++;
    assert_false(takes(f, &other, AT));
}

/* The last one's place is remembered, and is of no use once another one has it. */
static void test_the_hint(void **state)
{
    struct access_flows *f = *state;
    struct access_packet a = packet(IP_PROTO_TCP, 1, ACCESS_OUT);
    struct access_packet b = packet(IP_PROTO_TCP, 2, ACCESS_OUT);
    struct access_flow *hint = NULL;
    struct access_flow *first;

    begin(f, &a, AT);
    begin(f, &b, AT);
    assert_true(access_flows_take(f, &a, 1, AT, &hint));
    first = hint;
    assert_non_null(first);
    assert_true(access_flows_take(f, &a, 1, AT, &hint));
    assert_ptr_equal(hint, first);
    assert_true(access_flows_take(f, &b, 1, AT, &hint));
    assert_ptr_not_equal(hint, first);
}

/* Rules that have changed are asked about what is not answered yet. */
static void test_a_change_of_the_rules(void **state)
{
    struct access_flows *f = *state;
    struct access_packet asks = packet(IP_PROTO_UDP, 1, ACCESS_OUT);
    struct access_packet answers = packet(IP_PROTO_UDP, 1, ACCESS_IN);
    struct access_flow *hint = NULL;

    begin(f, &asks, AT);
    assert_true(access_flows_take(f, &asks, 1, AT, &hint));
    assert_false(access_flows_take(f, &asks, 2, AT, &hint));
    assert_true(access_flows_take(f, &answers, 2, AT, &hint));
    assert_true(access_flows_take(f, &asks, 3, AT, &hint));
    /* One that was there before goes on as well. */
    asks = packet(IP_PROTO_UDP, 2, ACCESS_OUT);
    access_flows_begin(f, &asks, true, 1, AT);
    assert_true(access_flows_take(f, &asks, 2, AT, &hint));
}

static void test_silence(void **state)
{
    static const struct {
        uint8_t protocol;
        uint32_t patience;
    } cases[] = {
        {IP_PROTO_TCP, ACCESS_TCP_S},
        {IP_PROTO_UDP, ACCESS_UDP_S},
        {IP_PROTO_ICMP, ACCESS_ICMP_S},
        {47, ACCESS_OTHER_S},
    };
    struct access_flows *f = *state;

    for (unsigned i = 0; i < 4; i++) {
        struct access_packet asks = packet(cases[i].protocol, i, ACCESS_OUT);
        struct access_packet answers = packet(cases[i].protocol, i, ACCESS_IN);
        uint32_t now = AT;

        begin(f, &asks, now);
        assert_true(takes(f, &answers, now));
        now += cases[i].patience;
        assert_true(takes(f, &answers, now));
        now += cases[i].patience;
        assert_true(takes(f, &asks, now));
        assert_false(takes(f, &asks, now + cases[i].patience + 1));
        /* A clock of another thread that is a little behind. */
        assert_true(takes(f, &asks, now - 1));
    }
}

/* TCP that is beginning, ending or reset is kept for less long. */
static void test_tcp(void **state)
{
    struct access_flows *f = *state;
    struct access_packet asks = packet(IP_PROTO_TCP, 1, ACCESS_OUT);
    struct access_packet answers = packet(IP_PROTO_TCP, 1, ACCESS_IN);

    begin(f, &asks, AT);
    assert_true(access_flows_has(f, &asks.key, AT + ACCESS_TCP_HALF_S));
    assert_false(access_flows_has(f, &asks.key, AT + ACCESS_TCP_HALF_S + 1));
    assert_true(takes(f, &answers, AT));
    assert_true(access_flows_has(f, &asks.key, AT + ACCESS_TCP_S));
    answers.ends = true;
    assert_true(takes(f, &answers, AT));
    assert_true(access_flows_has(f, &asks.key, AT + ACCESS_TCP_S));
    asks.ends = true;
    assert_true(takes(f, &asks, AT));
    assert_false(access_flows_has(f, &asks.key, AT + ACCESS_TCP_HALF_S + 1));
    /* The same ports again. */
    asks.ends = answers.ends = false;
    begin(f, &asks, AT);
    assert_true(takes(f, &answers, AT));
    assert_true(access_flows_has(f, &asks.key, AT + ACCESS_TCP_S));
    answers.resets = true;
    assert_true(takes(f, &answers, AT));
    assert_false(access_flows_has(f, &asks.key, AT + ACCESS_TCP_HALF_S + 1));
}

/* More than fit: beginnings push out beginnings, and not what is answered. */
static void test_a_flood(void **state)
{
    enum { ANSWERED = 4000, FLOOD = 4 * ACCESS_FLOWS_MAX };
    struct access_flows *f = *state;
    unsigned n_known = 0;

    for (uint32_t i = 0; i < ANSWERED; i++) {
        struct access_packet asks = packet(IP_PROTO_TCP, i, ACCESS_IN);
        struct access_packet answers = packet(IP_PROTO_TCP, i, ACCESS_OUT);

        begin(f, &asks, AT);
        assert_true(takes(f, &answers, AT));
    }
    assert_int_equal(f->n_lost, 0);
    for (uint32_t i = 0; i < FLOOD; i++) {
        struct access_packet asks = packet(IP_PROTO_TCP, ANSWERED + i, ACCESS_IN);

        begin(f, &asks, AT + 1);
        /* The newest one is always known. */
        assert_true(takes(f, &asks, AT + 1));
    }
    for (uint32_t i = 0; i < ANSWERED; i++) {
        struct access_packet asks = packet(IP_PROTO_TCP, i, ACCESS_IN);

        n_known += takes(f, &asks, AT + 2);
    }
    /* A bucket may be full of what is answered by chance: of 8,192 with half a one each on average
     * hardly any is. */
    assert_int_equal(n_known, ANSWERED);
    assert_true(f->n_lost > 0);
}

#define THREADS   4
#define ROUNDS    20000
#define KEYS      64
#define PARALLELS 16

/* One of several threads that begin and look for the same connections, and some of their own. What
 * was never begun is never found. */
static void *work(void *arg)
{
    struct access_flows *f = arg;
    struct access_flow *hint = NULL;
    static _Atomic unsigned number;
    unsigned own = atomic_fetch_add(&number, 1);
    uintptr_t wrong = 0;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct access_packet p = packet(IP_PROTO_UDP, i % KEYS, i % 2 ? ACCESS_IN : ACCESS_OUT);
        struct access_packet never = packet(IP_PROTO_TCP, i % KEYS, ACCESS_IN);
        struct access_packet mine =
            packet(IP_PROTO_UDP, 1000000 + own * ROUNDS + i / PARALLELS, ACCESS_OUT);

        if (!access_flows_take(f, &p, 1, AT, &hint))
            begin(f, &p, AT);
        begin(f, &mine, AT);
        wrong += access_flows_take(f, &never, 1, AT, &hint);
        never = packet(IP_PROTO_UDP, 5000000 + i, ACCESS_IN);
        wrong += access_flows_has(f, &never.key, AT);
    }
    return (void *)wrong;
}

static void test_threads(void **state)
{
    struct access_flows *f = *state;
    pthread_t threads[THREADS];
    unsigned n_known = 0;

    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, f), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong = NULL;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        struct access_packet p = packet(IP_PROTO_UDP, i, ACCESS_IN);

        n_known += takes(f, &p, AT);
    }
    assert_int_equal(n_known, KEYS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_an_answer),
        TEST(test_the_hint),
        TEST(test_a_change_of_the_rules),
        TEST(test_silence),
        TEST(test_tcp),
        TEST(test_a_flood),
        TEST(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
