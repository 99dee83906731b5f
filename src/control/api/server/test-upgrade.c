/* test-upgrade.c - connections that become bytes, the server's and the client's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "test/support/sample_daemon.h"

static bool is_never(const void *ctx)
{
    return false;
}

static bool is_at_once(const void *ctx)
{
    return true;
}

static struct client_target target;

static struct client_upgrade_options options_of(void)
{
    target = sample_by_https();
    return (struct client_upgrade_options){.target = &target,
        .path = "/v1/upgrade",
        .protocol = "echo",
        .authorization = "Sesame",
        .timeout_ms = 5000,
        .is_unwanted = is_never};
}

static struct client_upgrade *open_it(void)
{
    struct client_upgrade_options opt = options_of();
    struct client_upgrade *u = NULL;
    struct err e = ERR_NULL;
    int r = client_upgrade_open(&u, &opt, &e);

    if (r != 0)
        fail_msg("%s", err_text(&e));
    return u;
}

static void wait_for(const struct client_upgrade *u, short events)
{
    struct pollfd p = {.fd = client_upgrade_fd(u), .events = events};

    assert_true(poll(&p, 1, 5000) > 0);
}

/* Megabytes both ways at once, which no buffer on the way can hold. */
static void test_bytes(void **state)
{
    enum { TOTAL = 24 << 20, PIECE = 16384 };
    struct client_upgrade *u = open_it();
    uint8_t out[PIECE];
    uint8_t in[PIECE];
    size_t n_out = 0;
    size_t n_in = 0;

    while (n_in < TOTAL) {
        ssize_t w = -EAGAIN;
        ssize_t r;

        for (size_t i = 0; i < PIECE; i++)
            out[i] = (uint8_t)((n_out + i) * 7 / 5);
        if (n_out < TOTAL)
            w = client_upgrade_write(u, out, TOTAL - n_out < PIECE ? TOTAL - n_out : PIECE);
        r = client_upgrade_read(u, in, PIECE);
        assert_true(w > 0 || w == -EAGAIN);
        assert_true(r > 0 || r == -EAGAIN);
        if (w > 0)
            n_out += (size_t)w;
        for (ssize_t i = 0; i < r; i++)
            if (in[i] != (uint8_t)((n_in + (size_t)i) * 7 / 5))
                fail_msg("byte %zu is wrong", n_in + (size_t)i);
        if (r > 0)
            n_in += (size_t)r;
        if (w < 0 && r < 0)
            wait_for(u, POLLIN);
    }
    assert_int_equal(client_upgrade_read(u, in, 1), -EAGAIN);
    client_upgrade_close(u);
}

static void test_end(void **state)
{
    struct client_upgrade *u = open_it();
    char byte;
    ssize_t n;

    assert_int_equal(client_upgrade_write(u, "bye", 3), 3);
    do {
        wait_for(u, POLLIN);
        n = client_upgrade_read(u, &byte, 1);
    } while (n == -EAGAIN);
    assert_int_equal(n, 0);
    client_upgrade_close(u);
    assert_null(client_upgrade_close(NULL));
}

static void test_refusals(void **state)
{
    struct client_upgrade_options opt = options_of();
    struct client_upgrade *u = NULL;
    struct err e = ERR_NULL;

    opt.authorization = "Simsalabim";
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_REFUSED);
    assert_string_equal(err_text(&e), "the word is Sesame");
    opt = options_of();
    opt.protocol = "ohce";
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_REFUSED);
    assert_string_equal(err_text(&e), "GET /v1/upgrade needs \"Upgrade: echo\"");
    opt = options_of();
    opt.path = "/v1/health";
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_REFUSED);
    assert_non_null(strstr(err_text(&e), "answered 200"));
    opt = options_of();
    target.pin.b[0] ^= 1;
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_UNTRUSTED);
    opt = options_of();
    target.address = "127.0.0.1:1";
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_UNREACHABLE);
    opt = options_of();
    opt.is_unwanted = is_at_once;
    assert_int_equal(client_upgrade_open(&u, &opt, &e), CLIENT_E_UNREACHABLE);
    assert_null(u);
    /* It is not an upgrade for who does not know the word and asks with plain HTTP. */
    assert_int_equal(sample_call(sample_by_https(), "GET", "/v1/upgrade", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 401);
}

/* An open one does not count among the 64 that one address may have at the listener. */
static void test_many(void **state)
{
    struct client_upgrade *all[80];

    for (unsigned i = 0; i < 80; i++)
        all[i] = open_it();
    assert_int_equal(sample_call(sample_by_https(), "GET", "/v1/health", NULL), 0);
    /* Some close, some are still open when the daemon ends: sample_stop() sees how it takes it. */
    for (unsigned i = 0; i < 60; i++)
        client_upgrade_close(all[i]);
    client_answer_deinit(&sample_answer);
    for (unsigned i = 60; i < 80; i++)
        assert_int_equal(client_upgrade_write(all[i], "x", 1), 1);
    assert_int_equal(sample_call(sample_by_https(), "GET", "/v1/health", NULL), 0);
    client_answer_deinit(&sample_answer);
    assert_int_equal(sample_stop(NULL), 0);
    for (unsigned i = 60; i < 80; i++)
        client_upgrade_close(all[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, sample_start, NULL);
}
