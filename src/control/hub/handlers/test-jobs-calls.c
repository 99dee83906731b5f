/*
 * test-jobs-calls.c - what members may ask about jobs, and what they are told: a whole hub in this
 * process, which serves jobs but starts no process for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "health/finding.h"
#include "health/job_sample.h"
#include "hub/jobs/jobs.h"
#include "hub/owner/owners.h"
#include "os/clock.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

#define TRAIN "/v1/jobs/train/rendezvous"

static struct sample_hub hub;

/* So much later than it is a question is asked. Jobs look at the clock themselves when the store
 * has answered. */
static nsec_t ahead;

static void serve(void)
{
    struct err e = ERR_NULL;

    assert_int_equal(
        changes_open_jobs(&hub.hub->changes, sample_hub_network(&hub), NULL, 0, 0, &e), 0);
}

/* The nodes a, b and c. */
static int begin_unserved(void **state)
{
    sample_hub_begin(&hub);
    ahead = 0;
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    sample_hub_add_node(&hub, "c");
    return 0;
}

static int begin(void **state)
{
    (void)begin_unserved(state);
    serve();
    return 0;
}

static int end(void **state)
{
    sample_hub_end(&hub);
    return 0;
}

/* The answer's text, until the next question. */
static const char *said(json_t *json)
{
    static char text[8192];
    char *all = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    (void)snprintf(text, sizeof(text), "%s", all ? all : "");
    free(all);
    json_decref(json);
    return text;
}

/* @words: of the answer; NULL: any. */
static void ask(const char *node, const char *method, const char *path, const char *body,
    int status, const char *words)
{
    json_t *json = NULL;
    const char *text;
    int is;

    hub.now = clock_now() + ahead;
    is = sample_hub_ask(
        &hub, API_ACCESS_OVERLAY, sample_hub_node(&hub, node), method, path, body, &json);
    text = said(json);
    if (is != status || (words && !strstr(text, words)))
        fail_msg("%s %s by %s: %d %s", method, path, node, is, text);
}

/* What is asked for is there, and these words are not in it. */
static void ask_without(const char *node, const char *path, const char *words)
{
    json_t *json = NULL;

    hub.now = clock_now() + ahead;
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_OVERLAY, sample_hub_node(&hub, node), "GET",
                         path, NULL, &json),
        200);
    assert_null(strstr(said(json), words));
}

static void ask_admin(const char *path, int status, const char *words)
{
    json_t *json = NULL;
    const char *text;
    int is = sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json);

    text = said(json);
    if (is != status || !strstr(text, words))
        fail_msg("GET %s: %d %s", path, is, text);
}

static void join(const char *node, const char *body, int status, const char *words)
{
    ask(node, "POST", TRAIN, body, status, words);
}

/* The command of @node in that run says that it is there, or that it has ended. */
static void tell(const char *node, const char *run, bool ended, int status, const char *words)
{
    char body[256];

    (void)snprintf(body, sizeof(body),
        "{\"run\":\"%s\",\"command\":\"x\",\"everySeconds\":3,\"ended\":%s}", run,
        ended ? "true" : "false");
    ask(node, "PUT", TRAIN, body, status, words);
}

/* ---- a job is made, and found ---------------------------------------------------------------- */

static void test_a_job_is_found(void **state)
{
    ask("b", "GET", TRAIN, NULL, 404, "has no job \\\"train\\\"");
    join("a", "{}", 200, "\"run\":\"train.1\"");
    ask("b", "GET", TRAIN, NULL, 200, "\"members\":[\"a\"]");
    join("b", "{}", 200, "\"run\":\"train.1\"");
    ask("c", "GET", TRAIN, NULL, 200, "\"members\":[\"a\",\"b\"]");
    ask("c", "GET", "/v1/jobs", NULL, 200, "\"present\":[\"a\",\"b\"]");
    ask("c", "GET", "/v1/jobs/other/rendezvous", NULL, 404, "has no job \\\"other\\\"");
    ask_admin("/v1/networks/default/jobs", 200, "\"job\":\"train\"");
    ask_admin("/v1/networks/none/jobs", 404, "no network \\\"none\\\"");
}

