/*
 * frame.h - the datagrams of a train: a ping that asks, a pong that answers.
 *
 * A pong is as long as the shortest ping, so that nobody is sent more bytes
 * than he sent. Layout in docs/PREFLIGHT.md, "Datagrams".
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/order.h"

/** Bytes of a pong, and fewest of a ping. */
#define FRAME_LEN 56

enum frame_kind {
    FRAME_PING = 1,
    FRAME_PONG = 2,
};

struct frame {
    enum frame_kind kind;
    bool counted;         /* ping: of a train, so that it counts as heard */
    uint16_t size;        /* bytes of the IPv4 packet that the ping came in; 0 in a ping */
    struct session_id id; /* of a session that both take part in */
    uint32_t seq;         /* of the ping */
    uint32_t heard;       /* pong: pings that this sender has heard from that one so far */
    nsec_t sent_at;       /* wall clock of who pings, when the ping left */
    nsec_t arrived_at;    /* pong: wall clock of who answers, when the ping came */
};

/** frame_encode() - FRAME_LEN bytes. */
void frame_encode(const struct frame *f, uint8_t out[static FRAME_LEN]);

/** frame_decode() - false unless @len bytes at @p begin with a frame. */
bool frame_decode(struct frame *ret, const uint8_t *p, size_t len);
