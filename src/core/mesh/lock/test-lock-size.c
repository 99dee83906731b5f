/* test-lock-size.c - a lock of a thousand nodes: its bytes, and how long reading it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/lock/lock_chain.h"
#include "test/support/sample_lock.h"

#define N_NODES   1000
#define BYTES_MAX 1024 /* of a node */

#define BODY(k, ...) ((struct lock_body){.kind = (k), __VA_ARGS__})

static double now_ms(clockid_t clock)
{
    struct timespec at;

    assert_int_equal(clock_gettime(clock, &at), 0);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* As a node of a cluster is: in an island, with some labels; each tenth one is the way to a
 * subnet. */
static struct node make_node(unsigned i)
{
    char text[64];
    struct node n;

    (void)snprintf(text, sizeof(text), "gpu-%04u", i);
    n = sample_lock_node(text, 10 + i);
    (void)snprintf(n.island, sizeof(n.island), "rack-%u", i / 32);
    sample_lock_label(&n, "gpu", "h200");
    sample_lock_label(&n, "role", "worker");
    if (i % 10 == 0) {
        (void)snprintf(text, sizeof(text), "10.%u.%u.0/24", 64 + i / 256, i % 256);
        sample_lock_route(&n, text);
    }
    return n;
}

/* Reads all of it, as a machine that joins. */
static void check_figures(const struct sample_lock *s, const char *what)
{
    struct lock_chain c;
    struct err e = ERR_NULL;
    double wall = now_ms(CLOCK_MONOTONIC);
    double cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);

    lock_chain_init(&c, "lab", NULL);
    if (lock_chain_read(&c, s->bytes, s->len, NULL, &e) != 0)
        fail_msg("%s", err_text(&e));
    wall = now_ms(CLOCK_MONOTONIC) - wall;
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    print_message("FIGURE lock, %d nodes %s: %zu bytes a node, read and verified in %.0f ms, of "
                  "which %.0f ms on a processor\n",
        N_NODES, what, s->len / N_NODES, wall, cpu);
    assert_int_equal(c.state.nodes.n, N_NODES);
    assert_true(s->len < (size_t)N_NODES * BYTES_MAX);
    lock_chain_deinit(&c);
}

static void begin(struct sample_lock *s)
{
    sample_lock_init(s, NULL);
    sample_lock_put(s, BODY(LOCK_GENESIS, .genesis = sample_lock_genesis()), "alice bob");
}

static void test_by_operators(void **state)
{
    struct sample_lock s;

    (void)state;
    begin(&s);
    for (unsigned i = 0; i < N_NODES; i++)
        sample_lock_put_node(&s, make_node(i));
    check_figures(&s, "that two operators have signed");
    sample_lock_deinit(&s);
}

static void test_by_tokens(void **state)
{
    struct sample_lock s;
    struct lock_token token;

    (void)state;
    begin(&s);
    for (unsigned i = 0; i < N_NODES; i++) {
        char name[32];
        struct lock_join join;

        (void)snprintf(name, sizeof(name), "token-%u", i / 32);
        if (i % 32 == 0) {
            struct node n = make_node(i);

            token = sample_lock_token(&s, name, 32);
            memcpy(token.island, n.island, sizeof(token.island));
            token.labels = n.labels;
            token.n_labels = n.n_labels;
            n.labels = NULL;
            node_deinit(&n);
            assert_int_equal(subnets_parse(&token.routes, "10.64.0.0/10", NULL), 0);
            sample_lock_put(&s, BODY(LOCK_TOKEN, .token = token), "alice bob");
        }
        join = (struct lock_join){.token = sample_lock_signing(name), .node = make_node(i)};
        sample_lock_put(&s, BODY(LOCK_JOIN, .join = join), name);
    }
    check_figures(&s, "that have come by 32 tokens");
    sample_lock_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_operators),
        cmocka_unit_test(test_by_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
