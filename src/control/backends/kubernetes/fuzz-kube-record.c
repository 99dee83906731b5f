/* fuzz-kube-record.c - texts of Records in Kubernetes, as somebody with kubectl may have made them.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/kubernetes/kube_journal.h"
#include "base/err.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_commit(const json_t *json)
{
    struct store_job *job = NULL;
    struct store_job *again = NULL;
    struct err e = ERR_NULL;
    json_t *back;

    if (kube_commit_decode(&job, json, &e) != 0)
        return;
    back = kube_commit_encode(job);
    assert(back && kube_commit_decode(&again, back, &e) == 0);
    json_decref(back);
    store_job_free(job);
    store_job_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);
    struct store_item item;
    struct kube_checkpoint checkpoint;
    struct err e = ERR_NULL;
    json_t *json;

    json = json_loads(text, 0, NULL);
    (void)kube_checkpoint_decode(&checkpoint, text, &e);
    (void)kube_entry_seq(text);
    assert(kube_cut(text) <= strlen(text));
    if (json) {
        check_commit(json);
        (void)kube_item_decode(&item, json, &e);
    }
    json_decref(json);
    free(text);
    return 0;
}
