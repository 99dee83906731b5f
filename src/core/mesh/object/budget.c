/* budget.c - see budget.h. */
#include "mesh/object/budget.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mesh/object/fields.h"

/* Is there such a field? It has to be a number above 0. */
static bool take_amount(struct fields *f, const char *name, double *ret)
{
    const json_t *json = fields_get(f, name, FIELDS_OPTIONAL);
    double value = fields_decimal(json);

    if (!json)
        return false;
    if (!isfinite(value) || value <= 0 || value > BUDGET_MAX)
        fields_fail(f, "\"%s\" of a budget is no number above 0 up to %.0g", name, BUDGET_MAX);
    else
        *ret = value;
    return true;
}

static void take_budget(
    struct fields *f, const json_t *json, enum object_mode mode, struct budgets *b)
{
    struct fields own = fields_make(json, f->where, f->e);
    struct budget budget = {.cost = 0};
    const char *cap;
    double bytes = 0;
    bool has_cost;

    fields_name(&own, "job", FIELDS_OPTIONAL, budget.job);
    has_cost = take_amount(&own, "costPerDay", &budget.cost);
    if (take_amount(&own, "bytesPerDay", &bytes) == has_cost)
        fields_fail(&own, "a budget has either \"costPerDay\" or \"bytesPerDay\"");
    /* A budget had a rate once, for when it is spent. A stored one loads. */
    cap = fields_string(&own, "cap", FIELDS_OPTIONAL, 1, TRAFFIC_RATE_TEXT_MAX - 1);
    if (cap && mode == OBJECT_STRICT)
        fields_fail(&own, "\"cap\" of a budget has no effect any more: leave it out");
    else if (cap)
        (void)snprintf(budget.ignored_cap, sizeof(budget.ignored_cap), "%s", cap);
    if (mode == OBJECT_STRICT)
        fields_refuse_unknown(&own);
    budget.bytes = (uint64_t)bytes;
    if (!has_cost && budget.bytes == 0)
        fields_fail(&own, "\"bytesPerDay\" of a budget is less than a byte");
    for (unsigned i = 0; i < b->n; i++)
        if (strcmp(b->items[i].job, budget.job) == 0)
            fields_fail(
                &own, "%s%s has two budgets", budget.job[0] ? "job " : "the network", budget.job);
    if (fields_end(&own) == 0)
        b->items[b->n++] = budget;
    else
        f->failed = fields_end(&own);
}

void budgets_decode(struct fields *f, enum object_mode mode, struct budgets *ret)
{
    const json_t *list = fields_array(f, "budgets", FIELDS_OPTIONAL, 0, BUDGETS_MAX);
    struct budgets b = {.n = 0};

    for (size_t i = 0; fields_end(f) == 0 && i < json_array_size(list); i++)
        take_budget(f, json_array_get(list, i), mode, &b);
    if (fields_end(f) == 0)
        *ret = b;
}

json_t *budgets_encode(const struct budgets *b)
{
    json_t *list = b->n > 0 ? json_array() : NULL;

    for (unsigned i = 0; list && i < b->n; i++) {
        const struct budget *budget = &b->items[i];
        bool is_cost = budget->cost > 0;
        json_t *json = json_pack("{s:s*, s:o}", "job", budget->job[0] ? budget->job : NULL,
            is_cost ? "costPerDay" : "bytesPerDay",
            is_cost ? json_real(budget->cost) : json_integer((json_int_t)budget->bytes));

        if (json_array_append_new(list, json) < 0)
            list = (json_decref(list), NULL);
    }
    return list;
}
