/* test-sync.c - orders of rings and trees, and the times of synchronisations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/secret.h"
#include "plan/sync.h"

#define MBIT 125000. /* bytes per second */

/* @n nodes; every link has this round trip in seconds and this rate in bit/s, and BBR, but with a
 * small window after a pause. */
static void make(struct matrix *m, size_t n, double rtt, double bps)
{
    assert_int_equal(matrix_new(m, n), 0);
    for (size_t i = 0; i < n * n; i++)
        if (i / n != i % n)
            m->links[i] = (struct matrix_link){
                .rtt = rtt, .one_bps = bps, .many_bps = bps, .restarts = true, .kept = 1};
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= fabs(b) * 0.001))
        fail_msg("%g is not %g", a, b);
}

/* The cost of the cycle's slowest link. */
static double bottleneck(const double *cost, size_t n, const size_t *order)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, cost[order[i] * n + order[(i + 1) % n]]);
    return worst;
}

/* The least bottleneck of all cycles, slowly. */
static double least_bottleneck(const double *cost, size_t n, size_t *order, size_t len)
{
    double least = INFINITY;

    if (len == n)
        return bottleneck(cost, n, order);
    for (size_t i = len; i < n; i++) {
        size_t other = order[len];

        order[len] = order[i];
        order[i] = other;
        least = fmin(least, least_bottleneck(cost, n, order, len + 1));
        order[i] = order[len];
        order[len] = other;
    }
    return least;
}

/* Against a reference that tries everything, in both directions with different costs. */
static void test_ring_is_best(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);

    for (size_t n = 2; n <= 7; n++)
        for (unsigned turn = 0; turn < 20; turn++) {
            double cost[49];
            size_t order[7];
            size_t all[7];

            for (size_t i = 0; i < n * n; i++)
                cost[i] = rng_u32(&rng) % 1000;
            for (size_t i = 0; i < n; i++)
                all[i] = i;
            ring_order(cost, n, order);
            assert_int_equal(order[0], 0);
            assert_near(bottleneck(cost, n, order), least_bottleneck(cost, n, all, 1));
        }
}

/* Twenty nodes in two islands that are listed in turns: two links between them are enough. */
static void test_large_ring(void **state)
{
    enum { N = 20 };
    double cost[N * N];
    size_t order[N];
    unsigned between = 0;
    unsigned seen = 0;

    for (size_t i = 0; i < N * N; i++)
        cost[i] = (i / N) % 2 == (i % N) % 2 ? 1 : 50;
    ring_order(cost, N, order);
    for (size_t i = 0; i < N; i++) {
        seen |= 1u << order[i];
        between += order[i] % 2 != order[(i + 1) % N] % 2;
    }
    assert_int_equal(seen, (1u << N) - 1);
    assert_int_equal(between, 2);
}

static void test_tree(void **state)
{
    enum { N = 9 };
    double cost[N * N];
    size_t parent[N];
    unsigned children[N] = {0};
    unsigned roots = 0;

    for (size_t i = 0; i < N * N; i++)
        cost[i] = 1 + (double)((i * 7) % 5);
    ring_tree(cost, N, parent);
    for (size_t i = 0; i < N; i++) {
        roots += parent[i] == i;
        children[parent[i]] += parent[i] != i;
    }
    assert_int_equal(roots, 1);
    for (size_t i = 0; i < N; i++)
        assert_true(children[i] <= RING_CHILDREN_MAX);
}

/* Eight nodes, 100 Mbit/s, no latency: 2 * 7/8 of the bytes pass each link. */
static void test_nccl_ring(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t nodes[] = {0, 1, 2, 3, 4, 5, 6, 7};

    make(&m, 8, 1e-6, 100e6);
    assert_near(sync_ring(&m, nodes, 8, 1e8, SYNC_NCCL), 1.75 * 1e8 / (100 * MBIT * SYNC_DUPLEX));
    /* A small one is all latency: 14 steps of half a round trip. */
    m.links[1].rtt = 0.1;
    assert_near(sync_ring(&m, nodes, 8, 1, SYNC_NCCL), 14 * 0.05);
    /* NCCL's window over 100 ms is less than a link of 10 Gbit/s. */
    m.links[1].many_bps = 10e9;
    assert_near(sync_rate(&m, 0, 1, SYNC_NCCL), SYNC_NCCL_WINDOW / 0.1);
    assert_true(sync_ring(&m, nodes, 1, 1e8, SYNC_NCCL) == 0);
    m.links[1].one_bps = 0;
    assert_true(isinf(sync_ring(&m, nodes, 8, 1, SYNC_NCCL)));
    matrix_deinit(&m);
}

