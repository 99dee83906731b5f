/* budget.c - see budget.h. */
#include "mesh/object/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"

/* Longest number in a text. */
#define NUMBER_TEXT_MAX 32

static const char digits[] = "0123456789";

/* Is it written as people write amounts, 2000 or 12.5 or 2e12? Not as strtod() takes it, too: in
 * other bases, with blanks, or "inf". */
static bool is_decimal(const char *text)
{
    size_t n = strspn(text, digits);
    size_t at = n;

    if (n == 0 || strnlen(text, NUMBER_TEXT_MAX + 1) > NUMBER_TEXT_MAX)
        return false;
    if (text[at] == '.') {
        n = strspn(text + at + 1, digits);
        at += n > 0 ? n + 1 : 0;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        bool has_sign = text[at + 1] == '+' || text[at + 1] == '-';

        n = strspn(text + at + 1 + has_sign, digits);
        at += n > 0 ? n + 1 + has_sign : 0;
    }
    return text[at] == '\0';
}

/* A number; in YAML one with a fraction is a text. NAN: it is none. */
static double number_of(const json_t *json)
{
    const char *text = json_string_value(json);

    if (!text)
        return json_is_number(json) ? json_number_value(json) : (double)NAN;
    return is_decimal(text) ? strtod(text, NULL) : (double)NAN;
}

/* Is there such a field? It has to be a number above 0. */
static bool take_amount(struct fields *f, const char *name, double *ret)
{
    const json_t *json = fields_get(f, name, FIELDS_OPTIONAL);
    double value = number_of(json);

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
    struct err e = ERR_NULL;
    double bytes = 0;
    const char *cap;
    bool has_cost;

    fields_name(&own, "job", FIELDS_OPTIONAL, budget.job);
    has_cost = take_amount(&own, "costPerDay", &budget.cost);
    if (take_amount(&own, "bytesPerDay", &bytes) == has_cost)
        fields_fail(&own, "a budget has either \"costPerDay\" or \"bytesPerDay\"");
    cap = fields_string(&own, "cap", FIELDS_OPTIONAL, 1, TRAFFIC_RATE_TEXT_MAX);
    if (cap && traffic_rate_parse(&budget.cap, cap, "\"cap\" of a budget", &e) != 0)
        fields_fail(&own, "%s", err_text(&e));
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
        char cap[TRAFFIC_RATE_TEXT_MAX];
        json_t *json = json_pack("{s:s*, s:o, s:s*}", "job", budget->job[0] ? budget->job : NULL,
            is_cost ? "costPerDay" : "bytesPerDay",
            is_cost ? json_real(budget->cost) : json_integer((json_int_t)budget->bytes), "cap",
            budget->cap > 0 ? traffic_rate_format(budget->cap, cap) : NULL);

        if (json_array_append_new(list, json) < 0)
            list = (json_decref(list), NULL);
    }
    return list;
}
