/*
 * test-jobs.c - what a hub does with what a rendezvous process says, be it well or hostile.
 *
 * Started as `test-hub-jobs rendezvous` it is such a process itself, one that says no message.
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

#include "backends/store_open.h"
#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_host.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/job_runs.h"
#include "hub/jobs/jobs.h"
#include "os/clock.h"
#include "os/process.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "store/store.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

/* Pieces of a blob that takes several commits. */
#define MANY 25

struct fixture {
    uv_loop_t loop;
    struct store *store;
    struct jobs_env env;
    struct list networks;
    struct job_network *net;
    struct job *job;
    unsigned n_broken;
    char broken[RDZV_KEY_MAX]; /* the key of the last one */
    char why[512];             /* it cannot be understood */
    struct err e;
};

/* The time is what a test says that it is. */
static nsec_t test_now = NSEC_PER_SEC;

static nsec_t test_clock(void)
{
    return test_now;
}

static void on_damaged(void *ctx, const char *key, const char *why)
{
    struct fixture *f = ctx;

    f->n_broken++;
    (void)snprintf(f->broken, sizeof(f->broken), "%s", key);
    (void)snprintf(f->why, sizeof(f->why), "%s", why);
}

static void on_written(void *ctx, const char *key)
{
}

static void open_jobs(struct fixture *f)
{
    f->env = (struct jobs_env){.loop = &f->loop,
        .store = f->store,
        .clock = test_clock,
        .records = {.ctx = f, .damaged = on_damaged, .written = on_written},
        .seed = 1,
        .epoch = 2,
        .pace = CHANGE_PACE_INIT};
    list_init(&f->networks);
    assert_int_equal(job_loader_run(&f->networks, &f->env, &f->e), 0);
    f->net = job_network_find(&f->networks, "net");
    f->job = job_network_find_job(f->net, "job");
}

static void close_jobs(struct fixture *f)
{
    assert_int_equal(job_network_commit_all(f->net, &f->e), 0);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    job_network_free(f->net);
    assert_true(list_is_empty(&f->networks));
}

static void put_text(struct fixture *f, const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(f->store, &op, 1, 1, NULL, NULL, &f->e), 0);
}

static int set_up(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(store_open(&f.store, "memory:", clock_now(), &f.e), 0);
    put_text(&f, "rdzv/net/job", "{\"port\":29600,\"run\":3,\"ended\":false,\"heads\":true}");
    *state = &f;
    return 0;
}

static int set_up_late(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    assert_int_equal(uv_loop_init(&f.loop), 0);
    f.store = sample_late_open(3, 0);
    put_text(&f, "rdzv/net/job", "{\"port\":29600,\"run\":3,\"ended\":false,\"heads\":true}");
    *state = &f;
    return 0;
}

static void open_job(struct fixture *f)
{
    open_jobs(f);
    f->job->sent.number = f->job->number;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    store_free(f->store);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    return 0;
}

static int take_value(void *ctx, const struct store_item *item)
{
    *(char **)ctx = strdup(item->value);
    return 0;
}

/* Free it; NULL: it is not there. */
static char *value_of(struct fixture *f, const char *key)
{
    char *value = NULL;

    (void)store_now_get(f->store, key, take_value, &value, &f->e);
    return value;
}

static bool take(struct fixture *f, const struct rdzv_wire *m)
{
    return job_intake_take(f->net, m, test_now);
}

static bool is_saved(const struct fixture *f)
{
    return change_queue_is_empty(&f->net->queue);
}

static void save_all(struct fixture *f)
{
    assert_int_equal(job_network_commit_all(f->net, &f->e), 0);
}

/* The next commit begins: its time has come. */
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

static struct rdzv_wire put_of(const struct fixture *f, const char *name, unsigned n_pieces)
{
    return (struct rdzv_wire){.type = RDZV_WIRE_PUT,
        .job = f->job->number,
        .run = f->job->record.run,
        .kind = RDZV_KEY_ENTRY,
        .hash = rdzv_hash_of(name, strlen(name)),
        .n_pieces = (uint16_t)n_pieces,
        .data = (const uint8_t *)"bytes",
        .len = 5};
}

