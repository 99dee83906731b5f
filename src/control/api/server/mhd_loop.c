/* mhd_loop.c - see mhd_loop.h. */
#include "mhd_loop.h"

#include <errno.h>
#include <netinet/in.h>

#include "base/err.h"
#include "os/clock.h"

/* Most rounds of the daemon in one run. */
#define ROUNDS_MAX 8

/* libmicrohttpd's own bound: its owners have lower ones. */
#define CONNECTIONS_MAX (1u << 18)

/* ---- running -------------------------------------------------------------------------------- */

static void on_again(uv_timer_t *timer)
{
    mhd_loop_run(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    mhd_loop_run(poll->data);
}

/* Sets in how many milliseconds it has to run again; false: not before its descriptor is readable.
 */
static bool next_run(struct mhd_loop *m, uint64_t *ret_ms)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;

    if (MHD_get_timeout(m->daemon, &wait_ms) != MHD_YES && list_is_empty(&m->deferred))
        return false;
    *ret_ms = list_is_empty(&m->deferred) ? wait_ms : 0;
    return true;
}

void mhd_loop_run(struct mhd_loop *m)
{
    uint64_t wait_ms = 0;
    bool has_wait;
    int rounds = 0;
    struct mhd_loop_conn *c;

    if (m->run_time > 0)
        m->run_ends_at = clock_now() + m->run_time;
    do {
        c = list_first(&m->deferred, struct mhd_loop_conn, deferred);
        if (c)
            mhd_loop_resume(m, c);
        (void)MHD_run(m->daemon);
        has_wait = next_run(m, &wait_ms);
    } while (has_wait && wait_ms == 0 && ++rounds < ROUNDS_MAX &&
             (m->run_time == 0 || mhd_loop_has_time(m, clock_now())));
    if (has_wait)
        (void)uv_timer_start(&m->again, on_again, wait_ms, 0);
}

void mhd_loop_run_soon(struct mhd_loop *m)
{
    if (!uv_is_closing((uv_handle_t *)&m->again))
        (void)uv_timer_start(&m->again, on_again, 0, 0);
}

bool mhd_loop_has_time(const struct mhd_loop *m, nsec_t now)
{
    return m->run_time == 0 || now < m->run_ends_at;
}

/* ---- connections ---------------------------------------------------------------------------- */

void mhd_loop_suspend(struct mhd_loop_conn *c)
{
    c->is_suspended = true;
    MHD_suspend_connection(c->mhd);
}

void mhd_loop_defer(struct mhd_loop *m, struct mhd_loop_conn *c)
{
    list_add_tail(&m->deferred, &c->deferred);
    mhd_loop_suspend(c);
}

void mhd_loop_resume(struct mhd_loop *m, struct mhd_loop_conn *c)
{
    if (!c->is_suspended)
        return;
    c->is_suspended = false;
    list_remove(&c->deferred);
    MHD_resume_connection(c->mhd);
    mhd_loop_run_soon(m);
}

struct mhd_loop_conn *mhd_loop_conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* libmicrohttpd has started or ended a connection. */
static void on_connection(void *ctx, struct MHD_Connection *mhd, void **socket_ctx,
    enum MHD_ConnectionNotificationCode what)
{
    struct mhd_loop *m = ctx;
    struct mhd_loop_conn *c = *socket_ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_ctx = m->starting;
        m->starting->mhd = mhd;
        m->starting = NULL;
        return;
    }
    *socket_ctx = NULL;
    c->mhd = NULL;
    m->on_ended(c);
}

bool mhd_loop_add(struct mhd_loop *m, int fd, struct mhd_loop_conn *c)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
    } nobody = {.v4 = {.sin_family = AF_INET}};
    bool has_begun;

    *c = (struct mhd_loop_conn){.mhd = NULL};
    list_init(&c->deferred);
    m->starting = c;
    /* libmicrohttpd needs the address only for limits that are off. */
    has_begun = MHD_add_connection(m->daemon, fd, &nobody.any, sizeof(nobody.v4)) == MHD_YES;
    /* It may have begun and ended within the call: then it began, and is released already. */
    has_begun |= !m->starting;
    m->starting = NULL;
    return has_begun;
}

/* ---- life ----------------------------------------------------------------------------------- */

int mhd_loop_start(
    struct mhd_loop *m, struct uv_loop_s *loop, const struct mhd_loop_config *config, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     (config->has_upgrades ? MHD_ALLOW_UPGRADE : 0);
    const union MHD_DaemonInfo *info;

    *m = (struct mhd_loop){.run_time = config->run_time, .on_ended = config->on_ended};
    list_init(&m->deferred);
    m->daemon = MHD_start_daemon(flags, 0, NULL, NULL, config->on_request, config->ctx,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, m, MHD_OPTION_NOTIFY_COMPLETED,
        config->on_answered, config->ctx, MHD_OPTION_URI_LOG_CALLBACK, config->on_uri, config->ctx,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, config->connection_memory, MHD_OPTION_CONNECTION_LIMIT,
        CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, config->idle_seconds,
        MHD_OPTION_STRICT_FOR_CLIENT, config->is_strict ? 1 : 0, MHD_OPTION_END);
    if (!m->daemon)
        return err_set(e, -EIO, "the HTTP server does not start");
    info = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    (void)uv_poll_init(loop, &m->poll, info->epoll_fd);
    (void)uv_timer_init(loop, &m->again);
    m->poll.data = m;
    m->again.data = m;
    (void)uv_poll_start(&m->poll, UV_READABLE, on_readable);
    return 0;
}

void mhd_loop_stop(struct mhd_loop *m)
{
    if (!m->daemon)
        return;
    uv_close((uv_handle_t *)&m->poll, NULL);
    uv_close((uv_handle_t *)&m->again, NULL);
    /* libmicrohttpd notices in a run that connections were resumed; stopping with suspended ones is
     * an error. */
    (void)MHD_run(m->daemon);
    MHD_stop_daemon(m->daemon);
    m->daemon = NULL;
}
