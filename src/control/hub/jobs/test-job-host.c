/*
 * test-job-host.c - what a rendezvous process is told, and by when, on stores that are quick or
 * late.
 *
 * Started as `test-hub-job-host rendezvous` it is such a process itself: one that counts what it is
 * told, and says how much that was whenever it is handed a socket (see take()).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
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
#include "test/support/captured_log.h"
#include "test/support/emulated.h"
#include "test/support/sample_late.h"
#include "test/support/sample_rdzv.h"
#include "test/support/store_now.h"

/* Blobs of one piece, and the pieces of one more. */
#define SHORT_BLOBS 300
#define LONG_PIECES 9

/* Bytes of the first, and of each piece of the other but its first one. */
#define SHORT_BYTES 10
#define PIECE_BYTES 100

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
    char damaged[RDZV_KEY_MAX + 128]; /* the last one: its key, and why */
    struct err e;
};

/* A member that has the process say a few blobs: see say_blobs(). */
static const struct ip_addr cue = {{9, [15] = 100}};

/* The time of a host to which a test gives it. */
static nsec_t test_now;

static nsec_t test_clock(void)
{
    return test_now;
}

static void on_damaged(void *ctx, const char *key, const char *why)
{
    struct fixture *f = ctx;

    f->n_damaged++;
    (void)snprintf(f->damaged, sizeof(f->damaged), "%s: %s", key, why);
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

/* A blob of that run, of bytes that begin with its name. The pieces from @from on are not there. */
static void put_blob(
    struct fixture *f, uint32_t run, const char *name, unsigned n_pieces, unsigned from)
{
    uint8_t bytes[RDZV_CHUNK] = {0};
    char slot = n_pieces > 1 ? RDZV_SLOT_A : RDZV_SLOT_NONE;
    struct rdzv_head head = {.run = run, .slot = slot, .n_pieces = n_pieces};
    struct rdzv_hash hash = rdzv_hash_of(name, strlen(name));
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];

    (void)snprintf((char *)bytes, sizeof(bytes), "%s", name);
    (void)rdzv_key_of_blob(first, RDZV_KEY_ENTRY, "net", "job", &hash);
    put(f, first, rdzv_piece_encode(&head, bytes, n_pieces > 1 ? RDZV_CHUNK : SHORT_BYTES));
    for (unsigned i = 1; i < from; i++)
        put(f, rdzv_key_of_piece(key, first, slot, i), rdzv_piece_encode(NULL, bytes, PIECE_BYTES));
}

/* The key of a piece of it. */
static const char *key_of(const char *name, unsigned piece, char buf[static RDZV_KEY_MAX])
{
    struct rdzv_hash hash = rdzv_hash_of(name, strlen(name));
    char first[RDZV_KEY_MAX];

    (void)rdzv_key_of_blob(first, RDZV_KEY_ENTRY, "net", "job", &hash);
    return rdzv_key_of_piece(buf, first, RDZV_SLOT_A, piece);
}

