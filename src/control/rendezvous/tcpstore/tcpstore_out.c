/* tcpstore_out.c - see tcpstore_out.h. */
#include "tcpstore_out.h"

#include <stdlib.h>
#include <string.h>

/* Fewer bytes than this are copied, since a piece that refers to them takes as much memory. */
#define SHARE_FROM 256

/* Room of a piece for copied bytes: of the first one, and of one that follows a full one. */
#define FIRST_ROOM 176
#define NEXT_ROOM  4016

struct tcpstore_out_piece {
    struct list link;        /* in its output */
    struct rdzv_buf *shared; /* counted; NULL: the bytes are its own */
    size_t at;               /* how many bytes have been sent */
    size_t len;              /* bytes, with those that have been sent */
    size_t cap;              /* room of @own */
    uint8_t own[];           /* copied bytes */
};

void tcpstore_out_init(struct tcpstore_out *out)
{
    *out = (struct tcpstore_out){.quota = NULL};
    list_init(&out->pieces);
}

static struct tcpstore_out_piece *piece_new(
    struct tcpstore_out *out, struct rdzv_quota *quota, struct rdzv_buf *shared, size_t cap)
{
    size_t cost = RDZV_COST_PIECE + cap;
    struct tcpstore_out_piece *p;

    if (out->cost + cost > RDZV_UNREAD_COST_MAX || !rdzv_quota_has(quota, cost, 0))
        return NULL;
    p = malloc(sizeof(*p) + cap);
    if (!p)
        return NULL;
    *p = (struct tcpstore_out_piece){.shared = rdzv_buf_ref(shared), .cap = cap};
    rdzv_quota_take(quota, cost, 0);
    out->quota = quota;
    out->cost += cost;
    list_add_tail(&out->pieces, &p->link);
    return p;
}

static void piece_free(struct tcpstore_out *out, struct tcpstore_out_piece *p)
{
    rdzv_quota_give(out->quota, RDZV_COST_PIECE + p->cap, 0);
    out->cost -= RDZV_COST_PIECE + p->cap;
    out->len -= p->len - p->at;
    list_remove(&p->link);
    rdzv_buf_unref(p->shared);
    free(p);
}

void tcpstore_out_clear(struct tcpstore_out *out)
{
    struct tcpstore_out_piece *p;
    struct tcpstore_out_piece *tmp;

    list_foreach_safe(p, tmp, &out->pieces, link)
        piece_free(out, p);
}

static struct tcpstore_out_piece *last_of(struct tcpstore_out *out)
{
    return list_is_empty(&out->pieces)
               ? NULL
               : container_of(out->pieces.prev, struct tcpstore_out_piece, link);
}

/* A piece with room for some of @len bytes. A new one is large when they are many or follow a piece
 * that is full, and small for the few bytes between shared values. */
static struct tcpstore_out_piece *piece_for(
    struct tcpstore_out *out, struct rdzv_quota *quota, size_t len)
{
    struct tcpstore_out_piece *last = last_of(out);

    if (last && last->len < last->cap)
        return last;
    return piece_new(
        out, quota, NULL, len > FIRST_ROOM || (last && !last->shared) ? NEXT_ROOM : FIRST_ROOM);
}

bool tcpstore_out_add(
    struct tcpstore_out *out, struct rdzv_quota *quota, const void *from, size_t len)
{
    const uint8_t *at = from;

    while (len > 0) {
        struct tcpstore_out_piece *p = piece_for(out, quota, len);
        size_t n;

        if (!p)
            return false;
        n = p->cap - p->len < len ? p->cap - p->len : len;
        memcpy(p->own + p->len, at, n);
        p->len += n;
        out->len += n;
        at += n;
        len -= n;
    }
    return true;
}

bool tcpstore_out_share(
    struct tcpstore_out *out, struct rdzv_quota *quota, struct rdzv_buf *s, size_t len)
{
    struct tcpstore_out_piece *p;

    if (len < SHARE_FROM)
        return len == 0 || tcpstore_out_add(out, quota, s->b, len);
    p = out->len + len <= RDZV_UNREAD_BYTES_MAX ? piece_new(out, quota, s, 0) : NULL;
    if (!p)
        return false;
    p->len = len;
    out->len += len;
    return true;
}

size_t tcpstore_out_peek(const struct tcpstore_out *out, struct iovec *iov, size_t max)
{
    const struct tcpstore_out_piece *p;
    size_t n = 0;

    list_foreach(p, &out->pieces, link) {
        const uint8_t *bytes = p->shared ? p->shared->b : p->own;

        if (n == max)
            break;
        /* struct iovec is for reading as well, so its pointer is not const. */
        iov[n].iov_base = (void *)(uintptr_t)(bytes + p->at);
        iov[n++].iov_len = p->len - p->at;
    }
    return n;
}

void tcpstore_out_sent(struct tcpstore_out *out, size_t len)
{
    while (len > 0) {
        struct tcpstore_out_piece *p = list_first(&out->pieces, struct tcpstore_out_piece, link);
        size_t n = p->len - p->at < len ? p->len - p->at : len;

        p->at += n;
        out->len -= n;
        len -= n;
        if (p->at == p->len)
            piece_free(out, p);
    }
}
