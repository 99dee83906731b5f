/*
 * test-etcd-linear.c - several hubs at one etcd whose members die and stand still: is each history
 * of requests linearizable, and is no write lost that was acknowledged?
 *
 * The check is the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with
 * Lowe's memory of what was looked at ("Testing for linearizability", 2017), key by key, as
 * Porcupine has it. A key is a register with compare-and-put. Each write has a value of its own, so
 * a commit that names a revision is one that names a value.
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
#include "test/support/sample_etcd.h"

#define CLIENTS 3
#define KEYS    2
#define STEPS   14 /* of each client in a run */

/* ---- the check ------------------------------------------------------------------------------ */

enum kind {
    READ,    /* has seen @value */
    SWAP,    /* @expect became @value */
    REFUSED, /* the register was not @expect */
    UNKNOWN, /* a SWAP or nothing, at any time after its call */
};

/* A request to one register, whose first value is 0. */
struct op {
    enum kind kind;
    unsigned key;
    unsigned expect;
    unsigned value;
    nsec_t called_at;
    nsec_t answered_at; /* NSEC_NEVER: never */
};

/* Most requests of one register. */
#define OPS_MAX 63

/* What was looked at already: which requests were placed, and the register's value then. */
struct visited {
    uint64_t *placed; /* owns; 0: free */
    unsigned *state;  /* owns */
    size_t cap;       /* a power of two */
    size_t n;
};

/* False: it was there. */
static bool visit(struct visited *v, uint64_t placed, unsigned state)
{
    size_t i = (placed * 0x9e3779b97f4a7c15u ^ state * 0xff51afd7ed558ccdu) >> 20;

    /* All of a search fits, or the history is too long for this test. */
    assert_true(v->n < v->cap / 2);
    for (i &= v->cap - 1; v->placed[i]; i = (i + 1) & (v->cap - 1))
        if (v->placed[i] == placed && v->state[i] == state)
            return false;
    v->placed[i] = placed;
    v->state[i] = state;
    v->n++;
    return true;
}

/* Can @op come next where the register holds *@state? Then that becomes what it leaves. */
static bool can_follow(const struct op *op, unsigned *state)
{
    if (op->kind == READ)
        return op->value == *state;
    if (op->kind == REFUSED)
        return op->expect != *state;
    if (op->expect != *state)
        return false;
    *state = op->value;
    return true;
}

/* The highest bit of @placed is always set, so that none of them is 0. */
static bool search(
    const struct op *ops, size_t n, struct visited *v, uint64_t placed, unsigned state)
{
    nsec_t first_answer = NSEC_NEVER;

    if (!visit(v, placed, state))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(placed >> i & 1))
            first_answer = nsec_min(first_answer, ops[i].answered_at);
    /* All whose answer is known have a place. */
    if (first_answer == NSEC_NEVER)
        return true;
    for (size_t i = 0; i < n; i++) {
        unsigned then = state;

        if (!(placed >> i & 1) && ops[i].called_at <= first_answer && can_follow(&ops[i], &then) &&
            search(ops, n, v, placed | (uint64_t)1 << i, then))
            return true;
    }
    return false;
}

static bool is_linearizable(const struct op *ops, size_t n)
{
    struct visited v = {.cap = 1 << 20};
    bool ok;

    assert_true(n <= OPS_MAX);
    v.placed = calloc(v.cap, sizeof(*v.placed));
    v.state = calloc(v.cap, sizeof(*v.state));
    ok = search(ops, n, &v, (uint64_t)1 << 63, 0);
    free(v.placed);
    free(v.state);
    return ok;
}

