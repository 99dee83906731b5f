/* way_rate.c - see way_rate.h. */
#include "health/way_rate.h"

#include <stdio.h>

#include "health/finding.h"
#include "health/job_causes.h"
#include "health/job_health.h"
#include "health/job_sample.h"

void way_rate_find(
    struct findings *f, const char *job, const struct job_slow_line *line, int64_t at)
{
    char subject[FINDING_SUBJECT_MAX];
    char repeated[64] = "";
    char rate[32];
    char usual[32];

    if (line->for_s < WAY_RATE_AFTER_S)
        return;
    (void)snprintf(subject, sizeof(subject), "%s>%s", line->from, line->to);
    if (line->repeated >= JOB_SAMPLE_WHOLE / 100)
        (void)snprintf(repeated, sizeof(repeated), "; %.1f %% of its segments are sent again",
            line->repeated / 10.0);
    finding_set_fix(
        findings_add(f, FINDING_WAY_SLOW, subject, at - line->for_s,
            "what job %s sends from %s to %s goes at %s while there is something to send, and in "
            "the last hour went at %s%s",
            job, line->from, line->to, job_causes_format_rate(line->rate, rate),
            job_causes_format_rate(line->usual, usual), repeated),
        "On %s: weft paths %s says how these packets go; weft get edges %s %s --history says since "
        "when; look at what else fills the line.",
        line->from, line->to, line->from, line->to);
}
