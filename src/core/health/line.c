/* line.c - see line.h. */
#include "health/line.h"

#include <stdio.h>

/* Most pairs that the sentence names, and the longest of them. */
#define NAMED_MAX      3
#define NAMED_PAIR_MAX (FINDING_SUBJECT_MAX + 72)

static double mbit(uint64_t rate)
{
    return (double)rate / 1e6;
}

/* ", most of it for a--b (5.1 Mbit/s, asked to go another way), c--d (4.5 Mbit/s)"; "": there is
 * none. */
static void name_pairs(const struct line_facts *f, char *ret, size_t cap)
{
    size_t len = 0;
    unsigned n = 0;

    ret[0] = '\0';
    for (unsigned i = 0; i < f->n_pairs && n < NAMED_MAX && cap - len >= NAMED_PAIR_MAX; i++) {
        const struct line_pair *pair = &f->pairs[i];
        char name[FINDING_SUBJECT_MAX];

        if (pair->rate == 0)
            continue;
        len += (size_t)snprintf(ret + len, cap - len, "%s%s (%.1f Mbit/s%s)",
            n == 0 ? ", most of it for " : ", ",
            finding_name_pair(name, pair->nodes[0], pair->nodes[1]), mbit(pair->rate),
            pair->is_away ? ", asked to go another way" : "");
        n++;
    }
}

void line_find(const struct line_facts *f, struct findings *set, int64_t at)
{
    static const enum finding_code codes[2][RELAY_LINE_LEVEL_N] = {
        {[RELAY_LINE_NEAR] = FINDING_RELAY_LINE_NEAR, [RELAY_LINE_FULL] = FINDING_RELAY_LINE_FULL},
        {[RELAY_LINE_NEAR] = FINDING_HUB_LINE_NEAR, [RELAY_LINE_FULL] = FINDING_HUB_LINE_FULL}};
    const struct relay_line_report *line = f->line;
    char pairs[2 * NAMED_PAIR_MAX];

    if (line->level == RELAY_LINE_OPEN || line->capacity == 0)
        return;
    name_pairs(f, pairs, sizeof(pairs));
    (void)findings_add(set, codes[!f->node][line->level], f->node ? f->node : FINDING_HUB, at,
        "%s relays %.1f Mbit/s, and its line carries %.1f Mbit/s, as %s%s.",
        f->node ? f->node : "The hub", mbit(line->rate), mbit(line->capacity),
        line->is_measured ? "was measured" : "it was told", pairs);
}