static void fill_store(struct fixture *f)
{
    char name[16];

    put(f, "rdzv/net/job", strdup("{\"port\":29600,\"run\":3,\"ended\":false,\"heads\":true}"));
    for (unsigned i = 0; i < SHORT_BLOBS; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        put_blob(f, 3, name, 1, 1);
    }
    put_blob(f, 3, "long", LONG_PIECES, LONG_PIECES);
    put_blob(f, 3, "a piece is missing", LONG_PIECES, 4);
    put_blob(f, 2, "of the run before", 1, 1);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct ip_addr member = {{1, [15] = 1}};

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
    f.net->address4 = ip_addr_v4((const uint8_t[4]){10, 0, 0, 1});
    f.net->address6 = (struct ip_addr){{0xfd, [15] = 1}};
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

#define run_until(condition)                                                                       \
    do {                                                                                           \
        nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;                                         \
        while (!(condition)) {                                                                     \
            assert_true(clock_now() < deadline);                                                   \
            turn(f);                                                                               \
        }                                                                                          \
    } while (0)

/* Until a process was handed that many sockets; @n_restarts: at least so many have ended before. */
static void run_until_handed(struct fixture *f, unsigned n, unsigned n_restarts)
{
    run_until(f->net->counts_now.n_accepts_deferred == n && f->host.n_restarts >= n_restarts);
}

/* What the process was told of a job, and that these are its members. */
static void check_told(const struct fixture *f, const struct job *job, const char *words,
    unsigned n_blobs, unsigned n_bytes)
{
    unsigned sum = 0;

    assert_string_equal(job->facts.last_limit, words);
    assert_int_equal(job->facts.n_refused, 0);
    assert_int_equal(job->facts.n_keys, n_blobs);
    assert_int_equal(job->facts.n_bytes, n_bytes);
    for (size_t i = 0; i < f->host.n_members; i++)
        sum += f->host.members[i].b[15];
    assert_int_equal(f->net->counts_now.n_hung_up, f->host.n_members);
    assert_int_equal(f->net->counts_now.n_etcd_requests, sum);
}

/* The same of all that fill_store() has written. */
static void check_all_told(const struct fixture *f)
{
    check_told(f, f->job, "net 10.0.0.1 fd00::1: job 29600 29600", SHORT_BLOBS + 1,
        SHORT_BLOBS * SHORT_BYTES + RDZV_CHUNK + (LONG_PIECES - 1) * PIECE_BYTES);
    assert_int_equal(f->net->counts_now.n_store_requests, SHORT_BLOBS + LONG_PIECES);
}

/* A process has no socket before it was told of all that was kept; nor has the one after it. */
static void test_all_of_it_first(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];
    char damaged[RDZV_KEY_MAX + 128];

    run_until_handed(f, 1, 0);
    check_all_told(f);
    assert_int_equal(f->n_damaged, 1);
    (void)snprintf(damaged, sizeof(damaged), "%s: a piece of it is missing",
        key_of("a piece is missing", 4, key));
    assert_string_equal(f->damaged, damaged);
    rdzv_child_kill(f->host.child);
    run_until_handed(f, 1, 1);
    check_all_told(f);
    assert_int_equal(f->host.n_restarts, 1);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 1);
}

/* Of a blob that cannot be understood it is said why, and the process is told nothing of it. */
static void test_a_piece_that_is_damaged(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];
    char damaged[RDZV_KEY_MAX + 128];

    put(f, key_of("a piece is missing", 2, key), strdup("\"?\""));
    run_until_handed(f, 1, 0);
    check_all_told(f);
    assert_int_equal(f->n_damaged, 1);
    (void)snprintf(damaged, sizeof(damaged), "%s: not a piece of a rendezvous, in base64", key);
    assert_string_equal(f->damaged, damaged);
}

/* Few are read at once, and that it is told of a long one before the next keeps memory small. */
static void test_few_are_read_at_once(void **state)
{
    struct fixture *f = *state;

    job_host_turn(&f->host, clock_now());
    assert_in_range(store_pending(f->store), 1, 16 + 2 * LONG_PIECES);
    run_until_handed(f, 1, 0);
    check_all_told(f);
}

/* What the store has not answered yet when a process is ended is nothing to the next one. */
static void test_ended_while_it_is_told(void **state)
{
    struct fixture *f = *state;

    job_host_turn(&f->host, clock_now());
    assert_true(store_pending(f->store) > 0);
    job_host_kill(&f->host);
    assert_null(f->host.child);
    assert_int_equal(f->host.start_at, NSEC_NEVER);
    store_wait(f->store);
    f->host.start_at = clock_now();
    run_until_handed(f, 1, 0);
    check_all_told(f);
    assert_int_equal(f->host.n_restarts, 0);
    assert_int_equal(f->n_damaged, 1);
}