static bool say_piece(struct fixture *f, unsigned n_pieces, unsigned piece, char fill)
{
    static uint8_t bytes[RDZV_CHUNK];
    struct rdzv_wire m = put_of(f, "name", n_pieces);

    memset(bytes, fill, sizeof(bytes));
    m.piece = (uint16_t)piece;
    m.data = bytes;
    m.len = piece + 1 == n_pieces ? 100 : sizeof(bytes);
    return take(f, &m);
}

static void say_blob(struct fixture *f, unsigned n_pieces, char fill)
{
    for (unsigned i = 1; i < n_pieces; i++)
        assert_true(say_piece(f, n_pieces, i, fill));
    assert_true(say_piece(f, n_pieces, 0, fill));
}

static const char *key_of(const char *name, char buf[static RDZV_KEY_MAX])
{
    struct rdzv_hash hash = rdzv_hash_of(name, strlen(name));

    return rdzv_key_of_blob(buf, RDZV_KEY_ENTRY, "net", "job", &hash);
}

/* What all bytes of the blob are; 0: it is not there. It must be whole. */
static char read_blob(struct fixture *f)
{
    static uint8_t bytes[RDZV_CHUNK];
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];
    char *text = value_of(f, key_of("name", first));
    struct rdzv_head head;
    size_t len;
    char fill;

    if (!text)
        return 0;
    assert_int_equal(rdzv_piece_decode(&head, bytes, &len, text, &f->e), 0);
    fill = (char)bytes[0];
    free(text);
    for (unsigned i = 1; i < head.n_pieces; i++) {
        text = value_of(f, rdzv_key_of_piece(key, first, head.slot, i));
        assert_non_null(text);
        assert_int_equal(rdzv_piece_decode(NULL, bytes, &len, text, &f->e), 0);
        assert_int_equal(bytes[0], fill);
        assert_int_equal(bytes[len - 1], fill);
        free(text);
    }
    return fill;
}

static int count_key(void *ctx, const struct store_item *item)
{
    *(size_t *)ctx += 1;
    return 0;
}

static size_t count(struct fixture *f, const char *prefix)
{
    size_t n = 0;

    assert_int_equal(store_now_list(f->store, prefix, count_key, &n, NULL, &f->e), 0);
    return n;
}

/* Whenever the hub dies while a blob is written over another, one of the two is whole. */
static void test_blobs_stay_whole(void **state)
{
    struct fixture *f = *state;
    unsigned n_commits = 0;

    open_job(f);
    for (char fill = 'a'; fill < 'e'; fill++) {
        say_blob(f, fill % 2 ? MANY : MANY / 2, fill);
        while (!is_saved(f)) {
            char was = read_blob(f);

            assert_true(was == 0 || was == fill || was == fill - 1);
            commit_one(f);
            n_commits++;
        }
        assert_int_equal(read_blob(f), fill);
        assert_int_equal(count(f, "rdzv/net/job/"), fill % 2 ? MANY : MANY / 2);
    }
    assert_true(n_commits > 8);
    close_jobs(f);
}

/* The same on a store that is late and loses answers, of which none is believed. */
static void test_lost_answers(void **state)
{
    struct fixture *f = *state;
    unsigned n_failed = 0;

    open_job(f);
    for (char fill = 'a'; fill < 'i'; fill++) {
        say_blob(f, fill % 2 ? MANY : MANY / 2, fill);
        while (!is_saved(f)) {
            char was = read_blob(f);

            assert_true(was == 0 || was == fill || was == fill - 1);
            sample_late_set_loss(f->store, 3);
            commit_one(f);
            sample_late_set_loss(f->store, 0);
            n_failed += f->net->queue.is_failing;
        }
        assert_int_equal(read_blob(f), fill);
        assert_int_equal(count(f, "rdzv/net/job/"), fill % 2 ? MANY : MANY / 2);
    }
    assert_true(n_failed > 5);
    close_jobs(f);
}

