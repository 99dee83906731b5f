/*
 * test-etcd-slow.c - members of etcd that answer late, or not at once: which of them does the store
 * call away?
 *
 * The store talks to real members through a proxy in front of the first one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/losing_proxy.h"
#include "test/support/netns.h"
#include "test/support/sample_etcd.h"
#include "test/support/store_now.h"

/* Longer than the first try of a store that was away, and shorter than the longest one. */
#define LATE_MS 700

/* How long anything may take. */
#define PATIENCE (120 * NSEC_PER_SEC)

/* What happens to requests on the way to the first member. */
struct way {
    struct losing_proxy *proxy; /* owns */
    atomic_bool is_late;        /* each one is passed on after LATE_MS */
    atomic_bool is_silent;      /* the next question whether the member is there gets no answer */
    atomic_bool is_held;        /* that has happened, */
    atomic_bool is_given_up;    /* and the store no longer waits for the answer */
};

static enum losing_proxy_fate decide(void *ctx, const char *path)
{
    struct way *way = ctx;

    if (atomic_load(&way->is_late) && strcmp(path, "/v3/watch") != 0)
        (void)poll(NULL, 0, LATE_MS);
    if (strcmp(path, "/v3/kv/range") != 0 || !atomic_exchange(&way->is_silent, false))
        return LOSING_PROXY_PASS;
    atomic_store(&way->is_held, true);
    return LOSING_PROXY_HOLD_ANSWER;
}

static void note_given_up(void *ctx)
{
    struct way *way = ctx;

    if (atomic_load(&way->is_held))
        atomic_store(&way->is_given_up, true);
}

/* A cluster of @n members, and a store that has the first two. */
struct setting {
    struct sample_etcd *cluster; /* owns */
    struct way way;
    struct store *s; /* owns */
    nsec_t until;
};

static void begin(struct setting *t, unsigned n)
{
    const struct sample_etcd_options opt = {.n = n};
    const struct losing_proxy_rules rules = {
        .ctx = &t->way, .decide = decide, .given_up = note_given_up};
    struct err e = ERR_NULL;
    char url[128];

    *t = (struct setting){.cluster = sample_etcd_start(&opt), .until = clock_now() + PATIENCE};
    assert_non_null(t->cluster);
    t->way.proxy = losing_proxy_start(sample_etcd_server(t->cluster, 0), &rules);
    (void)snprintf(url, sizeof(url), "etcd://%s%s%s?prefix=/slow/",
        losing_proxy_server(t->way.proxy), n > 1 ? "," : "",
        n > 1 ? sample_etcd_server(t->cluster, 1) : "");
    if (store_open(&t->s, url, 0, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static void end(struct setting *t)
{
    store_free(t->s);
    losing_proxy_free(t->way.proxy);
    sample_etcd_free(t->cluster);
}

static int put(struct store *s, struct err *e)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "k", .value = "1", .expect = STORE_EXPECT_ANY};

    return store_now_commit(s, &op, 1, 0, NULL, NULL, e);
}

static int ignore(void *ctx, const struct store_item *item)
{
    return 0;
}

/* Etcd was away and comes back slow: the tries get longer until one of them is answered. */
static void test_late(void **state)
{
    struct err e = ERR_NULL;
    struct setting t;
    int r;

    begin(&t, 1);
    sample_etcd_pause(t.cluster, 0);
    r = put(t.s, &e);
    assert_true(r == STORE_E_UNKNOWN || r == -EIO);
    atomic_store(&t.way.is_late, true);
    sample_etcd_resume(t.cluster, 0);
    /* A read, because a write whose answer was lost is shown to have succeeded by the watch. */
    do {
        (void)poll(NULL, 0, 50);
        r = store_now_get(t.s, "x", ignore, NULL, &e);
    } while (r == -EIO && clock_now() < t.until);
    assert_int_equal(r, STORE_E_ABSENT);
    end(&t);
}

/* One member does not say whether it is there, and another one is: nothing that is asked fails. */
static void test_one_is_silent(void **state)
{
    struct err e = ERR_NULL;
    struct setting t;
    int r;

    begin(&t, 3);
    assert_int_equal(put(t.s, &e), 0);
    atomic_store(&t.way.is_silent, true);
    while (!atomic_load(&t.way.is_given_up) && clock_now() < t.until)
        (void)poll(NULL, 0, 1);
    assert_true(atomic_load(&t.way.is_given_up));
    r = put(t.s, &e);
    if (r != 0)
        fail_msg("one member is silent: %s", err_text(&e));
    end(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_one_is_silent),
    };

    netns_be_alone();
    return sample_etcd_is_there() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