/* A port that is opened later is handed over later, and so is another job's. */
static void test_what_comes_later(void **state)
{
    static const struct rdzv_job_record record = {.port = 29700, .run = 1, .has_heads = true};
    struct fixture *f = *state;
    struct ip_addr second = {{2, [15] = 2}};
    struct ip_addr third = {{3, [15] = 4}};
    struct job *other;

    run_until_handed(f, 1, 0);
    f->job->ports.fds[1] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    run_until_handed(f, 2, 0);
    other = job_network_add(f->net, JOBS_DEFAULT, &record, clock_now());
    other->ports.fds[JOB_PORTS_MAX - 1] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    job_host_add_member(&f->host, &second);
    job_host_add_member(&f->host, &third);
    run_until_handed(f, 3, 0);
    check_told(f, other, "net 10.0.0.1 fd00::1: default 29700 2379", 0, 0);
    assert_int_equal(f->net->counts_now.n_hung_up, 3);
    job_host_remove_member(&f->host, &second);
    run_until(f->net->counts_now.n_hung_up == 2);
    assert_int_equal(f->net->counts_now.n_etcd_requests, 1 + 4);
    /* The next one is told of those that are left. */
    rdzv_child_kill(f->host.child);
    run_until_handed(f, 3, 1);
    check_all_told(f);
    assert_int_equal(f->net->counts_now.n_etcd_requests, 1 + 4);
}

/* Messages for it are handed over in their order; without memory for one it is ended. */
static void test_messages_that_have_gathered(void **state)
{
    struct fixture *f = *state;

    run_until_handed(f, 1, 0);
    job_network_sync(f->net, 5, clock_now());
    job_network_sync(f->net, 6, clock_now());
    f->job->ports.fds[1] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    run_until_handed(f, 2 + 1000 * 5 + 1000 * 6, 0);
    assert_int_equal(f->net->to_process.len, 0);
    f->net->to_process.failed = true;
    run_until_handed(f, 2, 1);
    check_all_told(f);
}

/* A run that begins while its job is told is told so, and nothing of the former is served. */
static void test_a_run_begins_meanwhile(void **state)
{
    struct fixture *f = *state;

    job_host_turn(&f->host, clock_now());
    assert_true(f->host.is_behind);
    job_network_begin_run(f->job, 4, clock_now());
    run_until_handed(f, 1, 0);
    assert_int_equal(f->net->counts_now.n_store_requests, 0);
    assert_int_equal(f->n_damaged, 0);
    for (unsigned i = 0; i < 100; i++)
        job_network_sweep(f->net, clock_now());
    assert_int_equal(f->host.n_restarts, 0);
}

/* The store loses answers: a process is not served with less, but the next is told it all. */
static void test_a_store_that_loses(void **state)
{
    struct fixture *f = *state;

    sample_late_set_loss(f->store, 100);
    run_until(f->host.n_restarts >= 2);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 0);
    sample_late_set_loss(f->store, 0);
    run_until_handed(f, 1, 2);
    check_all_told(f);
}

