/* test-cookie.c - MACs, cookie replies against an independent implementation, and rate limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "noise/cookie.h"
#include "test/vectors/vectors.h"

/* The bytes that are drawn, given in advance. */
static void script_fill(void *ctx, void *buf, size_t len)
{
    const uint8_t **next = ctx;

    memcpy(buf, *next, len);
    *next += len;
}

static void test_vectors(void **state)
{
    struct vectors v;
    unsigned n = 0;

    vectors_open(&v, "noise-cookie.txt");
    while (vectors_next(&v)) {
        uint8_t drawn[32 + 24]; /* the secret, then the nonce */
        const uint8_t *next = drawn;
        struct rng rng = {script_fill, (void *)&next};
        struct wg_initiation before;
        struct wg_initiation after;
        struct wg_initiation msg;
        struct wg_cookie_reply expected;
        struct wg_cookie_reply reply;
        struct cookie_checker checker = {0};
        struct cookie_maker maker;
        struct x25519_public public;
        struct endpoint src = {.port = (uint16_t)vectors_u64(&v, "port")};
        uint8_t cookie[16];

        vectors_exact(&v, "secret", drawn, 32);
        vectors_exact(&v, "nonce", drawn + 32, 24);
        vectors_exact(&v, "initiation_before", &before, sizeof(before));
        vectors_exact(&v, "initiation", &after, sizeof(after));
        vectors_exact(&v, "reply", &expected, sizeof(expected));
        vectors_exact(&v, "responder_public", public.b, sizeof(public.b));
        vectors_exact(&v, "source", src.addr.b, sizeof(src.addr.b));
        vectors_exact(&v, "cookie", cookie, sizeof(cookie));

        cookie_checker_set_key(&checker, &public);
        maker = (struct cookie_maker){0};
        msg = before;
        memset(&msg.macs, 0xee, sizeof(msg.macs));
        cookie_add_macs(&maker, &public, &msg, sizeof(msg), 0);
        assert_memory_equal(&msg, &before, sizeof(msg));
        assert_true(cookie_check_mac1(&checker, &msg, sizeof(msg)));
        assert_false(cookie_check_mac2(&checker, &msg, sizeof(msg), &src, 0));

        assert_true(cookie_create_reply(&checker, &msg, sizeof(msg), &src, 0, &rng, &reply));
        assert_memory_equal(&reply, &expected, sizeof(reply));
        assert_true(cookie_consume_reply(&maker, &public, &reply, 0));
        assert_memory_equal(maker.cookie, cookie, sizeof(cookie));
        cookie_add_macs(&maker, &public, &msg, sizeof(msg), 0);
        assert_memory_equal(&msg, &after, sizeof(msg));
        assert_true(cookie_check_mac2(&checker, &msg, sizeof(msg), &src, 0));
        n++;
    }
    assert_int_equal(n, 2);
    vectors_close(&v);
}

/** A checker, a maker that knows its key, and a message between them. */
struct fixture {
    struct cookie_checker checker;
    struct cookie_maker maker;
    struct x25519_public public;
    struct wg_initiation msg;
    struct endpoint src;
    uint64_t seed;
    struct rng rng;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.public = {{9}}, .src = {.addr = {{1, 2, 3}}, .port = 1000}, .seed = 5};
    f->rng = rng_seeded(&f->seed);
    cookie_checker_set_key(&f->checker, &f->public);
    f->maker = (struct cookie_maker){0};
}

static bool reply_at(struct fixture *f, nsec_t now, struct wg_cookie_reply *reply)
{
    return cookie_create_reply(&f->checker, &f->msg, sizeof(f->msg), &f->src, now, &f->rng, reply);
}

static bool mac2_at(struct fixture *f, nsec_t now)
{
    cookie_add_macs(&f->maker, &f->public, &f->msg, sizeof(f->msg), now);
    return cookie_check_mac2(&f->checker, &f->msg, sizeof(f->msg), &f->src, now);
}

