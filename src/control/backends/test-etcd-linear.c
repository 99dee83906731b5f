/*
 * test-etcd-linear.c - several hubs at one etcd whose members die and stand still: is each history
 * of requests linearizable, and is no write lost that was acknowledged?
 *
 * Each hub talks to each member through a proxy, which loses requests and answers besides. A hub
 * finds out by itself what has become of most of them; the rest it calls unknown.
 *
 * WEFT_RUNS says how many runs (25), WEFT_SEED the first seed (1); a failure prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "base/rng.h"
#include "os/clock.h"
#include "store/store.h"
#include "store/store_now.h"
#include "test/support/losing_proxy.h"
#include "test/support/linear.h"
#include "test/support/sample_etcd.h"

#define CLIENTS 3
#define KEYS    2
#define STEPS   14 /* of each client in a run */
#define MEMBERS 3

/* One in so many requests to etcd is lost, and one in so many answers. One in so many answers of
 * the store to a commit is thrown away by the test: a hub that ends. */
#define LOSS 16

/* ---- runs ----------------------------------------------------------------------------------- */

/* A hub. */
struct client {
    struct store *s; /* owns */
    struct store_watch *w;
    unsigned id;
    unsigned run;
    uint64_t seed;
    unsigned value[KEYS];    /* what it has seen last */
    uint64_t revision[KEYS]; /* of that */
    unsigned told[KEYS];     /* by its watch */
    uint64_t told_revision;
    struct linear_op ops[STEPS];
    size_t n_ops;
    unsigned n_unknown;
    unsigned n_failed;
};

static void key_of(char key[static 32], unsigned run, unsigned k)
{
    (void)snprintf(key, 32, "r%u/%u", run, k);
}

struct read {
    unsigned value;
    uint64_t revision;
};

static int take_read(void *ctx, const struct store_item *item)
{
    *(struct read *)ctx = (struct read){(unsigned)strtoul(item->value, NULL, 10), item->revision};
    return 0;
}

static void on_change(void *ctx, const struct store_item *item)
{
    struct client *c = ctx;
    char key[32];

    if (!item || item->revision < c->told_revision)
        abort();
    c->told_revision = item->revision;
    for (unsigned k = 0; k < KEYS; k++) {
        key_of(key, c->run, k);
        if (strcmp(key, item->key) == 0)
            c->told[k] = (unsigned)strtoul(item->value, NULL, 10);
    }
}

static struct linear_op *begin(struct client *c, enum linear_kind kind, unsigned k)
{
    struct linear_op *op = &c->ops[c->n_ops++];

    *op = (struct linear_op){
        .kind = kind, .key = k, .called_at = clock_now(), .answered_at = NSEC_NEVER};
    return op;
}

static void do_read(struct client *c, unsigned k)
{
    struct linear_op *op = begin(c, LINEAR_READ, k);
    struct read rd = {.value = 0};
    struct err e;
    char key[32];
    int r;

    key_of(key, c->run, k);
    r = store_now_get(c->s, key, take_read, &rd, &e);
    op->answered_at = clock_now();
    op->value = rd.value;
    if (r != 0 && r != STORE_E_ABSENT) {
        c->n_ops--;
        c->n_failed++;
        return;
    }
    c->value[k] = rd.value;
    c->revision[k] = rd.revision;
}

/* @is_lost: what has become of it is never heard. */
static void do_write(struct client *c, unsigned k, unsigned value, bool is_lost)
{
    struct linear_op *op = begin(c, LINEAR_SWAP, k);
    struct store_op put = {.kind = STORE_OP_PUT, .expect = c->revision[k]};
    uint64_t revision = 0;
    struct err e;
    char key[32];
    char text[16];
    int r;

    key_of(key, c->run, k);
    (void)snprintf(text, sizeof(text), "%u", value);
    put.key = key;
    put.value = text;
    op->expect = c->value[k];
    op->value = value;
    r = store_now_commit(c->s, &put, 1, 0, &revision, NULL, &e);
    op->answered_at = clock_now();
    if (r == STORE_E_UNKNOWN || is_lost) {
        op->kind = LINEAR_UNKNOWN;
        op->answered_at = NSEC_NEVER;
        c->n_unknown++;
    } else if (r == 0) {
        c->value[k] = value;
        c->revision[k] = revision;
    } else if (r == STORE_E_CONFLICT) {
        op->kind = LINEAR_REFUSED;
    } else {
        c->n_ops--;
        c->n_failed++;
    }
}

static void *act(void *arg)
{
    struct client *c = arg;
    struct rng rng = rng_seeded(&c->seed);

    for (unsigned i = 0; i < STEPS; i++) {
        unsigned k = rng_u32(&rng) % KEYS;

        if (rng_u32(&rng) % 2)
            do_read(c, k);
        else
            do_write(c, k, 1 + c->id * STEPS + i, rng_u32(&rng) % LOSS == 0);
    }
    return NULL;
}

/* One more read of each key, when all are done, of a hub that has not written last. */
static size_t gather(
    struct client *clients, unsigned k, struct linear_op *ret, struct client *reader)
{
    size_t n = 0;

