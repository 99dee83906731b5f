/* audit.c - weft audit: who changed what on the hub, and who was refused. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "os/clock.h"

/* Most entries in one answer of the hub. */
#define PAGE_MAX 1000

/* How often a hub is asked for what is new. */
#define FOLLOW_EACH_MS 1000

#define LIMIT_MAX 1000000
#define SINCE_MAX (3650 * 86400 * NSEC_PER_SEC)

static struct {
    struct admin_target target;
    const char *network;
    nsec_t since;
    uint64_t limit;
    bool follow;
    bool json;
} arg;

static const struct option options[] = {
    {"-f", NULL, option_flag, &arg.follow, NULL, "go on with what is new, until interrupted"},
    {"--follow", NULL, option_flag, &arg.follow, NULL, "the same"},
    {"--since", "DURATION", option_duration, &arg.since, NULL,
        "only what is not older, as in 24h (default: no matter)", .max = SINCE_MAX},
    {"--limit", "N", option_u64, &arg.limit, "100", "how many of the newest entries", .min = 1,
        .max = LIMIT_MAX},
    {"--network", "NAME", option_name, &arg.network, NULL,
        "only what is about this network (default: everything)"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON, one object a line"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "audit",
    .summary = "Show the hub's audit log: what was changed, by whom, and what was refused.",
    .options = options,
};

/* ---- printing ------------------------------------------------------------------------------- */

static json_int_t number(const json_t *entry, const char *name)
{
    return json_integer_value(json_object_get(entry, name));
}

static void print_entry(const json_t *entry)
{
    const char *from = admin_field(entry, NULL, "from");
    const char *operation = admin_field(entry, NULL, "operation");
    json_int_t others = number(entry, "others");
    json_int_t count = number(entry, "count");
    char when[ADMIN_TIME_MAX];

    if (arg.json) {
        (void)admin_put_json(entry, JSON_COMPACT);
        (void)putchar('\n');
        return;
    }
    (void)printf("%s  %s%s%s  ", admin_time(entry, "time", when), admin_field(entry, NULL, "actor"),
        from[0] ? " from " : "", from);
    if (strcmp(admin_field(entry, NULL, "answer"), "refused") == 0) {
        (void)printf("refused %" JSON_INTEGER_FORMAT, number(entry, "status"));
        if (count > 1)
            (void)printf(" (%" JSON_INTEGER_FORMAT " times)", count);
        (void)printf(" %s: %s\n", operation, admin_field(entry, NULL, "why"));
        return;
    }
    (void)printf("%s %s", operation, admin_field(entry, NULL, "object"));
    if (others > 0)
        (void)printf(" and %" JSON_INTEGER_FORMAT " more", others);
    (void)printf("  %" JSON_INTEGER_FORMAT " -> %" JSON_INTEGER_FORMAT "\n",
        number(entry, "oldRevision"), number(entry, "newRevision"));
}

/** An entry and its place in the hub's order. */
struct placed {
    const json_t *entry; /* borrows */
    size_t index;
};

static int compare_times(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    json_int_t t = number(x->entry, "time");
    json_int_t u = number(y->entry, "time");

    if (t != u)
        return t < u ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* By time. The hub gathers refusals for ten seconds before it writes them, behind changes that came
 * later. */
static int print_all(const json_t *entries)
{
    _cleanup_(freep) struct placed *all = calloc(json_array_size(entries) + 1, sizeof(*all));
    const json_t *entry;
    size_t i;

    if (!all)
        return cmd_fail(usage.command, "no memory");
    json_array_foreach(entries, i, entry)
        all[i] = (struct placed){.entry = entry, .index = i};
    qsort(all, json_array_size(entries), sizeof(*all), compare_times);
    for (i = 0; i < json_array_size(entries); i++)
        print_entry(all[i].entry);
    if (fflush(stdout) != 0)
        return cmd_fail(usage.command, "standard output does not take it: %s", strerror(errno));
    return CMD_OK;
}

/* ---- asking --------------------------------------------------------------------------------- */

/*
 * Asks for one page of entries. @place: "after" or "before", and @id says which entry; NULL: the
 * newest ones. @since: seconds since 1970; 0: no matter how old.
 */
static int ask(
    const char *place, const char *id, uint64_t limit, int64_t since, struct client_answer *ret)
{
    char path[256];
    int n = snprintf(path, sizeof(path), "/v1/audit?limit=%" PRIu64,
        limit < PAGE_MAX ? limit : (uint64_t)PAGE_MAX);

    if (since > 0)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "&since=%" PRId64, since);
    if (arg.network)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "&network=%s", arg.network);
    if (place)
        (void)snprintf(path + n, sizeof(path) - (size_t)n, "&%s=%.40s", place, id);
    return admin_call(&arg.target, usage.command, "GET", path, NULL, ret);
}

/* Prints the newest entries. Pages are asked for from the newest one backwards. @next: set to the
 * ID after which follow() goes on. */
static int show_newest(char next[static 64])
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int64_t since = arg.since > 0 ? (clock_wall() - arg.since) / NSEC_PER_SEC : 0;
    json_t *all = json_array();
    int status = ask(NULL, NULL, arg.limit, since, &answer);

    if (status == CMD_OK)
        (void)snprintf(next, 64, "%s", admin_field(answer.body, NULL, "next"));
    while (status == CMD_OK) {
        json_t *page = json_incref(json_object_get(answer.body, "entries"));
        char previous[64];

        (void)json_array_extend(page, all);
        json_decref(all);
        all = page;
        (void)snprintf(
            previous, sizeof(previous), "%s", admin_field(answer.body, NULL, "previous"));
        if (!previous[0] || json_array_size(all) >= arg.limit)
            break;
        client_answer_deinit(&answer);
        status = ask("before", previous, arg.limit - json_array_size(all), since, &answer);
    }
    if (status == CMD_OK)
        status = print_all(all);
    json_decref(all);
    return status;
}

static int follow(char next[static 64])
{
    int status = CMD_OK;

    while (status == CMD_OK) {
        _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
        const json_t *entries;

        status = ask("after", next, PAGE_MAX, 0, &answer);
        if (status != CMD_OK)
            break;
        entries = json_object_get(answer.body, "entries");
        (void)snprintf(next, 64, "%s", admin_field(answer.body, NULL, "next"));
        status = print_all(entries);
        if (json_array_size(entries) == 0)
            (void)poll(NULL, 0, FOLLOW_EACH_MS);
    }
    return status;
}

int cmd_audit(int argc, char **argv)
{
    char next[64] = "";
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    status = show_newest(next);
    return status == CMD_OK && arg.follow ? follow(next) : status;
}
