/* fuzz-job-report.c - datagrams from whatever runs as the job's user. */
#include <assert.h>
#include <stdint.h>

#include "health/job_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct job_report r = {.rank = UINT32_MAX};
    struct err e = ERR_NULL;

    if (job_report_decode(&r, (const char *)data, len, &e) == 0)
        assert(r.rank <= 1000000 && r.step <= INT64_MAX && r.comm_ms <= 1000000000000);
    else
        assert(e.text[0] != '\0' && r.rank == UINT32_MAX);
    return 0;
}
