/* job_report.c - see job_report.h. */
#include "health/job_report.h"

#include <errno.h>
#include <jansson.h>

#include "mesh/object/fields.h"

#define RANKS_MAX 1000000

/* No job spends more, s: thirty years. */
#define COMM_MAX 1e9

int job_report_decode(struct job_report *ret, const char *bytes, size_t len, struct err *e)
{
    json_auto_t *json = len <= JOB_REPORT_MAX ? json_loadb(bytes, len, 0, NULL) : NULL;
    struct fields f = fields_make(json, "report", e);
    struct job_report r = {.rank = 0};
    const json_t *comm;

    fields_int(&f, "rank", FIELDS_OPTIONAL, 0, RANKS_MAX, &r.rank);
    fields_u64(&f, "step", FIELDS_REQUIRED, 0, INT64_MAX, &r.step);
    comm = fields_get(&f, "commSeconds", FIELDS_OPTIONAL);
    if (comm && !(json_number_value(comm) >= 0 && json_number_value(comm) <= COMM_MAX))
        fields_fail(&f, "\"commSeconds\" is not a number of seconds from 0 to 1e9");
    else if (comm)
        r.comm_ms = (uint64_t)(json_number_value(comm) * 1000);
    return fields_give(&f, ret, &r, sizeof(r));
}
