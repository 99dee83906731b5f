/* spent.c - see spent.h. */
#include "cost/spent.h"

#include <math.h>
#include <string.h>

static enum spent_level level_of(double share)
{
    if (share >= 1)
        return SPENT_ALL;
    return share >= SPENT_NEAR ? SPENT_NEAR_END : SPENT_LOW;
}

static double share_of(const struct budget *budget, const struct price_sum *sum)
{
    return budget->cost > 0 ? sum->money / budget->cost
                            : (double)sum->bytes / (double)budget->bytes;
}

struct spent spent_judge(const struct budget *budget, const struct price_sum *sum)
{
    struct spent s = {.budget = *budget, .sum = *sum};

    s.share = share_of(budget, sum);
    s.level = level_of(s.share);
    return s;
}

const struct spent *spent_find(const struct spent_list *list, const char *job)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i].budget.job, job) == 0)
            return &list->items[i];
    return NULL;
}

json_t *spent_encode_one(const struct spent *s)
{
    static const char *const levels[] = {
        [SPENT_LOW] = "low", [SPENT_NEAR_END] = "near", [SPENT_ALL] = "spent"};
    const struct budget *budget = &s->budget;
    bool is_cost = budget->cost > 0;

    /* Readers of the answer may expect the rate of a cap, which budgets once had. */
    return json_pack("{s:s*, s:s, s:f, s:I, s:I, s:f, s:I, s:o, s:n, s:s*}", "job",
        budget->job[0] ? budget->job : NULL, "level", levels[s->level], "share",
        round(s->share * 1e4) / 1e4, "bytes", (json_int_t)s->sum.bytes, "oneEndBytes",
        (json_int_t)s->sum.alone, "cost", round(s->sum.money * 1e6) / 1e6, "unpricedBytes",
        (json_int_t)s->sum.unpriced, is_cost ? "costPerDay" : "bytesPerDay",
        is_cost ? json_real(budget->cost) : json_integer((json_int_t)budget->bytes),
        "capBitsPerSecond", "ignoredCap", budget->ignored_cap[0] ? budget->ignored_cap : NULL);
}

json_t *spent_encode(const struct spent_list *list)
{
    json_t *json = json_array();

    for (unsigned i = 0; i < list->n; i++)
        (void)json_array_append_new(json, spent_encode_one(&list->items[i]));
    return json;
}
