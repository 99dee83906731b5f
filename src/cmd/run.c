/* run.c - weft run: start a training command so that it works over the overlay. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/state/state.h"
#include "api/client/client.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/traffic.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "mesh/object/network.h"
#include "mesh/object/fields.h"
#include "os/process.h"
#include "os/child.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "plan/model.h"
#include "train/job/command.h"
#include "train/job/env.h"
#include "train/job/job_plan.h"
#include "train/job/lost.h"
#include "train/job/node.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

/* The highest number of times that a command may be begun again. */
#define AGAIN_MAX 1000000

/* ==== the job's budget ======================================================================= */

/*
 * `weft run --budget`: the job's budget of a day, written into the Network's object before the
 * command starts (mesh/object/network.h, docs/COST.md).
 *
 * That is an administrator's right, so it takes the hub's socket or an admin token, as `weft apply`
 * does. Every node of the job may say the same: what is there already is not written again.
 */

/** What the options said. Texts are borrowed. */
struct run_budget {
    const char *amount; /* "20", "2TB/day"; NULL: no budget is set */
    struct admin_target target;
    struct budget budget; /* run_budget_check()'s, without its job */
};

/* Longest amount, with its unit. */
#define AMOUNT_TEXT_MAX 48

/* Nodes of the job that write at the same time are refused but for one; they look again. */
#define TRIES 8

static int refuse_amount(const char *text, struct err *e)
{
    return err_set(e, -EINVAL,
        "--budget \"%.60s\" is neither money, such as 20 or 12.5, nor bytes, such as 500GB or 2TB, "
        "of a day: above 0, and at most %.0g",
        text, BUDGET_MAX);
}

/* What a unit at the end of @text stands for, which is cut off; 0: there is none. */
static double take_unit(char *text)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1}};
    size_t len = strlen(text);

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t n = strlen(units[i].name);

        if (len <= n || strcmp(text + len - n, units[i].name) != 0)
            continue;
        text[len - n] = '\0';
        return units[i].bytes;
    }
    return 0;
}

/* "20", "20/day", "2TB", "1.5e3GB/day" */
static int read_amount(struct budget *ret, const char *text, struct err *e)
{
    static const char day[] = "/day";
    char plain[AMOUNT_TEXT_MAX];
    size_t len = strnlen(text, sizeof(plain));
    json_auto_t *json = NULL;
    double unit;
    double value;

    if (len >= sizeof(plain))
        return refuse_amount(text, e);
    memcpy(plain, text, len + 1);
    if (len > strlen(day) && strcmp(plain + len - strlen(day), day) == 0)
        plain[len - strlen(day)] = '\0';
    unit = take_unit(plain);
    json = json_string(plain);
    value = fields_decimal(json) * (unit > 0 ? unit : 1);
    /* Of bytes at least one. */
    if (!isfinite(value) || value <= 0 || value > BUDGET_MAX || (unit > 0 && value < 1))
        return refuse_amount(text, e);
    if (unit > 0)
        ret->bytes = (uint64_t)value;
    else
        ret->cost = value;
    return 0;
}

/*
 * Reads the options
 *
 * Return: 0, also without them; -EINVAL with words that name the value and what is allowed.
 */
static int run_budget_check(struct run_budget *b, struct err *e)
{
    int r;

    b->target.socket = ADMIN_SOCKET_DEFAULT;
    b->budget = (struct budget){.cost = 0};
    if ((b->target.hub || b->target.token_file || b->target.pin) && !b->amount)
        return err_set(e, -EINVAL,
            "--hub, --admin-token-file and --pin are for --budget, and there is no --budget");
    if (!b->amount)
        return 0;
    r = admin_check(&b->target, e);
    if (r == 0)
        r = read_amount(&b->budget, b->amount, e);
    return r;
}

/* Puts the budget in place of the job's. @spec: of the network. Return: it is another one than
 * before. */
static bool put_budget(json_t *spec, const struct budget *budget)
{
    json_auto_t *entry = budget_encode(budget);
    json_t *list = json_object_get(spec, "budgets");
    bool is_other = true;
    size_t i = 0;

    if (!json_is_array(list)) {
        list = json_array();
        (void)json_object_set_new(spec, "budgets", list);
    }
    while (i < json_array_size(list) &&
           strcmp(admin_field(json_array_get(list, i), NULL, "job"), budget->job) != 0)
        i++;
    if (i < json_array_size(list)) {
        is_other = !json_equal(json_array_get(list, i), entry);
        (void)json_array_set(list, i, entry);
    } else {
        (void)json_array_append(list, entry);
    }
    return is_other;
}

