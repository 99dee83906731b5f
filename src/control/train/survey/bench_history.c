/* bench_history.c - see bench_history.h. */
#include "train/survey/bench_history.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "os/statefile.h"
#include "train/survey/bench.h"

#define FILE_NAME "bench.jsonl"

static int make_path(const char *state_dir, char path[static PATH_MAX], struct err *e)
{
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", state_dir, FILE_NAME) >= PATH_MAX)
        return err_set(e, -ENAMETOOLONG, "the path \"%.40s...\" is too long", state_dir);
    return 0;
}

/* Reads the whole file; *@ret is "" when there is no file. The caller frees it. */
static int read_all(const char *path, char **ret, struct err *e)
{
    int r = statefile_read(path, 2 * BENCH_HISTORY_MAX, ret, NULL, e);

    if (r != STATEFILE_E_ABSENT)
        return r;
    *ret = calloc(1, 1);
    return *ret ? 0 : -ENOMEM;
}

/* Returns the part of the text that is kept: all of it or, when the file has grown too long, the
 * newer half from its first whole line on. */
static const char *kept_part(const char *text)
{
    size_t len = strlen(text);
    const char *line;

    if (len < BENCH_HISTORY_MAX)
        return text;
    line = strchr(text + len / 2, '\n');
    return line ? line + 1 : text + len;
}

int bench_history_add(const char *state_dir, const json_t *summary, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    _cleanup_(freep) char *line = json_dumps(summary, JSON_COMPACT);
    _cleanup_(freep) char *text = NULL;
    char path[PATH_MAX];
    int r = make_path(state_dir, path, e);

    if (r == 0)
        r = read_all(path, &text, e);
    if (r < 0)
        return r;
    str_add(&out, kept_part(text));
    if (out.len > 0 && out.text[out.len - 1] != '\n')
        str_add(&out, "\n");
    str_add(&out, line ? line : "");
    str_add(&out, "\n");
    if (!line || out.failed)
        return err_set(e, -ENOMEM, "no memory for the history");
    return statefile_replace(path, str_text(&out), out.len, 0600, e);
}

int bench_history_encode(const char *state_dir, json_t **ret, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    char path[PATH_MAX];
    json_t *runs;
    int r = make_path(state_dir, path, e);

    if (r == 0)
        r = read_all(path, &text, e);
    if (r < 0)
        return r;
    runs = json_array();
    for (const char *line = text; runs && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        json_t *run = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

        /* A damaged line is left out, so that the runs on the other lines can still be seen. */
        if (json_is_object(run))
            (void)json_array_append(runs, run);
        json_decref(run);
        line += len + (line[len] == '\n');
    }
    *ret = json_pack("{s:o}", "runs", runs);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for the history");
}

static uint64_t number(const json_t *run, const char *field)
{
    json_int_t v = json_integer_value(json_object_get(run, field));

    return v < 0 ? 0 : (uint64_t)v;
}

static void format_run(const json_t *run, struct str *out)
{
    static const char *const rates[] = {"slowestBitsPerSecond", "medianBitsPerSecond",
        "fastestBitsPerSecond", "ringBusBitsPerSecond", "treeBusBitsPerSecond"};
    const char *network = json_string_value(json_object_get(run, "network"));
    time_t when = (time_t)number(run, "time");
    struct tm tm = {0};
    char text[32] = "";

    if (gmtime_r(&when, &tm))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    str_addf(out, "%-20s %-12.12s %7llu", text, network ? network : "?",
        (unsigned long long)number(run, "members"));
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        str_addf(out, " %13s",
            number(run, rates[i]) > 0 ? bench_format_rate(number(run, rates[i]), text) : "-");
    str_add(out, "\n");
}

int bench_history_format(const char *state_dir, struct str *out, struct err *e)
{
    json_t *history = NULL;
    const json_t *run;
    size_t i;
    int r = bench_history_encode(state_dir, &history, e);

    if (r < 0)
        return r;
    str_addf(out, "%-20s %-12s %7s %13s %13s %13s %13s %13s\n", "UTC", "NETWORK", "MEMBERS",
        "SLOWEST", "MEDIAN", "FASTEST", "RING BUSBW", "TREE BUSBW");
    json_array_foreach(json_object_get(history, "runs"), i, run)
        format_run(run, out);
    json_decref(history);
    return 0;
}
