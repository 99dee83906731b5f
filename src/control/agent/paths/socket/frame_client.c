/* frame_client.c - see frame_client.h. */
#include "agent/paths/socket/frame_client.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "base/err.h"
#include "engine/engine.h"

/* Most frames taken in one turn of the loop, so that other events have their turn. */
#define FRAMES_PER_TURN 256

#define RETRY NSEC_PER_SEC

/* Lives until its handle is closed, which happens in a later turn than frame_client_close(). */
struct frame_client_poll {
    uv_poll_t handle;
    struct frame_client *port; /* borrowed while it is open */
};

void frame_client_init(
    struct frame_client *fc, struct uv_loop_s *loop, frame_client_fn fn, void *ctx)
{
    *fc = (struct frame_client){.loop = loop, .fn = fn, .ctx = ctx};
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void frame_client_close(struct frame_client *fc)
{
    if (!fc->frames)
        return;
    (void)uv_poll_stop(&fc->poll->handle);
    uv_close((uv_handle_t *)&fc->poll->handle, on_closed);
    fc->poll = NULL;
    fc->frames = engine_frames_close(fc->frames);
    fc->engine = NULL;
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct frame_client_poll *poll = handle->data;
    struct frame_client *fc = poll->port;
    struct engine_frame frame;
    int r = 0;

    /* The receiver may close this client and open it anew, which gives it another poll. */
    for (unsigned i = 0; r == 0 && i < FRAMES_PER_TURN && fc->poll == poll; i++) {
        r = engine_frames_receive(fc->frames, &frame);
        if (r == 0)
            fc->fn(fc->ctx, &frame);
    }
    if (fc->poll == poll && r != 0 && r != ENGINE_FRAMES_E_EMPTY)
        frame_client_close(fc);
}

static int open_port(struct frame_client *fc, struct engine *engine, uint16_t port, struct err *e)
{
    struct frame_client_poll *poll = calloc(1, sizeof(*poll));
    int r = poll ? engine_open_frames(engine, &fc->frames, port, e) : -ENOMEM;

    if (r < 0) {
        free(poll);
        return r;
    }
    poll->port = fc;
    poll->handle.data = poll;
    (void)uv_poll_init(fc->loop, &poll->handle, engine_frames_fd(fc->frames));
    (void)uv_poll_start(&poll->handle, UV_READABLE, on_readable);
    fc->poll = poll;
    fc->engine = engine;
    fc->port = port;
    return 0;
}

bool frame_client_keep(struct frame_client *fc, struct engine *engine, uint16_t port, nsec_t now)
{
    struct err e = ERR_NULL;

    if (fc->frames && (fc->engine != engine || fc->port != port))
        frame_client_close(fc);
    if (fc->frames || !engine || port == 0 || (fc->tried_at != 0 && now - fc->tried_at < RETRY))
        return false;
    fc->tried_at = 0;
    if (open_port(fc, engine, port, &e) == 0)
        return true;
    fc->tried_at = now;
    log_limited(&fc->limit, now, LOG_LEVEL_WARNING, "paths cannot be looked for, trying again: %s",
        err_text(&e));
    return false;
}

bool frame_client_is_open(const struct frame_client *fc)
{
    return fc->frames != NULL;
}

int frame_client_send(struct frame_client *fc, const struct engine_frame *frame)
{
    int r = fc->frames ? engine_frames_send(fc->frames, frame) : 0;

    if (r == ENGINE_FRAMES_E_GONE)
        frame_client_close(fc);
    return r;
}
