/* server_cut.c - the early end of a connection, of one that takes too long above all. */
#include <sys/socket.h>

#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "os/clock.h"

/* How often the connections are looked through for those that have taken too long. */
#define TICK_MS 1000

void server__leave_listener(struct server__connection *c)
{
    if (c->listener && c->is_inside)
        admission_leave(&c->listener->admission, &c->from.addr);
    c->is_inside = false;
}

void server__set_untimed(struct server__connection *c)
{
    c->cut_at = NSEC_NEVER;
    list_remove(&c->timed);
}

void server__cut(struct server__connection *c)
{
    c->cut = true;
    server__set_untimed(c);
    /* libmicrohttpd owns the descriptor. It sees the end, and closes it. */
    (void)shutdown(c->fd, SHUT_RDWR);
    mhd_loop_resume(c->loop, &c->http);
}

/* One whose time is over. */
static void cut_late(struct server__connection *c)
{
    c->s->counts.cut++;
    server__cut(c);
}

/* Thousands of streams are silent most of the time, so only the others are walked. */
static void cut_stalled(struct server *s, nsec_t now)
{
    struct server__connection *c;
    struct server__connection *tmp;

    list_foreach_safe(c, tmp, &s->busy, busy) {
        if (c->stream->n == 0)
            list_remove(&c->busy);
        else if (stream_is_stalled(c->stream, now))
            cut_late(c);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct server *s = timer->data;
    struct server__connection *c;
    struct server__connection *tmp;
    nsec_t now = clock_now();

    if (list_is_empty(&s->connections))
        (void)uv_timer_stop(timer);
    /* O(requests on their way) each second is cheap, and cheaper than a timer for each of them. */
    list_foreach_safe(c, tmp, &s->timed, timed) {
        if (c->cut_at <= now)
            cut_late(c);
    }
    cut_stalled(s, now);
}

void server__watch_deadlines(struct server *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tick))
        (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}
