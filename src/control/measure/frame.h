/*
 * frame.h - the datagrams of a train: a ping asks, and a pong answers it.
 *
 * A pong is as long as the shortest ping, so that nobody receives more bytes
 * than they sent. The layout is in docs/PREFLIGHT.md, "Datagrams".
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/order.h"

/** Length of a pong, and least length of a ping, bytes. */
#define FRAME_LEN 56

enum frame_kind {
    FRAME_PING = 1,
    FRAME_PONG = 2,
};

struct frame {
    enum frame_kind kind;
    bool counted;         /* the ping belongs to a train, so the receiver counts it */
    uint16_t size;        /* pong: bytes of the IPv4 packet in which the ping came; ping: 0 */
    struct session_id id; /* of the session in which both take part */
    uint32_t seq;         /* of the ping; a pong repeats it */
    uint32_t heard;       /* pong: counted pings that have come from that member so far */
    nsec_t sent_at;       /* when the ping was sent, by its sender's wall clock */
    nsec_t arrived_at;    /* pong: when the ping came, by the answerer's wall clock */
};

/** frame_encode() - write a frame as FRAME_LEN bytes. */
void frame_encode(const struct frame *f, uint8_t out[static FRAME_LEN]);

/** frame_decode() - read a frame; false unless the @len bytes at @p begin with one. */
bool frame_decode(struct frame *ret, const uint8_t *p, size_t len);
