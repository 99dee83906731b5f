/*
 * server_engine.c - running libmicrohttpd in the loop, and a connection's time there.
 */
#include <sys/socket.h>

#include "api/server_internal.h"
#include "api/stream.h"
#include "os/clock.h"

/* Rounds of the engine in one turn of the loop. */
#define ENGINE_ROUNDS 8

/* Between two looks at who has kept us waiting too long. */
#define TICK_MS 1000

static void on_again(uv_timer_t *timer)
{
    server__run(timer->data);
}

void server__run(struct server *s)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 1;
    int rounds = 0;

    do {
        (void)MHD_run(s->daemon);
        if (MHD_get_timeout(s->daemon, &wait_ms) != MHD_YES)
            return;
    } while (wait_ms == 0 && ++rounds < ENGINE_ROUNDS);
    if (wait_ms == 0)
        (void)uv_timer_start(&s->again, on_again, 0, 0);
}

void server__leave_door(struct server__connection *c)
{
    if (c->listener && c->is_inside)
        admission_leave(&c->listener->admission, &c->from.addr);
    c->is_inside = false;
}

void server__run_soon(struct server *s)
{
    if (!uv_is_closing((uv_handle_t *)&s->again))
        (void)uv_timer_start(&s->again, on_again, 0, 0);
}

/*
 * The engine sees a resumed connection in its next run, and nothing makes it
 * run: so that is done here, in the next turn of the loop, since this may be
 * called from within a run.
 */
void server__resume(struct server__connection *c)
{
    if (!c->suspended)
        return;
    c->suspended = false;
    MHD_resume_connection(c->mhd);
    server__run_soon(c->s);
}

void server__suspend(struct server__connection *c)
{
    c->suspended = true;
    MHD_suspend_connection(c->mhd);
}

void server__cut(struct server__connection *c)
{
    c->s->counts.cut++;
    c->cut = true;
    c->deadline = NSEC_NEVER;
    /* The descriptor is the engine's; it sees the end, and closes it. */
    (void)shutdown(c->fd, SHUT_RDWR);
    server__resume(c);
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
        if (c->deadline <= now || (c->stream && stream_is_stalled(c->stream, now)))
            server__cut(c);
    }
}

void server__watch_deadlines(struct server *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tick))
        (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}
