/* echo.c - see echo.h. */
#include "echo.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/ip.h"

#define V4_REQUEST 8
#define V4_ANSWER  0
#define V6_REQUEST 128
#define V6_ANSWER  129

/* As on the wire. */
struct echo_wire {
    uint8_t type;         /* 0 */
    uint8_t code;         /* 1 */
    struct be16 checksum; /* 2 */
    struct be16 id;       /* 4 */
    struct be16 seq;      /* 6 */
    struct be32 index;    /* 8; from here on it is ours */
    uint8_t cookie[8];    /* 12 */
};

_Static_assert(sizeof(struct echo_wire) == ECHO_LEN, "no padding");

void echo_encode(const struct echo *e, bool v4, uint8_t out[static ECHO_LEN])
{
    struct echo_wire w = {
        .type = v4 ? V4_REQUEST : V6_REQUEST,
        .id = be16_make(e->id),
        .seq = be16_make(e->seq),
        .index = be32_make(e->index),
    };

    memcpy(w.cookie, &e->cookie, sizeof(w.cookie));
    if (v4)
        w.checksum = be16_make((uint16_t)~ip_sum_fold(ip_sum_add(0, &w, sizeof(w))));
    memcpy(out, &w, sizeof(w));
}

bool echo_decode(struct echo *ret, bool v4, const uint8_t *p, size_t len)
{
    struct echo_wire w;

    if (len < sizeof(w))
        return false;
    memcpy(&w, p, sizeof(w));
    if (w.type != (v4 ? V4_ANSWER : V6_ANSWER) || w.code != 0)
        return false;
    if (v4 && ip_sum_fold(ip_sum_add(0, &w, sizeof(w))) != 0xffff)
        return false;
    *ret = (struct echo){.id = be16_get(w.id), .seq = be16_get(w.seq), .index = be32_get(w.index)};
    memcpy(&ret->cookie, w.cookie, sizeof(ret->cookie));
    return true;
}