/*
 * Has the Network's object say it; nothing without --budget
 * @job:	its name
 *
 * Return: CMD_OK; or an exit status, after a sentence on standard error.
 */
static int run_budget_set(const struct run_budget *b, const struct run *run)
{
    struct budget budget = b->budget;
    char bytes[TRAFFIC_BYTES_TEXT_MAX];
    char path[160];
    int status = CMD_OK;
    bool is_written = false;

    if (!b->amount)
        return CMD_OK;
    if (run->rendezvous.id[0] == '\0')
        return cmd_fail("run",
            "--budget \"%.60s\": the job does not meet at the hub, which counts only what jobs "
            "that do have moved",
            b->amount);
    (void)snprintf(budget.job, sizeof(budget.job), "%s", run->job);
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Network/%s", run->node.network,
        run->node.network);
    for (unsigned i = 0; i < TRIES && !is_written && status == CMD_OK; i++) {
        _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
        _cleanup_(client_answer_deinit) struct client_answer after = CLIENT_ANSWER_NULL;
        json_t *spec;

        status = admin_call(&b->target, "run", "GET", path, NULL, &before);
        if (status != CMD_OK)
            break;
        spec = json_object_get(before.body, "spec");
        if (!json_is_object(spec))
            return cmd_fail("run", "the hub's answer is no network: its budget is not set");
        /* Somebody else may have changed it since it was read; then it is tried again. */
        if (put_budget(spec, &budget))
            status = admin_try(&b->target, "run", "PUT", path, before.body, 409, &after);
        is_written = after.status != 409;
    }
    if (status == CMD_OK && !is_written)
        return cmd_fail("run",
            "the network's object was changed by others %u times meanwhile: its budget is not set",
            TRIES);
    if (status == CMD_OK && budget.cost > 0)
        (void)fprintf(
            stderr, "weft run: job %s has a budget of %.2f a day\n", budget.job, budget.cost);
    else if (status == CMD_OK)
        (void)fprintf(stderr, "weft run: job %s has a budget of %s a day\n", budget.job,
            traffic_bytes_format(budget.bytes, bytes));
    return status;
}

/* ==== between the preparations and the start of the command ================================== */

/*
 * The job's plan, and whether the job can do what it is about to do.
 */

/** What the options said. Texts are borrowed. */
struct run_before {
    const char *wan;       /* "warn", "refuse", "allow"; NULL: as is usual */
    const char *state_dir; /* of the agent */
    bool preflight;        /* test the network first */
    bool anyway;           /* start although the test says no */
    struct str plan;       /* owns; the plan that was made, for a job that is started again */
    struct str tested;     /* owns; likewise the result of the test */
};

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
static int assess_own(const struct run_before *b, const struct run *run, const struct job_plan *p)
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
        .timeout_ms = ADVICE_TIMEOUT_MS};
    struct stat st;
    json_auto_t *json = NULL;
    int r;

    if (snprintf(path, sizeof(path), "%s/" JOB_PLAN_MEASURED, b->state_dir) >= (int)sizeof(path) ||
        stat(path, &st) < 0 || job_plan_make(&order, &text, NULL) != 0)
        return false;
    json = json_loadb(str_text(&text), text.len, 0, NULL);
    r = job_plan_decode(ret, json, NULL);
    *ret_age_s = (double)(clock_wall_s() - st.st_mtime);
    return r == 0;
}

static int assess_measured(const struct run_before *b, const struct job_plan *p, double age_s)
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
static int assess_without_plan(const struct run_before *b, const struct run *run)
{
    struct job_plan p;
    double age_s = 0;

    if (wants(b, "allow") || run->min_nodes < 2 || run->uses_fabric)
        return CMD_OK;
    if (advise(b, run, &p, &age_s))
        return assess_measured(b, &p, age_s);
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
    /* What they print is kept for all nodes of the job. */
    struct capture_options opt = {.argv = preflight,
        .timeout_ms = PREFLIGHT_PATIENCE_S * 1000,
        .max = TEST_TEXT_MAX,
        .takes_errors = true};
    int status = 0;
    int r = capture_run(&opt, &text, &status, e);

    opt.argv = bench;
    opt.timeout_ms = BENCH_PATIENCE_S * 1000;
    if (r == 0 && status == CMD_OK)
        r = capture_run(&opt, &text, &status, e);
    str_addf(out, "%d\n%s", status, str_text(&text));
    return r;
}

