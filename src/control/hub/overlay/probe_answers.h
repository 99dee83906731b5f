/*
 * probe_answers.h - members measure how long packets the way to the hub and back carries.
 *
 * A member sends path frames of many lengths to the hub's port, with DF and under the key that
 * only the two have (docs/wire/path.md, "To a hub"). Each is answered with as many bytes, with DF
 * too, so an answer proves both directions. What the member has found it says in the frame: the
 * hub's own packets to it, and the routes that they go by, have that size from then on.
 *
 * Who asks is known by where the frame comes from: a member whose session was heard there last. A
 * stranger costs a look into a table, and is not answered.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/rate.h"
#include "shared/frame_header.h"

struct err;
struct frame_socket;
struct overlay;

/** A frame as the frame socket has it. */
struct probe_answers_frame {
    struct frame_socket_header header;
    uint8_t frame[FRAME_SOCKET_FRAME_MAX];
};

struct probe_answers {
    struct overlay *overlay;     /* pins */
    struct frame_socket *frames; /* owns; NULL: it is not open */
    int fd;                      /* owns; its other end */
    uv_poll_t poll;
    struct rate rate;  /* of all answers */
    uint64_t run;      /* random, never 0 */
    uint64_t sequence; /* of the last answer */
};

/** probe_answers_open() - before the port is started. 0 or negative errno with words. */
int probe_answers_open(struct probe_answers *pa, struct overlay *o, struct err *e);

/** probe_answers__take() - a frame of @len bytes, any content; garbage afterwards. */
void probe_answers__take(
    struct probe_answers *pa, struct probe_answers_frame *msg, size_t len, nsec_t now);

/** probe_answers_close() - its handle closes in the loop's next turns; before the port is freed.
 * Idempotent. */
void probe_answers_close(struct probe_answers *pa);
