/* fuzz-rdzv.c - what a damaged store may hold of a rendezvous: keys, pieces, and entries. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rendezvous/tcpstore_server.h"
#include "rendezvous/rdzv_record.h"
#include "rendezvous/etcd2_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void put(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
}

static void drop(void *ctx, const void *name, size_t name_len, size_t before)
{
}

static void unsaved(void *ctx)
{
}

static void check_entry(const uint8_t *data, size_t len)
{
    struct rdzv_kv_saver saver = {.unsaved = unsaved, .put = put, .drop = drop};
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 1000};
    struct err e = ERR_NULL;
    struct rdzv_kv kv;

    rdzv_kv_init(&kv, &saver, &quota, 1);
    (void)rdzv_kv_load(&kv, data, len, &e);
    rdzv_kv_deinit(&kv);
    assert(quota.bytes == 0 && quota.entries == 0);
}

static void check_node(const uint8_t *data, size_t len)
{
    struct rdzv_tree_saver saver = {.put = put, .drop = drop};
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 1000};
    struct rdzv_when when = {.now = 1, .wall = 1};
    struct rdzv_refusal why;
    struct err e = ERR_NULL;
    struct rdzv_tree t;
    char *text;
    size_t text_len;

    assert(rdzv_tree_init(&t, &saver, &quota) == 0);
    if (rdzv_tree_load(&t, data, len, when, &e) == 0) {
        assert(rdzv_tree_get(&t, "/", true, when, &text, &text_len, &why) == 0);
        free(text);
        rdzv_tree_expire(&t, (struct rdzv_when){.now = NSEC_NEVER - 1, .wall = 1});
    }
    rdzv_tree_deinit(&t);
    assert(quota.bytes == 0 && quota.entries == 0);
}

static void check_text(const char *text)
{
    struct rdzv_key k = rdzv_key_parse(text);
    struct rdzv_job_record job;
    static uint8_t bytes[RDZV_CHUNK];
    struct rdzv_head head;
    size_t len = 0;
    struct err e = ERR_NULL;
    char buf[RDZV_KEY_MAX];

    if (k.kind == RDZV_KEY_JOB)
        assert(strncmp(rdzv_key_of_job(buf, k.network, k.job), text, strlen(buf)) == 0);
    if (rdzv_job_decode(&job, text, &e) == 0)
        assert(job.port > 0 && job.run > 0);
    if (rdzv_piece_decode(bytes, &len, text, &e) == 0)
        assert(len <= RDZV_CHUNK);
    if (rdzv_head_decode(&head, bytes, &len, text, &e) == 0)
        assert(len <= RDZV_CHUNK && head.n_pieces <= RDZV_CHUNKS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    check_text(text);
    check_entry(data, len);
    check_node(data, len);
    free(text);
    return 0;
}
