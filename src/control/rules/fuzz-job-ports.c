/* fuzz-job-ports.c - where a job says that it listens; what is taken must survive being written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "rules/job_ports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const json_t *json)
{
    struct job_ports_word a = JOB_PORTS_WORD_NULL;
    struct job_ports_word b = JOB_PORTS_WORD_NULL;
    struct err e = ERR_NULL;
    json_t *text;

    if (job_ports_word_decode(&a, json, &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(a.own.n <= JOB_PORTS_OWN_MAX && a.others.n <= JOB_PORTS_OTHERS_MAX);
    text = job_ports_word_encode(&a);
    assert(text && job_ports_word_decode(&b, text, &e) == 0);
    assert(job_ports_word_equal(&a, &b));
    json_decref(text);
    job_ports_word_deinit(&a);
    job_ports_word_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (json)
        check(json);
    json_decref(json);
    return 0;
}
