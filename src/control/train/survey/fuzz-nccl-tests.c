/* fuzz-nccl-tests.c - any bytes as the output of nccl-tests: figures stay finite and bounded. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "test/support/fuzz_text.h"
#include "train/survey/sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct nccl_tests *t = calloc(1, sizeof(*t));
    struct sweep *s = calloc(1, sizeof(*s));
    char *text = fuzz_text(data, len);
    struct str out = STR_NULL;

    if (!t || !s)
        abort();
    nccl_tests_take_all(t, text);
    assert(t->n_sizes <= NCCL_TESTS_SIZES_MAX);
    for (size_t i = 0; i < t->n_sizes; i++)
        assert(isfinite(t->sizes[i].busbw) && isfinite(t->sizes[i].us) && t->sizes[i].busbw >= 0);
    memcpy(s->sizes, t->sizes, sizeof(s->sizes));
    s->n_sizes = t->n_sizes;
    s->is_done = true;
    sweep_assess(s, NULL, 1e9, &t->log);
    sweep_format(s, &out);
    assert(!strchr(str_text(&out), '\x1b'));
    str_deinit(&out);
    free(text);
    free(s);
    free(t);
    return 0;
}
