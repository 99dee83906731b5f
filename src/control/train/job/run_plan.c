/* run_plan.c - run_give() and run_make_plan() of run.h: the plan that a job is given. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "os/statefile.h"
#include "train/job/agree.h"
#include "train/job/job_plan.h"
#include "train/job/run.h"

/* Seconds that measuring and planning may take: 256 members take about two minutes. */
#define PLAN_PATIENCE_S 180

#define PLAN_FILE "plan.json"

void run_give(struct run *run, const char *name, const char *value)
{
    for (size_t i = 0; i < run->plan.n; i++) {
        struct env_entry *entry = &run->plan.entries[i];

        if (strcmp(entry->name, name) == 0 && entry->verdict != ENV_VERDICT_KEPT) {
            entry->verdict = ENV_VERDICT_SET;
            (void)snprintf(entry->value, sizeof(entry->value), "%s", value);
        }
    }
}

static int make(void *ctx, struct str *out, struct err *e)
{
    const struct job_plan_order *order = ctx;

    return job_plan_make(order, out, e);
}

/* Asks for the plan that all nodes of the job take. */
static int agree_on_plan(struct run *run, const char *params, struct str *kept, struct err *e)
{
    struct job_plan_order order = {
        .params = params, .socket_path = run->socket_path, .timeout_ms = PLAN_PATIENCE_S * 1000};
    agree_make_fn fn = kept->len > 0 ? agree_kept : make;
    void *ctx = kept->len > 0 ? (void *)kept : &order;
    const struct agree_wish wish = {.meeting = &run->meeting,
        .what = "plan",
        .doing = "measures the network and makes the plan",
        .node = run->node.name,
        .patience_s = PLAN_PATIENCE_S};
    struct str text = STR_NULL;
    int r = run->meeting.id[0] != '\0' ? agree_once(&wish, fn, ctx, &text, e) : fn(ctx, &text, e);

    if (r == 0 && text.failed)
        r = err_set(e, -ENOMEM, "no memory for the plan");
    if (r != 0) {
        str_deinit(&text);
        return r;
    }
    str_deinit(kept);
    *kept = text;
    return 0;
}

int run_make_dir(struct run *run, struct err *e)
{
    int r = run->dir[0] != '\0' ? 0 : run_dir_name(run->dir, e);

    if (r == 0 && !run->has_dir)
        r = run_dir_make(run->dir, e);
    run->has_dir |= r == 0;
    return r;
}

static int write_file(struct run *run, const struct str *text, struct err *e)
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
    json_t *json;

    if (r != 0)
        return err_prefix(e, "no plan for the job");
    json = json_loadb(str_text(kept), kept->len, JSON_REJECT_DUPLICATES, NULL);
    r = job_plan_decode(ret, json, e);
    json_decref(json);
    if (r < 0)
        return err_prefix(e, "the plan that a node of the job has made");
    return write_file(run, kept, e);
}