/* What has changed while it was on its way is not lost when that has failed, nor done twice. */
static void test_changes_on_their_way(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];
    struct rdzv_wire m;
    char *text;

    open_job(f);
    for (unsigned round = 0; round < 40; round++) {
        m = put_of(f, "name", 1);
        assert_true(take(f, &m));
        sample_late_set_loss(f->store, 2);
        begin_commit(f);
        /* It is gone again, before its being there is on the disk. */
        m = put_of(f, "name", 1);
        m.type = RDZV_WIRE_DROP;
        assert_true(take(f, &m));
        store_wait(f->store);
        sample_late_set_loss(f->store, 0);
        save_all(f);
        text = value_of(f, key_of("name", key));
        assert_null(text);
        assert_int_equal(f->net->queue.bytes, 0);
        assert_int_equal(f->net->queue.by_key.n + f->net->queue.n_sent, 0);
    }
    close_jobs(f);
}

struct saved {
    unsigned n_good;
    unsigned n_bad;
};

static void on_saved(void *ctx, int r, const struct err *e)
{
    struct saved *saved = ctx;

    saved->n_good += r == 0;
    saved->n_bad += r != 0;
}

/* A run begins when that is on the disk, and not before; who waits hears which. */
static void test_a_run_begins(void **state)
{
    struct fixture *f = *state;
    struct saved saved = {.n_good = 0};
    struct job *job;

    open_job(f);
    for (unsigned i = 0; i < 60; i++) {
        uint32_t before = f->job->record.run;
        unsigned n_good = saved.n_good;

        test_now += JOBS_QUIET + 1;
        sample_late_set_loss(f->store, 2);
        assert_int_equal(
            job_runs_join(f->net, "job", "a", NULL, test_now, on_saved, &saved, &job, &f->e),
            JOBS_E_AGAIN);
        assert_int_equal(f->job->record.run, before);
        store_wait(f->store);
        sample_late_set_loss(f->store, 0);
        assert_null(f->job->save);
        assert_int_equal(f->job->record.run, before + (saved.n_good - n_good));
    }
    assert_int_equal(saved.n_good + saved.n_bad, 60);
    assert_true(saved.n_good > 10 && saved.n_bad > 10);
    close_jobs(f);
}

/* A process that dies in the middle of a blob leaves nothing of it. */
static void test_half_a_blob(void **state)
{
    struct fixture *f = *state;

    open_job(f);
    say_blob(f, 3, 'x');
    save_all(f);
    assert_true(say_piece(f, 5, 1, 'y'));
    assert_true(say_piece(f, 5, 2, 'y'));
    save_all(f);
    job_intake_end(f->net, test_now);
    save_all(f);
    assert_int_equal(read_blob(f), 'x');
    assert_int_equal(count(f, "rdzv/net/job/"), 3);
    close_jobs(f);
}

/* What a process says that is somebody's who wants more than that network's own records. */
static void test_a_hostile_process(void **state)
{
    struct fixture *f = *state;
    struct rdzv_wire m;

    open_job(f);
    for (enum rdzv_wire_type type = RDZV_WIRE_NETWORK; type <= RDZV_WIRE_END; type++)
        assert_false(take(f, &(struct rdzv_wire){.type = type}));
    /* A job that is not there, or not the network's; a run that is over, or to come. */
    m = put_of(f, "name", 1);
    m.job += 1000;
    assert_true(take(f, &m));
    m = put_of(f, "name", 1);
    m.run--;
    assert_true(take(f, &m));
    m.run += 2;
    assert_true(take(f, &m));
    /* One that it was not told of. */
    f->job->sent.number = 0;
    m = put_of(f, "name", 1);
    assert_false(take(f, &m));
    f->job->sent.number = f->job->number;
    assert_true(is_saved(f));
    /* Pieces out of order, of two blobs at once, too short, or with something between them. */
    assert_false(say_piece(f, 5, 2, 'x'));
    assert_false(say_piece(f, 5, 0, 'x'));
    assert_true(say_piece(f, 5, 1, 'x'));
    m = put_of(f, "other", 1);
    assert_false(take(f, &m));
    assert_false(take(f, &(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = 1}));
    m = put_of(f, "name", 5);
    m.piece = 2;
    assert_false(take(f, &m));
    job_intake_end(f->net, test_now);
    /* More than a network may have. */
    f->net->totals.n_bytes = JOB_BLOBS_BYTES_MAX - 4;
    m = put_of(f, "name", 1);
    assert_false(take(f, &m));
    f->net->totals.n_bytes = 0;
    f->net->totals.n_entries = JOB_BLOBS_MAX;
    assert_false(take(f, &m));
    f->net->totals.n_entries = 0;
    save_all(f);
    assert_int_equal(count(f, "rdzv/"), 1);
    close_jobs(f);
}

