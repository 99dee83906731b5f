/* fuzz-plan-matrix.c - a matrix from a file that somebody wrote, and the plan made of it. */
#include <assert.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct matrix m = MATRIX_NULL;
    struct plan plan = PLAN_NULL;
    struct prices prices;
    struct str out = STR_NULL;
    struct err e = ERR_NULL;

    if (matrix_decode(&m, json, &e) != 0) {
        assert(e.text[0] != '\0' && !m.nodes);
        json_decref(json);
        return 0;
    }
    assert(m.n >= 2 && m.n <= MATRIX_NODES_MAX);
    (void)matrix_find_islands(&m);
    prices_default(&prices);
    if (m.n <= 16 && plan_make(&plan, &m,
                         &(struct plan_options){.model = {.params = 7e9, .dtype = MODEL_BF16},
                             .gpu = model_gpu_find("h100"),
                             .gpus = 8,
                             .share = 0.1,
                             .efficiency = 0.4,
                             .transport = len & 1 ? SYNC_GLOO : SYNC_NCCL,
                             .prices = &prices},
                         &e) == 0) {
        json_t *text = plan_encode(&plan);

        plan_format(&plan, &out);
        assert(text && out.len > 0);
        json_decref(text);
        str_deinit(&out);
        plan_deinit(&plan);
    }
    matrix_deinit(&m);
    json_decref(json);
    return 0;
}