/* That the process has ended is noticed at @at, and it is waited for. */
static void await_end(struct fixture *f, nsec_t at)
{
    nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;

    test_now = at;
    while (f->host.child || f->host.ended_pid > 0) {
        assert_true(clock_now() < deadline);
        job_host_turn(&f->host, at);
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_false(f->net->has_process);
    assert_false(f->host.is_behind || f->host.is_writable || f->host.is_waiting);
}

static void on_nothing(void *ctx, const struct store_answer *a)
{
}

/* The job has nothing but one long blob, of run 4. */
static void keep_one_long_blob(struct fixture *f)
{
    struct rdzv_key k = {.kind = RDZV_KEY_ENTRY, .hash = rdzv_hash_of("only", 4)};
    char key[RDZV_KEY_MAX];

    job_network_begin_run(f->job, 4, clock_now());
    put_blob(f, 4, "only", LONG_PIECES, LONG_PIECES);
    (void)rdzv_key_of_blob(key, RDZV_KEY_ENTRY, "net", "job", &k.hash);
    assert_int_equal(
        job_blobs_load(&f->job->blobs, &k, key, "\"4.a.9.AAAA\"", clock_now(), &f->e), 0);
}

/* The store takes no more requests: neither none, nor a few of a blob's pieces are enough. */
static void test_a_store_that_takes_no_more(void **state)
{
    struct fixture *f = *state;

    f->env.clock = test_clock;
    keep_one_long_blob(f);
    for (unsigned room = 0; room < LONG_PIECES; room += LONG_PIECES - 1) {
        while (store_pending(f->store) < STORE_PENDING_MAX - room)
            assert_int_equal(store_get(f->store, "nothing", on_nothing, NULL, &f->e), 0);
        job_host_turn(&f->host, f->host.start_at);
        assert_non_null(f->host.child);
        store_wait(f->store);
        await_end(f, f->host.started_at);
    }
    f->env.clock = clock_now;
    assert_int_equal(f->host.n_restarts, 2);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 0);
    run_until_handed(f, 1, 2);
    check_told(f, f->job, "net 10.0.0.1 fd00::1: job 29600 29600", 1,
        RDZV_CHUNK + (LONG_PIECES - 1) * PIECE_BYTES);
    assert_int_equal(f->n_damaged, 0);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* A blob of several pieces is not begun before all that was said is on the disk: its pieces may go
 * where others are still to be deleted. */
static void test_a_long_blob_waits(void **state)
{
    struct fixture *f = *state;
    nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;
    const struct blob_totals *totals = &f->net->totals;
    size_t n_before = totals->n_entries - totals->n_garbage;

    run_until_handed(f, 1, 0);
    job_host_add_member(&f->host, &cue);
    while (!f->host.is_waiting) {
        assert_true(clock_now() < deadline);
        job_host_turn(&f->host, clock_now());
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(change_queue_count(&f->net->queue), 2);
    job_host_turn(&f->host, clock_now());
    assert_true(f->host.is_waiting);
    assert_null(f->net->upload.to);
    while (totals->n_entries - totals->n_garbage < n_before + 3) {
        assert_true(clock_now() < deadline);
        turn(f);
        assert_false(f->host.is_waiting && f->net->upload.to);
    }
    assert_int_equal(f->host.n_restarts, 0);
}

/* With too much garbage nothing is taken until some of it is deleted, and nothing is lost. */
static void test_garbage_is_deleted_first(void **state)
{
    struct fixture *f = *state;
    size_t n_garbage = f->net->totals.n_garbage;
    nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;

    run_until_handed(f, 1, 0);
    f->job->ports.fds[1] = dup(STDERR_FILENO);
    f->net->has_updates = true;
    f->net->totals.n_garbage = 8192;
    while (!rdzv_child_has_unread(f->host.child)) {
        assert_true(clock_now() < deadline);
        turn(f);
    }
    for (unsigned i = 0; i < 5; i++)
        turn(f);
    assert_int_equal(f->net->counts_now.n_accepts_deferred, 1);
    f->net->totals.n_garbage = 8191;
    run_until_handed(f, 2, 0);
    f->net->totals.n_garbage = n_garbage;
    /* One that is ended keeps nobody waiting. */
    f->host.is_waiting = f->host.is_behind = f->host.is_writable = true;
    job_host_kill(&f->host);
    assert_false(f->host.is_waiting || f->host.is_behind || f->host.is_writable);
    assert_null(f->host.reader);
}

/* ---- its beginning and its end -------------------------------------------------------------- */

/* The next one is started at @at, and not before. */
static void start(struct fixture *f, nsec_t at)
{
    assert_int_equal(job_host_due(&f->host), at);
    job_host_turn(&f->host, at - 1);
    assert_null(f->host.child);
    job_host_turn(&f->host, at);
    assert_non_null(f->host.child);
    assert_int_equal(f->host.started_at, at);
    assert_true(f->net->has_process);
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
}

static void lose(struct fixture *f, nsec_t at)
{
    rdzv_child_kill(f->host.child);
    await_end(f, at);
}

/* One that ends is started again less and less often, and at once after it was well for long. */
static void test_when_the_next_one_is_started(void **state)
{
    static const nsec_t waits[] = {50, 100, 200, 400};
    struct fixture *f = *state;
    nsec_t at = f->host.start_at;
    struct captured_log said;

    f->env.clock = test_clock;
    start(f, at);
    said = captured_log_begin();
    lose(f, at);
    captured_log_end(&said,
        "warning: weft: rendezvous of network \"net\": its process has ended; it is started again\n"
        "info: weft: rendezvous of network \"net\": its process was ended by signal 9\n");
    f->host.backoff = 0;
    f->host.start_at = at;
    for (unsigned i = 0; i < 4; i++) {
        start(f, at);
        lose(f, at + 1);
        at += 1 + waits[i] * NSEC_PER_MSEC;
    }
    f->host.backoff = 20 * NSEC_PER_SEC;
    start(f, at);
    lose(f, at + 1);
    at += 1 + 30 * NSEC_PER_SEC;
    start(f, at);
    lose(f, at + 60 * NSEC_PER_SEC);
    at += 90 * NSEC_PER_SEC;
    start(f, at);
    lose(f, at + 60 * NSEC_PER_SEC + 1);
    at += 60 * NSEC_PER_SEC + 1 + 50 * NSEC_PER_MSEC;
    start(f, at);
    assert_int_equal(f->host.n_restarts, 8);
}

/* None is started while changes wait, where the network is not served, or while the one before it
 * is not gone. */
static void test_when_none_is_started(void **state)
{
    struct fixture *f = *state;
    nsec_t now = f->host.start_at;
    pid_t still = fork();

    if (still == 0) {
        (void)pause();
        _exit(0);
    }
    f->net->is_served = false;
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
    f->net->is_served = true;
    assert_int_equal(change_queue_put(&f->net->queue, "rdzv/net/x", NULL, now), 0);
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
    assert_int_equal(job_network_commit_all(f->net, &f->e), 0);
    assert_int_equal(job_host_due(&f->host), now);
    f->host.ended_pid = still;
    job_host_turn(&f->host, now);
    assert_null(f->host.child);
    assert_int_equal(f->host.ended_pid, still);
    assert_int_equal(job_host_due(&f->host), now + 50 * NSEC_PER_MSEC);
    assert_int_equal(kill(still, SIGKILL), 0);
    run_until(f->host.ended_pid == 0);
    run_until_handed(f, 1, 0);
}

/* One that cannot be started is tried again after longer and longer. */
static void test_one_that_cannot_be_started(void **state)
{
    struct fixture *f = *state;
    nsec_t now = f->host.start_at;
    struct rlimit before;
    struct rlimit none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    job_host_turn(&f->host, now);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_null(f->host.child);
    assert_null(f->host.reader);
    assert_int_equal(f->host.start_at, now + 50 * NSEC_PER_MSEC);
    assert_int_equal(f->host.n_restarts, 0);
    run_until_handed(f, 1, 0);
}

/* A process that is told to end says what it has to say, and no other is started. */
static void test_the_end(void **state)
{
    struct fixture *f = *state;

    run_until_handed(f, 1, 0);
    job_network_sync(f->net, 7, clock_now());
    job_host_stop(&f->host);
    assert_int_equal(f->host.start_at, NSEC_NEVER);
    assert_true(f->host.is_ending);
    job_host_end(&f->host, clock_now() + 30 * NSEC_PER_SEC);
    assert_null(f->host.child);
    assert_int_equal(f->host.ended_pid, 0);
    assert_int_equal(f->host.n_restarts, 0);
    /* It was waited for. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    /* Said after RDZV_WIRE_END, which came after all else. */
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 1 + 7000 + 100);
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
    /* It may be served again. */
    f->host.start_at = clock_now();
    run_until_handed(f, 1, 0);
    check_all_told(f);
    assert_false(f->host.is_ending);
}

/* The end in the loop, of a network that is not served any more, is no loss. */
static void test_the_end_of_the_service(void **state)
{
    struct fixture *f = *state;
    struct captured_log said;

    run_until_handed(f, 1, 0);
    said = captured_log_begin();
    job_host_stop(&f->host);
    run_until(!f->host.child && f->host.ended_pid == 0);
    captured_log_end(&said, "");
    assert_int_equal(f->host.n_restarts, 0);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 101);
    assert_int_equal(job_host_due(&f->host), NSEC_NEVER);
}

