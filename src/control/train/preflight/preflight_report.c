/* preflight_report.c - the report of preflight.h: its list of findings, and the names in it. */
#include "train/preflight/preflight_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const fault_names[] = {
#define X(id, name, help) name,
    PREFLIGHT_FAULTS(X)
#undef X
};
static const char *const level_names[] = {"ok", "note", "warn", "no"};

_Static_assert(sizeof(level_names) / sizeof(*level_names) == PREFLIGHT_LEVEL_N, "a name each");

const char *preflight_fault_name(enum preflight_fault f)
{
    return fault_names[f];
}

const char *preflight_level_name(enum preflight_level l)
{
    return level_names[l];
}

void preflight_report_deinit(struct preflight_report *r)
{
    free(r->items);
    free(r->pair_levels);
    *r = (struct preflight_report)PREFLIGHT_REPORT_NULL;
}

struct preflight_finding *preflight__find(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b)
{
    /* Takes the place of a finding for which there was no memory. Nobody reads it, because
     * preflight_judge() then fails. */
    static _Thread_local struct preflight_finding lost;
    struct preflight_finding *items;

    if (r->n == r->cap) {
        items = realloc(r->items, (2 * r->cap + 16) * sizeof(*items));
        if (!items) {
            r->failed = true;
            return &lost;
        }
        r->items = items;
        r->cap = 2 * r->cap + 16;
    }
    r->items[r->n] = (struct preflight_finding){.fault = fault, .level = level, .a = a, .b = b};
    return &r->items[r->n++];
}

void preflight__say(struct preflight_finding *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(f->text, sizeof(f->text), fmt, args);
    va_end(args);
}

void preflight__fix(struct preflight_finding *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(f->fix, sizeof(f->fix), fmt, args);
    va_end(args);
}
