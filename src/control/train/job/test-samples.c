/* test-samples.c - what a command's connections and processes add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health/job_sample.h"
#include "os/child.h"
#include "train/job/samples.h"

#define HZ 100

/* ---- connections ---------------------------------------------------------------------------- */

static struct samples_flow flow(
    uint64_t cookie, uint8_t peer, enum samples_owner owner, uint64_t acked, uint64_t busy_ms)
{
    const uint8_t to[4] = {10, 42, 0, peer};

    return (struct samples_flow){.owner = owner,
        .flow = {.cookie = cookie,
            .remote.addr = ip_addr_v4(to),
            .acked = acked,
            .received = acked / 2,
            .busy_us = busy_ms * 1000,
            .window_us = busy_ms * 500,
            .segments = (uint32_t)acked,
            .repeated = (uint32_t)(acked / 10),
            .queued = 5,
            .unread = 7}};
}

static void test_what_has_moved(void **state)
{
    static struct job_sample s = {.ms = 3000};
    struct samples_flow old[] = {
        flow(1, 2, SAMPLES_OWNER_JOB, 100, 10), flow(2, 2, SAMPLES_OWNER_JOB, 1000, 100),
        flow(3, 3, SAMPLES_OWNER_OTHER, 0, 0), flow(4, 4, SAMPLES_OWNER_JOB, 50, 0),
        flow(9, 4, SAMPLES_OWNER_JOB, 77, 0), /* it is closed meanwhile */
    };
    struct samples_flow new[] = {
        flow(1, 2, SAMPLES_OWNER_JOB, 300, 1010), flow(2, 2, SAMPLES_OWNER_JOB, 1400, 5100),
        flow(3, 3, SAMPLES_OWNER_OTHER, 9999, 9), flow(4, 4, SAMPLES_OWNER_JOB, 50000, 0),
        flow(5, 5, SAMPLES_OWNER_JOB, 800, 90), /* seen for the first time */
    };
    const struct samples_flows before = {.items = old, .n = 5};
    const struct samples_flows now = {.items = new, .n = 5};

    samples_add_flows(&s, &before, &now);
    assert_int_equal(s.n_peers, 2);
    /* With whom most was exchanged is first. */
    assert_int_equal(s.peers[0].address.b[15], 4);
    assert_int_equal(s.peers[0].flow.sent, 49950);
    assert_int_equal(s.peers[1].address.b[15], 2);
    assert_int_equal(s.peers[1].flow.sent, 600);
    assert_int_equal(s.peers[1].flow.received, 300);
    assert_int_equal(s.peers[1].flow.segments, 600);
    assert_int_equal(s.peers[1].flow.repeated, 60);
    assert_int_equal(s.peers[1].flow.queued, 10);
    assert_int_equal(s.peers[1].flow.unread, 14);
    /* Not longer than the sample, and not one after the other. */
    assert_int_equal(s.peers[1].flow.busy_ms, 3000);
    assert_int_equal(s.peers[1].flow.window_ms, 2500);
}

static void test_segments_that_wrap(void **state)
{
    static struct job_sample s = {.ms = 3000};
    struct samples_flow old[] = {flow(1, 2, SAMPLES_OWNER_JOB, 0, 0)};
    struct samples_flow new[] = {flow(1, 2, SAMPLES_OWNER_JOB, 10, 0)};
    const struct samples_flows before = {.items = old, .n = 1};
    const struct samples_flows now = {.items = new, .n = 1};

    old[0].flow.segments = UINT32_MAX - 1;
    new[0].flow.segments = 3;
    samples_add_flows(&s, &before, &now);
    assert_int_equal(s.peers[0].flow.segments, 5);
}

