/* fuzz-ras-status.c - what whoever listens on the port of NCCL's RAS answers. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "health/ras_status.h"
#include "mesh/object/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool is_even(const void *arg, uint32_t pid)
{
    assert(arg == NULL && pid > 0);
    return pid % 2 == 0;
}

/* What is told is read as it was written. */
static void check_again(struct ras_ranks *ranks)
{
    struct ras_ranks again = {.n = 0};
    struct fields f;
    json_t *json;

    ranks->is_known = true;
    json = json_pack("{s:o*}", "ras", ras_ranks_encode(ranks));
    f = fields_make(json, "sample", NULL);
    ras_ranks_read(&again, &f, "ras");
    assert(fields_end(&f) == 0 && again.n == ranks->n);
    for (unsigned i = 0; i < ranks->n; i++) {
        const struct ras_rank *a = &ranks->items[i];
        const struct ras_rank *b = &again.items[i];

        assert(a->rank == b->rank && a->n_ranks == b->n_ranks && a->pid == b->pid);
        assert(a->n_waiting == b->n_waiting && a->n_started == b->n_started);
        assert(ip_addr_equal(&a->address, &b->address));
        assert(strcmp(a->operation, b->operation) == 0);
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct ras_status status = {.ranks = {.n = UINT32_MAX}};
    struct err e = ERR_NULL;

    if (ras_status_decode(&status, (const char *)data, len, is_even, NULL, &e) != 0) {
        assert(e.text[0] != '\0' && status.ranks.n == UINT32_MAX);
        return 0;
    }
    assert(status.ranks.n <= RAS_RANKS_MAX && (status.is_ours || !status.is_first));
    check_again(&status.ranks);
    return 0;
}
