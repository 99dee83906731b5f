/*
 * test-job-host.c - what a rendezvous process is told, and by when, on stores that are quick or
 * late.
 *
 * Started as `test-hub-job-host rendezvous` it is such a process itself: one that counts what it is
 * told, and says how much that was whenever it is handed a socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_host.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"
#include "hub/jobs/rdzv_child.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/emulated.h"
#include "test/support/sample_late.h"
#include "test/support/sample_rdzv.h"
#include "test/support/store_now.h"

/* Blobs of one piece, and the pieces of one more. */
#define SHORT_BLOBS 300
#define LONG_PIECES 9

struct fixture {
    uv_loop_t loop;
    uv_timer_t wake;
    uv_poll_t answers; /* of the store */
    struct store *store;
    struct jobs_env env;
    struct list networks;
    struct job_network *net;
    struct job *job;
    struct job_host host;
    unsigned n_damaged;
    struct err e;
};

static void on_damaged(void *ctx, const char *key, const char *why)
{
    ((struct fixture *)ctx)->n_damaged++;
}

static void on_written(void *ctx, const char *key)
{
}

static void on_wake(uv_timer_t *timer)
{
}

static void on_answers(uv_poll_t *poll, int status, int events)
{
    struct fixture *f = container_of(poll, struct fixture, answers);

    store_dispatch(f->store);
}

static void put(struct fixture *f, const char *key, char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_non_null(value);
    assert_int_equal(store_now_commit(f->store, &op, 1, 1, NULL, NULL, &f->e), 0);
    free(value);
}

/* A blob of the job's run number 3. The pieces from @from on are not there. */
static void put_blob(struct fixture *f, const char *name, unsigned n_pieces, unsigned from)
{
    static const uint8_t bytes[RDZV_CHUNK];
    char slot = n_pieces > 1 ? RDZV_SLOT_A : RDZV_SLOT_NONE;
    struct rdzv_head head = {.run = 3, .slot = slot, .n_pieces = n_pieces};
    struct rdzv_hash hash = rdzv_hash_of(name, strlen(name));
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];

    (void)rdzv_key_of_blob(first, RDZV_KEY_ENTRY, "net", "job", &hash);
    put(f, first, rdzv_piece_encode(&head, bytes, n_pieces > 1 ? RDZV_CHUNK : 10));
    for (unsigned i = 1; i < from; i++)
        put(f, rdzv_key_of_piece(key, first, slot, i), rdzv_piece_encode(NULL, bytes, 100));
}

static void fill_store(struct fixture *f)
{
    char name[16];

    put(f, "rdzv/net/job", strdup("{\"port\":29600,\"run\":3,\"ended\":false,\"heads\":true}"));
    for (unsigned i = 0; i < SHORT_BLOBS; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        put_blob(f, name, 1, 1);
    }
    put_blob(f, "long", LONG_PIECES, LONG_PIECES);
    put_blob(f, "a piece is missing", LONG_PIECES, 4);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct ip_addr member = {{1}};

    f = (struct fixture){.store = sample_late_open(7, 0)};
    assert_int_equal(uv_loop_init(&f.loop), 0);
    (void)uv_timer_init(&f.loop, &f.wake);
    (void)uv_timer_start(&f.wake, on_wake, 2, 2);
    (void)uv_poll_init(&f.loop, &f.answers, store_fd(f.store));
    (void)uv_poll_start(&f.answers, UV_READABLE, on_answers);
    fill_store(&f);
    f.env = (struct jobs_env){.loop = &f.loop,
        .store = f.store,
        .clock = clock_now,
        .records = {.ctx = &f, .damaged = on_damaged, .written = on_written},
        .seed = 1,
        .pace = CHANGE_PACE_INIT};
    list_init(&f.networks);
    assert_int_equal(job_loader_run(&f.networks, &f.env, &f.e), 0);
    f.net = job_network_find(&f.networks, "net");
    f.job = job_network_find_job(f.net, "job");
    job_host_init(&f.host, f.net);
    job_host_add_member(&f.host, &member);
    /* As if the job's port was opened there. */
    f.net->is_served = true;
    f.job->ports.fds[0] = dup(STDERR_FILENO);
    f.host.start_at = clock_now();
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    job_host_end(&f->host, clock_now());
    free(f->host.members);
    store_wait(f->store);
    uv_close((uv_handle_t *)&f->wake, NULL);
    uv_close((uv_handle_t *)&f->answers, NULL);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    job_network_free(f->net);
    store_free(f->store);
    return uv_loop_close(&f->loop);
}

/* As jobs.c does it. */
static void turn(struct fixture *f)
{
    if (job_network_due(f->net) <= clock_now())
        job_network_commit(f->net, clock_now());
    job_host_turn(&f->host, clock_now());
    (void)uv_run(&f->loop, UV_RUN_ONCE);
}

