/*
 * test-etcd-killed.c - a hub is killed after each transaction of a commit that is above etcd's
 * limits, and so is made of many: whoever comes next sees all of it or nothing, and goes on.
 *
 * The hub is a process of its own. It talks to a real etcd through a proxy, which kills it when the
 * answer to its n-th transaction has come, with n one more each time until the commit is done.
 *
 * On a busy machine etcd may stand still for longer than a request is tried. A hub that has sent a
 * transaction twice for that reason does not count, because then the n-th one is not the n-th step:
 * another hub takes its place, below a prefix of its own. Whoever comes next asks until it is
 * answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/losing_proxy.h"
#include "test/support/netns.h"
#include "test/support/sample_etcd.h"
#include "test/support/store_now.h"

/* Three transactions of 128 operations at most. */
#define KEYS 300

/* Fewer transactions than these are too few, and more are too many. */
#define STEPS_MIN 10
#define STEPS_MAX 40

/* Hubs that may take the place of one that etcd has kept waiting. */
#define HUBS_MAX 20

/* How long etcd may stand still, and the pause between two tries. */
#define PATIENCE (90 * NSEC_PER_SEC)
#define PAUSE_MS 50

static struct sample_etcd *cluster;

/* One hub that is killed. */
struct victim {
    unsigned nth;    /* transaction whose answer kills it */
    unsigned hub;    /* which one it is of those that are to be killed there */
    unsigned n_seen; /* transactions that it has begun */
    bool is_killed;
    bool is_delayed; /* before that it did not wait for an answer: it does not count */
    pid_t pid;
    uint64_t revision; /* of the keys before it */
    char value;        /* of the keys after it */
    char problem[400]; /* what the one that came next has found; "": nothing */
    pthread_t thread;  /* that looks */
};

/* ---- the keys ------------------------------------------------------------------------------- */

/* Etcd was away, or has not answered: is there time for another try? */
static bool may_retry(nsec_t until)
{
    (void)poll(NULL, 0, PAUSE_MS);
    return clock_now() < until;
}

static const char *prefix_of(const struct victim *v, char buf[static 32])
{
    (void)snprintf(buf, 32, "/killed/%u.%u/", v->nth, v->hub);
    return buf;
}

/* NULL: etcd did not answer for a long time. */
static struct store *open_at(const char *server, const struct victim *v, struct err *e)
{
    nsec_t until = clock_now() + PATIENCE;
    struct store *s = NULL;
    char prefix[32];
    char url[128];
    int r;

    (void)snprintf(url, sizeof(url), "etcd://%s?prefix=%s", server, prefix_of(v, prefix));
    do {
        r = store_open(&s, url, 0, e);
    } while (r == -EIO && may_retry(until));
    return r == 0 ? s : NULL;
}

/* All keys become @value, one commit. */
static int put_all(struct store *s, const char *value, uint64_t expect, struct err *e)
{
    struct store_op ops[KEYS];
    char keys[KEYS][16];

    for (size_t i = 0; i < KEYS; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "m/%04zu", i);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = value, .expect = expect};
    }
    return store_now_commit(s, ops, KEYS, 0, NULL, NULL, e);
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

/* Asks until etcd answers: all keys are there and alike, or, with @or_none, there are none. */
static int list(struct store *s, bool or_none, struct found *ret, struct err *e)
{
    nsec_t until = clock_now() + PATIENCE;
    int r;

    do {
        *ret = (struct found){.n = 0};
        r = store_now_list(s, "m/", take, ret, NULL, e);
    } while (r == -EIO && may_retry(until));
    if (r == 0 && (ret->n != KEYS || ret->is_mixed) && !(or_none && ret->n == 0))
        r = err_set(e, -1, "%u keys, %s", ret->n, ret->is_mixed ? "not all alike" : "all alike");
    return r;
}

/* Makes all keys @value until they are; @f is what there is, before and then. Whether a commit
 * whose answer was lost has succeeded is seen from what is there. */
static int put_until(struct store *s, char value, struct found *f, struct err *e)
{
    const char text[] = {value, '\0'};
    nsec_t until = clock_now() + PATIENCE;
    bool is_first = f->n == 0;
    int r;

    do {
        (void)put_all(s, text, f->n == 0 ? STORE_EXPECT_ABSENT : f->revision, e);
        r = list(s, is_first, f, e);
    } while (r == 0 && f->value != value && may_retry(until));
    return r == 0 && f->value != value ? -1 : r;
}

/* ---- who is killed -------------------------------------------------------------------------- */

static enum losing_proxy_fate decide(void *ctx, const char *path)
{
    struct victim *v = ctx;