static void test_many_peers(void **state)
{
    static struct job_sample s = {.ms = 3000};
    static struct samples_flow old[200];
    static struct samples_flow new[200];
    const struct samples_flows before = {.items = old, .n = 200};
    const struct samples_flows now = {.items = new, .n = 200};

    for (unsigned i = 0; i < 200; i++) {
        old[i] = flow(i, (uint8_t)(i + 1), SAMPLES_OWNER_JOB, 0, 0);
        new[i] = flow(i, (uint8_t)(i + 1), SAMPLES_OWNER_JOB, 1000 + i, 0);
    }
    samples_add_flows(&s, &before, &now);
    assert_int_equal(s.n_peers, JOB_SAMPLE_PEERS_MAX);
    assert_int_equal(s.peers[0].address.b[15], 200);
    assert_int_equal(s.peers[0].flow.sent, 1199);
    assert_int_equal(
        s.peers[JOB_SAMPLE_PEERS_MAX - 1].address.b[15], 200 - JOB_SAMPLE_PEERS_MAX + 1);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void see(struct samples_processes *p, int pid, char state, uint64_t user, uint64_t kernel)
{
    const struct process_stat stat = {state, user, kernel};

    samples_see(p, pid, &stat);
}

static struct job_processes add_up(struct samples_processes *p, nsec_t now)
{
    static struct job_sample s;

    s = (struct job_sample){.ms = 3000};
    samples_add_processes(&s, p, now, HZ);
    return s.processes;
}

static void test_who_computes(void **state)
{
    static struct samples_processes p;
    struct job_processes sum;

    p = (struct samples_processes){.n = 0};
    for (unsigned i = 0; i < 4; i++) {
        see(&p, 10, 'S', 500 + i, 0);
        see(&p, 11, i % 2 ? 'R' : 'D', 1000 + 80 * i, 50 + 10 * i);
        if (i < 2)
            see(&p, 12, 'R', 7, 0); /* it ends */
        samples_looked(&p, (nsec_t)i * NSEC_PER_SEC);
    }
    sum = add_up(&p, 4 * NSEC_PER_SEC);
    assert_int_equal(sum.n, 2);
    assert_int_equal(sum.cpu, 900);
    assert_int_equal(sum.kernel, 100);
    assert_int_equal(sum.running, 500);
    assert_int_equal(sum.waiting, 500);
    assert_int_equal(sum.n_stopped, 0);
    /* The next time begins anew; another process may have the pid. */
    see(&p, 10, 'S', 503, 0);
    see(&p, 11, 'R', 3, 0);
    samples_looked(&p, 5 * NSEC_PER_SEC);
    see(&p, 10, 'S', 533, 0);
    see(&p, 11, 'R', 4, 0);
    samples_looked(&p, 6 * NSEC_PER_SEC);
    sum = add_up(&p, 6 * NSEC_PER_SEC);
    assert_int_equal(sum.cpu, 100);
    assert_int_equal(sum.running, 1000);
}

static void test_who_is_stopped(void **state)
{
    static struct samples_processes p;
    struct job_processes sum;

    p = (struct samples_processes){.n = 0};
    see(&p, 10, 'S', 0, 0);
    see(&p, 11, 'T', 0, 0);
    samples_looked(&p, NSEC_PER_SEC);
    see(&p, 10, 't', 0, 0);
    see(&p, 11, 'T', 0, 0);
    samples_looked(&p, 2 * NSEC_PER_SEC);
    sum = add_up(&p, 3 * NSEC_PER_SEC);
    assert_int_equal(sum.n_stopped, 2);
    assert_int_equal(sum.stopped_ms, 2000);
    see(&p, 10, 'S', 0, 0);
    see(&p, 11, 'R', 0, 0);
    samples_looked(&p, 4 * NSEC_PER_SEC);
    sum = add_up(&p, 4 * NSEC_PER_SEC);
    assert_int_equal(sum.n_stopped, 0);
    assert_int_equal(sum.stopped_ms, 0);
}

static void test_many_processes(void **state)
{
    static struct samples_processes p;

    p = (struct samples_processes){.n = 0};
    for (int i = 0; i < 2 * SAMPLES_PROCESSES_MAX; i++)
        see(&p, i + 1, 'S', 0, 0);
    samples_looked(&p, NSEC_PER_SEC);
    assert_int_equal(add_up(&p, NSEC_PER_SEC).n, SAMPLES_PROCESSES_MAX);
    samples_looked(&p, NSEC_PER_SEC);
    assert_int_equal(add_up(&p, NSEC_PER_SEC).n, 0);
}

/* ---- does it stand still? -------------------------------------------------------------------- */

static void test_a_job_that_stands_still(void **state)
{
    static struct samples s;
    static struct job_sample sample = {.ms = 3000, .n_peers = 2};

    s = (struct samples)SAMPLES_NULL;
    /* It has not moved yet. */
    samples_note_moved(&s, &sample, 100 * NSEC_PER_SEC);
    assert_false(samples_is_still(&s, 200 * NSEC_PER_SEC));
    sample.peers[0].flow.sent = 6000000;
    sample.peers[1].flow.sent = 2000000;
    samples_note_moved(&s, &sample, 200 * NSEC_PER_SEC);
    /* What a sample will say is not known before it is there. */
    assert_false(samples_is_still(&s, 206 * NSEC_PER_SEC));
    sample.peers[0].flow.sent = 20000;
    sample.peers[1].flow.sent = 20000;
    samples_note_moved(&s, &sample, 203 * NSEC_PER_SEC);
    assert_false(samples_is_still(&s, 204 * NSEC_PER_SEC));
    assert_true(samples_is_still(&s, 205 * NSEC_PER_SEC));
    sample.peers[1].flow.sent = 20001;
    samples_note_moved(&s, &sample, 206 * NSEC_PER_SEC);
    assert_false(samples_is_still(&s, 212 * NSEC_PER_SEC));
    /* Where nothing of it is seen, NCCL's RAS says it. */
    s = (struct samples)SAMPLES_NULL;
    s.ras.answered_at = 100 * NSEC_PER_SEC;
    s.ras.said = (struct ras_ranks){.is_known = true, .still_ms = 59000};
    assert_false(samples_is_still(&s, 101 * NSEC_PER_SEC));
    s.ras.said.still_ms = 60000;
    assert_true(samples_is_still(&s, 101 * NSEC_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_moved),
        cmocka_unit_test(test_segments_that_wrap),
        cmocka_unit_test(test_many_peers),
        cmocka_unit_test(test_who_computes),
        cmocka_unit_test(test_who_is_stopped),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_a_job_that_stands_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