static void test_what_is_no_job(void **state)
{
    ask("a", "POST", "/v1/jobs/A_b/rendezvous", "{}", 400, "job");
    ask("a", "GET", "/v1/jobs/A_b/rendezvous", NULL, 400, "job");
    join("a", "{\"nnodes\":\"many\"}", 400, "neither a number of nodes nor MIN:MAX");
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"jobs\":[]");
}

/* It is said where the job would meet; nobody is one of it by that, and no run begins. */
static void test_a_dry_run(void **state)
{
    join("a", "{\"dryRun\":true}", 200, "\"begins\":true");
    ask("a", "GET", TRAIN, NULL, 404, "has no job");
    join("a", "{}", 200, "\"run\":\"train.1\"");
    join("b", "{\"dryRun\":true}", 200, "\"begins\":false");
    ask("b", "GET", TRAIN, NULL, 200, "\"members\":[\"a\"]");
    ahead = JOBS_QUIET + 1;
    join("b", "{\"dryRun\":true}", 200, "\"run\":\"train.2\"");
    ask("b", "GET", TRAIN, NULL, 200, "\"run\":\"train.1\"");
}

/* ---- who serves it ----------------------------------------------------------------------------
 */

/* The store says that this hub has the network's jobs, or another one, or none. */
static void set_owner(const char *name)
{
    struct owner_record record = {.epoch = 1};
    struct store_op op = {.kind = STORE_OP_PUT, .expect = STORE_EXPECT_ANY};
    char key[RECORD_KEY_MAX];
    struct err e = ERR_NULL;
    char *text;

    (void)snprintf(record.hub, sizeof(record.hub), "%s", name);
    op.key = owner_key(key, OWNER_RECORD_PREFIX, "default");
    op.value = text = owner_record_encode(&record);
    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, 1, NULL, NULL, &e), 0);
    free(text);
    store_wait(hub.hub->store);
}

/* As on a store that several hubs have. */
static void share_store(void)
{
    struct err e = ERR_NULL;

    hub.hub->store->is_shared = true;
    assert_int_equal(owners_load(&hub.hub->owners, &e), 0);
}

static void test_another_hub_serves(void **state)
{
    share_store();
    set_owner("far");
    join("a", "{}", 421, "\"hub\":\"far\"");
    ask("a", "GET", TRAIN, NULL, 421,
        "hub \\\"far\\\" serves the rendezvous of network \\\"default\\\": ask that one");
    ask("a", "GET", "/v1/jobs", NULL, 421, "ask that one");
    ask_admin("/v1/networks/default/jobs", 421, "ask that one");
    set_owner("");
    ask("a", "GET", "/v1/jobs", NULL, 421,
        "no hub serves the rendezvous of network \\\"default\\\" at the moment");
    serve();
    join("a", "{}", 200, "\"run\":\"train.1\"");
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"job\":\"train\"");
    ask_admin("/v1/networks/default/jobs", 200, "\"job\":\"train\"");
}

/* Of the network's hubs it is said which one serves its jobs. */
static void test_who_serves_is_shown(void **state)
{
    ask_admin("/v1/networks/default/nodes", 200, "\"reachable\":true,\"spec\"");
    share_store();
    set_owner(hub.hub->model.self);
    ask_admin("/v1/networks/default/nodes", 200, "\"servesJobs\":true");
    set_owner("far");
    ask_admin("/v1/networks/default/nodes", 200, "\"servesJobs\":false");
}

/* ---- budgets ----------------------------------------------------------------------------------
 */

/* Who is in a job is told what is left of its budget; others are not, and administrators are. */
static void test_budgets(void **state)
{
    static const char path[] = "/v1/networks/default/objects/Network/default";
    json_t *net = NULL;
    char *body;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &net), 200);
    (void)json_object_set_new(json_object_get(net, "spec"), "budgets",
        json_pack("[{s:s, s:i}]", "job", "train", "bytesPerDay", 1000));
    body = json_dumps(net, 0);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "PUT", path, body, NULL), 200);
    free(body);
    json_decref(net);
    for (unsigned i = 0; i < 2; i++) {
        spending_tick(&hub.hub->spending, hub.now, clock_wall_s());
        store_wait(hub.hub->store);
    }
    join("a", "{}", 200, NULL);
    ask("a", "GET", TRAIN, NULL, 200, "\"budget\":{\"bytes\":0,\"bytesPerDay\":1000,");
    ask_admin("/v1/networks/default/jobs", 200, "\"budget\":{\"bytes\":0,\"bytesPerDay\":1000,");
    ask_admin("/v1/networks/default/jobs", 200, "\"budgets\":[{\"bytes\":0,\"bytesPerDay\":1000,");
    ask_without("b", TRAIN, "\"budget\"");
    ask("a", "POST", "/v1/jobs/other/rendezvous", "{}", 200, NULL);
    ask_without("a", "/v1/jobs/other/rendezvous", "\"budget\"");
}

