/* frame.c - see frame.h. */
#include "measure/frame.h"

#include <string.h>

#include "base/bytes.h"

#define FRAME_MAGIC   0x57667001u /* the last byte is the version */
#define FRAME_COUNTED 0x01u       /* a bit of the flags */

/* The layout on the wire; the numbers are offsets in bytes. */
struct frame_wire {
    struct be32 magic;   /* 0 */
    uint8_t kind;        /* 4 */
    uint8_t flags;       /* 5 */
    struct be16 size;    /* 6 */
    uint8_t id[16];      /* 8 */
    struct be32 seq;     /* 24 */
    struct be32 heard;   /* 28 */
    struct be64 sent;    /* 32 */
    struct be64 arrived; /* 40 */
    struct be64 spare;   /* 48 */
};

_Static_assert(sizeof(struct frame_wire) == FRAME_LEN, "as docs/PREFLIGHT.md draws it");

void frame_encode(const struct frame *f, uint8_t out[static FRAME_LEN])
{
    struct frame_wire w = {
        .magic = be32_make(FRAME_MAGIC),
        .kind = (uint8_t)f->kind,
        .flags = f->counted ? FRAME_COUNTED : 0,
        .size = be16_make(f->size),
        .seq = be32_make(f->seq),
        .heard = be32_make(f->heard),
        .sent = be64_make((uint64_t)f->sent_at),
        .arrived = be64_make((uint64_t)f->arrived_at),
    };

    memcpy(w.id, f->id.b, sizeof(w.id));
    memcpy(out, &w, sizeof(w));
}

bool frame_decode(struct frame *ret, const uint8_t *p, size_t len)
{
    struct frame_wire w;

    if (len < sizeof(w))
        return false;
    memcpy(&w, p, sizeof(w));
    if (be32_get(w.magic) != FRAME_MAGIC || (w.kind != FRAME_PING && w.kind != FRAME_PONG))
        return false;
    *ret = (struct frame){
        .kind = w.kind,
        .counted = (w.flags & FRAME_COUNTED) != 0,
        .size = be16_get(w.size),
        .seq = be32_get(w.seq),
        .heard = be32_get(w.heard),
        .sent_at = (nsec_t)be64_get(w.sent),
        .arrived_at = (nsec_t)be64_get(w.arrived),
    };
    memcpy(ret->id.b, w.id, sizeof(w.id));
    return true;
}