/* The check itself: histories of which it is known. */
static void test_check(void **state)
{
    const struct op one[] = {{SWAP, 0, 0, 1, 1, 4}, {READ, 0, 0, 0, 2, 3}, {READ, 0, 0, 1, 3, 5},
        {REFUSED, 0, 0, 2, 5, 6}, {READ, 0, 0, 1, 7, 8}};
    const struct op stale[] = {{SWAP, 0, 0, 1, 1, 2}, {READ, 0, 0, 0, 3, 4}};
    const struct op lost[] = {{SWAP, 0, 0, 1, 1, 2}, {SWAP, 0, 1, 2, 3, 4}, {READ, 0, 0, 1, 5, 6}};
    const struct op both[] = {{SWAP, 0, 0, 1, 1, 4}, {SWAP, 0, 0, 2, 2, 3}};
    const struct op back[] = {{SWAP, 0, 0, 1, 1, 9}, {READ, 0, 0, 1, 2, 3}, {READ, 0, 0, 0, 4, 5}};
    const struct op refused[] = {{REFUSED, 0, 0, 1, 1, 2}, {SWAP, 0, 0, 2, 3, 4}};
    struct op late[] = {
        {UNKNOWN, 0, 0, 1, 1, NSEC_NEVER}, {READ, 0, 0, 0, 2, 3}, {READ, 0, 0, 1, 4, 5}};

    assert_true(is_linearizable(one, 5));
    assert_false(is_linearizable(stale, 2));
    assert_false(is_linearizable(lost, 3));
    assert_false(is_linearizable(both, 2));
    assert_false(is_linearizable(back, 3));
    assert_false(is_linearizable(refused, 2));
    assert_true(is_linearizable(late, 3));
    late[0].kind = REFUSED;
    assert_false(is_linearizable(late, 3));
}

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
    struct op ops[STEPS];
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

static struct op *begin(struct client *c, enum kind kind, unsigned k)
{
    struct op *op = &c->ops[c->n_ops++];

    *op = (struct op){.kind = kind, .key = k, .called_at = clock_now(), .answered_at = NSEC_NEVER};
    return op;
}

static void do_read(struct client *c, unsigned k)
{
    struct op *op = begin(c, READ, k);
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

static void do_write(struct client *c, unsigned k, unsigned value)
{
    struct op *op = begin(c, SWAP, k);
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
    if (r == 0) {
        c->value[k] = value;
        c->revision[k] = revision;
    } else if (r == STORE_E_CONFLICT) {
        op->kind = REFUSED;
    } else if (r == STORE_E_UNKNOWN) {
        op->kind = UNKNOWN;
        op->answered_at = NSEC_NEVER;
        c->n_unknown++;
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
            do_write(c, k, 1 + c->id * STEPS + i);
    }
    return NULL;
}

/* One more read of each key, when all are done, of a hub that has not written last. */
static size_t gather(struct client *clients, unsigned k, struct op *ret, struct client *reader)
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
    static struct op ops[CLIENTS * STEPS + 1];

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

        if (!is_linearizable(ops, n)) {
            for (size_t i = 0; i < n; i++)
                print_error("%d %u->%u  %lld %lld\n", (int)ops[i].kind, ops[i].expect, ops[i].value,
                    (long long)ops[i].called_at, (long long)ops[i].answered_at);
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

/* The members in another order for each hub, so that not all of them ask the same one. */
static struct store *open_hub(const struct sample_etcd *cluster, unsigned id)
{
    struct store *s = NULL;
    struct err e = ERR_NULL;
    char url[256];

    (void)snprintf(url, sizeof(url), "etcd://%s,%s,%s?prefix=/linear/",
        sample_etcd_server(cluster, id % 3), sample_etcd_server(cluster, (id + 1) % 3),
        sample_etcd_server(cluster, (id + 2) % 3));
    if (store_open(&s, url, 0, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void test_runs(void **state)
{
    static const struct sample_etcd_options opt = {.n = 3};
    struct sample_etcd *cluster = sample_etcd_start(&opt);
    unsigned long runs = number("WEFT_RUNS", 25);
    unsigned long seed = number("WEFT_SEED", 1);
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    unsigned n_unknown = 0;
    unsigned n_failed = 0;
    struct err e = ERR_NULL;

    assert_non_null(cluster);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i].id = i;
        clients[i].s = open_hub(cluster, i);
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
    print_message("%lu runs, %d hubs: %u answers lost, %u requests failed\n", runs, CLIENTS,
        n_unknown, n_failed);
    sample_etcd_calm(cluster);
    for (unsigned i = 0; i < CLIENTS; i++)
        store_free(clients[i].s);
    free(clients);
    sample_etcd_free(cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_runs),
    };

    return _cmocka_run_group_tests("linear", tests, sample_etcd_is_there() ? 2 : 1, NULL, NULL);
}