/* Small vectors of Gloo take a round trip a step and half: readiness there, data back. */
static void test_gloo_ring(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t nodes[] = {0, 1};
    double rate = 100 * MBIT * SYNC_DUPLEX;

    make(&m, 2, 0.05, 100e6);
    assert_near(sync_ring(&m, nodes, 2, 8, SYNC_GLOO), 0.1);
    /* One MiB: two segments of 256 KiB a half, without a pause between them. */
    assert_near(sync_ring(&m, nodes, 2, 1 << 20, SYNC_GLOO), 0.1 + (1 << 20) / rate);
    /* 2 GiB are not played to their end, and are twice 1 GiB. */
    assert_near(sync_ring(&m, nodes, 2, 2.0 * (1 << 30), SYNC_GLOO),
        2 * sync_ring(&m, nodes, 2, 1 << 30, SYNC_GLOO));
    /* Each segment of a long vector waits half a round trip for the neighbour's word. */
    assert_near(sync_ring(&m, nodes, 2, 1 << 30, SYNC_GLOO), 1024 * ((1 << 20) / rate + 0.025));
    matrix_deinit(&m);
}

/* Whoever receives over a far link waits a round trip for each two segments, and all others for it.
 */
static void test_gloo_ring_of_islands(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t good[] = {0, 1, 2, 3};
    size_t bad[] = {0, 2, 1, 3};

    make(&m, 4, 0.05, 100e6);
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < 4; b++)
            if (a != b && a / 2 == b / 2)
                m.links[a * 4 + b] =
                    (struct matrix_link){.rtt = 0.001, .one_bps = 1e9, .many_bps = 1e9, .kept = 1};
    assert_near(sync_ring(&m, good, 4, 8, SYNC_GLOO), 6 * 0.05);
    assert_near(sync_ring(&m, bad, 4, 8, SYNC_GLOO), 6 * 0.05);
    matrix_deinit(&m);
}

static void test_trees(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t nodes[] = {0, 1, 2};
    size_t chain[] = {0, 0, 1};
    size_t star[] = {0, 0, 0};
    double rate = 100 * MBIT * SYNC_DUPLEX;

    make(&m, 3, 0.02, 100e6);
    assert_near(sync_tree(&m, chain, 1e6, SYNC_NCCL), 2 * (0.02 + 1e6 / rate));
    assert_near(sync_tree(&m, star, 1e6, SYNC_NCCL), 2 * (0.01 + 2e6 / rate));
    assert_near(sync_broadcast(&m, nodes, 2, 1e6, SYNC_GLOO), 0.01 + 1e6 / (100 * MBIT));
    matrix_deinit(&m);
}

/* 225 KB are in flight: after four round trips from ten segments on the link is full. */
static void test_restart(void **state)
{
    struct matrix m = MATRIX_NULL;
    double rate = 100 * MBIT * SYNC_DUPLEX;

    make(&m, 2, 0.02, 100e6);
    assert_near(sync_restart(&m, 0, 1, 1e7, SYNC_GLOO), 4 * 0.02 - 15 * 14600 / rate);
    /* 30 KB leave in the second round trip, and 10 KB in the first. */
    assert_near(sync_restart(&m, 0, 1, 3e4, SYNC_GLOO), 0.02 - 14600 / rate);
    assert_true(sync_restart(&m, 0, 1, 1e4, SYNC_GLOO) == 0);
    m.links[1].restarts = false;
    assert_true(sync_restart(&m, 0, 1, 1e7, SYNC_GLOO) == 0);
    matrix_deinit(&m);
}