/* One that does not end is killed at the deadline. */
static void test_one_that_does_not_end(void **state)
{
    struct fixture *f = *state;

    run_until_handed(f, 1, 0);
    assert_int_equal(kill(rdzv_child_pid(f->host.child), SIGSTOP), 0);
    job_host_stop(&f->host);
    job_host_end(&f->host, clock_now());
    assert_null(f->host.child);
    assert_int_equal(f->host.ended_pid, 0);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 1);
}

/* At the end its last words are taken though there is no room for them at first. */
static void test_last_words_without_room(void **state)
{
    struct fixture *f = *state;
    char key[32];

    run_until_handed(f, 1, 0);
    job_host_stop(&f->host);
    for (unsigned i = 0; i < CHANGE_QUEUE_MAX; i++) {
        (void)snprintf(key, sizeof(key), "rdzv/net/x/%u", i);
        assert_int_equal(change_queue_put(&f->net->queue, key, NULL, clock_now()), 0);
    }
    job_host_end(&f->host, clock_now() + 30 * NSEC_PER_SEC);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 101);
}

/* ... and so they are though much of former runs was not deleted yet. */
static void test_last_words_and_garbage(void **state)
{
    struct fixture *f = *state;
    struct rdzv_key k = {.kind = RDZV_KEY_ENTRY};

    run_until_handed(f, 1, 0);
    for (unsigned i = 0; i < 8192; i++) {
        char key[RDZV_KEY_MAX];

        k.hash = rdzv_hash_of(&i, sizeof(i));
        (void)rdzv_key_of_blob(key, RDZV_KEY_ENTRY, "net", "job", &k.hash);
        assert_int_equal(
            job_blobs_load(&f->job->blobs, &k, key, "\"2.-.1.AAAA\"", clock_now(), &f->e), 0);
    }
    job_host_stop(&f->host);
    job_host_end(&f->host, clock_now() + 30 * NSEC_PER_SEC);
    assert_int_equal(f->net->counts_before.n_accepts_deferred, 101);
}

