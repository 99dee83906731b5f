/* path_sockets.c - see path_sockets.h. */
#include "agent/paths/socket/path_sockets.h"

#include <string.h>

#include "base/err.h"
#include "engine/engine.h"

static void on_main_frame(void *ctx, const struct engine_frame *frame)
{
    struct path_sockets *s = ctx;

    s->fn(s->ctx, PATH_SOCKET_MAIN, frame);
}

int path_sockets_init(
    struct path_sockets *s, struct uv_loop_s *loop, path_sockets_fn fn, void *ctx, struct err *e)
{
    *s = (struct path_sockets){.fn = fn, .ctx = ctx};
    frame_client_init(&s->main, loop, on_main_frame, s);
    return punch_sockets_new(&s->punch, loop, fn, ctx, e);
}

void path_sockets_deinit(struct path_sockets *s)
{
    frame_client_close(&s->main);
    s->punch = punch_sockets_free(s->punch);
}

bool path_sockets_keep(struct path_sockets *s, struct engine *engine, uint16_t port, nsec_t now)
{
    bool opened = frame_client_keep(&s->main, engine, port, now);

    punch_sockets_set_port(s->punch, port);
    return opened;
}

bool path_sockets_is_open(const struct path_sockets *s)
{
    return frame_client_is_open(&s->main);
}

uint16_t path_sockets_port(const struct path_sockets *s)
{
    return s->main.port;
}

void path_sockets_send(struct path_sockets *s, const struct path_action *action)
{
    struct engine_frame frame = {
        .remote = action->remote,
        .local = action->local,
        .dont_fragment = action->dont_fragment,
        .hops = action->hops,
        .len = action->len,
    };

    if (action->len > sizeof(frame.data))
        return;
    memcpy(frame.data, action->frame, action->len);
    if (action->socket == PATH_SOCKET_MAIN)
        (void)frame_client_send(&s->main, &frame);
    else
        punch_sockets_send(s->punch, action->socket, &frame);
}

bool path_sockets_open(struct path_sockets *s, uint32_t socket, nsec_t now)
{
    struct err e = ERR_NULL;
    int r = punch_sockets_open(s->punch, socket, &e);

    if (r < 0 && socket != PATH_SOCKETS_FRESH)
        log_limited(&s->limit, now, LOG_LEVEL_WARNING,
            "the ports of this node's NAT can be guessed less well: %s", err_text(&e));
    return r == 0;
}

void path_sockets_close(struct path_sockets *s, uint32_t socket)
{
    punch_sockets_close(s->punch, socket);
}

bool path_sockets_use(
    struct path_sockets *s, const struct path_action *action, struct endpoint *ret, nsec_t now)
{
    struct err e = ERR_NULL;

    *ret = action->remote;
    if (action->socket == PATH_SOCKET_MAIN ||
        punch_sockets_use(s->punch, action->socket, &action->remote, ret, &e) == 0)
        return true;
    log_limited(&s->limit, now, LOG_LEVEL_WARNING, "the path to %s cannot be used: %s",
        action->name, err_text(&e));
    punch_sockets_close(s->punch, action->socket);
    return false;
}
