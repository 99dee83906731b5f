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
    struct sweep *s = calloc(1, sizeof(*s));
    char *text = fuzz_text(data, len);
    struct str out = STR_NULL;

    if (!s)
        abort();
    nccl_tests_take_all(s, text);
    assert(s->n_sizes <= NCCL_TESTS_SIZES_MAX);
    for (size_t i = 0; i < s->n_sizes; i++)
        assert(isfinite(s->sizes[i].busbw) && isfinite(s->sizes[i].us) && s->sizes[i].busbw >= 0);
    s->is_done = true;
    sweep_assess(s, NULL, 1e9);
    sweep_format(s, &out);
    assert(!strchr(str_text(&out), '\x1b'));
    str_deinit(&out);
    free(text);
    free(s);
    return 0;
}