    for (unsigned i = 0; i < CLIENTS; i++)
        for (size_t j = 0; j < clients[i].n_ops; j++)
            if (clients[i].ops[j].key == k)
                ret[n++] = clients[i].ops[j];
    reader->n_ops = 0;
    do_read(reader, k);
    if (reader->n_ops > 0)
        ret[n++] = reader->ops[0];
    return n;
}

static void do_run(struct client *clients, unsigned run, uint64_t seed)
{
    pthread_t threads[CLIENTS];
    static struct linear_op ops[CLIENTS * STEPS + 1];

    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];

        c->run = run;
        c->seed = seed * CLIENTS + i;
        c->n_ops = 0;
        memset(c->value, 0, sizeof(c->value));
        memset(c->revision, 0, sizeof(c->revision));
        memset(c->told, 0, sizeof(c->told));
        assert_int_equal(pthread_create(&threads[i], NULL, act, c), 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned k = 0; k < KEYS; k++) {
        struct client reader = clients[(run + k) % CLIENTS];
        size_t n = gather(clients, k, ops, &reader);

        if (!linear_check(ops, n)) {
            linear_print(ops, n);
            fail_msg("seed %llu, key %u: not linearizable", (unsigned long long)seed, k);
        }
        /* Who reads sees nothing that its own watch was not told. */
        if (reader.n_ops > 0)
            assert_int_equal(clients[(run + k) % CLIENTS].told[k], reader.value[k]);
    }
}

static unsigned long number(const char *variable, unsigned long otherwise)
{
    const char *given = getenv(variable);

    return given ? strtoul(given, NULL, 10) : otherwise;
}

/* What is lost on the way to a member. */
struct way {
    struct losing_proxy *proxy; /* owns */
    uint64_t seed;
    struct rng rng;
    unsigned n_requests; /* of them lost */
    unsigned n_answers;  /* likewise */
};

static enum losing_proxy_fate decide(void *ctx, const char *path)
{
    struct way *way = ctx;
    uint32_t lot = rng_u32(&way->rng) % LOSS;

    if (strcmp(path, "/v3/watch") == 0 || lot > 1)
        return LOSING_PROXY_PASS;
    way->n_requests += lot == 0;
    way->n_answers += lot == 1;
    return lot == 0 ? LOSING_PROXY_LOSE_REQUEST : LOSING_PROXY_LOSE_ANSWER;
}

static void open_ways(struct way *ways, const struct sample_etcd *cluster, uint64_t seed)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct losing_proxy_rules rules = {.ctx = &ways[i], .decide = decide};

        ways[i] = (struct way){.seed = seed * MEMBERS + i};
        ways[i].rng = rng_seeded(&ways[i].seed);
        ways[i].proxy = losing_proxy_start(sample_etcd_server(cluster, i), &rules);
    }
}

/* The members in another order for each hub, so that not all of them ask the same one. */
static struct store *open_hub(const struct way *ways, unsigned id)
{
    struct store *s = NULL;
    struct err e = ERR_NULL;
    char url[256];

    (void)snprintf(url, sizeof(url), "etcd://%s,%s,%s?prefix=/linear/",
        losing_proxy_server(ways[id % 3].proxy), losing_proxy_server(ways[(id + 1) % 3].proxy),
        losing_proxy_server(ways[(id + 2) % 3].proxy));
    if (store_open(&s, url, 0, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void test_runs(void **state)
{
    static const struct sample_etcd_options opt = {.n = MEMBERS};
    static struct way ways[MEMBERS];
    struct sample_etcd *cluster = sample_etcd_start(&opt);
    unsigned long runs = number("WEFT_RUNS", 25);
    unsigned long seed = number("WEFT_SEED", 1);
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    unsigned n_unknown = 0;
    unsigned n_failed = 0;
    unsigned n_requests = 0;
    unsigned n_answers = 0;
    struct err e = ERR_NULL;

    assert_non_null(cluster);
    open_ways(ways, cluster, seed);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i].id = i;
        clients[i].s = open_hub(ways, i);
        assert_int_equal(
            store_watch(clients[i].s, "", 1, on_change, &clients[i], &clients[i].w, &e), 0);
    }
    sample_etcd_disturb(cluster, seed);
    for (unsigned long i = 0; i < runs; i++)
        do_run(clients, (unsigned)i, seed + i);
    for (unsigned i = 0; i < CLIENTS; i++) {
        n_unknown += clients[i].n_unknown;
        n_failed += clients[i].n_failed;
        store_watch_close(clients[i].w);
    }
    sample_etcd_calm(cluster);
    for (unsigned i = 0; i < CLIENTS; i++)
        store_free(clients[i].s);
    for (unsigned i = 0; i < MEMBERS; i++) {
        losing_proxy_free(ways[i].proxy);
        n_requests += ways[i].n_requests;
        n_answers += ways[i].n_answers;
    }
    print_message("%lu runs, %d hubs: %u requests to etcd and %u answers were lost; of the hubs' "
                  "own requests %u have an unknown outcome, and %u failed\n",
        runs, CLIENTS, n_requests, n_answers, n_unknown, n_failed);
    free(clients);
    sample_etcd_free(cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
    };

    return _cmocka_run_group_tests("linear", tests, sample_etcd_is_there() ? 1 : 0, NULL, NULL);
}
