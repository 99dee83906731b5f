/* fuzz-rdzv.c - what a damaged store may hold of a rendezvous: keys, pieces, and entries. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rendezvous/etcd2/etcd2_tree.h"
#include "rendezvous/shared/rdzv_record.h"
#include "rendezvous/tcpstore/tcpstore_server.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void ignore(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
}

static void put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
}

/* The hash of the name that a blob says it has. */
static struct rdzv_hash hash_in(enum rdzv_blob_of of, const uint8_t *data, size_t len)
{
    size_t head = of == RDZV_BLOB_OF_STORE ? 17 : 33; /* bytes before a key, or a path */
    struct err e = ERR_NULL;
    const uint8_t *plain;
    size_t plain_len;
    uint64_t n;

    if (rdzv_blob_open(of, data, len, &plain, &plain_len, &e) != 0 || plain_len < head)
        return rdzv_hash_of("", 0);
    memcpy(&n, plain + head - sizeof(n), sizeof(n));
    n = n > plain_len - head ? 0 : n;
    return of == RDZV_BLOB_OF_STORE ? rdzv_hash_of(plain, head + n) : rdzv_hash_of(plain + head, n);
}

static void check_entry(const uint8_t *data, size_t len)
{
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 1000};
    struct rdzv_saver saver = {.drop = ignore};
    struct rdzv_hash hash = hash_in(RDZV_BLOB_OF_STORE, data, len);
    struct err e = ERR_NULL;
    struct tcpstore_server ts;

    tcpstore_server_init(&ts, &saver, &quota, 1);
    (void)tcpstore_server_load(&ts, data, len, &hash, &e);
    tcpstore_server_deinit(&ts);
    assert(quota.bytes == 0 && quota.entries == 0);
}

static void check_node(const uint8_t *data, size_t len)
{
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 1000};
    struct rdzv_saver saver = {.put = put, .drop = ignore};
    struct rdzv_hash hash = hash_in(RDZV_BLOB_OF_TREE, data, len);
    struct etcd2_when when = {.now = 1, .wall = 1};
    struct etcd2_refusal why;
    struct err e = ERR_NULL;
    struct etcd2_tree t;
    char *text;
    size_t text_len;

    assert(etcd2_tree_init(&t, &saver, &quota) == 0);
    if (etcd2_tree_load(&t, data, len, &hash, when, &e) == 0) {
        assert(etcd2_tree_get(&t, "/", true, when, &text, &text_len, &why) == 0);
        free(text);
        etcd2_tree_expire(&t, (struct etcd2_when){.now = NSEC_NEVER - 1, .wall = 1});
    }
    etcd2_tree_deinit(&t);
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
    if (rdzv_piece_decode(NULL, bytes, &len, text, &e) == 0)
        assert(len <= RDZV_CHUNK);
    if (rdzv_piece_decode(&head, bytes, &len, text, &e) == 0)
        assert(len <= RDZV_CHUNK && head.n_pieces <= RDZV_CHUNKS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);

    check_text(text);
    check_entry(data, len);
    check_node(data, len);
    free(text);
    return 0;
}
