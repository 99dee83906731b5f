/*
 * test-job-runs.c - jobs and their runs over hours of a clock that the test moves, on a store that
 * is late.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_host.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/job_runs.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "store/store.h"
#include "test/support/sample_late.h"

struct fixture {
    struct store *store;
    struct jobs_env env;
    struct list networks;
    struct job_network *net;
    unsigned n_done;    /* calls of on_done() */
    int last_r;         /* what the last one was told */
    const char *member; /* who joins; NULL: "a" */
    const char *broken; /* the run that who joins says cannot go on; NULL: none */
    struct err e;
};

static nsec_t now;

static nsec_t test_clock(void)
{
    return now;
}

static void on_damaged(void *ctx, const char *key, const char *why)
{
    fail_msg("\"%s\": %s", key, why);
}

static void on_written(void *ctx, const char *key)
{
}

static int set_up(void **state)
{
    static struct fixture f;

    now = 1000 * NSEC_PER_SEC;
    f = (struct fixture){.store = sample_late_open(5, 0)};
    f.env = (struct jobs_env){.store = f.store,
        .clock = test_clock,
        .records = {.damaged = on_damaged, .written = on_written},
        .seed = 1,
        .pace = CHANGE_PACE_INIT};
    list_init(&f.networks);
    f.net = job_network_get(&f.networks, &f.env, "net");
    assert_non_null(f.net);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    job_network_free(f->net);
    store_free(f->store);
    return 0;
}

static void on_done(void *ctx, int r, const struct err *e)
{
    struct fixture *f = ctx;

    f->n_done++;
    f->last_r = r;
}

/* Once; JOBS_E_AGAIN when it waits for the store. */
static int try_to_join(struct fixture *f, const char *name, struct job **ret)
{
    return job_runs_join(
        f->net, name, f->member ? f->member : "a", f->broken, now, on_done, f, ret, &f->e);
}

/* As the API does it: again, when what it waited for is on the disk. */
static int join_r(struct fixture *f, const char *name, struct job **ret)
{
    int r = try_to_join(f, name, ret);

    while (r == JOBS_E_AGAIN) {
        store_wait(f->store);
        r = try_to_join(f, name, ret);
    }
    return r;
}

static struct job *join(struct fixture *f, const char *name)
{
    struct job *job = NULL;

    assert_int_equal(join_r(f, name, &job), 0);
    return job;
}

static int end_r(struct fixture *f, struct job *job, const struct ip_addr *who)
{
    int r = job_runs_end(job, who, now, on_done, f, &f->e);

    while (r == JOBS_E_AGAIN) {
        store_wait(f->store);
        r = job_runs_end(job, who, now, on_done, f, &f->e);
    }
    return r;
}

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

/* Records in the store. */
static unsigned count(struct fixture *f, const char *prefix)
{
    unsigned n = 0;

    assert_int_equal(store_now_list(f->store, prefix, count_one, &n, NULL, &f->e), 0);
    return n;
}

static void save_all(struct fixture *f)
{
    assert_int_equal(job_network_commit_all(f->net, &f->e), 0);
}

static void tick(struct fixture *f, nsec_t reply)
{
    now += reply;
    job_runs_tick(f->net, now);
    store_wait(f->store);
}

static struct ip_addr address(unsigned i)
{
    return ip_addr_v4((const uint8_t[4]){10, 0, 0, (uint8_t)i});
}

/* The process says who is connected: nobody, number 1 alone, or more. */
static void say_members(struct fixture *f, struct job *job, unsigned n)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_FACTS,
        .job = job->number,
        .run = job->record.run,
        .n_members = (uint8_t)n,
        .n_connections = n,
        .n_keys = 3,
        .address = address(1)};

    job->sent.number = job->number;
    assert_true(job_intake_take(f->net, &m, now));
}

/* Whoever joins waits until the job is on the disk, and then it is there for all. */
static void test_a_job_is_made(void **state)
{
    struct fixture *f = *state;
    struct job *job = NULL;

    assert_int_equal(try_to_join(f, "train", &job), JOBS_E_AGAIN);
    assert_int_equal(try_to_join(f, "train", &job), JOBS_E_AGAIN);
    assert_false(job_exists(job_network_find_job(f->net, "train")));
    store_wait(f->store);
    assert_int_equal(f->n_done, 2);
    assert_int_equal(f->last_r, 0);
    assert_int_equal(try_to_join(f, "train", &job), 0);
    assert_true(job_exists(job));
    assert_int_equal(job->record.run, 1);
    assert_in_range(job->record.port, JOBS_PORT_FIRST, JOBS_PORT_FIRST + JOBS_JOBS_MAX - 1);
    assert_int_equal(count(f, "rdzv/net/train"), 1);
    assert_ptr_equal(join(f, "train"), job);
    assert_int_equal(job->record.run, 1);
    assert_int_not_equal(join(f, "other")->record.port, job->record.port);
}

