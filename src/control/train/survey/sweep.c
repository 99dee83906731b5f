/* sweep.c - see sweep.h. */
#include "train/survey/sweep.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

double sweep_best(const struct sweep *s)
{
    double best = 0;

    for (size_t i = 0; i < s->n_sizes; i++)
        best = s->sizes[i].busbw > best ? s->sizes[i].busbw : best;
    return best;
}

void sweep_judge(
    struct sweep *s, const struct fabric_report *machine, double rate, const struct nccl_log *log)
{
    struct str out = STR_NULL;

    if (s->crosses)
        machine = NULL;
    if (s->by_nccl) {
        s->has_expectation = machine && verdict_expect(&s->expected, machine);
    } else if (rate > 0) {
        s->has_expectation = true;
        s->expected = verdict_expect_plain(rate);
    }
    s->verdict = verdict_judge(s->has_expectation ? &s->expected : NULL,
        s->by_nccl ? machine : NULL, sweep_best(s), log, &out);
    if (s->is_wrong) {
        s->verdict = VERDICT_FAIL;
        str_deinit(&out);
        str_add(&out, "fail: some sums were wrong");
    }
    (void)snprintf(s->text, sizeof(s->text), "%s", str_text(&out));
    str_deinit(&out);
}

static const char *verdict_name(enum verdict v)
{
    return v == VERDICT_PASS ? "pass" : v == VERDICT_FAIL ? "fail" : "none";
}

json_t *sweep_encode(const struct sweep *s)
{
    json_t *sizes;

    if (!s->is_done)
        return json_null();
    sizes = json_array();
    for (size_t i = 0; i < s->n_sizes; i++)
        (void)json_array_append_new(
            sizes, json_pack("{s:I, s:f, s:f, s:f}", "bytes", (json_int_t)s->sizes[i].bytes, "us",
                       s->sizes[i].us, "algGBps", s->sizes[i].algbw, "busGBps", s->sizes[i].busbw));
    return json_pack("{s:s, s:o, s:s, s:s, s:f, s:o, s:o, s:s, s:s}", "by",
        s->by_nccl ? "nccl-tests" : "tcp", "sizes", sizes, "why", s->why, "network", s->network,
        "bestBusGBps", sweep_best(s), "leastBusGBps",
        s->has_expectation ? json_real(s->expected.least) : json_null(), "usualBusGBps",
        s->has_expectation ? json_real(s->expected.usual) : json_null(), "verdict",
        verdict_name(s->verdict), "text", s->text);
}

static void add_size(struct str *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t i = 0;

    for (; bytes >= 1024 && bytes % 1024 == 0 && i + 1 < sizeof(units) / sizeof(*units); i++)
        bytes /= 1024;
    str_addf(out, "  %7llu %-3s", (unsigned long long)bytes, units[i]);
}

void sweep_format(const struct sweep *s, struct str *out)
{
    if (!s->is_done)
        return;
    str_addf(out, "all-reduce, by %s%s%s\n  %11s %14s %14s %14s\n",
        s->by_nccl ? "nccl-tests" : "a ring over TCP on the overlay",
        s->network[0] != '\0' ? ", NCCL's network " : "", s->network, "size", "us", "algbw GB/s",
        "busbw GB/s");
    for (size_t i = 0; i < s->n_sizes; i++) {
        add_size(out, s->sizes[i].bytes);
        str_addf(
            out, " %14.1f %14.3f %14.3f\n", s->sizes[i].us, s->sizes[i].algbw, s->sizes[i].busbw);
    }
    if (s->why[0] != '\0')
        str_addf(out, "  no larger size: %s\n", s->why);
    str_addf(out, "%s\n", s->text);
}