/* ---- as a process --------------------------------------------------------------------------- */

/* COUNTS: pieces of blobs; the sum of the last bytes of the members' addresses; members; and
 * sockets, with a thousand times what was SAVED and a hundred for END. */
static struct rdzv_wire counts = {.type = RDZV_WIRE_COUNTS};

/* What the jobs are told, by their numbers: FACTS with the complete blobs, their bytes, how many
 * pieces are not of a blob of that name or not as many as it has, and the words of NETWORK and of
 * JOB. */
static struct {
    struct rdzv_wire facts;
    char words[1024];
} told[8];

static char network[512];

static void hear_network(const struct rdzv_wire *m)
{
    char address4[IP_ADDR_TEXT_MAX];
    char address6[IP_ADDR_TEXT_MAX];

    ip_addr_format(&m->address, address4);
    ip_addr_format(&m->address6, address6);
    (void)snprintf(network, sizeof(network), "%.*s %s %s", (int)m->len, (const char *)m->data,
        address4, address6);
}

static void hear_job(const struct rdzv_wire *m)
{
    struct rdzv_wire *facts = &told[m->job].facts;
    char *words = told[m->job].words;

    (void)snprintf(words, sizeof(told->words), "%s: %.*s %u %u", network, (int)m->len,
        (const char *)m->data, m->port, m->etcd_port);
    *facts = (struct rdzv_wire){.type = RDZV_WIRE_FACTS,
        .job = m->job,
        .run = m->run,
        .data = (const uint8_t *)words,
        .len = strlen(words)};
}