/* The result for all nodes of a job that meets at the hub. A job that is started again hands on the
 * one that it was started with: other nodes may still be ending, and nothing can be measured. */
static int get_result(struct run_before *b, const struct run *run, struct str *out, struct err *e)
{
    struct testing t = {.before = b, .run = run};
    const struct agree_options opt = {.rendezvous = &run->rendezvous,
        .kept = &b->tested,
        .what = "preflight",
        .doing = "tests the network",
        .node = run->node.name,
        .patience_s = TEST_PATIENCE_S};

    return agree_once(&opt, test, &t, out, e);
}

/* Tests the network, once for all nodes and all starts of a job. */
static int test_first(struct run_before *b, const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    const char *text;
    long status;
    int r = get_result(b, run, &out, &e);

    if (b->tested.len > 0)
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

/*
 * Makes the job's plan, and finds out whether the job can do it
 * @run:	prepared by run_prepare(); is given its plan
 *
 * Return: CMD_OK; or an exit status, after a sentence on standard error: the command is not to be
 * started.
 */
static int run_before(struct run_before *b, struct run *run, const struct run_options *opt)
{
    struct job_plan p = {.n_islands = 0};
    struct err e = ERR_NULL;
    int r = b->preflight ? test_first(b, run) : CMD_OK;

    if (r != CMD_OK)
        return r;
    if (!opt->plan && !opt->params)
        return assess_without_plan(b, run);
    r = opt->plan ? job_plan_read(&p, opt->plan, &e)
                  : run_make_plan(run, opt->params, &b->plan, &p, &e);
    return r == 0 ? assess_own(b, run, &p) : cmd_fail("run", "%s", err_text(&e));
}

/* Exit statuses, as shells give them. */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127
#define STATUS_KILLED         128 /* and the number of the signal */

static struct {
    struct run_options opt;
    struct option_list words;
    struct run_before before;
    struct run_budget budget;
    uint64_t max_restarts;
    const char *of_again; /* an option that is about beginning again, if one was given */
    bool explain;
} arg;

static const struct option options[] = {
    {"COMMAND", NULL, option_append, &arg.words, NULL, "what to run, with its own arguments",
        .is_required = true, .many = true, .is_command = true},
    {"--nnodes", "N|MIN:MAX", option_text, &arg.opt.nnodes, NULL,
        "how many nodes take part; the same on each of them"},
    {"--job", "NAME", option_name, &arg.opt.job, NULL,
        "what the nodes meet under, instead of the script's name"},
    {"--rendezvous", "BACKEND", option_text, &arg.opt.rendezvous, NULL,
        "c10d (unless the command says another), etcd-v2, or none"},
    {"--inside-islands", NULL, option_flag, &arg.opt.inside_islands, NULL,
        "NCCL's groups stay inside islands, and only Gloo's cross them"},
    {"--isolate", NULL, option_flag, &arg.opt.is_isolated, NULL,
        "while the job runs, nobody but its nodes reaches the ports at which it listens"},
    {"--island-lan", NULL, option_flag, &arg.opt.island_lan, NULL,
        "inside this node's island use its private network, unencrypted"},
    {"--preflight", NULL, option_flag, &arg.before.preflight, NULL,
        "first weft preflight and weft bench --sweep, once for all nodes; do not start the command "
        "if either says no"},
    {"--anyway", NULL, option_flag, &arg.before.anyway, NULL,
        "start it although --preflight says no"},
    {"--plan", "FILE", option_text, &arg.opt.plan, NULL,
        "give the job this plan, of weft plan --json, as WEFT_PLAN"},
    {"--params", "N", option_text, &arg.opt.params, NULL,
        "have a plan made for a model of so many weights, such as 7B: once for all nodes"},
    {"--wan", "WORD", option_word, &arg.before.wan, NULL,
        "where gradients are better not averaged in each step, by a plan: warn (the default "
        "without --plan and --params), refuse, allow",
        .words = "warn, refuse, allow"},
    {"--budget", "AMOUNT", option_text, &arg.budget.amount, NULL,
        "what the job may cost a day, as in 20, or move, as in 2TB: weft cost and events tell of "
        "it; takes an administrator's rights"},
    {"--hub", "HOST:PORT", option_text, &arg.budget.target.hub, NULL,
        "with --budget: set it at a hub elsewhere, over HTTPS"},
    {"--admin-token-file", "FILE", option_text, &arg.budget.target.token_file, NULL,
        "with --hub: the file that holds its admin token"},
    {"--pin", "SHA256", option_text, &arg.budget.target.pin, NULL,
        "with --hub: base64 SHA-256 of its TLS key, as \"weft hub up\" prints it"},
    {"--once", NULL, option_flag, &arg.opt.once, NULL,
        "end with the command also when the hub or another node was lost"},
    {"--wait-lost", "DURATION", option_duration, &arg.opt.wait_lost, "10m",
        "how long a job of a fixed number of nodes waits for one that was lost, to begin again "
        "with it at its checkpoint; 0s: it ends",
        .given = &arg.of_again},
    {"--max-restarts", "N", option_u64, &arg.max_restarts, "100",
        "how often it is begun again on this node, whatever was lost; 0: never", .min = 0,
        .max = AGAIN_MAX, .given = &arg.of_again},
    {"--explain", NULL, option_flag, &arg.explain, NULL,
        "print each variable with its reason and source, and run nothing"},
    {"--quiet", NULL, option_flag, &arg.opt.is_quiet, NULL, "say nothing but what will hurt"},
    {"--state", "DIR", option_text, &arg.before.state_dir, STATE_DIR_DEFAULT,
        "of the agent; has what was last measured"},
    {"--socket", "PATH", option_socket, &arg.opt.socket_path, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "run",
    .summary = "Run a training command with all that it needs to know of the overlay.",
    .options = options,
    .notes =
        "It knows torchrun, python -m torch.distributed.run, mpirun, accelerate and deepspeed;\n"
        "anything else is a plain script. What you have set yourself is never changed.\n"
        "Its exit status is that of the command; 127 if that is not there, 126 if it cannot run,\n"
        "3 if --wan refuse or --preflight has kept it from starting, or if it has used torch,\n"
        "ended well, and met no other node of the job.",
};

/* Prints each line of @text as a note. */
static void print_notes(const char *text)
{
    size_t len;

    for (size_t off = 0; text[off] != '\0'; off += len + 1) {
        len = strcspn(text + off, "\n");
        (void)fprintf(stderr, "weft run: note: %.*s\n", (int)len, text + off);
    }
}

static void take_island(struct run *run)
{
    _cleanup_(str_deinit) struct str notes = STR_NULL;

    if (arg.opt.island_lan && run->island_interface[0] == '\0') {
        str_add(&notes, "--island-lan: no node of this node's island is reached over a private "
                        "network: the job stays on the overlay\n");
        run_leave_island();
    }
    run_take_island(run, &notes);
    print_notes(str_text(&notes));
}

/* Prints on standard error, since standard output belongs to the command. */
static void print_advice(const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    if (!arg.opt.is_quiet) {
        run_summary(run, &out);
        (void)fputs("weft run: ", stderr);
        (void)cmd_write(stderr, str_text(&out));
        str_deinit(&out);
    }
    run_advise(run, &out);
    print_notes(str_text(&out));
}

/* The words to start; @ret is to be released. */
static int make_words(const struct run *run, struct launcher_words *ret, struct err *e)
{
    char nnodes[16];
    bool is_number = run->min_nodes > 0 && !run->is_elastic;
    int r;

    (void)snprintf(nnodes, sizeof(nnodes), "%u", run->min_nodes);
    r = launcher_words_make(ret, arg.opt.words, &run->command,
        run->rendezvous.id[0] != '\0' ? &run->rendezvous : NULL, is_number ? nnodes : NULL);
    return r < 0 ? err_set(e, r, "no memory for the command") : 0;
}

static void add_words(struct str *out, const struct launcher_words *lw)
{
    for (size_t i = 0; i < lw->n_added; i++)
        str_addf(out, " %s", lw->added[i]);
}

static int explain(const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    _cleanup_(launcher_words_deinit) struct launcher_words lw = LAUNCHER_WORDS_NULL;

    run_summary(run, &out);
    if (make_words(run, &lw, NULL) == 0 && lw.n_added > 0) {
        str_add(&out, "options that it gets as well:");
        add_words(&out, &lw);
        str_add(&out, "\n");
    }
    str_add(&out, "\n");
    fabric_format(&out, &run->fabric);
    str_add(&out, "\n");
    env_text_explain(&out, &run->plan);
    run_advise(run, &out);
    return cmd_print("run", str_text(&out));
}

/* Before the job meets: are the options right for what is done before its start? Makes --plan's
 * path one that holds in every directory, and looks whether there is a plan. */
static int check_before(char path[static PATH_MAX], struct err *e)
{
    struct job_plan unused;
    double unused_weights;

    if (arg.before.anyway && !arg.before.preflight)
        return err_set(e, -EINVAL, "--anyway is for --preflight, and there is no --preflight");
    if (arg.opt.plan && arg.opt.params)
        return err_set(e, -EINVAL, "--plan and --params are two ways to get a plan");
    if (arg.opt.params)
        return model_parse_weights(&unused_weights, arg.opt.params, "--params", e);
    if (!arg.opt.plan)
        return 0;
    if (!realpath(arg.opt.plan, path))
        return err_set(e, -errno, "--plan %.200s: %s", arg.opt.plan, strerror(errno));
    arg.opt.plan = path;
    if (strlen(path) >= ENV_VALUE_MAX)
        return err_set(e, -ENAMETOOLONG, "--plan: the path %.40s... is too long", path);
    return job_plan_read(&unused, path, e);
}

/* Says why the command begins again. @r: what run_exec() has returned. */
static void say_again(int r, int status)
{
    const char *name = arg.opt.words[0];
    char time[32];

    if (r == RUN_E_CUT_OFF)
        (void)cmd_fail("run",
            "the hub or another node was away, and %s has ended with %d; starting it again", name,
            status);
    else if (r == RUN_E_MOVED)
        (void)cmd_fail("run",
            "the job meets at another hub or in a new run now, so %s was ended; starting it again",
            name);
    else if (r == RUN_E_LOST && arg.opt.wait_lost == 0)
        (void)cmd_fail("run", "starting %s again, in a new run of the job", name);
    else if (r == RUN_E_LOST)
        (void)cmd_fail("run",
            "waiting for up to %s until all nodes of the job are there, to start "
            "%s again",
            format_duration(arg.opt.wait_lost, time), name);
    else
        (void)cmd_fail("run",
            "%s was killed by signal %d; starting it again, here and on the other nodes", name,
            status - STATUS_KILLED);
}

/* The command's exit status; or that of a failure, when it was ended by a signal, which was ours,
 * or has not ended. */
static int last_status(int status)
{
    return status != CMD_OK && status < STATUS_KILLED ? status : CMD_FAILED;
}

/* It is to be begun again: prepares that. Return: 0; else *@ret_status is set. */
static int begin_again(struct run *run, int *ret_status)
{
    struct interrupt i;
    struct err e = ERR_NULL;
    int r;

    interrupt_begin(&i);
    r = again_prepare(run, &arg.opt, &i, &e);
    if (r != 0) {
        if (r == LOST_E_INTERRUPTED)
            (void)cmd_fail("run", "interrupted while it waited: the job's other nodes are told");
        else
            (void)cmd_fail("run", "%s: not started again", err_text(&e));
        if (r == RENDEZVOUS_E_OVER)
            run_give_up(run);
        else
            lost_give_up(run);
        run_dir_remove(run->dir);
        *ret_status = last_status(*ret_status);
    }
    interrupt_end(&i);
    return r;
}

/* Why it is not begun again. */
static void say_never_again(enum again_verdict verdict, int status)
{
    const char *name = arg.opt.words[0];

    if (verdict == AGAIN_VERDICT_KILLED)
        (void)cmd_fail("run",
            "%s was killed by signal %d once more, soon after its start: not started again", name,
            status - STATUS_KILLED);
    else
        (void)cmd_fail("run",
            "%s was started again %" PRIu64 " time%s, as often as --max-restarts allows: not "
            "started again",
            name, arg.max_restarts, arg.max_restarts == 1 ? "" : "s");
}

/* Starts the command, with the options that its launcher needs. Return: as run_exec(). */
static int start(struct run *run, int *ret_status, struct err *e)
{
    _cleanup_(launcher_words_deinit) struct launcher_words lw = LAUNCHER_WORDS_NULL;
    _cleanup_(str_deinit) struct str added = STR_NULL;
    int r = make_words(run, &lw, e);

    if (r != 0)
        return r;
    add_words(&added, &lw);
    if (lw.n_added > 0 && !arg.opt.is_quiet)
        (void)fprintf(stderr, "weft run: %s gets these options as well:%s\n",
            command_kind_names[run->command.kind], str_text(&added));
    return run_exec(run, lw.items, ret_status, e);
}

/* The outcome @r of run_exec() asks for another start. Return: true if there is one; else
 * *@ret_status is set. */
static bool is_again(struct again *again, struct run *run, int r, nsec_t lasted, int *ret_status)
{
    enum again_verdict verdict = again_decide(again, r, lasted);

    switch (verdict) {
    case AGAIN_VERDICT_GO:
        say_again(r, *ret_status);
        return begin_again(run, ret_status) == 0;
    case AGAIN_VERDICT_KILLED:
        say_never_again(verdict, *ret_status);
        run_give_up(run);
        return false;
    case AGAIN_VERDICT_USED_UP:
        say_never_again(verdict, *ret_status);
        again_give_up(run, &arg.opt);
        *ret_status = last_status(*ret_status);
        return false;
    }
    return false;
}

/* Runs the command until it need not begin again. Return: as run_exec(), or run_prepare(). */
static int run_all(struct run *run, int *ret_status, struct err *e)
{
    struct again again = {.max = (unsigned)arg.max_restarts};
    int status = CMD_OK; /* the command's, at its last end */
    nsec_t begun_at;
    int r;

    for (;;) {
        (void)run_take_host_name(run);
        print_advice(run);
        *ret_status = run_before(&arg.before, run, &arg.opt);
        if (*ret_status != CMD_OK) {
            run_give_up(run);
            return 0;
        }
        take_island(run);
        *ret_status = status;
        begun_at = clock_now();
        r = start(run, ret_status, e);
        if (!run_is_again(r))
            return r;
        if (!is_again(&again, run, r, clock_now() - begun_at, ret_status))
            return 0;
        status = *ret_status;
    }
}

/* No hub has answered, as @e says. 0; or an exit status, after a sentence. */
static int await_hub(struct run *run, struct err *e)
{
    struct interrupt i;
    int r;

    interrupt_begin(&i);
    r = again_await_hub(run, &arg.opt, &i, e);
    if (r == LOST_E_INTERRUPTED)
        r = cmd_fail("run", "interrupted while it waited for the hub");
    else if (r == LOST_E_ALONE)
        r = cmd_fail("run", "%s: not started", err_text(e));
    else if (r != 0)
        r = cmd_fail("run", "%s", err_text(e));
    interrupt_end(&i);
    return r;
}

int cmd_run(int argc, char **argv)
{
    struct rng rng = rng_kernel();
    struct err e = ERR_NULL;
    struct run run;
    char path[PATH_MAX];
    uint8_t id[8];
    char id_text[2 * sizeof(id) + 1];
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.opt.once && arg.of_again)
        return cmd_refuse("run",
            "with --once nothing is begun again, and %s is about beginning again: give one of them",
            arg.of_again);
    /* The words are the last ones of argv, which ends with NULL, as exec needs it. */
    arg.opt.words = argv + argc - arg.words.n;
    option_list_deinit(&arg.words);
    arg.opt.starts = !arg.explain;
    rng_fill(&rng, id, sizeof(id));
    hex_encode(id, sizeof(id), id_text);
    arg.opt.command_id = id_text;
    if (run_budget_check(&arg.budget, &e) != 0 || run_check(&arg.opt, &e) != 0 ||
        check_before(path, &e) != 0)
        return cmd_refuse("run", "%s", err_text(&e));
    r = run_prepare(&run, &arg.opt, &e);
    if (r == RENDEZVOUS_E_AWAY && arg.opt.starts)
        status = await_hub(&run, &e);
    else
        status = r == 0 ? CMD_OK : cmd_fail("run", "%s", err_text(&e));
    if (status != CMD_OK)
        return status;
    if (arg.explain)
        return explain(&run);
    status = run_budget_set(&arg.budget, &run);
    if (status != CMD_OK) {
        run_give_up(&run);
        return status;
    }
    r = run_all(&run, &status, &e);
    if (r == 0)
        return status;
    (void)cmd_fail("run", "%s", err_text(&e));
    if (r == CHILD_E_NOT_FOUND)
        return STATUS_NOT_FOUND;
    return r == CHILD_E_NOT_EXECUTABLE ? STATUS_NOT_EXECUTABLE : CMD_FAILED;
}