/* ---- how many nodes ---------------------------------------------------------------------------
 */

static void test_another_number_of_nodes(void **state)
{
    join("a", "{\"nnodes\":\"2\"}", 200, NULL);
    /* Whoever is alone in it may say another number. */
    join("a", "{\"nnodes\":\"3\"}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    join("b", "{\"nnodes\":\"2\"}", 409,
        "runs with 3 nodes, as \\\"a\\\" has begun it, and here --nnodes is 2");
    /* Who says none leaves it at that. */
    join("b", "{}", 200, NULL);
    join("c", "{\"nnodes\":\"2\"}", 409, "and here --nnodes is 2");
    join("b", "{\"nnodes\":\"3\"}", 200, NULL);
    join("a", "{\"nnodes\":\"3\"}", 200, NULL);
}

/* Nobody has said how many they are: any number is theirs. */
static void test_no_number_of_nodes(void **state)
{
    join("a", "{}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    join("b", "{\"nnodes\":\"2\"}", 200, NULL);
}

static void test_a_job_is_full(void **state)
{
    join("a", "{\"nnodes\":\"2\"}", 200, NULL);
    join("b", "{\"nnodes\":\"2\"}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    join("c", "{\"nnodes\":\"2\"}", 409, "has its 2 nodes, a, b, and this would be one more");
    join("c", "{\"nnodes\":\"2\",\"dryRun\":true}", 409, "--nnodes 2:3 on all of them");
    join("a", "{\"nnodes\":\"2\"}", 200, "\"run\":\"train.1\"");
    join("b", "{\"nnodes\":\"2\",\"brokenRun\":\"train.1\"}", 200, "\"run\":\"train.2\"");
}

/* ---- a run that cannot go on ------------------------------------------------------------------
 */

static void test_a_broken_run(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    join("c", "{\"brokenRun\":\"train.1\"}", 403, "has not come to the run \\\"train.1\\\"");
    join("a", "{\"brokenRun\":\"train.1\"}", 200, "\"run\":\"train.2\"");
    join("b", "{\"brokenRun\":\"train.1\"}", 200, "\"run\":\"train.2\"");
}

/* It has ended on a node, which is named. */
static void test_a_run_that_has_ended(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    tell("a", "train.1", true, 200, NULL);
    join("b", "{\"brokenRun\":\"train.1\"}", 409, "\"endedOn\":\"a\"");
    join("a", "{\"brokenRun\":\"train.1\"}", 200, "\"run\":\"train.2\"");
}

static int take_text(void *ctx, const struct store_item *item)
{
    (void)snprintf(ctx, 512, "%s", item->value);
    return 0;
}

/* Is that in the job's record? */
static bool is_stored(const char *words)
{
    char text[512] = "";

    store_wait(hub.hub->store);
    assert_int_equal(
        store_now_list(hub.hub->store, "rdzv/default/train", take_text, text, NULL, NULL), 0);
    return strstr(text, words) != NULL;
}

/* Once all have come, who they are is stored at once, and that a command has ended: the next hub
 * has to know it. */
static void test_what_is_stored_of_members(void **state)
{
    join("a", "{\"nnodes\":\"2\"}", 200, NULL);
    assert_true(is_stored("\"members\":\"\",\"endedOn\":\"\""));
    join("b", "{\"nnodes\":\"2\"}", 200, NULL);
    assert_true(is_stored("\"members\":\"a b\""));
    tell("a", "train.1", false, 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    assert_false(is_stored("\"endedOn\":\"a\""));
    tell("a", "train.1", true, 200, NULL);
    assert_true(is_stored("\"endedOn\":\"a\""));
}

static void test_runs_have_a_pace(void **state)
{
    unsigned n = 0;
    int status;

    hub.now = clock_now();
    do {
        char path[64];

        (void)snprintf(path, sizeof(path), "/v1/jobs/j%u/rendezvous", n);
        status = sample_hub_ask(
            &hub, API_ACCESS_OVERLAY, sample_hub_node(&hub, "a"), "POST", path, "{}", NULL);
        n += status == 200;
    } while (status == 200 && n < 100);
    assert_int_equal(status, 429);
    assert_true(n >= 20);
}

/* ---- what NCCL took ---------------------------------------------------------------------------
 */

#define NCCL_OF(run)                                                                               \
    "{\"run\":\"" run                                                                              \
    "\",\"verdict\":\"wanted\",\"profile\":\"ib\",\"network\":\"IB\",\"text\":\"IB it is\"}"

static void test_what_nccl_took(void **state)
{
    static const char path[] = "/v1/jobs/train/nccl";

    join("a", "{}", 200, NULL);
    ask("a", "POST", path, NCCL_OF("train.1"), 204, NULL);
    ask("b", "GET", TRAIN, NULL, 200, "\"text\":\"IB it is\"");
    ask("b", "POST", path, NCCL_OF("train.1"), 409, "is in no run \\\"train.1\\\"");
    ask("a", "POST", path, NCCL_OF("train.2"), 409, "is in no run \\\"train.2\\\"");
    ask("a", "POST", path, "{\"run\":\"train.1\"}", 400, "verdict");
    ask("a", "POST", "/v1/jobs/other/nccl", NCCL_OF("other.1"), 404, "has no job");
}

/* ---- samples ----------------------------------------------------------------------------------
 */

#define SAMPLES "/v1/jobs/train/samples"
#define NONE    "\"waitingThousandths\":0}"
#define SAMPLE_WITH(run, stopped, peers, more)                                                     \
    "{\"run\":\"" run "\",\"milliseconds\":3000,\"processes\":{\"count\":3,\"stopped\":" stopped   \
    ",\"stoppedMilliseconds\":2500,\"cpuThousandths\":0,\"kernelThousandths\":0,"                  \
    "\"runningThousandths\":0," NONE ",\"peers\":[" peers "]" more "}"
#define SAMPLE_OF(run, stopped, peers) SAMPLE_WITH(run, stopped, peers, "")

/* @code: what is found of the network; NULL: nothing. */
static void expect_finding(const char *code)
{
    static nsec_t ahead_by;

    ahead_by += 2 * HEALTH_EACH;
    health_pass(&hub.hub->reports.health,
        &(struct health_time){.now = clock_now() + ahead_by, .wall_s = clock_wall_s()});
    ask_admin("/v1/networks/default/findings", 200, code ? code : "\"findings\":[]");
}

static void test_what_holds_up_a_job(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"heldUpBy\":[]");
    ask("a", "PUT", SAMPLES, SAMPLE_OF("train.1", "0", ""), 204, NULL);
    ask_without("a", "/v1/jobs", "\"step\"");
    ask("b", "PUT", SAMPLES,
        SAMPLE_WITH("train.1", "1", "",
            ",\"progress\":{\"ranks\":1,\"step\":120,\"steps\":6,\"commMilliseconds\":0}"),
        204, NULL);
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"step\":120,\"stepsPerSecond\":2.0");
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"bytesPerSecond\":0,");
    jobs_tick(hub.hub->jobs, clock_now() + ahead);
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"subject\":\"train/b\"");
    ask_admin("/v1/networks/default/jobs", 200, "\"code\":\"WEFT-RANK-004\"");
    assert_int_equal(jobs_findings(&sample_hub_network(&hub)->served->jobs)->n, 1);
    expect_finding("\"code\":\"WEFT-RANK-004\"");
    /* What asks often is told in brief. */
    tell("a", "train.1", false, 200, NULL);
    assert_null(
        strstr(said(jobs_json(jobs_find(&sample_hub_network(&hub)->served->jobs, "train"), true)),
            "heldUpBy"));
    /* It has ended, and is not to be missed. */
    tell("b", "train.1", true, 200, NULL);
    jobs_tick(hub.hub->jobs, clock_now() + ahead);
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"heldUpBy\":[]");
    expect_finding(NULL);
}