/* What was measured both ways at once counts where a loss slows TCP down and nodes are near. */
static void test_duplex(void **state)
{
    struct matrix m = MATRIX_NULL;

    make(&m, 2, 0.002, 100e6);
    m.links[1].kept = 0.7;
    m.links[1].both_bps = 60e6;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 60 * MBIT);
    /* A window that is kept over a pause is still made smaller by a loss. */
    m.links[1].restarts = false;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 60 * MBIT);
    m.links[1].both_bps = 120e6;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * SYNC_DUPLEX);
    m.links[1].both_bps = 60e6;
    m.links[1].kept = 1;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * SYNC_DUPLEX);
    matrix_deinit(&m);
}

/* Windows of 0.7 to 1 of a round trip's bytes, in round trips that are longer by half a window. */
static void test_far_duplex(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t both[] = {0, 1};

    make(&m, 2, 0.05, 100e6);
    /* What a transfer of eight round trips has found both ways says nothing here. */
    m.links[1].both_bps = 20e6;
    m.links[1].kept = 0.7;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * 0.85 / 1.425);
    assert_near(sync_rate(&m, 0, 1, SYNC_NCCL), 100 * MBIT * 0.85 / 1.425);
    m.links[1].kept = 0.5;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * 0.75 / 1.375);
    /* One connection had not found the line's rate yet, or a loss keeps it from that. */
    m.links[1].one_bps = 80e6;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * 0.75 / 1.375);
    m.links[1].one_bps = 20e6;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 20 * MBIT * SYNC_DUPLEX);
    /* Nothing comes back beside a broadcast. */
    m.links[1].one_bps = 100e6;
    assert_near(sync_broadcast(&m, both, 2, 1e6, SYNC_GLOO), 0.025 + 1e6 / (100 * MBIT));
    m.links[1].kept = 1;
    assert_near(sync_rate(&m, 0, 1, SYNC_GLOO), 100 * MBIT * SYNC_DUPLEX);
    matrix_deinit(&m);
}

/* Each passes on what it has and what it got, in two halves. */
static void test_gather(void **state)
{
    struct matrix m = MATRIX_NULL;
    size_t nodes[] = {0, 1, 2, 3};
    double rate = 100 * MBIT * SYNC_DUPLEX;

    make(&m, 4, 0.05, 100e6);
    assert_near(sync_gather(&m, nodes, 4, 1e6, SYNC_NCCL), 3 * (0.025 + 1e6 / rate));
    assert_near(sync_gather(&m, nodes, 2, 1e6, SYNC_GLOO), 0.05 + 1e6 / rate);
    assert_true(
        sync_gather(&m, nodes, 4, 1e6, SYNC_GLOO) > sync_gather(&m, nodes, 3, 1e6, SYNC_GLOO));
    /* Nothing is to be passed on: no time passes, not even for latency. */
    for (unsigned i = 0; i < SYNC_TRANSPORT_N; i++) {
        enum sync_transport by = (enum sync_transport)i;

        assert_true(sync_gather(&m, nodes, 0, 1e6, by) == 0);
        assert_true(sync_gather(&m, nodes, 1, 1e6, by) == 0);
        assert_true(sync_gather(&m, nodes, 4, 0, by) == 0);
        assert_true(sync_gather(&m, nodes, 4, 1, by) > 0.075);
    }
    assert_near(sync_gather(&m, nodes, 2, 1e6, SYNC_NCCL), 0.025 + 1e6 / rate);
    m.links[1].one_bps = 0;
    for (unsigned i = 0; i < SYNC_TRANSPORT_N; i++)
        assert_true(isinf(sync_gather(&m, nodes, 2, 1e6, (enum sync_transport)i)));
    matrix_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_is_best),
        cmocka_unit_test(test_large_ring),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_nccl_ring),
        cmocka_unit_test(test_gloo_ring),
        cmocka_unit_test(test_gloo_ring_of_islands),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_duplex),
        cmocka_unit_test(test_far_duplex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
