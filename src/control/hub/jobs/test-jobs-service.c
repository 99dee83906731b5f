/*
 * test-jobs-service.c - all networks' jobs as the hub calls them: read, served, shown, handed to
 * another hub and ended, with a process that is told of them and says something of its own.
 *
 * Started as `test-hub-jobs-service rendezvous` it is that process. Of the job "train" it says one
 * blob, and what there is of it; to COUNTS it adds up what it was told (see take()).
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
#include <uv.h>
#include <cmocka.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs.h"
#include "os/clock.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "store/keys.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/captured_log.h"
#include "test/support/emulated.h"
#include "test/support/sample_late.h"
#include "test/support/sample_rdzv.h"
#include "test/support/store_now.h"

#define LIMIT "more keys than a job may have"

struct fixture {
    uv_loop_t loop;
    uv_timer_t wake;
    uv_poll_t answers; /* of the store */
    struct store *store;
    struct keys names; /* of the networks that there are */
    struct jobs *jobs;
    struct jobs_service service; /* of the network "net" */
    unsigned n_done;
    int last_r;
    struct err e;
};

static struct fixture f;

static void on_damaged(void *ctx, const char *key, const char *why)
{
}

static void on_written(void *ctx, const char *key)
{
}

/* The jobs wake the loop themselves, when something is due. */
static void on_wake(uv_timer_t *timer)
{
    fail_msg("nothing has woken the loop");
}

static void on_done(void *ctx, int r, const struct err *e)
{
    f.n_done++;
    f.last_r = r;
}

static void on_answers(uv_poll_t *poll, int status, int events)
{
    store_dispatch(f.store);
}

static struct ip_addr address(unsigned i)
{
    return ip_addr_v4((const uint8_t[4]){10, 0, 0, (uint8_t)i});
}

static struct ip_addr address6(unsigned i)
{
    return (struct ip_addr){{0xfd, [15] = (uint8_t)i}};
}

static void put(const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(f.store, &op, 1, 1, NULL, NULL, &f.e), 0);
}

static void put_job(const char *network, const char *name, unsigned run)
{
    char value[128];
    char key[RDZV_KEY_MAX];

    (void)snprintf(
        value, sizeof(value), "{\"port\":29600,\"run\":%u,\"ended\":false,\"heads\":true}", run);
    put(rdzv_key_of_job(key, network, name), value);
}

static void put_blobs(const char *network, const char *job, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct rdzv_hash hash = rdzv_hash_of(&i, sizeof(i));
        char key[RDZV_KEY_MAX];

        put(rdzv_key_of_blob(key, RDZV_KEY_ENTRY, network, job, &hash), "\"3.-.1.AAAA\"");
    }
}

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

/* Records in the store. */
static unsigned count(const char *prefix)
{
    unsigned n = 0;

    assert_int_equal(store_now_list(f.store, prefix, count_one, &n, NULL, &f.e), 0);
    return n;
}

static void begin(bool is_shared)
{
    const struct jobs_records records = {.damaged = on_damaged, .written = on_written};

    f.store->is_shared = is_shared;
    assert_int_equal(jobs_new(&f.jobs, &f.loop, f.store, &records, 1, 2, &f.e), 0);
    assert_non_null(keys_open(&f.names, "net", sizeof(struct keyed)));
    jobs_start(f.jobs, &f.names);
}

static void serve_at(
    struct jobs_service *service, const char *network, const char *fence, uint64_t revision)
{
    const struct jobs_place place = {.network = network,
        .interface = "no-such-one",
        .address4 = address(1),
        .address6 = address6(1),
        .fence = fence,
        .fence_revision = revision,
        .epoch = 5};

    assert_int_equal(jobs_open(service, f.jobs, &place, &f.e), 0);
}

static void serve_as(struct jobs_service *service, const char *fence, uint64_t revision)
{
    serve_at(service, "net", fence, revision);
}

static void serve(void)
{
    serve_as(&f.service, NULL, 0);
}

static int enter(struct store *store)
{
    f = (struct fixture){.store = store};
    assert_int_equal(uv_loop_init(&f.loop), 0);
    (void)uv_timer_init(&f.loop, &f.wake);
    (void)uv_timer_start(&f.wake, on_wake, 20000, 0);
    (void)uv_poll_init(&f.loop, &f.answers, store_fd(f.store));
    (void)uv_poll_start(&f.answers, UV_READABLE, on_answers);
    return 0;
}