/* A blob whose run, or job, is over before all of it was said goes, and that is no fault. */
static void test_a_run_is_over_within_a_blob(void **state)
{
    struct fixture *f = *state;
    struct rdzv_wire m;

    open_job(f);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(say_piece(f, 5, 1, 'x'));
        m = put_of(f, "name", 5);
        m.piece = 2;
        if (i == 0)
            m.run--;
        else
            f->job->is_forgotten = true;
        assert_true(take(f, &m));
        assert_null(f->net->upload.to);
        f->job->is_forgotten = false;
    }
    save_all(f);
    assert_int_equal(count(f, "rdzv/net/job/"), 0);
    /* The blob that is being said is forgotten with its run or its job, and no other one. */
    assert_true(say_piece(f, 5, 1, 'x'));
    job_network_begin_run(f->job, 4, test_now);
    assert_null(f->net->upload.to);
    assert_true(say_piece(f, 5, 1, 'x'));
    job_network_begin_run(job_network_add(f->net, "other", &f->job->record, test_now), 5, test_now);
    assert_ptr_equal(f->net->upload.to, &f->job->blobs);
    job_network_forget_job(f->job, test_now);
    assert_null(f->net->upload.to);
    close_jobs(f);
}

/* How a job is, as far as that may be believed. */
static void test_what_is_said_of_a_job(void **state)
{
    struct fixture *f = *state;
    const struct job_facts *facts;
    struct ip_addr member = {{1}};
    struct rdzv_wire m;

    open_job(f);
    facts = &f->job->facts;
    f->net->address4 = (struct ip_addr){{4}};
    f->net->address6 = (struct ip_addr){{6}};
    f->net->own_member = (struct ip_addr){{9}};
    test_now = 100 * NSEC_PER_SEC + 7;
    f->job->heard_at = 0;
    m = (struct rdzv_wire){.type = RDZV_WIRE_FACTS,
        .job = f->job->number,
        .run = f->job->record.run,
        .n_connections = 7,
        .n_members = 1,
        .address = member,
        .quiet_ms = 1500,
        .n_keys = 3,
        .n_bytes = 400,
        .n_refused = 6,
        .data = (const uint8_t *)"limit",
        .len = 5};
    assert_true(take(f, &m));
    assert_int_equal(facts->n_connections, 7);
    assert_int_equal(facts->n_members, 1);
    assert_true(ip_addr_equal(&facts->member, &member));
    assert_int_equal(facts->n_keys, 3);
    assert_int_equal(facts->n_bytes, 400);
    assert_int_equal(facts->n_refused, 6);
    assert_string_equal(facts->last_limit, "limit");
    assert_int_equal(f->job->heard_at, test_now - 1500 * NSEC_PER_MSEC);
    /* What was heard later stays, and before its own start the hub has heard nothing. */
    m.quiet_ms = 1501;
    assert_true(take(f, &m));
    assert_int_equal(f->job->heard_at, test_now - 1500 * NSEC_PER_MSEC);
    f->job->heard_at = 0;
    m.quiet_ms = 100000;
    assert_true(take(f, &m));
    assert_int_equal(f->job->heard_at, 0);
    m.quiet_ms = 99999;
    assert_true(take(f, &m));
    assert_int_equal(f->job->heard_at, NSEC_PER_MSEC + 7);
    /* Who comes from the hub's addresses is the member that its machine is. */
    m.address = f->net->address4;
    assert_true(take(f, &m));
    assert_true(ip_addr_equal(&facts->member, &f->net->own_member));
    m.address = member;
    assert_true(take(f, &m));
    m.address = f->net->address6;
    assert_true(take(f, &m));
    assert_true(ip_addr_equal(&facts->member, &f->net->own_member));
    /* No more than there can be. */
    m.n_keys = UINT64_MAX;
    m.n_bytes = UINT64_MAX;
    m.n_refused = INT64_MAX;
    assert_true(take(f, &m));
    assert_int_equal(facts->n_keys, JOB_BLOBS_MAX);
    assert_int_equal(facts->n_bytes, JOB_BLOBS_BYTES_MAX);
    assert_int_equal(facts->n_refused, 0);
    close_jobs(f);
}

