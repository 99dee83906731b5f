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

struct spent spent_judge(
    const struct budget *budget, const struct price_sum *sum, const struct price_sum *agreed)
{
    struct spent s = {.sum = *sum, .agreed = *agreed};

    memcpy(s.job, budget->job, sizeof(s.job));
    s.share = share_of(budget, sum);
    s.level = level_of(s.share);
    s.cap = share_of(budget, agreed) >= 1 ? budget->cap : 0;
    return s;
}

uint64_t spent_cap_of(
    const struct spent *spent, const struct budget *budget, const struct price_sum *own)
{
    struct price_sum sum = spent->agreed;

    price_sum_add(&sum, own);
    return share_of(budget, &sum) >= 1 ? budget->cap : 0;
}

const struct spent *spent_find(const struct spent_list *list, const char *job)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->items[i].job, job) == 0)
            return &list->items[i];
    return NULL;
}

json_t *spent_encode(const struct spent_list *list)
{
    json_t *json = json_array();

    for (unsigned i = 0; i < list->n; i++) {
        const struct spent *s = &list->items[i];

        (void)json_array_append_new(json,
            json_pack("{s:s*, s:f, s:I, s:I, s:f, s:I}", "job", s->job[0] ? s->job : NULL, "share",
                round(s->share * 1e4) / 1e4, "bytes", (json_int_t)s->sum.bytes, "oneEndBytes",
                (json_int_t)s->sum.alone, "cost", round(s->sum.money * 1e6) / 1e6, "unpricedBytes",
                (json_int_t)s->sum.unpriced));
    }
    return json;
}
