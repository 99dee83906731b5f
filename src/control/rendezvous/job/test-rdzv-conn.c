/*
 * test-rdzv-conn.c - who may stay connected without a word, and how many connections a member has.
 *
 * Connections are socket pairs, and the test is the clock. The pool is made small.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "base/err.h"
#include "rendezvous/job/rdzv_job.h"

#define CLIENTS 500u  /* of a barrier, each with two connections */
#define POOL    1200u /* connections at once, where it is to be nearly full */

#define LATER (3600 * NSEC_PER_SEC)

struct fixture {
    struct uv_loop_s loop;
    struct rdzv_link link;
    struct rdzv_jobs jobs;
    struct rdzv_job *job;
    struct rdzv_conns conns;
    int pipe[2];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct rdzv_wire job = {.type = RDZV_WIRE_JOB,
        .job = 1,
        .run = 1,
        .port = 29600,
        .data = (const uint8_t *)"train",
        .len = 5};

    assert_non_null(f);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->pipe), 0);
    assert_int_equal(rdzv_link_init(&f->link, f->pipe[0]), 0);
    rdzv_jobs_init(&f->jobs, &f->link, 1);
    f->job = rdzv_job_new(&f->jobs, &job, 0);
    assert_non_null(f->job);
    rdzv_conns_init(&f->conns, &f->loop, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    rdzv_conns_hang_up(f->job, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->conns.admission.n, 0);
    admission_deinit(&f->conns.admission);
    rdzv_job_free(f->job);
    str_deinit(&f->jobs.blob);
    rdzv_link_deinit(&f->link);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    (void)close(f->pipe[0]);
    (void)close(f->pipe[1]);
    free(f);
    return 0;
}

/* A connection of the member 10.42.0.@member begins; NULL: it is refused. */
static struct rdzv_conn *come(struct fixture *f, uint8_t member, nsec_t now)
{
    const struct ip_addr from = ip_addr_v4((const uint8_t[]){10, 42, 0, member});
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    (void)close(fds[1]);
    return rdzv_conn_new(&f->conns, f->job, fds[0], &from, now);
}

/* Looks each second until @now. */
static void look_until(struct fixture *f, nsec_t now)
{
    for (nsec_t at = 0; at <= now; at += NSEC_PER_SEC)
        rdzv_conns_hang_up_silent(&f->conns, at);
}

/* torch's client says nothing until it is used first, as behind a barrier of its own. */
static void test_a_barrier_of_silent_clients(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2 * CLIENTS; i++)
        assert_non_null(come(f, 2, 0));
    look_until(f, LATER);
    assert_int_equal(f->conns.admission.n, 2 * CLIENTS);
    assert_int_equal(f->conns.n_hung_up, 0);
    /* They count in the network's memory, as those that speak do. */
    assert_int_equal(f->jobs.quota.bytes - f->job->quota.bytes, 2 * CLIENTS * RDZV_COST_CONN);
}

static void test_the_deadline_of_a_pool_that_is_nearly_full(void **state)
{
    struct fixture *f = *state;

    f->conns.admission.max = 64;
    for (uint8_t i = 0; i < 55; i++)
        assert_non_null(come(f, 2 + i, 0));
    look_until(f, LATER);
    assert_int_equal(f->conns.admission.n, 55);
    assert_non_null(come(f, 200, LATER));
    /* The oldest goes, and then there is room for the others. */
    look_until(f, LATER + 4 * RDZV_SILENT_MAX);
    assert_int_equal(f->conns.admission.n, 55);
    assert_int_equal(f->conns.n_hung_up, 1);
}

/* One member cannot keep the others out: its share is smaller when there is little left. */
static void test_the_share_of_a_member(void **state)
{
    struct fixture *f = *state;
    unsigned n = 0;

    f->conns.admission.max = POOL;
    while (come(f, 2, 0))
        n++;
    assert_int_equal(n, POOL / 2);
    n = 0;
    while (come(f, 3, 0))
        n++;
    assert_int_equal(n, RDZV_CONNECTIONS_MAX_BY_MEMBER);
}

int main(void)
{
    struct rlimit files;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_barrier_of_silent_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_the_deadline_of_a_pool_that_is_nearly_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_share_of_a_member, set_up, tear_down),
    };

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
