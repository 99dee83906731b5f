/*
 * bytes.h - integers on the wire, and a cursor that cannot run past its end.
 *
 * Wire structs are made of the wrapped types (be16, le32, ...): reading one
 * needs a get, so a forgotten byte swap does not compile. Variable formats are
 * read with `struct reader` and written with `struct writer`; pointer
 * arithmetic on packets happens nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Alignment 1, so that a wire struct may lie anywhere in a packet. */
struct be16 {
    uint8_t b[2];
};
struct be32 {
    uint8_t b[4];
};
struct be64 {
    uint8_t b[8];
};
struct le32 {
    uint8_t b[4];
};
struct le64 {
    uint8_t b[8];
};

static inline uint16_t be16_get(struct be16 v)
{
    return (uint16_t)(v.b[0] << 8 | v.b[1]);
}

static inline struct be16 be16_make(uint16_t v)
{
    return (struct be16){{(uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint32_t be32_get(struct be32 v)
{
    uint32_t r;

    memcpy(&r, v.b, sizeof(r));
    return __builtin_bswap32(r);
}

static inline struct be32 be32_make(uint32_t v)
{
    struct be32 r;

    v = __builtin_bswap32(v);
    memcpy(r.b, &v, sizeof(v));
    return r;
}

static inline uint64_t be64_get(struct be64 v)
{
    uint64_t r;

    memcpy(&r, v.b, sizeof(r));
    return __builtin_bswap64(r);
}

static inline struct be64 be64_make(uint64_t v)
{
    struct be64 r;

    v = __builtin_bswap64(v);
    memcpy(r.b, &v, sizeof(v));
    return r;
}

static inline uint32_t le32_get(struct le32 v)
{
    uint32_t r;

    memcpy(&r, v.b, sizeof(r));
    return r;
}

static inline struct le32 le32_make(uint32_t v)
{
    struct le32 r;

    memcpy(r.b, &v, sizeof(v));
    return r;
}

static inline uint64_t le64_get(struct le64 v)
{
    uint64_t r;

    memcpy(&r, v.b, sizeof(r));
    return r;
}

static inline struct le64 le64_make(uint64_t v)
{
    struct le64 r;

    memcpy(r.b, &v, sizeof(v));
    return r;
}

/* The same at a place inside a packet. */
static inline uint16_t be16_load(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be32_load(const uint8_t *p)
{
    struct be32 v;

    memcpy(&v, p, sizeof(v));
    return be32_get(v);
}

static inline void be16_store(uint8_t *p, uint16_t v)
{
    struct be16 x = be16_make(v);

    memcpy(p, &x, sizeof(x));
}

static inline void be32_store(uint8_t *p, uint32_t v)
{
    struct be32 x = be32_make(v);

    memcpy(p, &x, sizeof(x));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the get and make functions assume it");

/**
 * Bytes still to be read. A read past the end sets @failed, yields zeroes and
 * leaves the position; so a decoder reads everything, then asks once.
 */
struct reader {
    const uint8_t *p;   /* next byte; borrowed */
    const uint8_t *end; /* one past the last byte */
    bool failed;        /* some read went past the end */
};

static inline struct reader reader_make(const void *p, size_t len)
{
    return (struct reader){.p = p, .end = (const uint8_t *)p + len};
}

static inline size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

/** reader_take() - the next @len bytes, borrowed; NULL (and failed) if there are fewer. */
static inline const uint8_t *reader_take(struct reader *r, size_t len)
{
    const uint8_t *p = r->p;

    if (r->failed || len > reader_left(r)) {
        r->failed = true;
        return NULL;
    }
    r->p += len;
    return p;
}

/** reader_copy() - the next @len bytes into @dst; zeroes on failure. */
static inline void reader_copy(struct reader *r, void *dst, size_t len)
{
    const uint8_t *p = reader_take(r, len);

    if (p)
        memcpy(dst, p, len);
    else
        memset(dst, 0, len);
}

static inline uint8_t reader_u8(struct reader *r)
{
    const uint8_t *p = reader_take(r, 1);

    return p ? *p : 0;
}

static inline uint16_t reader_be16(struct reader *r)
{
    struct be16 v;

    reader_copy(r, &v, sizeof(v));
    return be16_get(v);
}

static inline uint32_t reader_be32(struct reader *r)
{
    struct be32 v;

    reader_copy(r, &v, sizeof(v));
    return be32_get(v);
}

static inline uint64_t reader_be64(struct reader *r)
{
    struct be64 v;

    reader_copy(r, &v, sizeof(v));
    return be64_get(v);
}

/** Bytes being written. A write past the end sets @failed and writes nothing. */
struct writer {
    uint8_t *start; /* first byte; borrowed */
    uint8_t *p;     /* next byte */
    uint8_t *end;   /* one past the room */
    bool failed;    /* some write did not fit */
};

static inline struct writer writer_make(void *p, size_t cap)
{
    return (struct writer){.start = p, .p = p, .end = (uint8_t *)p + cap};
}

static inline size_t writer_len(const struct writer *w)
{
    return (size_t)(w->p - w->start);
}

/** writer_reserve() - room for @len bytes, to be filled by the caller; NULL if there is not. */
static inline uint8_t *writer_reserve(struct writer *w, size_t len)
{
    uint8_t *p = w->p;

    if (w->failed || len > (size_t)(w->end - w->p)) {
        w->failed = true;
        return NULL;
    }
    w->p += len;
    return p;
}

static inline void writer_put(struct writer *w, const void *src, size_t len)
{
    uint8_t *p = writer_reserve(w, len);

    if (p)
        memcpy(p, src, len);
}

static inline void writer_u8(struct writer *w, uint8_t v)
{
    writer_put(w, &v, 1);
}

static inline void writer_be16(struct writer *w, uint16_t v)
{
    struct be16 x = be16_make(v);

    writer_put(w, &x, sizeof(x));
}

static inline void writer_be32(struct writer *w, uint32_t v)
{
    struct be32 x = be32_make(v);

    writer_put(w, &x, sizeof(x));
}

static inline void writer_be64(struct writer *w, uint64_t v)
{
    struct be64 x = be64_make(v);

    writer_put(w, &x, sizeof(x));
}
