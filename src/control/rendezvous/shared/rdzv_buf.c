/* rdzv_buf.c - see rdzv_buf.h. */
#include "rdzv_buf.h"

#include <stdlib.h>
#include <string.h>

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

struct rdzv_buf *rdzv_buf_grow(struct rdzv_buf *s, struct rdzv_quota *quota, size_t len, size_t max)
{
    size_t need = (s ? s->len : 0) + len;
    size_t cap = s && 2 * s->cap > need ? 2 * s->cap : need;
    struct rdzv_buf *bigger;

    if (s && need <= s->cap)
        return s;
    if (cap > max)
        cap = max;
    bigger = rdzv_buf_new(quota, cap);
    if (!bigger && cap > need)
        bigger = rdzv_buf_new(quota, need);
    if (!bigger)
        return NULL;
    if (s)
        rdzv_buf_add(bigger, s->b, s->len);
    rdzv_buf_unref(s);
    return bigger;
}