static void on_nothing(void *ctx, const struct store_answer *a)
{
}

/* A job that could not be saved is not there, and who waited hears so. */
static void test_a_job_is_not_made(void **state)
{
    struct fixture *f = *state;
    struct job *job = NULL;

    sample_late_set_loss(f->store, 1);
    assert_int_equal(try_to_join(f, "train", &job), JOBS_E_AGAIN);
    store_wait(f->store);
    sample_late_set_loss(f->store, 0);
    assert_int_equal(f->n_done, 1);
    assert_true(f->last_r < 0);
    assert_null(job_network_find_job(f->net, "train"));
    /* Another hub serves the network. */
    (void)snprintf(f->net->fence, sizeof(f->net->fence), "owner/net");
    f->net->fence_revision = 5;
    assert_int_equal(try_to_join(f, "train", &job), JOBS_E_AGAIN);
    store_wait(f->store);
    assert_int_equal(f->last_r, -EIO);
    assert_null(job_network_find_job(f->net, "train"));
    f->net->fence[0] = '\0';
    /* The store takes no more requests for now. */
    while (store_pending(f->store) < STORE_PENDING_MAX)
        assert_int_equal(store_get(f->store, "nothing", on_nothing, NULL, &f->e), 0);
    assert_int_equal(try_to_join(f, "train", &job), -EAGAIN);
    assert_null(job_network_find_job(f->net, "train"));
    store_wait(f->store);
    assert_int_equal(join(f, "train")->record.run, 1);
}

/* Ports that could not be opened are tried again each second, while the network is served. */
static void test_ports_are_tried_again(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    (void)snprintf(f->net->interface, sizeof(f->net->interface), "no-such-one");
    job->ports.n_failures = 1;
    tick(f, NSEC_PER_SEC);
    assert_int_equal(job->ports.n_failures, 1);
    f->net->is_served = true;
    tick(f, NSEC_PER_SEC);
    assert_int_equal(job->ports.n_failures, 2);
    job->ports.n_failures = 0;
    tick(f, NSEC_PER_SEC);
    assert_int_equal(job->ports.n_failures, 0);
}

/* A run is over when nobody was heard for a minute, unless somebody is connected. */
static struct job_outlook look_at(struct fixture *f, const char *name)
{
    struct job_outlook o;

    assert_int_equal(job_runs_look(f->net, name, now, &o, &f->e), 0);
    return o;
}

/* It is said where a job would meet, and nobody has come to it by that. */
static void test_a_look_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct job_outlook before = look_at(f, "job");
    struct job *job;
    nsec_t heard_at;

    assert_null(before.job);
    assert_true(before.begins);
    assert_int_equal(before.record.run, 1);
    assert_null(job_network_find_job(f->net, "job"));
    assert_int_equal(count(f, "rdzv/"), 0);

    /* While it is being made it is where it will be. */
    assert_int_equal(try_to_join(f, "job", &job), JOBS_E_AGAIN);
    assert_true(look_at(f, "job").begins);
    assert_int_equal(look_at(f, "job").record.run, 1);
    assert_int_equal(look_at(f, "job").record.port, before.record.port);
    save_all(f);
    job = join(f, "job");
    assert_int_equal(job->record.port, before.record.port);
    heard_at = job->heard_at;
    now += NSEC_PER_SEC;
    assert_ptr_equal(look_at(f, "job").job, job);
    assert_false(look_at(f, "job").begins);
    assert_int_equal(job->heard_at, heard_at);

    /* The next run, which does not begin by it. */
    now += JOBS_QUIET + 1;
    assert_true(look_at(f, "job").begins);
    assert_int_equal(look_at(f, "job").record.run, 2);
    assert_int_equal(job->record.run, 1);
    assert_int_equal(json_object_size(job->members.names), 1);
}