    if (strcmp(path, "/v3/kv/txn") != 0)
        return LOSING_PROXY_PASS;
    v->n_seen++;
    /* It does not wait for the answer that is to kill it. */
    if (v->n_seen > v->nth && !v->is_killed)
        v->is_delayed = true;
    return v->n_seen == v->nth ? LOSING_PROXY_LOSE_ANSWER : LOSING_PROXY_PASS;
}

static void note_delay(void *ctx)
{
    struct victim *v = ctx;

    v->is_delayed = v->is_delayed || !v->is_killed;
}

static void kill_it(void *ctx)
{
    struct victim *v = ctx;

    v->is_killed = true;
    (void)kill(v->pid, SIGKILL);
}

/* In a process of its own. */
static _Noreturn void be_victim(const char *server, const struct victim *v)
{
    struct err e = ERR_NULL;
    struct store *s = open_at(server, v, &e);

    _exit(s && put_all(s, "2", v->revision, &e) == 0 ? 0 : 1);
}

/* What was there before it. */
static void put_first(struct victim *v)
{
    struct err e = ERR_NULL;
    struct store *s = open_at(sample_etcd_server(cluster, 0), v, &e);
    struct found f = {.n = 0};

    assert_non_null(s);
    assert_int_equal(put_until(s, '1', &f, &e), 0);
    v->revision = f.revision;
    store_free(s);
}

/* One hub. True: it was killed; false: it has done its commit, or was delayed. */
static bool run_hub(struct victim *v)
{
    const struct losing_proxy_rules rules = {
        .ctx = v, .decide = decide, .lost = kill_it, .given_up = note_delay};
    struct losing_proxy *proxy;
    int status = -1;

    put_first(v);
    proxy = losing_proxy_start(sample_etcd_server(cluster, 0), &rules);
    v->pid = fork();
    assert_true(v->pid >= 0);
    if (v->pid == 0)
        be_victim(losing_proxy_server(proxy), v);
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    losing_proxy_free(proxy);
    if (WIFEXITED(status) && !v->is_delayed)
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

/* True: it was killed at the n-th transaction; false: it has done its commit in fewer. */
static bool run_victim(struct victim *v, unsigned nth)
{
    for (unsigned hub = 0; hub < HUBS_MAX; hub++) {
        bool is_killed;

        *v = (struct victim){.nth = nth, .hub = hub};
        is_killed = run_hub(v);
        if (!v->is_delayed)
            return is_killed;
    }
    fail_msg("transaction %u: etcd has kept each of %u hubs waiting", nth, HUBS_MAX);
    return false;
}

/* ---- who comes next ------------------------------------------------------------------------- */

static void *come_next(void *arg)
{
    struct victim *v = arg;
    struct err e = ERR_NULL;
    struct store *s = open_at(sample_etcd_server(cluster, 0), v, &e);
    struct found f = {.n = 0};
    int r = s ? list(s, false, &f, &e) : -1;

    v->value = f.value;
    if (r == 0)
        r = put_until(s, '3', &f, &e);
    if (r != 0)
        (void)snprintf(
            v->problem, sizeof(v->problem), "killed at transaction %u: %s", v->nth, err_text(&e));
    store_free(s);
    return NULL;
}

/* Is there no key below @prefix that begins with @first? False also when etcd does not say. */
static bool has_none(const char *prefix, char first)
{
    char command[128];

    (void)snprintf(command, sizeof(command),
        "get --keys-only --write-out=fields --prefix %s%c | grep -qx '\"Count\" : 0'", prefix,
        first);
    return sample_etcd_ctl(cluster, command) == 0;
}

/* Nothing is left of the dead hub, once etcd has ended its session and another hub has come, but
 * the keys. */
static void check_nothing_left(const struct victim *v)
{
    nsec_t until = clock_now() + PATIENCE;
    struct err e = ERR_NULL;
    char prefix[32];
    char command[128];
    bool is_clean = false;

    (void)snprintf(command, sizeof(command), "del --prefix %ss/", prefix_of(v, prefix));
    while (!is_clean && may_retry(until)) {
        if (sample_etcd_ctl(cluster, command) != 0)
            continue;
        store_free(open_at(sample_etcd_server(cluster, 0), v, &e));
        is_clean = has_none(prefix, 'd') && has_none(prefix, 'i');
    }
    assert_true(is_clean);
}

static void test_killed(void **state)
{
    static struct victim victims[STEPS_MAX];
    unsigned n_old = 0;
    unsigned n = 0;

    while (n < STEPS_MAX && run_victim(&victims[n], n + 1))
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

    netns_be_alone();
    if (!sample_etcd_is_there())
        return 0;
    cluster = sample_etcd_start(&opt);
    failed = cluster ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    sample_etcd_free(cluster);
    return failed;
}
