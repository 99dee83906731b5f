/* jobs.c - weft jobs: what the jobs of a network keep on the hub, which limits they met, what holds
 * them up, and what is left of their budgets. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cost/ledger.h"

static struct {
    struct admin_target target;
    const char *network;
    bool json;
} arg;

static const struct option options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "whose jobs"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "jobs",
    .summary =
        "List a network's jobs: where they meet, what they keep, which limits they met, what "
        "holds them up, and their budgets.",
    .options = options,
};

static long long number(const json_t *job, const char *name)
{
    return (long long)json_integer_value(json_object_get(job, name));
}

/* Nodes on which NCCL took another network than the one that was wanted, or said none; and in
 * short those where all is well. */
static void print_nccl(const json_t *job)
{
    const json_t *said;
    size_t n_wanted = 0;
    size_t i;

    json_array_foreach(json_object_get(job, "nccl"), i, said) {
        if (strcmp(admin_field(said, NULL, "verdict"), "wanted") == 0 && n_wanted++ > 0)
            continue;
        (void)printf(
            "    %s: %s\n", admin_field(said, NULL, "node"), admin_field(said, NULL, "text"));
    }
    if (n_wanted > 1)
        (void)printf("    and so, too, on %zu other%s\n", n_wanted - 1, n_wanted > 2 ? "s" : "");
}

/* What holds up a job, each with what to do. */
static void print_held_up(const json_t *job)
{
    const json_t *f;
    size_t i;

    json_array_foreach(json_object_get(job, "heldUpBy"), i, f) {
        const char *text = admin_field(f, NULL, "text");
        char time[32];

        format_duration((nsec_t)number(f, "forSeconds") * NSEC_PER_SEC, time);
        if (strcmp(admin_field(f, NULL, "about"), "job") == 0)
            (void)printf("    STUCK for %s: %s\n", time, text);
        else
            (void)printf("    HELD UP BY %s, for %s\n", text, time);
        (void)printf("        %s: %s\n", admin_field(f, NULL, "code"), admin_field(f, NULL, "fix"));
    }
}

/* Nodes of it that get no new work. */
static void print_drained(const json_t *job)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(job, "drained"), i, one)
        (void)printf(
            "    DRAINED %s: %s\n", admin_field(one, NULL, "node"), admin_field(one, NULL, "why"));
}

/* Nodes whose ports of the job are for its members alone. */
static void print_isolated(const json_t *job)
{
    const json_t *nodes = json_object_get(job, "isolated");
    const json_t *name;
    size_t i;

    if (json_array_size(nodes) == 0)
        return;
    (void)printf("    ISOLATED on");
    json_array_foreach(nodes, i, name)
        (void)printf("%s %s", i > 0 ? "," : "", json_string_value(name));
    (void)printf("\n");
}

/* Which step it has made, where its script says so. */
static void print_step(const json_t *job)
{
    if (json_object_get(job, "step"))
        (void)printf("    step %lld, %.2f steps/s\n", number(job, "step"),
            json_number_value(json_object_get(job, "stepsPerSecond")));
}

static void print_jobs(const json_t *body)
{
    _cleanup_(str_deinit) struct str budgets = STR_NULL;
    const json_t *job;
    size_t i;

    (void)printf("%-20s %-24s %-21s %7s %9s %6s %s\n", "JOB", "RUN", "ENDPOINT", "KEYS", "BYTES",
        "LIMITS", "LAST LIMIT");
    json_array_foreach(json_object_get(body, "jobs"), i, job) {
        const char *which = admin_field(job, NULL, "lastLimit");

        (void)printf("%-20s %-24s %-21s %7lld %9lld %6lld %s\n", admin_field(job, NULL, "job"),
            admin_field(job, NULL, "run"), admin_field(job, "c10d", "endpoint"),
            number(job, "keys"), number(job, "bytes"), number(job, "limitHits"),
            which[0] ? which : "-");
        print_step(job);
        print_isolated(job);
        print_held_up(job);
        print_drained(job);
        print_nccl(job);
    }
    /* A line for the network's budget, and for each job's: also of one that has ended. */
    spent_format_all(&budgets, json_object_get(body, "budgets"));
    (void)printf("%s%s", budgets.len > 0 ? "\n" : "", str_text(&budgets));
}

int cmd_jobs(int argc, char **argv)
{
    char path[128];
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/jobs", arg.network);
    return admin_show(&arg.target, usage.command, "GET", path, NULL, arg.json, print_jobs);
}
