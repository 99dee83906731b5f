/* stream_frame.c - see stream_frame.h. */
#include "stream_frame.h"

int stream_frame_next(struct reader *in, const uint8_t **ret, size_t *ret_len)
{
    struct reader r = *in;
    size_t len = reader_be16(&r);
    const uint8_t *datagram;

    if (r.failed)
        return STREAM_FRAME_E_MORE;
    if (len > STREAM_FRAME_MAX)
        return STREAM_FRAME_E_INVALID;
    datagram = reader_take(&r, len);
    if (!datagram)
        return STREAM_FRAME_E_MORE;
    *ret = datagram;
    *ret_len = len;
    *in = r;
    return 0;
}

size_t stream_frame_room(size_t len, size_t seg)
{
    return len + (len + seg - 1) / seg * STREAM_FRAME_HEADER;
}

void stream_frame_put(struct writer *out, const uint8_t *datagrams, size_t len, size_t seg)
{
    for (size_t off = 0; off < len; off += seg) {
        size_t n = len - off < seg ? len - off : seg;

        writer_be16(out, (uint16_t)n);
        writer_put(out, datagrams + off, n);
    }
}

void stream_frame_put_beat(struct writer *out)
{
    writer_be16(out, 0);
}
