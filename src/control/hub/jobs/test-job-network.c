/*
 * test-job-network.c - the jobs of one network: what of them a process is told, where they are
 * served, and how their changes get to the store.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/sample_late.h"

/* The key of what changes. */
#define KEY "rdzv/net/job/x"

struct fixture {
    struct store *store;
    struct jobs_env env;
    struct list networks;
    struct job_network *net;
    struct job *job;
    unsigned n_written; /* records */
    struct err e;
};

/* The time is what a test says that it is. */
static nsec_t test_now;

static nsec_t test_clock(void)
{
    return test_now;
}

static void on_damaged(void *ctx, const char *key, const char *why)
{
    fail_msg("\"%s\": %s", key, why);
}

static void on_written(void *ctx, const char *key)
{
    assert_string_equal(key, KEY);
    ((struct fixture *)ctx)->n_written++;
}

static int set_up(void **state)
{
    static const struct rdzv_job_record record = {.port = 29600, .run = 3, .has_heads = true};
    static struct fixture f;

    test_now = NSEC_PER_SEC;
    f = (struct fixture){.store = sample_late_open(3, 0)};
    f.env = (struct jobs_env){.store = f.store,
        .clock = test_clock,
        .records = {.ctx = &f, .damaged = on_damaged, .written = on_written},
        .seed = 1,
        .pace = CHANGE_PACE_INIT};
    list_init(&f.networks);
    f.net = job_network_get(&f.networks, &f.env, "net");
    assert_ptr_equal(job_network_get(&f.networks, &f.env, "net"), f.net);
    f.job = job_network_add(f.net, "job", &record, test_now);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    job_network_free(f->net);
    assert_true(list_is_empty(&f->networks));
    store_free(f->store);
    return 0;
}

static void put(struct fixture *f)
{
    assert_int_equal(change_queue_put(&f->net->queue, KEY, strdup("{}"), test_now), 0);
}

static void begin_commit(struct fixture *f)
{
    test_now = job_network_due(f->net);
    job_network_commit(f->net, test_now);
}

static void commit_one(struct fixture *f)
{
    begin_commit(f);
    store_wait(f->store);
}

static bool is_saved(const struct fixture *f)
{
    return change_queue_is_empty(&f->net->queue);
}

static int take_nothing(void *ctx, const struct store_item *item)
{
    return 0;
}

/* What the process is to be told, which is forgotten then. */
static void expect_told(struct fixture *f, const char *expected)
{
    struct str *told = &f->net->to_process;
    struct str s = STR_NULL;
    size_t used = 0;

    for (size_t off = 0; off < told->len; off += used) {
        struct rdzv_wire m;

        assert_int_equal(rdzv_wire_decode(&m, told->text + off, told->len - off, &used), 0);
        if (m.type == RDZV_WIRE_SAVED)
            str_addf(&s, "saved %u: %d; ", (unsigned)m.seq, m.error);
        else if (m.type == RDZV_WIRE_CLEAR)
            str_addf(&s, "clear %u.%u; ", m.job, m.run);
        else if (m.type == RDZV_WIRE_FORGET)
            str_addf(&s, "forget %u; ", m.job);
        else
            fail_msg("a message of type %d", m.type);
    }
    assert_string_equal(str_text(&s), expected);
    str_deinit(&s);
    str_deinit(told);
}

static void on_nothing(void *ctx, const struct store_answer *a)
{
}

/* Who waits for the disk hears when all before is there, or that it is not. */
static void test_who_waits_for_the_disk(void **state)
{
    struct fixture *f = *state;

    job_network_sync(f->net, 1, test_now);
    expect_told(f, "");
    f->net->has_process = true;
    job_network_sync(f->net, 2, test_now);
    expect_told(f, "saved 2: 0; ");
    put(f);
    job_network_sync(f->net, 3, test_now);
    expect_told(f, "");
    commit_one(f);
    expect_told(f, "saved 3: 0; ");
    assert_int_equal(f->n_written, 1);
    assert_int_equal(f->net->queue.n_failed, 0);
    /* It fails, and is done later. */
    put(f);
    job_network_sync(f->net, 4, test_now);
    sample_late_set_loss(f->store, 1);
    commit_one(f);
    expect_told(f, "saved 4: -5; ");
    assert_int_equal(f->n_written, 1);
    assert_int_equal(f->net->queue.n_failed, 1);
    assert_int_equal(job_network_due(f->net), test_now + NSEC_PER_SEC);
    f->net->is_foreign = true;
    assert_int_equal(job_network_due(f->net), NSEC_NEVER);
    f->net->is_foreign = false;
    job_network_sync(f->net, 5, test_now);
    assert_int_equal(job_network_commit_all(f->net, &f->e), -EIO);
    assert_string_equal(err_text(&f->e), "the store has refused it");
    expect_told(f, "saved 5: -5; ");
    sample_late_set_loss(f->store, 0);
    /* The store takes no more requests for now. */
    job_network_sync(f->net, 6, test_now);
    while (store_pending(f->store) < STORE_PENDING_MAX)
        assert_int_equal(store_get(f->store, "nothing", on_nothing, NULL, &f->e), 0);
    begin_commit(f);
    expect_told(f, "saved 6: -11; ");
    assert_false(is_saved(f));
    job_network_sync(f->net, 7, test_now);
    store_wait(f->store);
    commit_one(f);
    expect_told(f, "saved 7: 0; ");
    assert_int_equal(f->n_written, 2);
}

