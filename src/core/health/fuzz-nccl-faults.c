/* fuzz-nccl-faults.c - a log of NCCL's, and what is told of it. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "health/nccl_faults.h"
#include "mesh/object/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What is told is read as it was written. */
static void check_again(const struct nccl_faults *faults)
{
    struct nccl_faults again = {.kinds = {{.n = 0}}};
    json_t *json = json_pack("{s:o*}", "nccl", nccl_faults_encode(faults));
    struct fields f = fields_make(json, "sample", NULL);

    nccl_faults_read(&again, &f, "nccl");
    assert(fields_end(&f) == 0);
    for (unsigned i = 0; i < NCCL_FAULT_N; i++) {
        assert(again.kinds[i].n == faults->kinds[i].n);
        assert(strcmp(again.kinds[i].text, faults->kinds[i].text) == 0);
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *text = (const char *)data;
    struct nccl_faults faults = {.kinds = {{.n = 0}}};
    uint32_t lines = 0;
    uint32_t sum = 0;

    for (size_t off = 0; off < len;) {
        const char *end = memchr(text + off, '\n', len - off);
        size_t n = end ? (size_t)(end - text) - off : len - off;
        enum nccl_fault_kind kind = NCCL_FAULT_N;

        if (nccl_faults_take(&faults, text + off, n, &kind))
            assert(kind < NCCL_FAULT_N && faults.kinds[kind].text[0] != '\0');
        lines++;
        off += n + 1;
    }
    for (unsigned i = 0; i < NCCL_FAULT_N; i++)
        sum += faults.kinds[i].n;
    assert(sum <= lines);
    check_again(&faults);
    return 0;
}
