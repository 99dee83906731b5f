/* job_plan.c - see job_plan.h. */
#include "train/job/job_plan.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "os/file.h"
#include "os/process.h"
#include "plan/matrix.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

/* Longest plan, bytes; one for 256 nodes has about 60,000. */
#define JOB_PLAN_MAX (1u << 20)

/* Exit status of `weft plan` when it prints a plan and the plan is not good. */
#define STATUS_NOT_GOOD 3

static double number(const json_t *obj, const char *field)
{
    double v = json_number_value(json_object_get(obj, field));

    return isfinite(v) && v > 0 ? v : 0;
}

int job_plan_decode(struct job_plan *ret, const json_t *json, struct err *e)
{
    const json_t *every = json_object_get(json, "everyStep");
    const json_t *islands = json_object_get(json, "islands");
    const json_t *exchange = json_object_get(json, "exchange");
    const json_t *best =
        json_object_get(json_object_get(every, "kinds"), fields_text_of(every, "best"));
    struct job_plan p = {.n_islands = json_array_size(islands),
        .params = number(json_object_get(json, "model"), "params"),
        .is_good = json_is_true(json_object_get(json, "good")),
        .is_synchronous = json_is_true(json_object_get(every, "advised")),
        .step_seconds = number(json_object_get(json_object_get(json, "inside"), "step"), "seconds"),
        .sync_seconds = number(best, "seconds"),
        .sync_share = number(best, "share"),
        .max_share = number(json, "maxShare"),
        .interval = number(exchange, "interval")};

    if (p.n_islands == 0 || p.n_islands > MATRIX_NODES_MAX || !json_is_object(best) ||
        p.params <= 0 || p.sync_share > 1 || p.max_share > 1)
        return err_set(e, -EINVAL, "it is not what weft plan --json prints");
    (void)snprintf(p.form, sizeof(p.form), "%.15s", fields_text_of(exchange, "form"));
    if (strspn(p.form, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(p.form))
        return err_set(e, -EINVAL, "its form of an exchange is no word");
    *ret = p;
    return 0;
}

int job_plan_read(struct job_plan *ret, const char *path, struct err *e)
{
    _cleanup_(freep) char *file = NULL;
    size_t len = 0;
    json_auto_t *json = NULL;
    int r = statefile_read(path, JOB_PLAN_MAX, &file, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "%.200s does not exist", path);
    if (r < 0)
        return r;
    json = json_loadb(file, len, JSON_REJECT_DUPLICATES, NULL);
    r = job_plan_decode(ret, json, e);
    return r == 0 ? 0 : err_prefix(e, "%.200s", path);
}

int job_plan_make(const struct job_plan_order *order, struct str *out, struct err *e)
{
    char self[PATH_MAX];
    const char *argv[] = {process_self_path(self), "plan", "--json", "--params", order->params,
        "--socket", order->socket_path, order->matrix ? "--matrix" : NULL, order->matrix, NULL};
    struct capture_options opt = {.argv = argv,
        .timeout_ms = order->timeout_ms,
        .max = JOB_PLAN_MAX,
        .drops_errors = order->matrix != NULL};
    int status = 0;
    int r = capture_run(&opt, out, &status, e);

    if (r == 0 && status != 0 && status != STATUS_NOT_GOOD)
        return err_set(e, -EIO, "weft plan has failed");
    return r;
}

/* A time as people say it. */
static void say_time(struct str *out, double s)
{
    if (s >= 7200)
        str_addf(out, "%.3g h", s / 3600);
    else if (s >= 120)
        str_addf(out, "%.3g min", s / 60);
    else if (s >= 1)
        str_addf(out, "%.3g s", s);
    else
        str_addf(out, "%.3g ms", s * 1000);
}

void job_plan_say_no(const struct job_plan *p, struct str *out)
{
    bool is_large = p->params >= 1e9;

    str_addf(out,
        "averaging the gradients of %.3g%c weights in each step across %zu islands would take ",
        p->params / (is_large ? 1e9 : 1e6), is_large ? 'B' : 'M', p->n_islands);
    if (p->sync_seconds > 0)
        say_time(out, p->sync_seconds);
    else
        str_add(out, "nobody knows how long");
    str_addf(out, ", %.0f %% of the time, where a step computes for ", p->sync_share * 100);
    say_time(out, p->step_seconds);
    str_addf(out, " and %.0f %% is allowed", p->max_share * 100);
    if (p->interval > 0)
        str_addf(out, "; islands that exchange each %.0f steps, as %s, keep to that", p->interval,
            p->form);
}

/* ---- for all nodes of the job ---------------------------------------------------------------- */

/* Seconds that measuring and planning may take: 256 members take about two minutes. */
#define PLAN_PATIENCE_S 180

#define PLAN_FILE "plan.json"

static int make_plan(void *ctx, struct str *out, struct err *e)
{
    const struct job_plan_order *order = ctx;

    return job_plan_make(order, out, e);
}

/* Asks for the plan that all nodes of the job take. */
static int agree_on_plan(struct run *run, const char *params, struct str *kept, struct err *e)
{
    struct job_plan_order order = {
        .params = params, .socket_path = run->socket_path, .timeout_ms = PLAN_PATIENCE_S * 1000};
    const struct agree_options opt = {.rendezvous = &run->rendezvous,
        .kept = kept,
        .what = "plan",
        .doing = "measures the network and makes the plan",
        .node = run->node.name,
        .patience_s = PLAN_PATIENCE_S};
    _cleanup_(str_deinit) struct str text = STR_NULL;
    struct str before = *kept;
    int r = agree_once(&opt, make_plan, &order, &text, e);

    if (r == 0 && text.failed)
        r = err_set(e, -ENOMEM, "no memory for the plan");
    if (r == 0) {
        *kept = text;
        text = before; /* which is released now */
    }
    return r;
}

static int give_plan(struct run *run, const struct str *text, struct err *e)
{
    char path[RUN_DIR_MAX + sizeof("/" PLAN_FILE)];
    int r = run_make_dir(run, e);

    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/" PLAN_FILE, run->dir);
    r = statefile_replace(path, str_text(text), text->len, 0600, e);
    if (r == 0)
        run_give(run, "WEFT_PLAN", path);
    return r;
}

int run_make_plan(
    struct run *run, const char *params, struct str *kept, struct job_plan *ret, struct err *e)
{
    int r = agree_on_plan(run, params, kept, e);
    json_auto_t *json = NULL;

    if (r != 0)
        return err_prefix(e, "no plan for the job");
    json = json_loadb(str_text(kept), kept->len, JSON_REJECT_DUPLICATES, NULL);
    r = job_plan_decode(ret, json, e);
    if (r < 0)
        return err_prefix(e, "the plan that a node of the job has made");
    return give_plan(run, kept, e);
}
