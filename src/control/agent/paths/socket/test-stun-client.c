/* test-stun-client.c - servers are asked in time, and only their own answers are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/socket/local_candidates.h"
#include "base/secret.h"

#define SEC  NSEC_PER_SEC
#define MSEC NSEC_PER_MSEC

static uint64_t seed = 1;

static struct endpoint endpoint(uint8_t host, uint16_t port)
{
    return (struct endpoint){
        .addr = ip_addr_v4((const uint8_t[4]){203, 0, 113, host}), .port = port};
}

/* The request that is due at @now; fails the test when there is none. */
static struct endpoint ask(struct stun_client *sc, nsec_t now, uint8_t msg[STUN_REQUEST_SIZE])
{
    struct rng rng = rng_seeded(&seed);
    struct endpoint to;

    assert_true(stun_client_next(sc, now, &rng, &to, msg));
    return to;
}

static void assert_none_due(struct stun_client *sc, nsec_t now)
{
    struct rng rng = rng_seeded(&seed);
    uint8_t msg[STUN_REQUEST_SIZE];
    struct endpoint to;

    assert_false(stun_client_next(sc, now, &rng, &to, msg));
}

static size_t answer(
    const uint8_t *msg, const struct endpoint *mapped, uint8_t out[STUN_ANSWER_MAX])
{
    struct stun_request req;

    assert_int_equal(stun_decode_request(&req, msg, STUN_REQUEST_SIZE), 0);
    return stun_encode_answer(&req, mapped, out);
}

static void test_tries_come_later_and_later(void **state)
{
    static const nsec_t after[] = {250, 500, 1000, 2000, 4000, 30000, 30000};
    struct stun_client sc = {0};
    struct endpoint server = endpoint(10, 51820);
    uint8_t msg[STUN_REQUEST_SIZE];
    nsec_t now = 100 * SEC;

    assert_true(stun_client_due(&sc) == NSEC_NEVER);
    stun_client_set_servers(&sc, &server, 1, now);
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        struct endpoint to = ask(&sc, now, msg);

        assert_true(endpoint_equal(&to, &server));
        assert_none_due(&sc, now + after[i] * MSEC - 1);
        assert_int_equal(stun_client_due(&sc), now + after[i] * MSEC);
        now = stun_client_due(&sc);
    }
}