static void hear_blob(const struct rdzv_wire *m)
{
    static unsigned n_pieces; /* of the present blob */
    struct rdzv_wire *facts = &told[m->job].facts;
    struct rdzv_hash hash = rdzv_hash_of(m->data, strnlen((const char *)m->data, m->len));

    counts.n_store_requests++;
    n_pieces++;
    facts->n_bytes += m->len;
    if (!m->has_more) {
        facts->n_keys++;
        facts->n_refused += n_pieces != (m->len == SHORT_BYTES ? 1 : LONG_PIECES);
        n_pieces = 0;
    }
    if (memcmp(&hash, &m->hash, sizeof(hash)) != 0 || m->run != facts->run ||
        m->kind != RDZV_KEY_ENTRY)
        facts->n_refused++;
}

static void say_blob(const char *name, unsigned n_pieces, unsigned piece, size_t len)
{
    static const uint8_t bytes[RDZV_CHUNK];

    sample_rdzv_say(&(struct rdzv_wire){.type = RDZV_WIRE_PUT,
        .job = told[1].facts.job,
        .run = told[1].facts.run,
        .kind = RDZV_KEY_ENTRY,
        .hash = rdzv_hash_of(name, strlen(name)),
        .n_pieces = (uint16_t)n_pieces,
        .piece = (uint16_t)piece,
        .data = bytes,
        .len = len});
}

/* Two short ones, and one of three pieces. */
static void say_blobs(void)
{
    say_blob("one", 1, 0, 5);
    say_blob("two", 1, 0, 5);
    say_blob("three", 3, 1, RDZV_CHUNK);
    say_blob("three", 3, 2, 5);
    say_blob("three", 3, 0, RDZV_CHUNK);
}

static void hear_member(const struct rdzv_wire *m, int sign)
{
    counts.n_hung_up += (uint64_t)sign;
    counts.n_etcd_requests += (uint64_t)(sign * m->address.b[15]);
    if (sign < 0)
        sample_rdzv_say(&counts);
    if (ip_addr_equal(&m->address, &cue))
        say_blobs();
}

static void take(const struct rdzv_wire *m, int fd)
{
    if (m->type == RDZV_WIRE_NETWORK)
        hear_network(m);
    else if (m->type == RDZV_WIRE_JOB)
        hear_job(m);
    else if (m->type == RDZV_WIRE_CLEAR)
        told[m->job].facts.run = m->run;
    else if (m->type == RDZV_WIRE_LOAD)
        hear_blob(m);
    else if (m->type == RDZV_WIRE_MEMBER || m->type == RDZV_WIRE_NO_MEMBER)
        hear_member(m, m->type == RDZV_WIRE_MEMBER ? 1 : -1);
    else if (m->type == RDZV_WIRE_SAVED)
        counts.n_accepts_deferred += 1000 * m->seq;
    if (m->type == RDZV_WIRE_LISTENER) {
        counts.n_accepts_deferred++;
        sample_rdzv_say(&told[m->job].facts);
        sample_rdzv_say(&counts);
    }
    if (m->type == RDZV_WIRE_END) {
        counts.n_accepts_deferred += 100;
        sample_rdzv_say(&counts);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_piece_that_is_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_few_are_read_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ended_while_it_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_comes_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_messages_that_have_gathered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_begins_meanwhile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_store_that_loses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_store_that_takes_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_blob_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_garbage_is_deleted_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_the_next_one_is_started, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_none_is_started, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_cannot_be_started, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_service, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_does_not_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_last_words_without_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_last_words_and_garbage, set_up, tear_down),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return sample_rdzv_run(take);
    if (emulated_lacks("way for a program to start itself"))
        return EMULATED_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
