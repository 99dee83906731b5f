/* fuzz-gpu-sample.c - what a process that has asked a GPU's driver says, and what follows. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "health/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What is taken is written as it was read. */
static void check_again(const struct gpu_sample *s)
{
    static struct gpu_sample again;
    json_t *json = gpu_sample_encode(s);

    assert(json && gpu_sample_decode(&again, json, NULL) == 0);
    assert(again.n_gpus == s->n_gpus && again.n_lines == s->n_lines && again.ms == s->ms);
    for (unsigned i = 0; i < s->n_gpus; i++)
        assert(strcmp(again.gpus[i].bus, s->gpus[i].bus) == 0 &&
               again.gpus[i].n_xids == s->gpus[i].n_xids);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct gpu_sample s;
    static struct gpu_watch w;
    struct findings found = {.n = 0};
    struct err e = ERR_NULL;
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    memset(&w, 0, sizeof(w));
    memset(&s, 0, sizeof(s));
    if (gpu_sample_decode(&s, json, &e) == 0) {
        assert(s.n_gpus <= GPU_MAX && s.n_lines <= GPU_LINES_MAX);
        check_again(&s);
    } else {
        assert(e.text[0] != '\0' && s.n_gpus == 0);
    }
    for (int64_t at = 1; at < 4; at++) {
        gpu_watch_take(&w, &s, at);
        gpu_find(&w, "a", &found, at);
    }
    assert(found.n <= 8);
    findings_deinit(&found);
    json_decref(json);
    return 0;
}