/* What a process has counted stays when it ends; its connections do not, nor who waits. */
static void test_a_process_has_ended(void **state)
{
    struct fixture *f = *state;
    const struct rdzv_wire m = {.type = RDZV_WIRE_COUNTS,
        .n_store_requests = 1,
        .n_etcd_requests = 2,
        .n_hung_up = 3,
        .n_accepts_deferred = 4};
    const struct job_counts twice = {2, 4, 6, 8};
    const struct job_counts none = {0};
    struct rdzv_wire put;

    open_job(f);
    put = put_of(f, "name", 1);
    assert_true(take(f, &put));
    for (unsigned i = 0; i < 2; i++) {
        assert_true(take(f, &m));
        assert_true(take(f, &(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = 1}));
        assert_int_equal(f->net->queue.n_syncs, 1);
        f->job->facts.n_connections = 2;
        f->job->facts.n_members = 1 - i;
        f->job->heard_at = 5;
        job_intake_end(f->net, test_now);
        assert_int_equal(f->job->facts.n_connections, 0);
        assert_int_equal(f->job->facts.n_members, 0);
        /* Somebody was connected until now. */
        assert_int_equal(f->job->heard_at, i == 0 ? test_now : 5);
        assert_int_equal(f->net->queue.n_syncs, 0);
        assert_memory_equal(&f->net->counts_now, &none, sizeof(none));
    }
    assert_memory_equal(&f->net->counts_before, &twice, sizeof(twice));
    close_jobs(f);
}

/* What a process cannot read is set aside, with its words, as far as they can be shown. */
static void test_what_a_process_cannot_read(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];
    struct rdzv_wire m;
    uint8_t words[300];

    open_job(f);
    memset(words, 'x', sizeof(words));
    words[0] = '\n';
    m = put_of(f, "name", 1);
    m.type = RDZV_WIRE_DAMAGED;
    m.data = words;
    m.len = sizeof(words);
    assert_true(take(f, &m));
    assert_int_equal(f->n_broken, 1);
    assert_int_equal(strlen(f->why), 200);
    assert_memory_equal(f->why, "?xxx", 4);
    assert_string_equal(f->broken, key_of("name", key));
    m.len = 3;
    assert_true(take(f, &m));
    assert_string_equal(f->why, "?xx");
    close_jobs(f);
}

/* The ports of a job that cannot be opened are counted, to be tried again. */
static void test_ports_that_cannot_be_opened(void **state)
{
    const struct endpoint at[2] = {{.port = 29600}, {.port = 29600}};
    struct job_ports ports;
    struct err e = ERR_NULL;

    job_ports_init(&ports);
    for (unsigned i = 1; i < 3; i++) {
        assert_true(job_ports_open(&ports, "no-such-one", false, at, 2, &e) < 0);
        assert_int_equal(ports.n_failures, i);
    }
    assert_int_equal(job_ports_open(&ports, "no-such-one", false, at, 0, &e), 0);
    assert_int_equal(ports.n_failures, 0);
    job_ports_close(&ports);
}

/* Of a run that is over nothing is found again, whenever the hub dies; and it goes bit by bit. */
static void test_a_run_is_over(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];
    struct rdzv_wire m;
    char name[16];
    char *text;

    open_job(f);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        m = put_of(f, name, 1);
        assert_true(take(f, &m));
    }
    save_all(f);
    assert_int_equal(f->net->totals.n_garbage, 0);
    job_set_run(f->job, 4);
    assert_int_equal(f->net->totals.n_garbage, 1000);
    assert_int_equal(f->net->totals.n_bytes, 0);
    /* A name that is used again is no garbage. */
    m = put_of(f, "7", 1);
    assert_true(take(f, &m));
    for (unsigned i = 0; i < 100 && f->net->totals.n_garbage > 0; i++) {
        job_network_sweep(f->net, test_now);
        assert_true(f->net->queue.by_key.n < 400);
        commit_one(f);
    }
    save_all(f);
    assert_int_equal(count(f, "rdzv/net/job/"), 1);
    text = value_of(f, key_of("7", key));
    assert_non_null(strstr(text, "\"4."));
    free(text);
    assert_int_equal(f->net->totals.n_entries, 1);
    /* The job's own record goes last. */
    job_network_forget_job(f->job, test_now);
    job_network_sweep(f->net, test_now);
    save_all(f);
    assert_int_equal(count(f, "rdzv/"), 0);
    close_jobs(f);
}