static void test_quiet(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    now += JOBS_QUIET;
    assert_int_equal(join(f, "train")->record.run, 1);
    now += JOBS_QUIET + 1;
    assert_int_equal(join(f, "train")->record.run, 2);
    say_members(f, job, 1);
    now += 10 * JOBS_QUIET;
    assert_int_equal(join(f, "train")->record.run, 2);
    /* The process has ended, and so have all connections: the minute begins. */
    job_intake_end(f->net, now);
    now += JOBS_QUIET;
    assert_int_equal(join(f, "train")->record.run, 2);
    now += JOBS_QUIET + 1;
    assert_int_equal(join(f, "train")->record.run, 3);
}

static void hear(struct job *job, const char *name, bool ended)
{
    const struct job_word word = {.command = name, .every_seconds = 3, .ended = ended};

    job_members_hear(&job->members, name, &word, now);
}

/* A run that all its commands have left is over, however they have left it. */
static void test_all_commands_are_gone(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    hear(job, "a", false);
    hear(job, "b", false);
    assert_int_equal(join(f, "train")->record.run, 1);
    hear(job, "a", true);
    assert_int_equal(join(f, "train")->record.run, 1);
    /* The other one was killed: it is missed after three times what it said, and six seconds. */
    now += 9 * NSEC_PER_SEC + JOB_MEMBERS_GRACE + 1;
    say_members(f, job, 1);
    assert_int_equal(join(f, "train")->record.run, 1);
    say_members(f, job, 0);
    assert_int_equal(join(f, "train")->record.run, 2);
    /* Nobody has spoken in the new one yet. */
    assert_int_equal(join(f, "train")->record.run, 2);
}

/* Who leaves the next run of a broken one first does not end it under those who are on their way.
 */
static void test_others_are_on_their_way(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    hear(job, "a", false);
    hear(job, "b", false);
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    assert_true(job_members_has_others(&job->members, "a", now));
    hear(job, "a", true);
    f->member = "b";
    assert_int_equal(join(f, "train")->record.run, 2);
    hear(job, "b", true);
    assert_false(job_members_has_others(&job->members, "a", now));
    f->broken = NULL;
    /* Commands that have ended by their own word say of the run that it has. */
    assert_int_equal(join(f, "train")->record.run, 2);
}

static void test_who_said_how_many_nodes(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    job_members_set_nnodes(&job->members, "a", "4");
    job_members_set_nnodes(&job->members, "b", "4");
    assert_string_equal(job->members.nnodes_by, "a");
    job_members_set_nnodes(&job->members, "b", "2");
    assert_string_equal(job->members.nnodes_by, "b");
    assert_string_equal(job->members.nnodes, "2");
}

/* Who has the places of a job is in the store, goes on into the run that takes the place of a
 * broken one, and is nobody once the run is over. */
static void test_who_has_the_places_is_stored(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    job_members_set_nnodes(&job->members, "a", "2");
    tick(f, 0);
    assert_string_equal(job->record.members, "");
    f->member = "b";
    (void)join(f, "train");
    tick(f, 0);
    assert_string_equal(job->record.members, "a b");
    assert_false(job->members.is_noted);
    tick(f, 0);
    assert_true(job->members.is_noted);
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    assert_string_equal(job->record.members, "a b");
    f->broken = NULL;
    assert_int_equal(end_r(f, job, NULL), 0);
    assert_int_equal(join(f, "train")->record.run, 3);
    assert_string_equal(job->record.members, "");
}

static void check_over(struct fixture *f, const char *run, const char *sentence)
{
    struct job *job = NULL;

    f->broken = run;
    assert_int_equal(join_r(f, "train", &job), JOBS_E_OVER);
    assert_string_equal(err_text(&f->e), sentence);
    f->broken = NULL;
}

/* A run that has ended on a member is not begun again by another one, also after a start of the
 * hub, which knows nothing of the commands. */
