/*
 * test-etcd-killed.c - a hub is killed after each transaction of a commit that is above etcd's
 * limits, and so is made of many: whoever comes next sees all of it or nothing, and goes on.
 *
 * The hub is a process of its own. It talks to a real etcd through a proxy, which kills it when the
 * answer to its n-th transaction has come, with n one more each time until the commit is done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "store/store.h"
#include "store/store_now.h"
#include "test/support/etcd_proxy.h"
#include "test/support/sample_etcd.h"

/* Three transactions of 128 operations at most. */
#define KEYS 300

/* Fewer transactions than these are too few, and more are too many. */
#define STEPS_MIN 10
#define STEPS_MAX 40

/* How often something is tried that etcd does not answer. */
#define TRIES 20

static struct sample_etcd *cluster;

/* One hub that is killed. */
struct victim {
    unsigned nth;    /* transaction whose answer kills it */
    unsigned n_seen; /* transactions that it has begun */
    pid_t pid;
    uint64_t revision; /* of the keys before it */
    char value;        /* of the keys after it */
    char problem[400]; /* what the one that came next has found; "": nothing */
    pthread_t thread;  /* that looks */
};

/* ---- the keys ------------------------------------------------------------------------------- */

static struct store *open_at(const char *server, unsigned nth, struct err *e)
{
    struct store *s = NULL;
    char url[128];

    (void)snprintf(url, sizeof(url), "etcd://%s?prefix=/killed/%u/", server, nth);
    return store_open(&s, url, 0, e) == 0 ? s : NULL;
}

/* All keys become @value, one commit. */
static int put_all(
    struct store *s, const char *value, uint64_t expect, uint64_t *ret_revision, struct err *e)
{
    struct store_op ops[KEYS];
    char keys[KEYS][16];

    for (size_t i = 0; i < KEYS; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "m/%04zu", i);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = value, .expect = expect};
    }
    return store_now_commit(s, ops, KEYS, 0, ret_revision, NULL, e);
}

/* What a list of the keys finds. */
struct found {
    char value;
    uint64_t revision;
    unsigned n;
    bool is_mixed;
};

static int take(void *ctx, const struct store_item *item)
{
    struct found *f = ctx;

    if (f->n++ == 0) {
        f->value = item->value[0];
        f->revision = item->revision;
    }
    f->is_mixed = f->is_mixed || item->value[0] != f->value || item->revision != f->revision;
    return 0;
}

/* ---- who is killed -------------------------------------------------------------------------- */

static enum etcd_proxy_fate decide(void *ctx, const char *path)
{
    struct victim *v = ctx;

    return strcmp(path, "/v3/kv/txn") == 0 && ++v->n_seen == v->nth ? ETCD_PROXY_LOSE_ANSWER
                                                                    : ETCD_PROXY_PASS;
}

static void kill_it(void *ctx)
{
    struct victim *v = ctx;

    (void)kill(v->pid, SIGKILL);
}

/* In a process of its own. */
static _Noreturn void be_victim(const char *server, const struct victim *v)
{
    struct err e = ERR_NULL;
    struct store *s = open_at(server, v->nth, &e);

    _exit(s && put_all(s, "2", v->revision, NULL, &e) == 0 ? 0 : 1);
}

/* True: it was killed; false: it has done its commit. */
static bool run_victim(struct victim *v)
{
    const struct etcd_proxy_rules rules = {.ctx = v, .decide = decide, .lost = kill_it};
    const char *server = sample_etcd_server(cluster, 0);
    struct err e = ERR_NULL;
    struct store *s = open_at(server, v->nth, &e);
    struct etcd_proxy *proxy;
    int status = -1;

    assert_non_null(s);
    assert_int_equal(put_all(s, "1", STORE_EXPECT_ABSENT, &v->revision, &e), 0);
    store_free(s);
    proxy = etcd_proxy_start(server, &rules);
    v->pid = fork();
    assert_true(v->pid >= 0);
    if (v->pid == 0)
        be_victim(etcd_proxy_server(proxy), v);
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    etcd_proxy_free(proxy);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

/* ---- who comes next ------------------------------------------------------------------------- */

/* On a busy machine etcd may be away for a moment. */
static int list(struct store *s, struct found *ret, struct err *e)
{
    int r = -1;

    for (unsigned i = 0; i < TRIES && r < 0; i++) {
        *ret = (struct found){.n = 0};
        r = store_now_list(s, "m/", take, ret, NULL, e);
    }
    if (r == 0 && (ret->n != KEYS || ret->is_mixed))
        r = err_set(e, -1, "%u keys, %s", ret->n, ret->is_mixed ? "not all alike" : "all alike");
    return r;
}

static int look(struct victim *v, struct store *s, struct err *e)
{
    struct found f;
    int r = list(s, &f, e);

    v->value = f.value;
    for (unsigned i = 0; i < TRIES && r == 0 && f.value != '3'; i++) {
        /* Whether it has succeeded is seen from what is there. */
        (void)put_all(s, "3", f.revision, NULL, e);
        r = list(s, &f, e);
    }
    if (r == 0 && f.value != '3')
        r = -1;
    return r;
}

static void *come_next(void *arg)
{
    struct victim *v = arg;
    struct err e = ERR_NULL;
    struct store *s = open_at(sample_etcd_server(cluster, 0), v->nth, &e);

    if (!s || look(v, s, &e) != 0)
        (void)snprintf(
            v->problem, sizeof(v->problem), "killed at transaction %u: %s", v->nth, err_text(&e));
    store_free(s);
    return NULL;
}

/* Nothing is left of the dead hub, once etcd has ended its session, but the keys. */
static void check_nothing_left(const struct victim *v)
{
    struct err e = ERR_NULL;
    char command[128];

    (void)snprintf(command, sizeof(command), "del --prefix /killed/%u/s/", v->nth);
    assert_int_equal(sample_etcd_ctl(cluster, command), 0);
    store_free(open_at(sample_etcd_server(cluster, 0), v->nth, &e));
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(command, sizeof(command), "get --keys-only --prefix /killed/%u/%c | grep .",
            v->nth, i == 0 ? 'd' : 'i');
        assert_int_not_equal(sample_etcd_ctl(cluster, command), 0);
    }
}

static void test_killed(void **state)
{
    static struct victim victims[STEPS_MAX];
    unsigned n_old = 0;
    unsigned n = 0;

    while (n < STEPS_MAX && (victims[n].nth = n + 1) && run_victim(&victims[n]))
        n++;
    assert_in_range(n, STEPS_MIN, STEPS_MAX - 1);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_create(&victims[i].thread, NULL, come_next, &victims[i]), 0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_join(victims[i].thread, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        if (victims[i].problem[0])
            fail_msg("%s", victims[i].problem);
        /* From one of the transactions on it is done, by whoever comes next. */
        assert_true(victims[i].value == '2' || n_old == i);
        n_old += victims[i].value == '1';
    }
    assert_in_range(n_old, 1, n - 1);
    check_nothing_left(&victims[0]);
    check_nothing_left(&victims[n_old - 1]);
    check_nothing_left(&victims[n_old]);
    print_message("a hub was killed after each of the %u transactions of a commit: %u times "
                  "nothing of it was done, and %u times all\n",
        n, n_old, n - n_old);
}

int main(void)
{
    static const struct sample_etcd_options opt = {.n = 1};
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed)};
    int failed;

    if (!sample_etcd_is_there())
        return 0;
    cluster = sample_etcd_start(&opt);
    failed = cluster ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    sample_etcd_free(cluster);
    return failed;
}