static void test_an_answer(void **state)
{
    struct stun_client sc = {0};
    struct endpoint server = endpoint(10, 51820);
    struct endpoint mapped = endpoint(77, 4000);
    uint8_t msg[STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    const struct stun_view *v;
    size_t len;

    stun_client_set_servers(&sc, &server, 1, SEC);
    (void)ask(&sc, SEC, msg);
    len = answer(msg, &mapped, out);
    v = stun_client_take(&sc, out, len, &server, SEC + 20 * MSEC);
    assert_non_null(v);
    assert_true(endpoint_equal(&v->mapped, &mapped));
    assert_int_equal(v->rtt, 20 * MSEC);
    /* Once: what comes again is a copy. Asked again in half a minute, as a NAT may move us. */
    assert_null(stun_client_take(&sc, out, len, &server, SEC + 30 * MSEC));
    assert_int_equal(stun_client_due(&sc), SEC + 20 * MSEC + 30 * SEC);
}

static void test_foreign_answers(void **state)
{
    struct stun_client sc = {0};
    struct endpoint server = endpoint(10, 51820);
    struct endpoint stranger = endpoint(66, 51820);
    uint8_t msg[STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    size_t len;

    stun_client_set_servers(&sc, &server, 1, SEC);
    (void)ask(&sc, SEC, msg);
    len = answer(msg, &stranger, out);
    assert_null(stun_client_take(&sc, out, len, &stranger, SEC));
    out[STUN_HEADER_SIZE - 1] ^= 1; /* another transaction */
    assert_null(stun_client_take(&sc, out, len, &server, SEC));
    for (size_t cut = 0; cut < len; cut++)
        assert_null(stun_client_take(&sc, out, cut, &server, SEC));
    /* One of an earlier request than the one before the last counts no more. */
    len = answer(msg, &stranger, out);
    (void)ask(&sc, 2 * SEC, msg);
    (void)ask(&sc, 3 * SEC, msg);
    assert_null(stun_client_take(&sc, out, len, &server, 3 * SEC));
}

/* A far server's answer comes when it has been asked again, and is one all the same. */
static void test_late_answers(void **state)
{
    struct stun_client sc = {0};
    struct endpoint server = endpoint(10, 51820);
    struct endpoint mapped = endpoint(77, 4000);
    uint8_t msg[2][STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    const struct stun_view *v;
    nsec_t now = SEC;

    stun_client_set_servers(&sc, &server, 1, now);
    for (unsigned i = 0; i < 20; i++) {
        (void)ask(&sc, now, msg[0]);
        (void)ask(&sc, now + 250 * MSEC, msg[1]);
        v = stun_client_take(&sc, out, answer(msg[0], &mapped, out), &server, now + 300 * MSEC);
        assert_non_null(v);
        assert_int_equal(v->rtt, 300 * MSEC);
        assert_non_null(
            stun_client_take(&sc, out, answer(msg[1], &mapped, out), &server, now + 550 * MSEC));
        assert_false(stun_view_is_full(v));
        now = stun_client_due(&sc);
    }
    /* Such a way loses what is sent: each second request. */
    for (unsigned i = 0; i < 4; i++) {
        (void)ask(&sc, now, msg[0]);
        (void)ask(&sc, now + 250 * MSEC, msg[1]);
        assert_non_null(
            stun_client_take(&sc, out, answer(msg[1], &mapped, out), &server, now + 260 * MSEC));
        now = stun_client_due(&sc);
    }
    assert_true(stun_view_is_full(v));
    /* And now it does not any more. */
    for (unsigned i = 0; i < 8; i++) {
        (void)ask(&sc, now, msg[0]);
        (void)stun_client_take(&sc, out, answer(msg[0], &mapped, out), &server, now + MSEC);
        now = stun_client_due(&sc);
    }
    assert_false(stun_view_is_full(v));
}

/* An answer that is overtaken by the next one's is late, so nothing is lost; what it says is old.
 */
static void test_answers_in_another_order(void **state)
{
    struct stun_client sc = {0};
    struct endpoint server = endpoint(10, 51820);
    struct endpoint mapped = endpoint(77, 4000);
    struct endpoint older = endpoint(78, 4000);
    uint8_t msg[2][STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];
    const struct stun_view *v = &sc.views[0];

    stun_client_set_servers(&sc, &server, 1, SEC);
    (void)ask(&sc, SEC, msg[0]);
    (void)ask(&sc, SEC + 250 * MSEC, msg[1]);
    assert_non_null(
        stun_client_take(&sc, out, answer(msg[1], &mapped, out), &server, SEC + 300 * MSEC));
    for (unsigned i = 0; i < 2; i++) {
        assert_null(
            stun_client_take(&sc, out, answer(msg[0], &older, out), &server, SEC + 400 * MSEC));
        assert_true(endpoint_equal(&v->mapped, &mapped));
        assert_int_equal(v->heard_at, SEC + 300 * MSEC);
        assert_int_equal(v->rtt, 50 * MSEC);
        assert_int_equal(v->asked[0].sent_at, 0);
        assert_int_equal(v->asked[1].sent_at, 0);
    }
    assert_int_equal(v->lost, 0);
    /* One that comes before it was sent, by another clock, took no time. */
    (void)ask(&sc, stun_client_due(&sc), msg[0]);
    assert_non_null(stun_client_take(&sc, out, answer(msg[0], &mapped, out), &server, 2 * SEC));
    assert_int_equal(v->rtt, 0);
    assert_int_equal(v->n_tries, 0);
}

static void test_servers_change(void **state)
{
    struct stun_client sc = {0};
    struct endpoint servers[STUN_CLIENT_SERVERS_MAX + 4];
    struct endpoint mapped = endpoint(77, 4000);
    uint8_t msg[STUN_REQUEST_SIZE];
    uint8_t out[STUN_ANSWER_MAX];

    for (unsigned i = 0; i < STUN_CLIENT_SERVERS_MAX + 4; i++)
        servers[i] = endpoint(10, (uint16_t)(1000 + i));
    servers[1] = servers[0];
    stun_client_set_servers(&sc, servers, 2, SEC);
    assert_int_equal(sc.n_views, 1);
    (void)ask(&sc, SEC, msg);
    assert_non_null(stun_client_take(&sc, out, answer(msg, &mapped, out), &servers[0], SEC));
    /* More than there is room for; the one that stays keeps what it told. */
    stun_client_set_servers(&sc, servers, STUN_CLIENT_SERVERS_MAX + 4, SEC);
    assert_int_equal(sc.n_views, STUN_CLIENT_SERVERS_MAX);
    assert_true(endpoint_equal(&sc.views[0].mapped, &mapped));
    assert_int_equal(stun_client_due(&sc), SEC);
    sc.views[STUN_CLIENT_SERVERS_MAX - 1].n_tries = 4;
    stun_client_restart(&sc, 5 * SEC);
    assert_int_equal(stun_client_due(&sc), 5 * SEC);
    for (unsigned i = 0; i < STUN_CLIENT_SERVERS_MAX; i++) {
        assert_int_equal(sc.views[i].due_at, 5 * SEC);
        assert_int_equal(sc.views[i].n_tries, 0);
    }
    assert_true(sc.views[0].heard_at != 0);
    stun_client_forget(&sc, 6 * SEC);
    for (unsigned i = 1; i < STUN_CLIENT_SERVERS_MAX; i++) {
        assert_int_equal(sc.views[i].due_at, 6 * SEC);
        assert_true(endpoint_equal(&sc.views[i].server, &servers[i + 1]));
    }
    assert_true(sc.views[0].heard_at == 0 && endpoint_is_none(&sc.views[0].mapped));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tries_come_later_and_later),
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_foreign_answers),
        cmocka_unit_test(test_late_answers),
        cmocka_unit_test(test_answers_in_another_order),
        cmocka_unit_test(test_servers_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
