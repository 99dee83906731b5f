/* preflight_report.c - see preflight.h: the list of what was found. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/containers.h"
#include "train/preflight/preflight.h"
#include "train/preflight/preflight_internal.h"

struct preflight_finding *preflight__add(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b)
{
    /* Takes the place of a finding for which there was no memory. Nobody reads it, because
     * preflight_assess() then fails. */
    static _Thread_local struct preflight_finding lost;
    struct preflight_finding *items = sorted_open(r->items, r->n, sizeof(*items), r->n, &r->cap);

    if (!items) {
        r->failed = true;
        return &lost;
    }
    r->items = items;
    r->items[r->n] = (struct preflight_finding){.fault = fault, .level = level, .a = a, .b = b};
    return &r->items[r->n++];
}

void preflight__say(char text[static 256], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, 256, fmt, args);
    va_end(args);
}

void preflight_report_deinit(struct preflight_report *r)
{
    free(r->items);
    free(r->pair_levels);
    *r = (struct preflight_report)PREFLIGHT_REPORT_NULL;
}