static void test_ages(void **state)
{
    const nsec_t s = NSEC_PER_SEC;
    struct wg_cookie_reply reply;
    struct fixture f;

    fixture_init(&f);
    cookie_add_macs(&f.maker, &f.public, &f.msg, sizeof(f.msg), 0);
    assert_true(reply_at(&f, 0, &reply));
    assert_true(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    assert_true(mac2_at(&f, 0));
    assert_true(mac2_at(&f, 114 * s));
    /* The maker stops at 115 s and sends zeroes. */
    assert_false(mac2_at(&f, 115 * s));
    assert_memory_equal(f.msg.macs.mac2, (uint8_t[16]){0}, 16);
    /* A reply at 119 s still uses the old secret, one at 120 s a new one. */
    assert_true(reply_at(&f, 119 * s, &reply));
    assert_true(cookie_consume_reply(&f.maker, &f.public, &reply, 119 * s));
    assert_true(mac2_at(&f, 119 * s));
    assert_false(mac2_at(&f, 120 * s));
    assert_true(reply_at(&f, 120 * s, &reply));
    assert_true(cookie_consume_reply(&f.maker, &f.public, &reply, 120 * s));
    assert_true(mac2_at(&f, 120 * s));
    assert_int_equal(f.checker.secret_birth, 120 * s);
    assert_true(f.checker.has_secret);
    assert_int_equal(f.maker.cookie_birth, 120 * s);
    /* To the nanosecond. */
    assert_false(cookie_checker_is_stale(&f.checker, 240 * s - 1));
    assert_true(cookie_checker_is_stale(&f.checker, 240 * s));
    assert_true(mac2_at(&f, 235 * s - 1));
    assert_false(mac2_at(&f, 235 * s));
    f.checker.has_secret = false;
    assert_true(cookie_checker_is_stale(&f.checker, 120 * s));
}

static void test_source_is_bound(void **state)
{
    struct wg_cookie_reply reply;
    struct fixture f;

    fixture_init(&f);
    cookie_add_macs(&f.maker, &f.public, &f.msg, sizeof(f.msg), 0);
    assert_true(reply_at(&f, 0, &reply));
    assert_true(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    f.src.port++;
    assert_false(mac2_at(&f, 1));
    f.src.port--;
    assert_true(mac2_at(&f, 1));
    f.src.addr.b[15]++;
    assert_false(mac2_at(&f, 1));
}

static void test_refused(void **state)
{
    struct wg_cookie_reply reply;
    struct wg_cookie_reply bad;
    struct fixture f;

    fixture_init(&f);
    /* Nothing was sent yet. */
    memset(&reply, 0, sizeof(reply));
    assert_false(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    cookie_add_macs(&f.maker, &f.public, &f.msg, sizeof(f.msg), 0);
    assert_true(reply_at(&f, 0, &reply));
    for (size_t i = offsetof(struct wg_cookie_reply, nonce); i < sizeof(reply); i++) {
        bad = reply;
        ((uint8_t *)&bad)[i] ^= 1;
        assert_false(cookie_consume_reply(&f.maker, &f.public, &bad, 0));
    }
    /* It answers one message, once. */
    assert_true(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    assert_false(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    f.msg.sender = le32_make(77);
    cookie_add_macs(&f.maker, &f.public, &f.msg, sizeof(f.msg), 0);
    assert_false(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
}

static void test_mac1(void **state)
{
    struct x25519_public other = {{8}};
    struct fixture f;

    fixture_init(&f);
    cookie_add_macs(&f.maker, &f.public, &f.msg, sizeof(f.msg), 0);
    for (size_t i = 0; i < offsetof(struct wg_initiation, macs) + 16; i++) {
        struct wg_initiation bad = f.msg;

        ((uint8_t *)&bad)[i] ^= 1;
        assert_false(cookie_check_mac1(&f.checker, &bad, sizeof(bad)));
    }
    assert_true(cookie_check_mac1(&f.checker, &f.msg, sizeof(f.msg)));
    cookie_checker_set_key(&f.checker, &other);
    assert_false(cookie_check_mac1(&f.checker, &f.msg, sizeof(f.msg)));
}

/* A device with two keys has a checker for each, and gives cookies that are good for both. */
static void test_two_keys(void **state)
{
    struct x25519_public next = {{10}};
    struct cookie_checker checker = {.has_secret = false};
    struct wg_cookie_reply reply;
    struct fixture f;

    fixture_init(&f);
    cookie_checker_set_key(&checker, &next);
    cookie_checker_refresh(&f.checker, 0, &f.rng);
    cookie_checker_share(&checker, &f.checker);
    cookie_add_macs(&f.maker, &next, &f.msg, sizeof(f.msg), 0);
    assert_false(cookie_check_mac1(&f.checker, &f.msg, sizeof(f.msg)));
    assert_true(cookie_check_mac1(&checker, &f.msg, sizeof(f.msg)));
    assert_true(cookie_create_reply(&checker, &f.msg, sizeof(f.msg), &f.src, 0, &f.rng, &reply));
    assert_false(cookie_consume_reply(&f.maker, &f.public, &reply, 0));
    assert_true(cookie_consume_reply(&f.maker, &next, &reply, 0));
    assert_true(mac2_at(&f, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_source_is_bound),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_mac1),
        cmocka_unit_test(test_two_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