static int set_up(void **state)
{
    struct store *store = NULL;

    assert_int_equal(store_open(&store, "memory:", clock_now(), &f.e), 0);
    return enter(store);
}

static int set_up_late(void **state)
{
    return enter(sample_late_open(3, 0));
}

static int tear_down(void **state)
{
    jobs_stop(f.jobs);
    jobs_stop(f.jobs);
    uv_close((uv_handle_t *)&f.wake, NULL);
    uv_close((uv_handle_t *)&f.answers, NULL);
    assert_int_equal(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
    f.jobs = jobs_free(f.jobs);
    keys_free_all(&f.names);
    store_free(f.store);
    return uv_loop_close(&f.loop);
}

static void turn(void)
{
    store_wait(f.store);
    (void)uv_run(&f.loop, UV_RUN_ONCE);
    store_wait(f.store);
}

#define run_until(condition)                                                                       \
    do {                                                                                           \
        nsec_t deadline = clock_now() + 30 * NSEC_PER_SEC;                                         \
        while (!(condition)) {                                                                     \
            assert_true(clock_now() < deadline);                                                   \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

/* Until it is on the disk. */
static struct job *join(const char *name, const char *member)
{
    struct job *job = NULL;
    int r;

    while ((r = jobs_join(&f.service, name, member, NULL, clock_now(), on_done, NULL, &job,
                &f.e)) == JOBS_E_AGAIN)
        store_wait(f.store);
    assert_int_equal(r, 0);
    return job;
}

static void expect_list(const char *words, bool is_there)
{
    char *text = jobs_list(&f.service);

    if ((strstr(text, words) != NULL) != is_there)
        fail_msg("%s in %s", words, text);
    free(text);
}

/* A job of "net" at which nobody was connected yet, as it is shown; @rest: what comes then. */
static void expect_shown(
    const char *shown, const char *job, unsigned port, unsigned etcd, const char *rest)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
        "{\"job\":\"%s\",\"network\":\"net\",\"run\":\"%s.1\",\"epoch\":\"0000000000000007\","
        "\"address4\":\"10.0.0.1\",\"address6\":\"fd00::1\","
        "\"c10d\":{\"endpoint\":\"10.0.0.1:%u\",\"port\":%u},"
        "\"etcdV2\":{\"endpoint\":\"10.0.0.1:%u\",\"port\":%u},\"idleSeconds\":7200,\"keys\":0,"
        "\"bytes\":0,\"limitHits\":0%s",
        job, job, port, port, etcd, etcd, rest);
    assert_memory_equal(shown, text, strlen(text));
}

static void expect_json(json_t *json, const char *job, unsigned port, const char *rest)
{
    char *text = json_dumps(json, JSON_COMPACT);

    expect_shown(text, job, port, port, rest);
    free(text);
    json_decref(json);
}

/* ---- serving ----------------------------------------------------------------------------------
 */

static void test_not_served(void **state)
{
    static const struct ip_addr someone = {{1}};
    struct job *job = NULL;
    json_t *json = NULL;

    begin(false);
    assert_int_equal(
        jobs_join(&f.service, "train", "a", NULL, clock_now(), on_done, NULL, &job, &f.e), -ENOENT);
    assert_string_equal(err_text(&f.e), "the network's rendezvous is not served");
    assert_null(jobs_free(NULL));
    assert_int_equal(jobs_look(&f.service, "train", clock_now(), &json, &f.e), -ENOENT);
    assert_null(jobs_find(&f.service, "train"));
    expect_list("{\"jobs\":[]}\n", true);
    assert_int_equal(jobs_fence(&f.service), 0);
    jobs_add_member(&f.service, &someone);
    jobs_set_own_member(&f.service, &someone);
    jobs_end_member(&f.service, &someone);
    jobs_drop(&f.service);
    jobs_close(&f.service, true);
}

static void test_served(void **state)
{
    char name[NAME_MAX_LEN + 1] = "";
    struct job *job = NULL;
    const char *second;
    char *all;

    begin(false);
    serve();
    assert_int_equal(
        jobs_join(&f.service, "quiet", "a", NULL, clock_now(), on_done, NULL, &job, &f.e),
        JOBS_E_AGAIN);
    assert_null(jobs_find(&f.service, "quiet"));
    expect_list("\"job\":\"quiet\"", false);
    store_wait(f.store);
    assert_int_equal(f.n_done, 1);
    assert_int_equal(f.last_r, 0);
    job = join("quiet", "a");
    assert_ptr_equal(job, jobs_find(&f.service, "quiet"));
    all = jobs_list(&f.service);
    expect_shown(
        all + strlen("{\"jobs\":["), "default", 29400, 2379, ",\"present\":[],\"heldUpBy\":[]},{");
    second = strstr(all, "},{") + 2;
    expect_shown(second, "quiet", job->record.port, job->record.port,
        ",\"present\":[\"a\"],\"heldUpBy\":[]}]}\n");
    free(all);
    job_members_set_nccl(&job->members, "a", json_pack("{s:s}", "verdict", "wanted"));
    expect_json(jobs_json(job, true), "quiet", job->record.port, "}");
    expect_json(jobs_json(job, false), "quiet", job->record.port,
        ",\"nccl\":[{\"verdict\":\"wanted\",\"node\":\"a\"}]}");
    /* The longest name is shown whole. */
    memset(name, 'n', NAME_MAX_LEN);
    job = job_network_add(job->network, name, &job->record, clock_now());
    expect_json(jobs_json(job, true), name, job->record.port, "}");
    job_network_free_job(job);
    jobs_close(&f.service, false);
    assert_null(f.service.served);
    expect_list("{\"jobs\":[]}\n", true);
    assert_int_equal(count("rdzv/net/"), 2);
    /* Served again, it has what it had. */
    serve();
    assert_non_null(jobs_find(&f.service, "quiet"));
}

/* The ports of all jobs that there are are opened with the service, and closed with it. */
static void test_ports(void **state)
{
    const struct ip_addr own = address(9);
    struct job *job;

    begin(true);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    serve();
    job = join("quiet", "a");
    assert_true(job->network->is_served);
    assert_string_equal(job->network->interface, "no-such-one");
    assert_string_equal(job->network->fence, "");
    assert_int_equal(job->ports.n_failures, 1);
    for (unsigned i = 0; i < 2; i++) {
        job->ports.fds[0] = dup(STDERR_FILENO);
        if (i == 0)
            jobs_close(&f.service, false);
        else
            jobs_drop(&f.service);
        assert_int_equal(job->ports.fds[0], -1);
        assert_false(job->network->is_served);
        assert_int_equal(job->network->is_foreign, i == 1);
        serve();
        assert_true(job->network->is_served);
        assert_int_equal(job->ports.n_failures, 2 + i);
    }
    /* Not of one that is not there. */
    job->is_unsaved = true;
    jobs_close(&f.service, false);
    serve();
    jobs_set_own_member(&f.service, &own);
    assert_int_equal(job->ports.n_failures, 3);
    job->is_unsaved = false;
    job->network->is_foreign = false;
}

/* Each network is served by itself, and what there is of all is added up. */
static void test_two_networks(void **state)
{
    struct jobs_service other = {NULL};
    struct jobs_counts c;
    struct job *job;

    begin(false);
    serve();
    serve_at(&other, "other", NULL, 0);
    job = join("train", "a");
    assert_null(jobs_find(&other, "train"));
    run_until(jobs_find(&other, JOBS_DEFAULT));
    run_until(jobs_count(f.jobs).processes.n_etcd_requests == 77);
    assert_int_equal(jobs_count(f.jobs).n_unsaved, 0);
    assert_int_equal(change_queue_put(&job->network->queue, "rdzv/net/x", NULL, clock_now()), 0);
    c = jobs_count(f.jobs);
    assert_int_equal(c.n_jobs, 3);
    assert_int_equal(c.n_unsaved, 1);
    assert_int_equal(c.n_connections, 2);
    jobs_close(&other, false);
    assert_non_null(jobs_find(&f.service, "train"));
    assert_int_equal(jobs_count(f.jobs).n_jobs, 3);
    serve_at(&other, "other", NULL, 0);
    assert_non_null(jobs_find(&other, JOBS_DEFAULT));
    /* Both have their last words. */
    jobs_stop(f.jobs);
    assert_int_equal(jobs_count(f.jobs).processes.n_hung_up, 2000);
    assert_int_equal(jobs_count(f.jobs).n_restarts, 0);
    assert_int_equal(jobs_count(f.jobs).n_unsaved, 0);
}

/* Another network of its name takes its place. */
static void test_served_twice(void **state)
{
    struct jobs_service other = {NULL};

    begin(false);
    serve();
    (void)join("quiet", "a");
    serve_as(&other, NULL, 0);
    assert_null(f.service.served);
    assert_non_null(other.served);
    assert_null(jobs_find(&other, "quiet"));
    jobs_close(&other, false);
    /* A handle that was closed or dropped is not touched any more: it may be gone. */
    memset(&other, 0xff, sizeof(other));
    serve();
    jobs_drop(&f.service);
    memset(&f.service, 0xff, sizeof(f.service));
    f.service.served = NULL;
    serve();
}

static void test_removed(void **state)
{
    struct captured_log said;

    begin(false);
    serve();
    (void)join("quiet", "a");
    assert_int_equal(count("rdzv/net/"), 2);
    jobs_close(&f.service, true);
    run_until(count("rdzv/net/") == 0);
    said = captured_log_begin();
    jobs_stop(f.jobs);
    captured_log_end(&said, "");
}

/* What the store does not take at the end is lost, and that is said; else nothing is. */
static void test_the_last_changes_are_lost(void **state)
{
    struct captured_log said;

    begin(false);
    serve();
    assert_int_equal(
        change_queue_put(&join("quiet", "a")->network->queue, "rdzv/net/x", NULL, clock_now()), 0);
    sample_late_set_loss(f.store, 1);
    said = captured_log_begin();
    jobs_stop(f.jobs);
    captured_log_end(&said,
        "warning: weft: rendezvous of network \"net\": what has changed is in memory only, until "
        "the "
        "next try: the store is away\n"
        "warning: weft: rendezvous of network \"net\": the last changes are lost: the store has "
        "refused it\n");
    assert_int_equal(jobs_count(f.jobs).n_failed, 1);
    sample_late_set_loss(f.store, 0);
}

/* Jobs of a network that was removed when the hub ended. */
static void test_what_is_nobodys(void **state)
{
    put_job("gone", "train", 3);
    put_blobs("gone", "train", 5);
    put_job("net", "train", 3);
    begin(false);
    run_until(count("rdzv/gone/") == 0);
    assert_int_equal(count("rdzv/net/"), 1);
    serve();
    assert_non_null(jobs_find(&f.service, "train"));
}

/* ---- what the process says --------------------------------------------------------------------
 */

static void test_what_the_process_says(void **state)
{
    struct jobs_counts c;

    begin(false);
    serve();
    (void)join("train", "a");
    run_until(count("rdzv/net/train/") == 1);
    run_until(jobs_count(f.jobs).processes.n_etcd_requests == 77);
    expect_list("\"keys\":3,\"bytes\":400,\"limitHits\":6,\"lastLimit\":\"" LIMIT "\"", true);
    run_until(jobs_count(f.jobs).n_unsaved == 0);
    c = jobs_count(f.jobs);
    assert_int_equal(c.n_jobs, 2);
    assert_int_equal(c.n_connections, 2);
    assert_int_equal(c.n_commits, 1);
    assert_int_equal(c.n_failed, 0);
    assert_int_equal(c.n_restarts, 0);
    /* Its last words are stored, too. */
    jobs_stop(f.jobs);
    assert_int_equal(count("rdzv/net/train/"), 2);
    assert_int_equal(jobs_count(f.jobs).processes.n_hung_up, 1000);
}

/* Programs of the hub's machine come from the hub's own addresses: they are that member's. */
static void test_the_hubs_own_machine(void **state)
{
    struct ip_addr own = address(9);
    struct ip_addr other = address(8);
    static const struct ip_addr none;
    unsigned n_failures;
    struct job *job;

    begin(false);
    serve();
    jobs_add_member(&f.service, &own);
    jobs_add_member(&f.service, &other);
    job = join("train", "a");
    run_until(jobs_count(f.jobs).processes.n_hung_up == 2);
    assert_int_equal(jobs_count(f.jobs).processes.n_store_requests, 0);
    n_failures = job->ports.n_failures;
    jobs_set_own_member(&f.service, &own);
    run_until(jobs_count(f.jobs).processes.n_store_requests == 2);
    /* They are served on the loopback from then on. */
    assert_int_equal(job->ports.n_failures, n_failures + 1);
    jobs_set_own_member(&f.service, &own);
    assert_int_equal(job->ports.n_failures, n_failures + 1);
    run_until(job->facts.n_members == 1 && ip_addr_equal(&job->facts.member, &own));
    assert_false(jobs_has_others(job, "a", &own, clock_now()));
    assert_true(jobs_has_others(job, "a", &other, clock_now()));
    jobs_end_member(&f.service, &other);
    run_until(jobs_count(f.jobs).processes.n_hung_up == 3);
    assert_int_equal(jobs_count(f.jobs).processes.n_store_requests, 2);
    jobs_end_member(&f.service, &own);
    run_until(jobs_count(f.jobs).processes.n_store_requests == 0);
    /* It has to be said anew that it is one. */
    jobs_add_member(&f.service, &own);
    run_until(jobs_count(f.jobs).processes.n_hung_up == 1);
    assert_int_equal(jobs_count(f.jobs).processes.n_store_requests, 0);
    jobs_set_own_member(&f.service, &own);
    run_until(jobs_count(f.jobs).processes.n_store_requests == 2);
    jobs_set_own_member(&f.service, &none);
    run_until(jobs_count(f.jobs).processes.n_store_requests == 0);
    /* Known from when the network was served before. */
    jobs_set_own_member(&f.service, &own);
    jobs_close(&f.service, false);
    serve();
    jobs_add_member(&f.service, &other);
    jobs_add_member(&f.service, &own);
    run_until(jobs_count(f.jobs).processes.n_store_requests == 4);
    assert_int_equal(jobs_count(f.jobs).processes.n_hung_up, 1000 + 4);
}

/* ---- looking ----------------------------------------------------------------------------------
 */

static void test_a_look(void **state)
{
    struct job *job;
    json_t *json = NULL;
    unsigned port;

    begin(false);
    serve();
    assert_int_equal(jobs_look(&f.service, "train", clock_now(), &json, &f.e), 0);
    port = (unsigned)json_integer_value(json_object_get(json_object_get(json, "c10d"), "port"));
    expect_json(json, "train", port, ",\"begins\":true}");
    job = join("train", "a");
    run_until(job->facts.n_keys == 3);
    assert_int_equal(jobs_look(&f.service, "train", clock_now(), &json, &f.e), 0);
    assert_true(json_is_false(json_object_get(json, "begins")));
    assert_int_equal(json_integer_value(json_object_get(json, "keys")), 3);
    json_decref(json);
    /* What a run has is not there in the next one. */
    job->record.ended = true;
    assert_int_equal(jobs_look(&f.service, "train", clock_now(), &json, &f.e), 0);
    assert_true(json_is_true(json_object_get(json, "begins")));
    assert_int_equal(json_integer_value(json_object_get(json, "keys")), 0);
    json_decref(json);
    expect_list("\"present\":[\"a\"]", false);
    job->record.ended = false;
    /* A network that is full has no place for another one. */
    for (unsigned i = 0; i < JOBS_JOBS_MAX; i++) {
        struct rdzv_job_record record = {.port = (uint16_t)(JOBS_PORT_FIRST + i), .run = 1};
        char name[16];

        (void)snprintf(name, sizeof(name), "j%u", i);
        assert_non_null(job_network_add(job->network, name, &record, clock_now()));
    }
    assert_int_equal(jobs_look(&f.service, "one-more", clock_now(), &json, &f.e), JOBS_E_FULL);
}

/* Others are who is connected, and whose command is heard. */
static void test_others(void **state)
{
    const struct job_word word = {.command = "x", .every_seconds = 3};
    struct ip_addr own = address(9);
    nsec_t now = clock_now();
    struct job *job;

    begin(false);
    serve();
    job = join("quiet", "a");
    assert_false(jobs_has_others(job, "a", &own, now));
    job_members_hear(&job->members, "b", &word, now);
    assert_true(jobs_has_others(job, "a", &own, now));
    assert_false(jobs_has_others(job, "b", &own, now));
}

static void test_a_full_job(void **state)
{
    struct str names = STR_NULL;
    nsec_t now = clock_now();
    struct job *job;

    begin(false);
    serve();
    job = join("quiet", "a");
    (void)join("quiet", "b");
    assert_true(jobs_is_full(job, "c", NULL, 2, now, &names));
    assert_string_equal(str_text(&names), "a, b");
    assert_true(jobs_is_full(job, "c", "quiet.2", 2, now, &names));
    assert_false(jobs_is_full(job, "c", "quiet.1", 2, now, &names));
    assert_false(jobs_is_full(job, "c", NULL, 3, now, &names));
    job->record.ended = true;
    assert_false(jobs_is_full(job, "c", NULL, 2, now, &names));
    job->record.ended = false;
    str_deinit(&names);
}

/* A job in which nobody was heard for long goes, unless another hub serves the network. */
static void test_ticks(void **state)
{
    begin(true);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    (void)join("quiet", "a");
    jobs_tick(f.jobs, clock_now());
    assert_non_null(jobs_find(&f.service, "quiet"));
    jobs_drop(&f.service);
    jobs_tick(f.jobs, clock_now() + JOBS_IDLE + NSEC_PER_SEC);
    store_wait(f.store);
    assert_int_equal(count("rdzv/net/"), 2);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    jobs_tick(f.jobs, clock_now() + JOBS_IDLE + NSEC_PER_SEC);
    assert_null(jobs_find(&f.service, "quiet"));
    jobs_stop(f.jobs);
    assert_int_equal(count("rdzv/net/"), 1);
}

/* ---- several hubs -----------------------------------------------------------------------------
 */

/* What another hub has served is read when it is to be served here, all of it. */
static void test_another_hubs_jobs(void **state)
{
    put_job("net", "train", 3);
    put_blobs("net", "train", 2500);
    begin(true);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    assert_int_equal(jobs_find(&f.service, "train")->record.run, 3);
    assert_int_equal(jobs_find(&f.service, "train")->blobs.index.entries.n, 2500);
    jobs_drop(&f.service);
    assert_null(f.service.served);
    jobs_drop(&f.service);
    put_job("net", "train", 7);
    put_job("net", "more", 1);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    assert_int_equal(jobs_find(&f.service, "train")->record.run, 7);
    assert_non_null(jobs_find(&f.service, "more"));
}

/* What is on its way to the store when the network is dropped has its answer before it is read. */
static void test_what_is_on_its_way(void **state)
{
    struct job *job = NULL;
    struct job_network *n;

    begin(true);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    serve();
    n = join("quiet", "a")->network;
    assert_int_equal(
        jobs_join(&f.service, "more", "a", NULL, clock_now(), on_done, NULL, &job, &f.e),
        JOBS_E_AGAIN);
    jobs_drop(&f.service);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    assert_false(n->is_loading);
    store_wait(f.store);
    assert_int_equal(change_queue_put(&n->queue, "rdzv/net/x", NULL, clock_now()), 0);
    job_network_commit(n, clock_now());
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    assert_false(n->is_loading);
    store_wait(f.store);
    /* All else that is here is forgotten. */
    assert_int_equal(change_queue_put(&n->queue, "rdzv/net/x", NULL, clock_now()), 0);
    str_add(&n->to_process, "something");
    n->upload.to = &job_network_find_job(n, "quiet")->blobs;
    n->totals.n_bytes = 7;
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    assert_true(n->is_loading);
    assert_true(list_is_empty(&n->jobs));
    assert_null(n->upload.to);
    assert_int_equal(n->totals.n_bytes, 0);
    assert_int_equal(n->to_process.len, 0);
    assert_int_equal(change_queue_count(&n->queue), 0);
    assert_int_equal(n->queue.due_at, NSEC_NEVER);
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    assert_false(n->is_foreign);
    assert_int_equal(n->totals.n_bytes, 0);
    assert_non_null(job_network_find_job(n, "quiet"));
    assert_non_null(job_network_find_job(n, "more"));
}

/* A hub with a store of its own has read everything. */
static void test_jobs_of_ones_own(void **state)
{
    put_job("net", "train", 3);
    begin(false);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    assert_int_equal(jobs_find(&f.service, "train")->record.run, 3);
}

/* The store did not answer: it is tried again. */
static void test_reading_fails(void **state)
{
    put_job("net", "train", 3);
    begin(true);
    sample_late_set_loss(f.store, 1);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    sample_late_set_loss(f.store, 0);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve();
    assert_non_null(jobs_find(&f.service, "train"));
}

/* At its start a hub with a store of its own cannot do without it. */
static void test_reading_fails_at_the_start(void **state)
{
    const struct jobs_records records = {.damaged = on_damaged, .written = on_written};

    sample_late_set_loss(f.store, 1);
    assert_int_equal(jobs_new(&f.jobs, &f.loop, f.store, &records, 1, 2, &f.e), -EIO);
    assert_null(f.jobs);
    sample_late_set_loss(f.store, 0);
    begin(false);
}

static int take_revision(void *ctx, const struct store_item *item)
{
    *(uint64_t *)ctx = item->revision;
    return 0;
}

/* Nothing is written any more when the network has another owner. */
static void test_the_fence(void **state)
{
    struct job *job = NULL;
    uint64_t revision = 0;

    put("owner/net", "{}");
    assert_int_equal(store_now_get(f.store, "owner/net", take_revision, &revision, &f.e), 0);
    begin(true);
    assert_false(jobs_load(f.jobs, "net", clock_now()));
    store_wait(f.store);
    assert_true(jobs_load(f.jobs, "net", clock_now()));
    serve_as(&f.service, "owner/net", revision);
    assert_int_equal(jobs_fence(&f.service), revision);
    assert_string_equal(join("quiet", "a")->network->fence, "owner/net");
    (void)join("quiet", "a");
    put("owner/net", "{\"x\":1}");
    assert_int_equal(
        jobs_join(&f.service, "more", "a", NULL, clock_now(), on_done, NULL, &job, &f.e),
        JOBS_E_AGAIN);
    store_wait(f.store);
    assert_int_not_equal(f.last_r, 0);
    assert_null(jobs_find(&f.service, "more"));
    jobs_drop(&f.service);
    assert_int_equal(jobs_fence(&f.service), 0);
}

/* ---- as a process -----------------------------------------------------------------------------
 */

static void say_blob(const struct rdzv_wire *job, const char *name)
{
    sample_rdzv_say(&(struct rdzv_wire){.type = RDZV_WIRE_PUT,
        .job = job->job,
        .run = job->run,
        .kind = RDZV_KEY_ENTRY,
        .hash = rdzv_hash_of(name, strlen(name)),
        .n_pieces = 1,
        .data = (const uint8_t *)"bytes",
        .len = 5});
}

/* What was told. In COUNTS: members in @n_hung_up, the hub's own addresses among those that are
 * ones in @n_store_requests, the SYNC that was answered in @n_etcd_requests. */
static struct rdzv_wire counts = {.type = RDZV_WIRE_COUNTS};
static struct rdzv_wire train;
static struct ip_addr hub_address;
static struct ip_addr hub_address6;

static void say_facts(void)
{
    sample_rdzv_say(&(struct rdzv_wire){.type = RDZV_WIRE_FACTS,
        .job = train.job,
        .run = train.run,
        .n_connections = 2,
        .n_members = 1,
        .address = hub_address,
        .n_keys = 3,
        .n_bytes = 400,
        .n_refused = 6,
        .data = (const uint8_t *)LIMIT,
        .len = strlen(LIMIT)});
}

static void take_member(const struct ip_addr *member, int sign)
{
    if (ip_addr_equal(member, &hub_address) || ip_addr_equal(member, &hub_address6))
        counts.n_store_requests += (uint64_t)sign;
    counts.n_hung_up += (uint64_t)sign;
    sample_rdzv_say(&counts);
    if (train.job != 0)
        say_facts();
}

static void take(const struct rdzv_wire *m, int fd)
{
    if (m->type == RDZV_WIRE_NETWORK) {
        hub_address = m->address;
        hub_address6 = m->address6;
    } else if (m->type == RDZV_WIRE_MEMBER || m->type == RDZV_WIRE_NO_MEMBER) {
        take_member(&m->address, m->type == RDZV_WIRE_MEMBER ? 1 : -1);
    } else if (m->type == RDZV_WIRE_JOB && m->len == 5 && memcmp(m->data, "train", 5) == 0) {
        train = *m;
        say_blob(&train, "first");
        say_facts();
        sample_rdzv_say(&(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = 77});
    } else if (m->type == RDZV_WIRE_SAVED && m->error == 0) {
        counts.n_etcd_requests = m->seq;
        sample_rdzv_say(&counts);
    } else if (m->type == RDZV_WIRE_END) {
        if (train.job != 0)
            say_blob(&train, "last");
        counts.n_hung_up = 1000;
        sample_rdzv_say(&counts);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_not_served, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_served, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ports, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_networks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_served_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_last_changes_are_lost, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_nobodys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_the_process_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_hubs_own_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ticks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_hubs_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_on_its_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_jobs_of_ones_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reading_fails, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_reading_fails_at_the_start, set_up_late, tear_down),
        cmocka_unit_test_setup_teardown(test_the_fence, set_up, tear_down),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return sample_rdzv_run(take);
    if (emulated_lacks("way for a program to start itself"))
        return EMULATED_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