/* For 30 s, up to so long ago, a sends b this much in each sample, in so much time. */
static void carry(uint64_t sent, uint32_t busy_ms, nsec_t until)
{
    struct job *job = jobs_find(&sample_hub_network(&hub)->served->jobs, "train");
    static struct job_sample s;

    s = (struct job_sample){.run = "train.1", .ms = 3000};
    for (nsec_t at = clock_now() - until - 30 * NSEC_PER_SEC; at < clock_now() - until;
         at += 3 * NSEC_PER_SEC) {
        s.n_peers = 0;
        jobs_take_sample(job, "b", &s, at);
        s.n_peers = 1;
        s.peers[0] = (struct job_sample_peer){
            .node = "b", .flow = {.sent = sent, .busy_ms = busy_ms, .segments = 300}};
        jobs_take_sample(job, "a", &s, at);
        jobs_tick(hub.hub->jobs, at);
    }
}

/* A line that holds up a job is found of its way as well. */
static void test_a_way_that_is_slow(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    carry(20000000, 500, 90 * NSEC_PER_SEC);
    expect_finding(NULL);
    carry(500000, 2900, 60 * NSEC_PER_SEC);
    expect_finding("\"code\":\"WEFT-RANK-001\"");
    ask_admin("/v1/networks/default/findings", 200, "\"about\":\"way\",\"code\":\"WEFT-RATE-003\"");
    ask_admin("/v1/networks/default/findings", 200, "\"subject\":\"a>b\"");
    ask_admin("/v1/networks/default/findings", 200,
        "what job train sends from a to b goes at 0.17 MB/s while there is something to send, and "
        "in the last hour went at ");
    carry(20000000, 500, 30 * NSEC_PER_SEC);
    expect_finding(NULL);
    /* Nor is a way found when the job is forgotten. */
    carry(500000, 2900, 0);
    expect_finding("\"code\":\"WEFT-RATE-003\"");
    jobs_end_samples(jobs_find(&sample_hub_network(&hub)->served->jobs, "train"), "a");
    jobs_tick(hub.hub->jobs, clock_now());
    expect_finding(NULL);
}

