/* drain.c - see drain.h. */
#include "agent/drain.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "health/finding.h"
#include "os/file.h"
#include "os/process.h"

#define ASK_MS      10000
#define KEPT_SUFFIX ".health"
#define KEPT_BYTES  4096

void drain_report_deinit(struct drain_report *r)
{
    doctor_report_deinit(&r->seen);
}

/* ---- what is kept from check to check -------------------------------------------------------- */

static const char *kept_path(const struct drain_options *opt, char buf[static PATH_MAX])
{
    (void)snprintf(buf, PATH_MAX, "%.*s" KEPT_SUFFIX, PATH_MAX - 64, opt->socket);
    return buf;
}

/* One that cannot be read is begun anew: at worst a node is drained some checks later. */
static void read_count(const struct drain_options *opt, struct fitness_count *ret)
{
    _cleanup_(freep) char *text = NULL;
    json_auto_t *json = NULL;
    char path[PATH_MAX];

    *ret = (struct fitness_count){.n_failed = 0};
    if (statefile_read(kept_path(opt, path), KEPT_BYTES, &text, NULL, NULL) != 0)
        return;
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    (void)fitness_count_decode(ret, json);
}

static int write_count(
    const struct drain_options *opt, const struct fitness_count *c, struct err *e)
{
    json_auto_t *json = fitness_count_encode(c);
    _cleanup_(freep) char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    char path[PATH_MAX];

    if (!text)
        return err_set(e, -ENOMEM, "no memory");
    return statefile_replace(kept_path(opt, path), text, strlen(text), 0644, e);
}

/* ---- what is said ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(
    struct drain_report *r, const char *format, ...)
{
    size_t len = strlen(r->done);
    va_list args;

    if (len > 0 && len + 2 < sizeof(r->done))
        len += (size_t)snprintf(r->done + len, sizeof(r->done) - len, "; ");
    va_start(args, format);
    (void)vsnprintf(r->done + len, sizeof(r->done) - len, format, args);
    va_end(args);
    text_make_plain(r->done, '?');
}

/* ---- the hook -------------------------------------------------------------------------------- */

#define HOOK_E_ABSENT 1

/* Who may write it could have root do what it likes. 0; HOOK_E_ABSENT; or -EPERM; with words. */
static int check_hook(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return err_set(e, HOOK_E_ABSENT, "there is no hook at %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
        return err_set(e, -EPERM, "%s is not a file that can be executed", path);
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, -EPERM,
            "%s may be written by others than its owner, or its owner is neither root nor this "
            "user",
            path);
    return 0;
}

static int run_hook(const struct drain_options *opt, const struct drain_report *r,
    const char *action, struct err *e)
{
    const char *const argv[] = {opt->hook, action, r->seen.node, r->seen.network, r->fitness.reason,
        r->fitness.codes, NULL};
    int result = check_hook(opt->hook, e);

    /* It is the agent that says so, and the hook may run with more rights. */
    if (result == 0)
        result = parse_name(r->seen.node, "node", e);
    if (result == 0)
        result = parse_name(r->seen.network, "network", e);
    return result != 0 ? result : process_run(argv, DRAIN_HOOK_MS, e);
}

/* ---- the hub --------------------------------------------------------------------------------- */

/* @ask: NULL: nothing is asked. @hook: why the hook has failed; NULL: it has not. 0, or non-zero
 * with words. */
