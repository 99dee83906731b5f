/*
 * server_cut.c    - how long a connection may take, and its early end.
 */
#include <sys/socket.h>

#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "os/clock.h"

/* Between two looks at who has taken too long. */
#define TICK_MS 1000

void server__leave_listener(struct server__connection *c)
{
    if (c->listener && c->is_inside)
        admission_leave(&c->listener->admission, &c->from.addr);
    c->is_inside = false;
}

void server__cut(struct server__connection *c)
{
    c->s->counts.cut++;
    c->cut = true;
    c->cut_at = NSEC_NEVER;
    /* The descriptor is libmicrohttpd's, which sees the end, and closes it. */
    (void)shutdown(c->fd, SHUT_RDWR);
    mhd_loop_resume(&c->s->http, &c->http);
}

static void on_tick(uv_timer_t *timer)
{
    struct server *s = timer->data;
    struct server__connection *c;
    nsec_t now = clock_now();

    if (list_is_empty(&s->connections))
        (void)uv_timer_stop(timer);
    /* A walk over all of them, each second: cheap, and no timer for each. */
    list_foreach(c, &s->connections, link) {
        if (c->cut_at <= now || (c->stream && stream_is_stalled(c->stream, now)))
            server__cut(c);
    }
}

void server__watch_deadlines(struct server *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tick))
        (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}
