/* run_before.c - see run_before.h. */
#include "cmd/run_before.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "os/capture.h"
#include "os/clock.h"
#include "os/process.h"
#include "train/job/agree.h"
#include "train/job/job_plan.h"

/* Model of the advice where nobody has said --params: weights. Small, so it errs on the good side.
 */
#define PARAMS_UNKNOWN "1B"

/* A round trip from which on a step waits for the network, ms, where nothing else was measured. */
#define FAR_MS 5.0

#define ADVICE_TIMEOUT_MS 10000

/* Seconds that each test may take, and both: nccl-tests may take a quarter of an hour. */
#define PREFLIGHT_PATIENCE_S (5 * 60)
#define BENCH_PATIENCE_S     (20 * 60)
#define TEST_PATIENCE_S      (PREFLIGHT_PATIENCE_S + BENCH_PATIENCE_S)

/* Bytes of each command's report that are kept; a pre-flight of 16 members has about 12,000. */
#define TEST_TEXT_MAX (48u << 10)

/* What a test is made for. */
struct testing {
    const struct run_before *before;
    const struct run *run;
};

static bool wants(const struct run_before *b, const char *word)
{
    return b->wan && strcmp(b->wan, word) == 0;
}

static void note(const char *text)
{
    (void)fprintf(stderr, "weft run: note: %s\n", text);
}

/* ---- does the job go by a plan? ------------------------------------------------------------- */

/* Says in a line what the plan has the job do, or refuses. */
static int judge_own(const struct run_before *b, const struct run *run, const struct job_plan *p)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    bool is_no = p->n_islands > 1 && !p->is_synchronous;

    if (!p->is_good)
        note("the job's plan is not good: the model does not fit, or no interval is long enough; "
             "weft plan says more");
    if (is_no)
        job_plan_say_no(p, &out);
    if (is_no && wants(b, "refuse"))
        return cmd_fail("run", "not started: %s", str_text(&out)), CMD_VERDICT_NO;
    if (is_no && (wants(b, "warn") || !run->is_quiet))
        (void)fprintf(stderr, "weft run: %s%s; the job is told by WEFT_PLAN\n",
            wants(b, "warn") ? "note: " : "", str_text(&out));
    return CMD_OK;
}

static int give_plan(struct run_before *b, struct run *run, const struct run_wish *wish)
{
    struct job_plan p = {.n_islands = 0};
    struct err e = ERR_NULL;
    int r = wish->plan ? job_plan_read(&p, wish->plan, &e)
                       : run_make_plan(run, wish->params, &b->plan, &p, &e);

    if (r != 0)
        return cmd_fail("run", "%s", err_text(&e));
    return judge_own(b, run, &p);
}

/* ---- a job without a plan ------------------------------------------------------------------- */

/* Makes the plan for the advice, of what was last measured. Return: false: nothing was. */
static bool advise(
    const struct run_before *b, const struct run *run, struct job_plan *ret, double *ret_age_s)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char path[PATH_MAX];
    struct job_plan_order order = {.params = PARAMS_UNKNOWN,
        .socket_path = run->socket_path,
        .matrix = path,
        .is_advice = true,
        .timeout_ms = ADVICE_TIMEOUT_MS};
    struct stat st;
    json_t *json;
    int r;

    if (snprintf(path, sizeof(path), "%s/" JOB_PLAN_MEASURED, b->state_dir) >= (int)sizeof(path) ||
        stat(path, &st) < 0 || job_plan_make(&order, &text, NULL) != 0)
        return false;
    json = json_loadb(str_text(&text), text.len, 0, NULL);
    r = job_plan_decode(ret, json, NULL);
    json_decref(json);
    *ret_age_s = (double)(clock_wall_s() - st.st_mtime);
    return r == 0;
}

static int judge_measured(const struct run_before *b, const struct job_plan *p, double age_s)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    if (p->n_islands < 2 || p->is_synchronous)
        return CMD_OK;
    job_plan_say_no(p, &out);
    str_addf(&out,
        " (by what this machine measured among the network's members %.1f hours ago, and a model "
        "as weft plan guesses it; --params says yours, and gives the job a plan)",
        age_s / 3600);
    if (wants(b, "refuse"))
        return cmd_fail("run", "not started: %s", str_text(&out)), CMD_VERDICT_NO;
    note(str_text(&out));
    return CMD_OK;
}

/* Is the job about to average in each step over a WAN? Nobody knows what it does, so it is said.
 * Nor is it known yet which members come to the job, so the network's are spoken of. */
