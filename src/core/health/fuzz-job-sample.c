/* fuzz-job-sample.c - samples of a job from a member, and what is concluded from them. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/job_health.h"
#include "health/job_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What is taken is written as it was read. */
static void check_again(const struct job_sample *s)
{
    static struct job_sample again;
    json_t *json = job_sample_encode(s);

    assert(json && job_sample_decode(&again, json, NULL) == 0);
    assert(again.n_peers == s->n_peers && again.ms == s->ms);
    assert(memcmp(&again.processes, &s->processes, sizeof(again.processes)) == 0);
    for (unsigned i = 0; i < NCCL_FAULT_N; i++)
        assert(again.nccl.kinds[i].n == s->nccl.kinds[i].n &&
               strcmp(again.nccl.kinds[i].text, s->nccl.kinds[i].text) == 0);
    json_decref(json);
}

/* The same again and again, of two nodes that name each other. */
static void conclude(struct job_sample *s)
{
    static const char *const names[] = {"a", "b"};
    struct job_health *h = job_health_new();
    struct findings findings = {.n = 0};
    struct job_health_out out = {.job = "train", .findings = &findings, .at = 1};

    for (unsigned i = 0; h && i < 12; i++) {
        nsec_t now = (nsec_t)(i + 1) * 3 * NSEC_PER_SEC;

        for (unsigned k = 0; k < 2; k++) {
            for (unsigned p = 0; p < s->n_peers; p++)
                (void)snprintf(s->peers[p].node, sizeof(s->peers[p].node), "%s", names[!k]);
            job_health_take(h, names[k], s, now);
        }
        job_health_look(h, &out, now);
    }
    if (h)
        job_health_clear(h, &out);
    assert(findings.n == 0);
    findings_deinit(&findings);
    (void)job_health_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct job_sample s;
    struct err e = ERR_NULL;
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (!json)
        return 0;
    if (job_sample_decode(&s, json, &e) == 0) {
        assert(s.ms > 0 && s.n_peers <= JOB_SAMPLE_PEERS_MAX);
        check_again(&s);
        conclude(&s);
    } else {
        assert(e.text[0] != '\0');
    }
    json_decref(json);
    return 0;
}