static int tell_hub(const struct drain_options *opt, const struct drain_report *r, const char *ask,
    const char *hook, json_t **ret, struct err *e)
{
    const struct fitness *f = &r->fitness;
    bool fails = r->count.n_failed > 0;
    char why[FITNESS_REASON_MAX] = "";
    json_auto_t *body = NULL;
    size_t n;

    if (hook) {
        n = text_cut(hook, strlen(hook), sizeof(why) - 1);
        memcpy(why, hook, n);
        why[n] = '\0';
        text_make_plain(why, '?');
    }
    body = json_pack("{s:I, s:I, s:s*, s:s*, s:s*, s:s*}", "failed", (json_int_t)r->count.n_failed,
        "everySeconds", (json_int_t)opt->every_s, "codes", fails ? f->codes : NULL, "reason",
        fails ? f->reason : NULL, "ask", ask, "hook", why[0] != '\0' ? why : NULL);
    if (!body)
        return err_set(e, -ENOMEM, "no memory");
    return agent_ask_with(opt->socket, "PUT", "/v1/drain", body, ASK_MS, ret, e);
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* The hub says that the node is drained. Tells the scheduler, unless it knows. */
static void drain(const struct drain_options *opt, struct drain_report *r)
{
    struct err e = ERR_NULL;
    int result;

    r->is_drained = true;
    if (r->count.is_hooked)
        return;
    result = run_hook(opt, r, "drain", &e);
    r->count.is_hooked = result == 0;
    if (result == 0) {
        say(r, "%s is drained: %s was told", r->seen.node, opt->hook);
        return;
    }
    r->has_failed = true;
    say(r,
        "%s is to be drained, and the hook %s has failed, which is called again with the next "
        "check: %s",
        r->seen.node, opt->hook, err_text(&e));
    (void)tell_hub(opt, r, NULL, err_text(&e), NULL, NULL);
}

static void ask_to_drain(const struct drain_options *opt, struct drain_report *r)
{
    json_auto_t *answer = NULL;
    struct err hook = ERR_NULL;
    struct err e = ERR_NULL;
    bool has_hook = check_hook(opt->hook, &hook) == 0;
    const char *why;

    /* Without a hook nobody is told, so none is counted as drained. */
    if (tell_hub(opt, r, has_hook || r->is_drained ? "drain" : NULL, NULL, &answer, &e) != 0) {
        r->has_failed = true;
        say(r, "%s is not drained, since the hub was not asked: %s", r->seen.node, err_text(&e));
        return;
    }
    r->count.is_reported = true;
    if (json_is_true(json_object_get(answer, "drained"))) {
        drain(opt, r);
        return;
    }
    r->is_drained = r->count.is_hooked = false;
    r->is_dry_run = json_is_true(json_object_get(answer, "dryRun"));
    why = json_string_value(json_object_get(answer, "why"));
    if (!has_hook)
        say(r, "%s is not drained: %s", r->seen.node, err_text(&hook));
    else
        say(r, "%s is not drained: %s", r->seen.node, why ? why : "the hub does not say why");
    if (r->is_dry_run)
        say(r, "then this is called: %s drain %s %s \"%s\" %s", opt->hook, r->seen.node,
            r->seen.network, r->fitness.reason, r->fitness.codes);
}

static void give_back(const struct drain_options *opt, struct drain_report *r)
{
    struct err e = ERR_NULL;
    int result = run_hook(opt, r, "undrain", &e);

    if (result != 0) {
        r->has_failed = true;
        say(r,
            "%s is well again, and the hook %s has failed, which is called again with the next "
            "check: %s",
            r->seen.node, opt->hook, err_text(&e));
        (void)tell_hub(opt, r, NULL, err_text(&e), NULL, NULL);
        return;
    }
    r->count.is_hooked = false;
    if (tell_hub(opt, r, "undrain", NULL, NULL, &e) != 0) {
        r->has_failed = true;
        say(r, "%s is well again, and the hub could not be told, which is tried again: %s",
            r->seen.node, err_text(&e));
        return;
    }
    r->count.is_reported = r->is_drained = false;
    say(r, "%s is well again: %s was told", r->seen.node, opt->hook);
}

static void act(const struct drain_options *opt, struct drain_report *r)
{
    switch (fitness_step(&r->count, r->is_drained)) {
    case FITNESS_DRAIN:
        ask_to_drain(opt, r);
        break;
    case FITNESS_UNDRAIN:
        give_back(opt, r);
        break;
    case FITNESS_REPORT:
        r->count.is_reported = tell_hub(opt, r, NULL, NULL, NULL, NULL) != 0;
        break;
    case FITNESS_REST:
        break;
    }
}

/* Is this node drained, by what the hub has said of it? */
static bool is_drained(const struct doctor_report *seen)
{
    const json_t *item;
    size_t i;

    json_array_foreach(seen->findings, i, item) {
        const char *code = json_string_value(json_object_get(item, "code"));
        const char *subject = json_string_value(json_object_get(item, "subject"));

        if (code && subject && strcmp(code, finding_kinds[FINDING_NODE_DRAINED].code) == 0 &&
            strcmp(subject, seen->node) == 0)
            return true;
    }
    return false;
}

int drain_check(const struct drain_options *opt, struct drain_report *ret)
{
    const struct doctor_options seen = {.socket = opt->socket, .state_dir = opt->state_dir};
    struct err e = ERR_NULL;
    int r;

    *ret = (struct drain_report){.done = ""};
    r = doctor_examine(&seen, &ret->seen);
    if (r < 0)
        return r;
    fitness_take(&ret->fitness, ret->seen.findings,
        ret->seen.node[0] != '\0' ? ret->seen.node : DOCTOR_NODE_UNKNOWN);
    ret->is_drained = is_drained(&ret->seen);
    read_count(opt, &ret->count);
    /* A machine that has not joined has nobody who could drain it. */
    if (!opt->acts || ret->seen.node[0] == '\0')
        return 0;
    fitness_count_check(&ret->count, fitness_worst(&ret->fitness) == FITNESS_FAILED);
    act(opt, ret);
    if (write_count(opt, &ret->count, &e) != 0) {
        ret->has_failed = true;
        say(ret, "how many checks have failed is not kept: %s", err_text(&e));
    }
    return 0;
}

/* ---- shown ----------------------------------------------------------------------------------- */

json_t *drain_encode(const struct drain_report *r)
{
    json_t *parts = json_array();

    for (unsigned i = 0; i < FITNESS_PART_N; i++)
        (void)json_array_append_new(
            parts, json_pack("{s:s, s:s, s:s}", "part", fitness_part_names[i], "verdict",
                       fitness_verdict_names[r->fitness.parts[i]], "text", r->fitness.texts[i]));
    return json_pack("{s:o, s:o, s:s, s:o, s:s, s:I, s:I, s:b, s:b, s:s}", "node",
        r->seen.node[0] != '\0' ? json_string(r->seen.node) : json_null(), "network",
        r->seen.network[0] != '\0' ? json_string(r->seen.network) : json_null(), "verdict",
        fitness_verdict_names[fitness_worst(&r->fitness)], "parts", parts, "codes",
        r->fitness.codes, "failed", (json_int_t)r->count.n_failed, "passed",
        (json_int_t)r->count.n_passed, "drained", (int)r->is_drained, "dryRun", (int)r->is_dry_run,
        "done", r->done);
}

void drain_format(const struct drain_report *r, struct str *out)
{
    for (unsigned i = 0; i < FITNESS_PART_N; i++) {
        const char *text = r->fitness.texts[i];

        str_addf(out, "%-8s %s%s%s\n", fitness_part_names[i],
            fitness_verdict_names[r->fitness.parts[i]], text[0] != '\0' ? ": " : "", text);
    }
    if (r->count.n_failed > 0)
        str_addf(out, "%u check%s in a row %s failed; after %u the node is to be drained\n",
            (unsigned)r->count.n_failed, r->count.n_failed == 1 ? "" : "s",
            r->count.n_failed == 1 ? "has" : "have", FITNESS_CHECKS);
    if (r->is_drained)
        str_add(out, "the node is drained, until three checks in a row are passed\n");
    if (r->done[0] != '\0')
        str_addf(out, "%s\n", r->done);
}
