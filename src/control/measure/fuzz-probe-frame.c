/* fuzz-probe-frame.c - datagrams of a train. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "measure/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct frame f;
    struct frame again;
    uint8_t out[FRAME_LEN];

    if (!frame_decode(&f, data, len))
        return 0;
    assert(len >= FRAME_LEN && (f.kind == FRAME_PING || f.kind == FRAME_PONG));
    frame_encode(&f, out);
    assert(frame_decode(&again, out, sizeof(out)));
    assert(again.kind == f.kind && again.seq == f.seq && again.heard == f.heard &&
           again.sent_at == f.sent_at && again.arrived_at == f.arrived_at &&
           again.counted == f.counted && again.is_silent == f.is_silent &&
           session_id_equal(&again.id, &f.id));
    return 0;
}
