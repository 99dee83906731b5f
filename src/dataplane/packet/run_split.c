/* run_split.c - see run_split.h. */
#include "packet/run_split.h"

#include <string.h>

#include "wire/stun.h"
#include "wire/wg.h"

/* Do the first bytes name one of the four types, whatever the length is? */
static bool has_type(const uint8_t *p, uint32_t len)
{
    struct le32 type;

    if (len < sizeof(type))
        return false;
    memcpy(&type, p, sizeof(type));
    return le32_get(type) >= WG_TYPE_INITIATION && le32_get(type) <= WG_TYPE_DATA;
}

/* @len: at least 1. @ret_index is set for data. */
static enum run_kind read_kind(const uint8_t *msg, uint32_t len, uint32_t *ret_index)
{
    struct wg_data header;

    switch (wg_type_of(msg, len)) {
    case WG_TYPE_DATA:
        memcpy(&header, msg, sizeof(header));
        *ret_index = le32_get(header.receiver);
        return RUN_DATA;
    case WG_TYPE_INITIATION:
    case WG_TYPE_RESPONSE:
        return RUN_HANDSHAKE;
    case WG_TYPE_COOKIE_REPLY:
        return RUN_COOKIE_REPLY;
    }
    if (msg[0] >= FRAME_FIRST_TYPE || stun_is_answer(msg, len))
        return RUN_FRAME;
    return has_type(msg, len) ? RUN_TRUNCATED : RUN_UNKNOWN;
}

struct run_part run_split(const struct udp_run *run, uint32_t off)
{
    struct run_part part = {.run = *run};
    uint32_t end = off;

    part.run.buf = run->buf + off;
    for (; end < run->len; end += run->seg) {
        uint32_t len = run->len - end < run->seg ? run->len - end : run->seg;
        uint32_t index = 0;
        enum run_kind kind = read_kind(run->buf + end, len, &index);

        if (part.n == 0) {
            part.kind = kind;
            part.index = index;
        } else if (part.kind != RUN_DATA || kind != RUN_DATA || index != part.index) {
            break;
        }
        part.n++;
    }
    part.run.len = (end < run->len ? end : run->len) - off;
    return part;
}