static void test_a_run_that_has_ended_somewhere(void **state)
{
    static const char sentence[] =
        "the command of the job has ended on b in the run train.1, so that run is not begun again";
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    hear(job, "a", false);
    hear(job, "b", true);
    tick(f, 0);
    assert_string_equal(job->record.ended_on, "b");
    check_over(f, "train.1", sentence);
    job_members_deinit(&job->members);
    check_over(f, "train.1", sentence);
    /* b is there again. */
    hear(job, "b", false);
    tick(f, 0);
    assert_string_equal(job->record.ended_on, "");
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    /* It says of the run before that it has ended, as it could not while the hub was away. */
    assert_false(job_members_hear_late(&job->members, "b", "train.0",
        &(struct job_word){.command = "b", .every_seconds = 3, .ended = true}, now));
    assert_true(job_members_hear_late(&job->members, "b", "train.1",
        &(struct job_word){.command = "b", .every_seconds = 3, .ended = true}, now));
    tick(f, 0);
    assert_string_equal(job->record.ended_on, "b");
    check_over(f, "train.2",
        "the command of the job has ended on b in the run train.2, so that run is not begun again");
    /* Who names no run that is broken begins anew when this one is over. */
    f->broken = NULL;
    assert_int_equal(end_r(f, job, NULL), 0);
    assert_int_equal(join(f, "train")->record.run, 3);
    assert_string_equal(job->record.ended_on, "");
}

/* Somebody may say at once that the run is broken when that one is back; and when others have begun
 * since all had ended, it is not theirs that has. */
static void test_what_has_ended_before(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    hear(job, "a", false);
    hear(job, "b", true);
    tick(f, 0);
    assert_string_equal(job->record.ended_on, "b");
    hear(job, "b", false);
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    f->broken = NULL;
    hear(job, "b", true);
    hear(job, "a", true);
    tick(f, NSEC_PER_SEC);
    assert_string_not_equal(job->record.ended_on, "");
    f->member = "c";
    (void)join(f, "train");
    tick(f, NSEC_PER_SEC);
    assert_string_equal(job->record.ended_on, "");
    f->broken = "train.2";
    assert_int_equal(join(f, "train")->record.run, 3);
}

/* A run ends when somebody says so while nobody else is connected. */
static void test_an_end(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");
    struct ip_addr one = address(1);
    struct ip_addr two = address(2);

    say_members(f, job, 1);
    assert_int_equal(end_r(f, job, &two), JOBS_E_BUSY);
    say_members(f, job, 2);
    assert_int_equal(end_r(f, job, &one), JOBS_E_BUSY);
    say_members(f, job, 1);
    job_members_keep(&job->members, "c", now);
    assert_int_equal(end_r(f, job, &one), 0);
    assert_null(job->members.kept);
    assert_int_equal(end_r(f, job, &one), 0);
    assert_int_equal(job->record.run, 1);
    assert_int_equal(join(f, "train")->record.run, 2);
    assert_false(job->record.ended);
}

/* A run that cannot go on: the first member that says so begins the next one, for all of them. */
static void test_a_broken_run(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    say_members(f, job, 3);
    f->broken = "train.2";
    assert_int_equal(join(f, "train")->record.run, 1);
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    say_members(f, job, 1);
    assert_int_equal(join(f, "train")->record.run, 2);
    f->broken = NULL;
    assert_int_equal(join(f, "train")->record.run, 2);
}

static void check_members(const struct job *job, const char *all)
{
    json_t *list = job_members_list(&job->members);
    char *text = json_dumps(list, JSON_COMPACT);

    assert_string_equal(text, all);
    free(text);
    json_decref(list);
}

/* Who has not come to a run cannot say that it is broken; a hub that does not know who has come,
 * because it was started since, takes everybody's word. */
static void test_who_may_say_so(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");

    f->member = "b";
    f->broken = "train.1";
    assert_int_equal(join_r(f, "train", &job), JOBS_E_STRANGER);
    assert_non_null(strstr(err_text(&f->e), "\"b\" has not come to the run \"train.1\""));
    check_members(job, "[\"a\"]");
    f->broken = NULL;
    (void)join(f, "train");
    check_members(job, "[\"a\",\"b\"]");
    f->broken = "train.1";
    assert_int_equal(join(f, "train")->record.run, 2);
    check_members(job, "[\"b\"]");
    job_members_deinit(&job->members);
    f->member = "c";
    f->broken = "train.2";
    assert_int_equal(join(f, "train")->record.run, 3);
    check_members(job, "[\"c\"]");
}