/* What a hub left behind, of whatever age, and what is damaged: none keeps the next from starting.
 */
static void test_loading(void **state)
{
    struct fixture *f = *state;
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];

    put_text(f, "rdzv/net/old", "{\"port\":29601,\"run\":2,\"ended\":false}");
    put_text(f, "rdzv/net/bad", "{\"port\":\"x\"}");
    put_text(f, key_of("whole", first), "\"3.a.2.AAAA\"");
    put_text(f, rdzv_key_of_piece(key, first, 'a', 1), "\"AAAA\"");
    put_text(f, rdzv_key_of_piece(key, first, 'b', 1), "\"AAAA\"");
    put_text(f, rdzv_key_of_piece(key, first, 'a', 2), "\"AAAA\"");
    put_text(f, key_of("over", first), "\"2.-.1.AAAA\"");
    put_text(f, key_of("from before the runs", first), "\"AAAA\"");
    put_text(f, key_of("damaged", first), "\"3.?.1.AAAA\"");
    put_text(f, "rdzv/net/job/no/key-of-ours", "\"3.?.1.AAAA\"");
    open_jobs(f);
    assert_int_equal(f->n_broken, 2);
    assert_string_equal(f->broken, first);
    assert_int_equal(f->job->blobs.index.entries.n, 3);
    assert_non_null(job_network_find_job(f->net, "old"));
    assert_null(job_network_find_job(f->net, "bad"));
    assert_int_equal(f->job->blobs.index.n_garbage, 2);
    /* What cannot be read stays for a person to see. */
    job_network_forget_job(f->job, test_now);
    for (unsigned i = 0; i < 5; i++) {
        job_network_sweep(f->net, test_now);
        save_all(f);
    }
    assert_int_equal(count(f, "rdzv/"), 4);
    close_jobs(f);
}

/* ---- with a process ------------------------------------------------------------------------- */

static void on_wake(uv_timer_t *timer)
{
}

/* One turn of the loop after the other until so many processes have ended. */
static void run_until_lost(struct fixture *f, struct job_host *host, unsigned n)
{
    nsec_t deadline = clock_now() + 60 * NSEC_PER_SEC;
    uv_timer_t wake;

    (void)uv_timer_init(&f->loop, &wake);
    (void)uv_timer_start(&wake, on_wake, 5, 5);
    while (host->n_restarts < n) {
        assert_true(clock_now() < deadline);
        job_host_turn(host, clock_now());
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&wake, NULL);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

/* A process that says no message is ended and started again, and again, less and less often. */
static void test_noise_on_the_pipe(void **state)
{
    struct fixture *f = *state;
    struct job_host host;

    open_job(f);
    f->env.clock = clock_now;
    job_host_init(&host, f->net);
    f->net->is_served = true;
    host.start_at = 0;
    run_until_lost(f, &host, 3);
    assert_int_equal(host.backoff, 200 * NSEC_PER_MSEC);
    assert_true(is_saved(f));
    assert_int_equal(count(f, "rdzv/"), 1);
    job_host_end(&host, clock_now());
    free(host.members);
    close_jobs(f);
}

/* As a process: half a message of a length that cannot be, after which nobody may wait. */
static int make_noise(void)
{
    static const uint8_t noise[] = {0xff, 0xff, 0xff, 0x7f, RDZV_WIRE_PUT, 1, 2, 3};
    char buf[256];

    if (write(PROCESS_LINK_FD, noise, sizeof(noise)) < 0)
        return 1;
    while (read(PROCESS_LINK_FD, buf, sizeof(buf)) != 0)
        ;
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blobs_stay_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blobs_stay_whole, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_answers, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_on_their_way, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_begins, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_half_a_blob, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hostile_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_process_cannot_read, set_up, tear_down),
        cmocka_unit_test(test_ports_that_cannot_be_opened),
        cmocka_unit_test_setup_teardown(test_a_run_is_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_noise_on_the_pipe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_is_over_within_a_blob, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_said_of_a_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_process_has_ended, set_up, tear_down),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return make_noise();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
