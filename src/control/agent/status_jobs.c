/* status_jobs.c - see status_jobs.h. */
#include "agent/status_jobs.h"

#include <string.h>

#include "base/str.h"
#include "cost/spent_text.h"

static void format_nccl(const json_t *nccl, struct str *out)
{
    const char *verdict = json_string_value(json_object_get(nccl, "verdict"));
    const char *text = json_string_value(json_object_get(nccl, "text"));

    if (verdict && text)
        str_addf(out, "; %s%s", strcmp(verdict, "wanted") == 0 ? "" : "look at this: ", text);
}

static void format_budget(const json_t *budget, struct str *out)
{
    if (!json_is_object(budget))
        return;
    str_add(out, "; budget: ");
    spent_format(out, budget);
}

void status_jobs_format(const json_t *jobs, struct str *out)
{
    const json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job) {
        const char *name = json_string_value(json_object_get(job, "job"));
        size_t n = json_array_size(json_object_get(job, "nodes"));

        str_addf(out, "job %s", name ? name : "?");
        if (n > 0)
            str_addf(out, ", of %zu node%s", n, n == 1 ? "" : "s");
        format_nccl(json_object_get(job, "nccl"), out);
        format_budget(json_object_get(job, "budget"), out);
        str_add(out, "\n");
    }
}
