/* frame_client.c - see frame_client.h. */
#include "agent/paths/frame_client.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "base/err.h"
#include "engine/engine.h"

/* Frames of one turn of the loop, so that a flood does not stop the rest. */
#define FRAMES_PER_TURN 256

#define RETRY NSEC_PER_SEC

/* Lives until its handle is closed, which is later than the port is. */
struct frame_client_poll {
    uv_poll_t handle;
    struct frame_client *port; /* borrows: valid while it is open */
};

void frame_client_init(
    struct frame_client *fp, struct uv_loop_s *loop, frame_client_fn fn, void *ctx)
{
    *fp = (struct frame_client){.loop = loop, .fn = fn, .ctx = ctx};
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void frame_client_close(struct frame_client *fp)
{
    if (!fp->frames)
        return;
    (void)uv_poll_stop(&fp->poll->handle);
    uv_close((uv_handle_t *)&fp->poll->handle, on_closed);
    fp->poll = NULL;
    fp->frames = engine_frames_close(fp->frames);
    fp->engine = NULL;
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct frame_client_poll *poll = handle->data;
    struct frame_client *fp = poll->port;
    struct engine_frame frame;
    int r = 0;

    /* The receiver may close us, and even open us anew: that is another poll then. */
    for (unsigned i = 0; r == 0 && i < FRAMES_PER_TURN && fp->poll == poll; i++) {
        r = engine_frames_receive(fp->frames, &frame);
        if (r == 0)
            fp->fn(fp->ctx, &frame);
    }
    if (fp->poll == poll && r != 0 && r != ENGINE_FRAMES_E_EMPTY)
        frame_client_close(fp);
}

static int open_port(struct frame_client *fp, struct engine *engine, uint16_t port, struct err *e)
{
    struct frame_client_poll *poll = calloc(1, sizeof(*poll));
    int r = poll ? engine_open_frames(engine, &fp->frames, port, e) : -ENOMEM;

    if (r < 0) {
        free(poll);
        return r;
    }
    poll->port = fp;
    poll->handle.data = poll;
    (void)uv_poll_init(fp->loop, &poll->handle, engine_frames_fd(fp->frames));
    (void)uv_poll_start(&poll->handle, UV_READABLE, on_readable);
    fp->poll = poll;
    fp->engine = engine;
    fp->port = port;
    return 0;
}

bool frame_client_keep(struct frame_client *fp, struct engine *engine, uint16_t port, nsec_t now)
{
    struct err e = ERR_NULL;

    if (fp->frames && (fp->engine != engine || fp->port != port))
        frame_client_close(fp);
    if (fp->frames || !engine || port == 0 || (fp->tried != 0 && now - fp->tried < RETRY))
        return false;
    fp->tried = 0;
    if (open_port(fp, engine, port, &e) == 0)
        return true;
    fp->tried = now;
    log_limited(&fp->limit, now, LOG_LEVEL_WARNING, "paths cannot be looked for, trying again: %s",
        err_text(&e));
    return false;
}

bool frame_client_is_open(const struct frame_client *fp)
{
    return fp->frames != NULL;
}

int frame_client_send(struct frame_client *fp, const struct engine_frame *frame)
{
    int r = fp->frames ? engine_frames_send(fp->frames, frame) : 0;

    if (r == ENGINE_FRAMES_E_GONE)
        frame_client_close(fp);
    return r;
}
