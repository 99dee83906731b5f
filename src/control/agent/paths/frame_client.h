/*
 * frame_client.h - the engine's frames (engine/frames.h) in the agent's loop.
 *
 * Opened as soon as there is an engine that listens, closed when it goes, and
 * opened anew with the next: an engine may be started again at any time, and so
 * may the agent.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "os/log.h"
#include "engine/frames.h"

struct engine;
struct frame_client_poll;
struct uv_loop_s;

/** frame_client_fn - a frame has arrived; @frame lives for the call. */
typedef void (*frame_client_fn)(void *ctx, const struct engine_frame *frame);

struct frame_client {
    struct uv_loop_s *loop; /* pins */
    frame_client_fn fn;
    void *ctx;                      /* pins */
    struct engine_frames *frames;   /* owns; NULL: closed */
    struct frame_client_poll *poll; /* owns while open */
    const struct engine *engine;    /* borrows: that it was opened for; only compared */
    uint16_t port;                  /* the engine's, at the time */
    nsec_t tried;                   /* when opening failed last; 0: it did not */
    struct log_limit limit;
};

/** frame_client_init() - closed. @ctx: pinned. */
void frame_client_init(
    struct frame_client *fp, struct uv_loop_s *loop, frame_client_fn fn, void *ctx);

/**
 * frame_client_keep() - be open for that engine
 * @engine:	NULL: there is none, be closed
 * @port:	that it listens on; 0: not yet
 *
 * Call whenever one of them may have changed, and now and then: what cannot be
 * opened is tried again a second later.
 *
 * Return: true when it was opened just now.
 */
bool frame_client_keep(struct frame_client *fp, struct engine *engine, uint16_t port, nsec_t now);

bool frame_client_is_open(const struct frame_client *fp);

/** frame_client_send() - dropped while closed. Return: as engine_frames_send(). */
int frame_client_send(struct frame_client *fp, const struct engine_frame *frame);

/** frame_client_close() - its handle closes in the loop's next turns. Idempotent. */
void frame_client_close(struct frame_client *fp);