/* A node of it that fails its health check gets no new work, and the job hears so. */
static void test_a_node_that_is_drained(void **state)
{
    static const char why[] = "\"drained\":[{\"node\":\"b\",\"why\":\"it is full\"}]";

    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    /* One that has nothing to do with the job is not named. */
    sample_hub_node(&hub, "c")->spec.drained = strdup("it is old");
    sample_hub_node(&hub, "b")->spec.drained = strdup("it is full");
    tell("a", "train.1", false, 200, why);
    tell("b", "train.1", false, 200, why);
    ask_admin("/v1/networks/default/jobs", 200, why);
    tell("b", "train.1", true, 200, NULL);
    ask_admin("/v1/networks/default/jobs", 200, "\"present\":[\"a\"]");
    free(sample_hub_node(&hub, "b")->spec.drained);
    sample_hub_node(&hub, "b")->spec.drained = NULL;
    ask_without("a", "/v1/jobs", "drained");
}

static void test_samples_that_are_refused(void **state)
{
    join("a", "{}", 200, NULL);
    ask("a", "PUT", SAMPLES, SAMPLE_OF("train.2", "0", ""), 409, "is in no run \\\"train.2\\\"");
    ask("b", "PUT", SAMPLES, SAMPLE_OF("train.1", "0", ""), 409, "\\\"b\\\" is in no run");
    ask("a", "PUT", SAMPLES, "{\"run\":\"train.1\"}", 400, "milliseconds");
    ask("a", "PUT", SAMPLES, SAMPLE_OF("train.1", "0", "{\"address\":\"x\"}"), 400,
        "no IP address");
    ask("a", "PUT", "/v1/jobs/other/samples", SAMPLE_OF("other.1", "0", ""), 404, "has no job");
}

/* ---- commands ---------------------------------------------------------------------------------
 */