static int judge_without_plan(const struct run_before *b, const struct run *run)
{
    struct job_plan p;
    double age_s = 0;

    if (wants(b, "allow") || run->min_nodes < 2 || run->uses_fabric)
        return CMD_OK;
    if (advise(b, run, &p, &age_s))
        return judge_measured(b, &p, age_s);
    if (wants(b, "refuse"))
        return cmd_fail("run",
            "not started: what its nodes give each other has not been measured here; weft bench "
            "does, and --params N has a plan made");
    if (run->node.far[0] != '\0' && run->node.far_rtt_ms >= FAR_MS)
        (void)fprintf(stderr,
            "weft run: note: a round trip to %s, a member in another island, takes %.1f ms, and no "
            "rate has been measured by this machine (weft preflight or weft bench does that): if "
            "the job runs there too, weft plan says whether gradients can be averaged in each "
            "step\n",
            run->node.far, run->node.far_rtt_ms);
    return CMD_OK;
}

/* ---- a test first --------------------------------------------------------------------------- */

/* Runs one of our own commands, and keeps what it prints for all nodes of the job. */
static int test_by(
    const char *const argv[], unsigned patience_s, struct str *out, int *ret_status, struct err *e)
{
    const struct capture_wish wish = {
        .argv = argv, .timeout_ms = patience_s * 1000, .max = TEST_TEXT_MAX, .takes_errors = true};

    return capture_run(&wish, out, ret_status, e);
}

/* An agree_make_fn. Would it run, and is it as fast as these machines are? The result is the exit
 * status in a line, and then what was printed. */
static int test(void *ctx, struct str *out, struct err *e)
{
    const struct testing *t = ctx;
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char self[PATH_MAX];
    const char *const preflight[] = {process_self_path(self), "preflight", "--socket",
        t->run->socket_path, "--state", t->before->state_dir, NULL};
    const char *const bench[] = {self, "bench", "--sweep", "--no-underlay", "--allreduce", "0",
        "--socket", t->run->socket_path, "--state", t->before->state_dir, NULL};
    int status = 0;
    int r = test_by(preflight, PREFLIGHT_PATIENCE_S, &text, &status, e);

    if (r == 0 && status == CMD_OK)
        r = test_by(bench, BENCH_PATIENCE_S, &text, &status, e);
    str_addf(out, "%d\n%s", status, str_text(&text));
    return r;
}

static bool is_tested(const struct run_before *b)
{
    return b->tested.len > 0;
}

/* The result for all nodes of a job that meets at the hub. A job that is started again hands on the
 * one that it was started with: other nodes may still be ending, and nothing can be measured. */
static int get_result(struct run_before *b, const struct run *run, struct str *out, struct err *e)
{
    struct testing t = {.before = b, .run = run};
    agree_make_fn fn = is_tested(b) ? agree_kept : test;
    void *ctx = is_tested(b) ? (void *)&b->tested : &t;
    const struct agree_wish wish = {.meeting = &run->meeting,
        .what = "preflight",
        .doing = "tests the network",
        .node = run->node.name,
        .patience_s = TEST_PATIENCE_S};

    return run->meeting.id[0] != '\0' ? agree_once(&wish, fn, ctx, out, e) : fn(ctx, out, e);
}

/* Tests the network, once for all nodes and all starts of a job. */
static int test_first(struct run_before *b, const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    const char *text;
    long status;
    int r = get_result(b, run, &out, &e);

    if (is_tested(b))
        return CMD_OK;
    if (r != 0)
        return cmd_fail("run", "the test before the start: %s", err_text(&e));
    status = strtol(str_text(&out), NULL, 10);
    text = str_text(&out) + strcspn(str_text(&out), "\n");
    if (status != CMD_OK || !run->is_quiet)
        (void)cmd_write(stderr, text + (*text == '\n'));
    if (status != CMD_OK && b->anyway)
        note("the test says no; started all the same, as --anyway says");
    if (status == CMD_OK || b->anyway) {
        b->tested = out;
        out = (struct str)STR_NULL;
        return CMD_OK;
    }
    (void)cmd_fail("run",
        "not started: the test before the start %s; --anyway starts it all the same",
        status == CMD_VERDICT_NO ? "says no" : "could not be made");
    return status == CMD_VERDICT_NO ? CMD_VERDICT_NO : CMD_FAILED;
}

int run_before(struct run_before *b, struct run *run, const struct run_wish *wish)
{
    int r = b->preflight ? test_first(b, run) : CMD_OK;

    if (r != CMD_OK)
        return r;
    if (wish->plan || wish->params)
        return give_plan(b, run, wish);
    return judge_without_plan(b, run);
}