/* Until a process was handed that many sockets; @n_restarts: at least so many have ended before. */
static void run_until_handed(struct fixture *f, unsigned n, unsigned n_restarts)
{
    nsec_t deadline = clock_now() + 60 * NSEC_PER_SEC;

    while (f->net->counts_now.n_accepts_deferred != n || f->host.n_restarts < n_restarts) {
        assert_true(clock_now() < deadline);
        turn(f);
    }
}

/* What the process has counted, as struct rdzv_wire has it. */
static void check_counts(const struct fixture *f, unsigned n_pieces)
{
    assert_int_equal(f->net->counts_now.n_store_requests, n_pieces);
    assert_int_equal(f->net->counts_now.n_etcd_requests, f->job->number);
    assert_int_equal(f->net->counts_now.n_hung_up, f->host.n_members);
}

/* A process has no socket before it was told of all that was kept; nor has the one after it. */
static void test_all_of_it_first(void **state)
{
    struct fixture *f = *state;

    run_until_handed(f, 1, 0);
    check_counts(f, SHORT_BLOBS + LONG_PIECES);
    assert_int_equal(f->n_damaged, 1);
    rdzv_child_kill(f->host.child);
    run_until_handed(f, 1, 1);
    check_counts(f, SHORT_BLOBS + LONG_PIECES);
    assert_int_equal(f->host.n_restarts, 1);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 1);
}

/* A port that is opened later is handed over later, and so is another job's. */
static void test_what_comes_later(void **state)
{
    static const struct rdzv_job_record record = {.port = 29700, .run = 1, .has_heads = true};
    struct fixture *f = *state;
    struct ip_addr member = {{2}};
    struct job *other;

    run_until_handed(f, 1, 0);
    f->job->ports.fds[1] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    run_until_handed(f, 2, 0);
    other = job_network_add(f->net, "other", &record, clock_now());
    other->ports.fds[0] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    job_host_add_member(&f->host, &member);
    f->job = other;
    run_until_handed(f, 3, 0);
    check_counts(f, SHORT_BLOBS + LONG_PIECES);
    assert_int_equal(f->host.n_members, 2);
    job_host_remove_member(&f->host, &member);
    assert_int_equal(f->host.n_members, 1);
}

/* A run that begins while its job is told is told so, and nothing of the former is served. */
static void test_a_run_begins_meanwhile(void **state)
{
    struct fixture *f = *state;

    while (!f->host.is_behind)
        turn(f);
    job_network_begin_run(f->job, 4, clock_now());
    run_until_handed(f, 1, 0);
    assert_true(f->net->counts_now.n_store_requests < SHORT_BLOBS);
    for (unsigned i = 0; i < 100; i++)
        job_network_sweep(f->net, clock_now());
    assert_int_equal(f->host.n_restarts, 0);
}

/* The store loses answers: a process is not served with less, but the next is told it all. */
static void test_a_store_that_loses(void **state)
{
    struct fixture *f = *state;
    nsec_t deadline = clock_now() + 60 * NSEC_PER_SEC;

    sample_late_set_loss(f->store, 100);
    while (f->host.n_restarts < 2) {
        assert_true(clock_now() < deadline);
        turn(f);
    }
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 0);
    sample_late_set_loss(f->store, 0);
    run_until_handed(f, 1, 2);
    check_counts(f, SHORT_BLOBS + LONG_PIECES);
}

/* A process that is told to end says what it has to say, and no other is started. */
static void test_the_end(void **state)
{
    struct fixture *f = *state;

    run_until_handed(f, 1, 0);
    job_host_stop(&f->host);
    job_host_end(&f->host, clock_now() + 30 * NSEC_PER_SEC);
    assert_null(f->host.child);
    assert_int_equal(f->host.ended_pid, 0);
    /* Said after RDZV_WIRE_END. */
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 100);
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
}

/* ---- as a process --------------------------------------------------------------------------- */

static void count(const struct rdzv_wire *m, int fd)
{
    static struct rdzv_wire counts = {.type = RDZV_WIRE_COUNTS};

    if (m->type == RDZV_WIRE_JOB)
        counts.n_etcd_requests = m->job;
    counts.n_store_requests += m->type == RDZV_WIRE_LOAD;
    counts.n_hung_up += m->type == RDZV_WIRE_MEMBER;
    if (m->type == RDZV_WIRE_LISTENER)
        counts.n_accepts_deferred++;
    if (m->type == RDZV_WIRE_END)
        counts.n_accepts_deferred = 100;
    if (m->type == RDZV_WIRE_LISTENER || m->type == RDZV_WIRE_END)
        sample_rdzv_say(&counts);
    if (m->type == RDZV_WIRE_END)
        _exit(0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_comes_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_begins_meanwhile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_store_that_loses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end, set_up, tear_down),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return sample_rdzv_run(count);
    if (emulated_lacks("way for a program to start itself"))
        return EMULATED_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