/* What NCCL took on a node is the last that it said, and is forgotten with the run. */
static void test_what_nccl_took(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");
    json_t *nccl;
    char name[16];

    assert_null(job_members_nccl(&job->members));
    job_members_set_nccl(&job->members, "a", json_pack("{s:s}", "verdict", "unknown"));
    job_members_set_nccl(&job->members, "a", json_pack("{s:s}", "verdict", "wanted"));
    (void)join(f, "train");
    nccl = job_members_nccl(&job->members);
    assert_int_equal(json_array_size(nccl), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(nccl, 0), "verdict")), "wanted");
    assert_string_equal(json_string_value(json_object_get(json_array_get(nccl, 0), "node")), "a");
    json_decref(nccl);
    check_members(job, "[\"a\"]");
    for (unsigned i = 0; i < JOB_MEMBERS_NCCL_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        job_members_set_nccl(&job->members, name, json_pack("{s:s}", "verdict", "wanted"));
    }
    nccl = job_members_nccl(&job->members);
    assert_int_equal(json_array_size(nccl), JOB_MEMBERS_NCCL_MAX);
    json_decref(nccl);
    f->broken = "train.1";
    assert_null(job_members_nccl(&join(f, "train")->members));
}

/* So many runs may begin and end at once, and then ten a second. */
static void test_pace(void **state)
{
    struct fixture *f = *state;
    struct ip_addr one = address(1);
    struct job *job = join(f, "train");
    unsigned n = 1;
    int r = 0;

    while (r == 0) {
        r = n % 2 ? end_r(f, job, &one) : join_r(f, "train", &job);
        n += r == 0;
    }
    assert_int_equal(r, JOBS_E_PACE);
    assert_int_equal(n, 21);
    assert_int_equal(join_r(f, "another", &job), JOBS_E_PACE);
    now += 100 * NSEC_PER_MSEC;
    assert_int_equal(join_r(f, "another", &job), 0);
    assert_int_equal(join_r(f, "third", &job), JOBS_E_PACE);
}

/* What is noted of runs takes nothing from those that begin. */
static void test_notes_have_a_pace_of_their_own(void **state)
{
    struct fixture *f = *state;
    char name[8];

    for (unsigned i = 0; i < 21; i++) {
        struct job *job;

        (void)snprintf(name, sizeof(name), "j%u", i);
        f->member = "a";
        job = join(f, name);
        job_members_set_nnodes(&job->members, "a", "2");
        f->member = "b";
        (void)join(f, name);
        job_runs_note(job, now);
        store_wait(f->store);
        assert_string_equal(job->record.members, "a b");
    }
}

static void say_blob(struct fixture *f, struct job *job, const char *name)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_PUT,
        .job = job->number,
        .run = job->record.run,
        .kind = RDZV_KEY_ENTRY,
        .hash = rdzv_hash_of(name, strlen(name)),
        .n_pieces = 1,
        .data = (const uint8_t *)"bytes",
        .len = 5};

    job->sent.number = job->number;
    assert_true(job_intake_take(f->net, &m, now));
}

/* A job that nobody comes to for two hours is forgotten, and nothing of it is left. */
static void test_idle(void **state)
{
    struct fixture *f = *state;
    struct job *job = join(f, "train");
    uint16_t port = job->record.port;

    say_blob(f, job, "x");
    save_all(f);
    assert_int_equal(count(f, "rdzv/net/train"), 2);
    say_members(f, job, 1);
    tick(f, 2 * JOBS_IDLE);
    assert_non_null(job_network_find_job(f->net, "train"));
    say_members(f, job, 0);
    tick(f, JOBS_IDLE - NSEC_PER_SEC);
    assert_non_null(job_network_find_job(f->net, "train"));
    tick(f, 2 * NSEC_PER_SEC);
    assert_null(job_network_find_job(f->net, "train"));
    save_all(f);
    assert_int_equal(count(f, "rdzv/"), 0);
    assert_int_equal(f->net->totals.n_entries, 0);
    job = join(f, "train");
    assert_int_equal(job->record.port, port);
    assert_int_equal(job->record.run, 1);
}

/* The default job stays; what is in it goes. */
static void test_the_default_job(void **state)
{
    struct fixture *f = *state;
    struct job *job;

    job_runs_make_default(f->net, now);
    assert_null(job_network_find_job(f->net, JOBS_DEFAULT));
    f->net->is_served = true;
    (void)snprintf(f->net->interface, sizeof(f->net->interface), "lo");
    sample_late_set_loss(f->store, 1);
    job_runs_make_default(f->net, now);
    store_wait(f->store);
    assert_null(job_network_find_job(f->net, JOBS_DEFAULT));
    /* It is tried again. */
    sample_late_set_loss(f->store, 0);
    tick(f, NSEC_PER_SEC);
    f->net->is_served = false;
    job = job_network_find_job(f->net, JOBS_DEFAULT);
    assert_non_null(job);
    assert_int_equal(job->record.port, JOBS_DEFAULT_C10D);
    say_blob(f, job, "x");
    say_members(f, job, 0);
    tick(f, JOBS_IDLE + 1);
    assert_int_equal(job->record.run, 2);
    assert_int_equal(job->facts.n_keys, 0);
    save_all(f);
    assert_int_equal(count(f, "rdzv/net/default"), 1);
    /* There is nothing in it now. */
    tick(f, JOBS_IDLE + 1);
    assert_int_equal(job->record.run, 2);
}