/* A process is told of runs that begin, and of jobs that go. */
static void test_what_a_process_is_told_of_jobs(void **state)
{
    struct fixture *f = *state;
    struct str names = STR_NULL;
    struct job *job;

    f->job->facts = (struct job_facts){.n_connections = 1, .n_members = 1, .n_keys = 2};
    job_network_begin_run(f->job, 4, test_now);
    expect_told(f, "");
    f->net->has_process = true;
    job_network_begin_run(f->job, 5, test_now);
    expect_told(f, "clear 1.5; ");
    assert_int_equal(f->job->record.run, 5);
    assert_int_equal(f->job->facts.n_members, 0);
    assert_int_equal(f->job->facts.n_keys, 0);
    assert_string_equal(f->job->members.before, "job.4");
    /* The list is by name. */
    (void)job_network_add(f->net, "zebra", NULL, test_now);
    (void)job_network_add(f->net, "ant", &f->job->record, test_now);
    (void)job_network_add(f->net, "mouse", &f->job->record, test_now);
    list_foreach(job, &f->net->jobs, link)
        str_addf(&names, " %s.%u.%u", job->name, job->number, job->record.run);
    assert_string_equal(str_text(&names), " ant.3.5 job.1.5 mouse.4.5 zebra.2.1");
    str_deinit(&names);
    job = job_network_find_job(f->net, "zebra");
    assert_true(job->is_forgotten && job->record.ended && job->record.has_heads);
    job_network_forget_job(f->job, test_now);
    expect_told(f, "forget 1; ");
    assert_true(f->job->is_forgotten);
    assert_false(f->job->is_save_in_vain);
    assert_int_equal(f->job->blobs.index.run, 0);
    job_network_sweep(f->net, test_now);
    assert_null(job_network_find_job(f->net, "job"));
    assert_null(job_network_find_job(f->net, "zebra"));
    assert_non_null(job_network_find_job(f->net, "ant"));
}

/* Where the network's record is not as it was nothing is to be written. */
static void test_the_fence(void **state)
{
    struct fixture *f = *state;
    struct store_op op = {.key = NULL};

    assert_int_equal(job_network_add_fence(f->net, &op), 0);
    assert_null(op.key);
    (void)snprintf(f->net->fence, sizeof(f->net->fence), "owner/net");
    f->net->fence_revision = 77;
    assert_int_equal(job_network_add_fence(f->net, &op), 1);
    assert_int_equal(op.kind, STORE_OP_CHECK);
    assert_string_equal(op.key, "owner/net");
    assert_int_equal(op.expect, 77);
    assert_true(op.is_unwatched);
    /* There is no such record: what has changed stays here. */
    put(f);
    commit_one(f);
    assert_int_equal(f->net->queue.n_failed, 1);
    assert_int_equal(store_now_get(f->store, KEY, take_nothing, NULL, &f->e), STORE_E_ABSENT);
}

static unsigned count_open(const struct job *job)
{
    unsigned n = 0;

    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        n += job->ports.fds[i] >= 0;
    return n;
}

/* A job has a port on both addresses of the hub, and the default one another for etcd; where the
 * hub's machine is a member, its own programs reach them as well. */
static void test_ports_of_a_job(void **state)
{
    struct fixture *f = *state;
    uint8_t at[4] = {127, 1, (uint8_t)((unsigned)getpid() >> 8), (uint8_t)getpid()};
    struct captured_log said;
    struct job *job;

    f->net->address4 = ip_addr_v4(at);
    at[1] = 2;
    f->net->address6 = ip_addr_v4(at);
    (void)snprintf(f->net->interface, sizeof(f->net->interface), "lo");
    job = job_network_add(f->net, JOBS_DEFAULT, &f->job->record, test_now);
    job_network_open_ports(f->job);
    assert_true(f->net->has_updates);
    assert_int_equal(count_open(f->job), 2);
    job_ports_close(&f->job->ports);
    job_network_open_ports(job);
    assert_int_equal(count_open(job), 4);
    f->net->own_member = (struct ip_addr){{9}};
    job_network_open_ports(job);
    job_network_open_ports(job);
    assert_int_equal(job->ports.n_failures, 2);
    (void)snprintf(f->net->interface, sizeof(f->net->interface), "no-such-one");
    job_ports_close(&job->ports);
    /* It is said once that they cannot be opened. */
    said = captured_log_begin();
    for (unsigned i = 0; i < 3; i++)
        job_network_open_ports(job);
    captured_log_end(&said,
        "warning: weft: job \"default\" of network \"net\" is not served at one of its addresses: "
        "interface \"no-such-one\" cannot be listened on: No such device\n");
    f->job->ports.fds[0] = dup(STDERR_FILENO);
    job_network_forget_job(f->job, test_now);
    assert_int_equal(count_open(f->job), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_waits_for_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_process_is_told_of_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_fence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ports_of_a_job, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
