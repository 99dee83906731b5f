/*
 * test-linear.c - requests of several clients to one store, of which answers are lost: is each
 * history linearizable, and is no write lost that was acknowledged?
 *
 * It runs on the stores that one process has to itself: in memory, in SQLite, and in memory with
 * answers that come late and are lost by the store (sample_late.h). Beyond that the test throws
 * answers away itself, and does not send what it says it has sent, so that the outcome is unknown.
 * test-etcd-linear.c has the same of several hubs at one etcd.
 *
 * WEFT_RUNS says how many runs (25), WEFT_SEED the first seed (1); a failure prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "store/store.h"
#include "test/support/linear.h"
#include "test/support/sample_late.h"
#include "test/support/store_fixture.h"

#define CLIENTS 4
#define KEYS    2
#define STEPS   10 /* of each client in a run */

/* One in so many answers is thrown away, and one in so many commits is not sent. */
#define LOSS 8

/* The check itself: histories of which it is known. */
static void test_check(void **state)
{
    const struct linear_op one[] = {{LINEAR_SWAP, 0, 0, 1, 1, 4}, {LINEAR_READ, 0, 0, 0, 2, 3},
        {LINEAR_READ, 0, 0, 1, 3, 5}, {LINEAR_REFUSED, 0, 0, 2, 5, 6},
        {LINEAR_READ, 0, 0, 1, 7, 8}};
    const struct linear_op stale[] = {{LINEAR_SWAP, 0, 0, 1, 1, 2}, {LINEAR_READ, 0, 0, 0, 3, 4}};
    const struct linear_op lost[] = {
        {LINEAR_SWAP, 0, 0, 1, 1, 2}, {LINEAR_SWAP, 0, 1, 2, 3, 4}, {LINEAR_READ, 0, 0, 1, 5, 6}};
    const struct linear_op both[] = {{LINEAR_SWAP, 0, 0, 1, 1, 4}, {LINEAR_SWAP, 0, 0, 2, 2, 3}};
    const struct linear_op back[] = {
        {LINEAR_SWAP, 0, 0, 1, 1, 9}, {LINEAR_READ, 0, 0, 1, 2, 3}, {LINEAR_READ, 0, 0, 0, 4, 5}};
    const struct linear_op refused[] = {
        {LINEAR_REFUSED, 0, 0, 1, 1, 2}, {LINEAR_SWAP, 0, 0, 2, 3, 4}};
    struct linear_op late[] = {{LINEAR_UNKNOWN, 0, 0, 1, 1, NSEC_NEVER},
        {LINEAR_READ, 0, 0, 0, 2, 3}, {LINEAR_READ, 0, 0, 1, 4, 5}};

    assert_true(linear_check(one, 5));
    assert_false(linear_check(stale, 2));
    assert_false(linear_check(lost, 3));
    assert_false(linear_check(both, 2));
    assert_false(linear_check(back, 3));
    assert_false(linear_check(refused, 2));
    assert_true(linear_check(late, 3));
    late[0].kind = LINEAR_REFUSED;
    assert_false(linear_check(late, 3));
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct run;

/* One of those who ask; it has one request on its way at most. */
struct client {
    struct run *run;         /* pins */
    struct linear_op *op;    /* pins: the request on its way; NULL: none */
    bool is_thrown_away;     /* its answer will be */
    unsigned value[KEYS];    /* what it has seen last */
    uint64_t revision[KEYS]; /* of that */
    unsigned n_steps;
};

struct run {
    struct store *s; /* borrowed */
    struct rng rng;
    uint64_t seed;
    unsigned number;
    nsec_t now; /* counts what happens */
    struct client clients[CLIENTS];
    struct linear_op ops[KEYS][CLIENTS * STEPS + 1];
    size_t n_ops[KEYS];
    unsigned n_unknown;
};

static void key_of(char key[static 32], const struct run *run, unsigned k)
{
    (void)snprintf(key, 32, "r%u/%u", run->number, k);
}

static void on_read(void *ctx, const struct store_answer *a)
{
    struct client *c = ctx;
    struct linear_op *op = c->op;

    c->op = NULL;
    /* A read that fails, or whose answer is lost, says nothing, as a commit that was not done. */
    if (c->is_thrown_away || (a->r != 0 && a->r != STORE_E_ABSENT)) {
        op->kind = LINEAR_UNKNOWN;
        op->expect = UINT32_MAX;
        return;
    }
    op->answered_at = ++c->run->now;
    op->value = a->r == 0 ? (unsigned)strtoul(a->items[0].value, NULL, 10) : 0;
    c->value[op->key] = op->value;
    c->revision[op->key] = a->r == 0 ? a->items[0].revision : 0;
}

static void on_written(void *ctx, const struct store_answer *a)
{
    struct client *c = ctx;
    struct linear_op *op = c->op;

    c->op = NULL;
    if (c->is_thrown_away || a->r == STORE_E_UNKNOWN) {
        op->kind = LINEAR_UNKNOWN;
        c->run->n_unknown++;
        return;
    }
    op->answered_at = ++c->run->now;
    if (a->r == STORE_E_CONFLICT) {
        op->kind = LINEAR_REFUSED;
    } else if (a->r == 0) {
        c->value[op->key] = op->value;
        c->revision[op->key] = a->revision;
    } else {
        /* Nothing was done: as if it had waited for a value that the register never has. */
        op->kind = LINEAR_UNKNOWN;
        op->answered_at = NSEC_NEVER;
        op->expect = UINT32_MAX;
    }
}

static struct linear_op *new_op(struct client *c, enum linear_kind kind, unsigned k)
{
    struct run *run = c->run;
    struct linear_op *op = &run->ops[k][run->n_ops[k]++];

    *op = (struct linear_op){
        .kind = kind, .key = k, .called_at = ++run->now, .answered_at = NSEC_NEVER};
    c->op = op;
    c->is_thrown_away = rng_u32(&run->rng) % LOSS == 0;
    return op;
}

static void write_one(struct client *c, unsigned k)
{
    struct run *run = c->run;
    struct linear_op *op = new_op(c, LINEAR_SWAP, k);
    char key[32];
    char text[16];
    const struct store_op put = {
        .kind = STORE_OP_PUT, .key = key, .value = text, .expect = c->revision[k]};

    op->expect = c->value[k];
    op->value = 1 + (unsigned)(c - run->clients) * STEPS + c->n_steps;
    key_of(key, run, k);
    (void)snprintf(text, sizeof(text), "%u", op->value);
    if (rng_u32(&run->rng) % LOSS == 0) {
        op->kind = LINEAR_UNKNOWN;
        run->n_unknown++;
        c->op = NULL;
        return;
    }
    assert_int_equal(store_commit(run->s, &put, 1, 0, on_written, c, NULL), 0);
}

static void begin_one(struct client *c)
{
    unsigned k = rng_u32(&c->run->rng) % KEYS;
    char key[32];

    c->n_steps++;
    if (rng_u32(&c->run->rng) % 2) {
        write_one(c, k);
        return;
    }
    key_of(key, c->run, k);
    (void)new_op(c, LINEAR_READ, k);
    assert_int_equal(store_get(c->run->s, key, on_read, c, NULL), 0);
}

/* Somebody begins, or some answers come. False: all is done. */
static bool step(struct run *run)
{
    struct client *c = &run->clients[rng_u32(&run->rng) % CLIENTS];
    struct pollfd p = {.fd = store_fd(run->s), .events = POLLIN};
    bool is_over = store_pending(run->s) == 0;

    for (unsigned i = 0; i < CLIENTS; i++)
        is_over = is_over && run->clients[i].n_steps == STEPS;
    if (!c->op && c->n_steps < STEPS)
        begin_one(c);
    else if (poll(&p, 1, store_pending(run->s) > 0 ? 1 : 0) > 0)
        store_dispatch(run->s);
    return !is_over;
}

static int take_value(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx = (unsigned)strtoul(item->value, NULL, 10);
    return 0;
}

/* What is there in the end, which all that were answered must explain. */
static void read_last(struct run *run, unsigned k)
{
    struct linear_op *op = &run->ops[k][run->n_ops[k]++];
    unsigned value = 0;
    char key[32];
    int r;

    key_of(key, run, k);
    do
        r = store_now_get(run->s, key, take_value, &value, NULL);
    while (r < 0);
    *op = (struct linear_op){.kind = LINEAR_READ,
        .key = k,
        .value = value,
        .called_at = run->now + 1,
        .answered_at = run->now + 2};
    run->now += 2;
}

static unsigned do_run(struct store *s, unsigned number, uint64_t seed)
{
    static struct run run;

    run = (struct run){.s = s, .number = number, .seed = seed};
    run.rng = rng_seeded(&run.seed);
    for (unsigned i = 0; i < CLIENTS; i++)
        run.clients[i].run = &run;
    while (step(&run))
        ;
    for (unsigned k = 0; k < KEYS; k++) {
        read_last(&run, k);
        if (linear_check(run.ops[k], run.n_ops[k]))
            continue;
        linear_print(run.ops[k], run.n_ops[k]);
        fail_msg("seed %llu, key %u: not linearizable", (unsigned long long)seed, k);
    }
    return run.n_unknown;
}

static unsigned long number(const char *variable, unsigned long otherwise)
{
    const char *given = getenv(variable);

    return given ? strtoul(given, NULL, 10) : otherwise;
}

static void test_runs(void **state)
{
    struct store_fixture *f = *state;
    unsigned long runs = number("WEFT_RUNS", 25);
    unsigned long seed = number("WEFT_SEED", 1);
    unsigned n_unknown = 0;

    for (unsigned long i = 0; i < runs; i++)
        n_unknown += do_run(f->s, (unsigned)i, seed + i);
    print_message(
        "%lu runs of %d clients: %u commits have an unknown outcome\n", runs, CLIENTS, n_unknown);
    assert_true(n_unknown >= runs);
}

static int set_up_losing(void **state)
{
    struct store_fixture *f;
    int r = store_fixture_late(state);

    f = *state;
    if (r == 0)
        sample_late_set_loss(f->s, LOSS);
    return r;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test_setup_teardown(test_runs, store_fixture_memory, store_fixture_free),
        cmocka_unit_test_setup_teardown(test_runs, store_fixture_sqlite, store_fixture_free),
        cmocka_unit_test_setup_teardown(test_runs, set_up_losing, store_fixture_free),
    };

    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
