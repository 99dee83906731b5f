/* way_loss.c - see way_loss.h. */
#include "health/way_loss.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "health/finding.h"
#include "path/loss.h"

static const enum finding_code codes[LOSS_LEVEL_N] = {
    [LOSS_LEVEL_SOME] = FINDING_WAY_LOSS, [LOSS_LEVEL_CRITICAL] = FINDING_WAY_LOSS_CRITICAL};

/* What it was at the last look. */
static enum loss_level level_before(const struct findings *f, const char *subject)
{
    if (findings_find(f, FINDING_WAY_LOSS_CRITICAL, subject))
        return LOSS_LEVEL_CRITICAL;
    return findings_find(f, FINDING_WAY_LOSS, subject) ? LOSS_LEVEL_SOME : LOSS_LEVEL_NONE;
}

/* Where a relay is on the way there are two lines to look at. */
static void set_fix(struct finding *found, const char *from, const char *to, bool is_relayed)
{
    if (is_relayed)
        finding_set_fix(found,
            "Look at the line from %s to the relay, and from there to %s; a direct path would "
            "leave out the relay: weft paths.",
            from, to);
}

/* Was what is usual as bad, by the limits? */
static bool was_as_bad(const struct loss_rate *r, enum loss_level level)
{
    return r->has_usual && r->usual_ppm >= loss_limits_ppm[level];
}

void way_loss_find(struct findings *f, const char *from, const char *to, const struct loss_rate *r,
    bool is_relayed, int64_t at)
{
    char subject[FINDING_SUBJECT_MAX];
    enum loss_level level;
    char before[64] = "";

    (void)snprintf(subject, sizeof(subject), "%s>%s", from, to);
    level = r ? loss_level(r, level_before(f, subject)) : LOSS_LEVEL_NONE;
    if (level == LOSS_LEVEL_NONE)
        return;
    if (r->has_usual)
        (void)snprintf(
            before, sizeof(before), "; in the last hour it was %.2f %%", r->usual_ppm / 1e4);
    set_fix(findings_add(f, codes[level], subject, at,
                "%.2f %% of what %s sends to %s does not arrive: %" PRIu64 " of %" PRIu64
                " datagrams in %" PRIu32 " s, by WireGuard's counters at %s%s",
                loss_rate_ppm(r) / 1e4, from, to, r->lost, r->packets, r->seconds, to, before),
        from, to, is_relayed);
    if (r->is_worse && was_as_bad(r, level))
        set_fix(findings_add(f, FINDING_WAY_LOSS_WORSE, subject, at,
                    "%.2f %% of what %s sends to %s does not arrive, and in the last hour it was "
                    "%.2f %%: %" PRIu64 " of %" PRIu64 " datagrams in %" PRIu32
                    " s, by WireGuard's counters at %s",
                    loss_rate_ppm(r) / 1e4, from, to, r->usual_ppm / 1e4, r->lost, r->packets,
                    r->seconds, to),
            from, to, is_relayed);
}
