/* rdzv_quota.c - see rdzv_quota.h. */
#include "rendezvous/shared/rdzv_quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/containers.h"
#include "base/err.h"

/* ==== quotas ================================================================================= */

bool rdzv_quota_has(const struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent)
        if (q->bytes + bytes > q->bytes_max || q->entries + entries > q->entries_max)
            return false;
    return true;
}

void rdzv_quota_take(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes += bytes;
        q->entries += entries;
    }
}

void rdzv_quota_give(struct rdzv_quota *q, size_t bytes, size_t entries)
{
    for (; q; q = q->parent) {
        q->bytes -= bytes;
        q->entries -= entries;
    }
}

void rdzv_quota_refuse(struct rdzv_quota *q, const char *which)
{
    for (; q; q = q->parent) {
        q->n_refused++;
        q->last_refusal = which;
    }
}

/* ==== bytes that a store and its answers share =============================================== */

struct rdzv_buf *rdzv_buf_load(struct rdzv_quota *quota, size_t cap)
{
    struct rdzv_buf *s = malloc(sizeof(*s) + cap);

    if (!s)
        return NULL;
    *s = (struct rdzv_buf){.refs = 1, .quota = quota, .cap = cap};
    rdzv_quota_take(quota, cap + RDZV_COST_BUF, 0);
    return s;
}

struct rdzv_buf *rdzv_buf_new(struct rdzv_quota *quota, size_t cap)
{
    return rdzv_quota_has(quota, cap + RDZV_COST_BUF, 0) ? rdzv_buf_load(quota, cap) : NULL;
}

struct rdzv_buf *rdzv_buf_ref(struct rdzv_buf *s)
{
    if (s)
        s->refs++;
    return s;
}

struct rdzv_buf *rdzv_buf_unref(struct rdzv_buf *s)
{
    if (s && --s->refs == 0) {
        rdzv_quota_give(s->quota, s->cap + RDZV_COST_BUF, 0);
        free(s);
    }
    return NULL;
}

void rdzv_buf_add(struct rdzv_buf *s, const void *p, size_t len)
{
    if (len > 0)
        memcpy(s->b + s->len, p, len);
    s->len += len;
}

/* ==== blobs, with a checksum in front ======================================================== */

#define MARK       0xb5
#define PLAIN_LAST 3 /* the kinds of plain blobs are 1 to this */

/* Part of the format: with another seed no record on a disk could be read. */
#define SEED 0x7765667462303031u

uint8_t *rdzv_blob_new(size_t plain_len, struct writer *ret)
{
    uint8_t *blob = malloc(RDZV_BLOB_HEAD + plain_len);

    if (!blob)
        return NULL;
    blob[0] = MARK;
    *ret = writer_make(blob + RDZV_BLOB_HEAD, plain_len);
    return blob;
}

static uint64_t sum_of(enum rdzv_blob_of of, const uint8_t *plain, size_t len)
{
    return hash_bytes(SEED + (uint64_t)of, plain, len);
}

void rdzv_blob_seal(enum rdzv_blob_of of, uint8_t *blob, size_t len)
{
    struct le64 sum = le64_make(sum_of(of, blob + RDZV_BLOB_HEAD, len - RDZV_BLOB_HEAD));

    memcpy(blob + 1, &sum, sizeof(sum));
}

int rdzv_blob_open(enum rdzv_blob_of of, const void *p, size_t len, const uint8_t **ret,
    size_t *ret_len, struct err *e)
{
    struct reader r = reader_make(p, len);
    uint8_t mark = reader_u8(&r);
    struct le64 sum;

    if (mark >= 1 && mark <= PLAIN_LAST) {
        *ret = p;
        *ret_len = len;
        return 0;
    }
    reader_copy(&r, &sum, sizeof(sum));
    if (r.failed || mark != MARK)
        return err_set(e, -EINVAL, "%zu bytes that are no record", len);
    if (le64_get(sum) != sum_of(of, r.p, reader_left(&r)))
        return err_set(e, -EINVAL, "a record of %zu bytes whose checksum does not fit", len);
    *ret = r.p;
    *ret_len = reader_left(&r);
    return 0;
}