static void test_a_command_is_there(void **state)
{
    join("a", "{}", 200, NULL);
    tell("a", "train.1", false, 200, "\"present\":1");
    tell("b", "train.1", false, 403, "has not come to the run \\\"train.1\\\"");
    ask("a", "PUT", TRAIN, "{\"run\":\"train.1\"}", 400, "command");
    ask("a", "PUT", "/v1/jobs/other/rendezvous", "{}", 404, "has no job");
    join("b", "{}", 200, NULL);
    tell("b", "train.1", true, 200, "\"ended\":1,\"endedOn\":[\"b\"]");
    tell("a", "train.1", false, 200, "\"endedOn\":[\"b\"]");
    /* What is asked so often is told in brief. */
    ask("a", "POST", "/v1/jobs/train/nccl", NCCL_OF("train.1"), 204, NULL);
    tell("a", "train.1", false, 200, NULL);
    assert_null(
        strstr(said(jobs_json(jobs_find(&sample_hub_network(&hub)->served->jobs, "train"), true)),
            "nccl"));
}

/* A job whose commands are heard is not quiet. */
static void test_a_command_keeps_the_run(void **state)
{
    join("a", "{}", 200, NULL);
    ahead = JOBS_QUIET / 2;
    ask("a", "PUT", TRAIN, "{\"run\":\"train.1\",\"command\":\"x\",\"everySeconds\":60}", 200,
        NULL);
    ahead = JOBS_QUIET + NSEC_PER_SEC;
    join("b", "{}", 200, "\"run\":\"train.1\"");
}

/* Of a run that is over it is told which the present one is, and nothing of its commands. */
static void test_a_command_of_a_former_run(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    join("a", "{\"brokenRun\":\"train.1\"}", 200, "\"run\":\"train.2\"");
    tell("c", "train.1", false, 200, "\"run\":\"train.2\"");
    ask("c", "GET", TRAIN, NULL, 200, "\"members\":[\"a\"]");
    /* That it has ended there counts here, where it is awaited. */
    tell("b", "train.1", true, 200, "\"run\":\"train.2\"");
    tell("a", "train.2", false, 200, "\"ended\":1,\"endedOn\":[\"b\"]");
    join("a", "{\"brokenRun\":\"train.2\"}", 409, "\"endedOn\":\"b\"");
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void test_the_end(void **state)
{
    join("a", "{}", 200, NULL);
    join("b", "{}", 200, NULL);
    tell("a", "train.1", false, 200, NULL);
    tell("b", "train.1", false, 200, NULL);
    ask("a", "DELETE", TRAIN, NULL, 409, "other members of job \\\"train\\\" are still there");
    tell("b", "train.1", true, 200, NULL);
    ask("a", "DELETE", TRAIN, NULL, 204, NULL);
    ask("a", "DELETE", TRAIN, NULL, 204, NULL);
    ask("a", "DELETE", "/v1/jobs/other/rendezvous", NULL, 404, "has no job");
    join("b", "{}", 200, "\"run\":\"train.2\"");
}

/* The network's jobs are not served here at all. */
static void test_a_job_without_a_service(void **state)
{
    ask("a", "GET", "/v1/jobs", NULL, 200, "\"jobs\":[]");
    ask("a", "GET", TRAIN, NULL, 404, "has no job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_job_is_found, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_no_job, begin, end),
        cmocka_unit_test_setup_teardown(test_a_dry_run, begin, end),
        cmocka_unit_test_setup_teardown(test_another_hub_serves, begin_unserved, end),
        cmocka_unit_test_setup_teardown(test_who_serves_is_shown, begin_unserved, end),
        cmocka_unit_test_setup_teardown(test_budgets, begin, end),
        cmocka_unit_test_setup_teardown(test_another_number_of_nodes, begin, end),
        cmocka_unit_test_setup_teardown(test_no_number_of_nodes, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_is_full, begin, end),
        cmocka_unit_test_setup_teardown(test_a_broken_run, begin, end),
        cmocka_unit_test_setup_teardown(test_a_run_that_has_ended, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_stored_of_members, begin, end),
        cmocka_unit_test_setup_teardown(test_runs_have_a_pace, begin, end),
        cmocka_unit_test_setup_teardown(test_what_nccl_took, begin, end),
        cmocka_unit_test_setup_teardown(test_what_holds_up_a_job, begin, end),
        cmocka_unit_test_setup_teardown(test_a_way_that_is_slow, begin, end),
        cmocka_unit_test_setup_teardown(test_a_node_that_is_drained, begin, end),
        cmocka_unit_test_setup_teardown(test_samples_that_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_is_there, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_keeps_the_run, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_of_a_former_run, begin, end),
        cmocka_unit_test_setup_teardown(test_the_end, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_without_a_service, begin_unserved, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
