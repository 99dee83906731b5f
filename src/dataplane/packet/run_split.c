/* run_split.c - see run_split.h. */
#include "packet/run_split.h"

#include <stdbool.h>
#include <string.h>

#include "wire/wg.h"

/* What kind of message it is; @ret_index is set for data. */
static unsigned read_kind(const uint8_t *msg, uint32_t len, uint32_t *ret_index)
{
    unsigned type = wg_type_of(msg, len);
    struct wg_data header;

    if (type == WG_TYPE_DATA) {
        memcpy(&header, msg, sizeof(header));
        *ret_index = le32_get(header.receiver);
    }
    return type;
}

struct run_part run_split(const struct udp_run *run, uint32_t off)
{
    struct run_part part = {.run = *run};
    uint32_t end = off;

    part.run.buf = run->buf + off;
    for (; end < run->len; end += run->seg) {
        uint32_t len = run->len - end < run->seg ? run->len - end : run->seg;
        uint32_t index = 0;
        unsigned type = read_kind(run->buf + end, len, &index);

        if (part.n == 0) {
            part.type = type;
            part.index = index;
        } else if (part.type != WG_TYPE_DATA || type != WG_TYPE_DATA || index != part.index) {
            break;
        }
        part.n++;
    }
    part.run.len = (end < run->len ? end : run->len) - off;
    return part;
}