/* More garbage than goes at once, so that the job is still there when somebody comes. */
static struct job *forget_long(struct fixture *f)
{
    struct job *job = join(f, "train");
    char name[16];

    for (unsigned i = 0; i < 600; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        say_blob(f, job, name);
    }
    save_all(f);
    tick(f, JOBS_IDLE + 1);
    assert_true(job->is_forgotten);
    assert_ptr_equal(job_network_find_job(f->net, "train"), job);
    return job;
}

/* A job that was forgotten, and of which something is left, goes on with its runs. */
static void test_a_job_is_revived(void **state)
{
    struct fixture *f = *state;
    struct job *job = forget_long(f);
    uint32_t number = job->number;

    job->facts.n_keys = 3;
    f->member = "b";
    /* It would meet in its next run. */
    assert_null(look_at(f, "train").job);
    assert_true(look_at(f, "train").begins);
    assert_int_equal(look_at(f, "train").record.run, 2);
    assert_ptr_equal(join(f, "train"), job);
    check_members(job, "[\"b\"]");
    assert_int_equal(job->facts.n_keys, 0);
    assert_int_equal(job->heard_at, now);
    assert_true(job_exists(job));
    assert_false(job->is_forgotten);
    assert_int_equal(job->record.run, 2);
    /* To the process it is another one. */
    assert_int_not_equal(job->number, number);
    for (unsigned i = 0; i < 10; i++) {
        job_network_sweep(f->net, now);
        save_all(f);
    }
    assert_int_equal(count(f, "rdzv/"), 1);
}

/* A network goes while a job of it is on its way to the store: nothing of that is left. */
static void test_a_network_goes(void **state)
{
    struct fixture *f = *state;
    struct job *job = NULL;

    assert_int_equal(try_to_join(f, "new", &job), JOBS_E_AGAIN);
    job_network_forget(f->net, now);
    save_all(f);
    assert_int_equal(f->n_done, 1);
    save_all(f);
    assert_int_equal(count(f, "rdzv/"), 0);
    assert_true(list_is_empty(&f->net->jobs));
    /* The same with one that is about to be there again. */
    (void)forget_long(f);
    assert_int_equal(try_to_join(f, "train", &job), JOBS_E_AGAIN);
    job_network_forget(f->net, now);
    for (unsigned i = 0; i < 10; i++) {
        save_all(f);
        job_network_sweep(f->net, now);
    }
    assert_true(list_is_empty(&f->net->jobs));
    save_all(f);
    assert_int_equal(count(f, "rdzv/"), 0);
}

/* A network has so many jobs, and each has a port of its own. */
static void test_full(void **state)
{
    struct fixture *f = *state;
    bool is_used[JOBS_JOBS_MAX] = {false};
    struct job *job;
    char name[16];

    for (unsigned i = 0; i < JOBS_JOBS_MAX; i++, now += 100 * NSEC_PER_MSEC) {
        (void)snprintf(name, sizeof(name), "job-%u", i);
        job = join(f, name);
        assert_false(is_used[job->record.port - JOBS_PORT_FIRST]);
        is_used[job->record.port - JOBS_PORT_FIRST] = true;
    }
    assert_int_equal(join_r(f, "one-more", &job), JOBS_E_FULL);
    assert_string_equal(err_text(&f->e),
        "network \"net\" has 256 jobs already; one is forgotten 2 hours after its last member has "
        "gone");
    assert_int_equal(
        job_runs_look(f->net, "one-more", now, &(struct job_outlook){.begins = false}, &f->e),
        JOBS_E_FULL);
    assert_null(job_network_find_job(f->net, "one-more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_job_is_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_job_is_not_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ports_are_tried_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_look_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_commands_are_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_are_on_their_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_said_how_many_nodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_has_the_places_is_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_that_has_ended_somewhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_has_ended_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_broken_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_may_say_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_nccl_took, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes_have_a_pace_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_default_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_job_is_revived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
