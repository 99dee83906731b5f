/*
 * frame_client.h - sends and receives frames through the engine's port (engine/frames.h), in the
 * agent's loop.
 *
 * It is opened as soon as there is an engine that listens, closed when the engine
 * goes, and opened anew with the next one: an engine may be restarted at any time.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/frames.h"
#include "os/log.h"

struct engine;
struct frame_client_poll;
struct uv_loop_s;

/** frame_client_fn - a frame has arrived; @frame is borrowed for the call. */
typedef void (*frame_client_fn)(void *ctx, const struct engine_frame *frame);

struct frame_client {
    struct uv_loop_s *loop; /* pins */
    frame_client_fn fn;
    void *ctx;                      /* pins */
    struct engine_frames *frames;   /* owns; NULL: closed */
    struct frame_client_poll *poll; /* owns while open */
    const struct engine *engine;    /* that it was opened for; compared, never followed */
    uint16_t port;                  /* that the engine listened on when it was opened */
    nsec_t tried_at;                /* when opening failed last; 0: it did not */
    struct log_limit limit;
};

/** frame_client_init() - it is closed at first. @loop, @ctx: pinned. */
void frame_client_init(
    struct frame_client *fc, struct uv_loop_s *loop, frame_client_fn fn, void *ctx);

/**
 * frame_client_keep() - be open for @engine, and closed for any other
 * @engine:	NULL: there is none, so be closed
 * @port:	that the engine listens on, host order; 0: it does not listen yet
 *
 * Call it whenever one of them may have changed, and now and then: what could not
 * be opened is tried again a second later.
 *
 * Return: true when it was opened just now.
 */
bool frame_client_keep(struct frame_client *fc, struct engine *engine, uint16_t port, nsec_t now);

/** frame_client_is_open() - frames can be sent. */
bool frame_client_is_open(const struct frame_client *fc);

/** frame_client_send() - while it is closed @frame is dropped. Return: as engine_frames_send(). */
int frame_client_send(struct frame_client *fc, const struct engine_frame *frame);

/** frame_client_close() - its handle closes in the loop's next turns. Idempotent. */
void frame_client_close(struct frame_client *fc);
