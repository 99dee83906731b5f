/*
 * server.c - connections, requests and answers; see server.h.
 *
 * Theory of operation. listener.c accepts a connection and hands it here; it
 * goes into a libmicrohttpd daemon ("the engine") that has no listening socket
 * and no thread of its own; what came through the public door goes there behind
 * tls_front.h, which speaks TLS for it. The engine has an epoll descriptor,
 * which is watched by the loop; when it is readable the engine runs and calls
 * on_request() for what has arrived. The engine's own time-outs are off: they
 * are about idleness, and a slow sender is never idle. Ours are about time
 * since the start; a connection that is late is shut down, which the engine
 * sees as its end.
 */
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/identity.h"
#include "api/origin.h"
#include "api/server_internal.h"
#include "api/tls_front.h"
#include "api/upgrade.h"
#include "base/err.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

/* Unread bytes of a body that is too long, before the connection is cut without an answer. */
#define DISCARD_MAX (1u << 20)

/* A bound for libmicrohttpd, above all that the doors let in. */
#define ENGINE_CONNECTIONS_MAX (1u << 18)

/* ---- connections ---------------------------------------------------------------------------- */

/* The engine has started or ended a connection. */
static void on_connection(void *ctx, struct MHD_Connection *mhd, void **socket_ctx,
    enum MHD_ConnectionNotificationCode what)
{
    struct server *s = ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_ctx = s->starting;
        s->starting->mhd = mhd;
    } else {
        server__connection_free(*socket_ctx);
        *socket_ctx = NULL;
    }
}

static struct server__connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- requests ------------------------------------------------------------------------------- */

static const char *header_of(const struct server__connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

const char *request_query(const struct request *rq, const char *name)
{
    /* The engine takes it as one that may change. */
    return rq->query ? MHD_lookup_connection_value(
                           (struct MHD_Connection *)rq->query, MHD_GET_ARGUMENT_KIND, name)
                     : NULL;
}

/* An admin token opens the admin's door on the public one. */
static void find_caller(const struct server__connection *c, struct request *rq)
{
    static const char word[] = "Bearer ";
    const struct server_config *config = &c->s->config;
    struct caller *caller = &rq->caller;

    rq->door = c->door;
    if (c->door == DOOR_ADMIN) {
        *caller = (struct caller){.role = c->role, .verdict = CALLER_KNOWN};
        (void)snprintf(caller->name, sizeof(caller->name), "uid:%u", c->uid);
        return;
    }
    if (c->door != DOOR_PUBLIC || !config->identify || !rq->authorization ||
        strncmp(rq->authorization, word, sizeof(word) - 1) != 0)
        return;
    caller->verdict = config->identify(
        config->ctx, rq->authorization + sizeof(word) - 1, &rq->from, rq->now, caller);
    if (caller->verdict == CALLER_KNOWN)
        rq->door = DOOR_ADMIN;
}

/* Is it a request for the door @rq came through? If not, @rs says 403. */
static bool is_meant(
    const struct server__connection *c, const struct request *rq, struct response *rs)
{
    struct origin o = {.host = header_of(c, "Host"),
        .origin = header_of(c, "Origin"),
        .door = rq->door,
        .is_unix = endpoint_is_none(&c->from),
        .own = c->listener->own};
    struct err e = ERR_NULL;

    if (origin_check(&o, &e) == 0)
        return true;
    response_refuse(rs, 403, "%s", err_text(&e));
    return false;
}

static void call(
    struct server__connection *c, const struct route *row, struct request *rq, struct response *rs)
{
    struct err e = ERR_NULL;
    const char *protocol;
    json_t *body = NULL;

    if (c->body_len > 0 && body_parse(&body, c->body, c->body_len, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    rq->body = body;
    row->handle(c->s->config.ctx, rq, rs);
    rq->body = NULL;
    json_decref(body);
    if (!rs->upgrade || server__wants_upgrade(c, rs->upgrade->protocol))
        return;
    protocol = rs->upgrade->protocol;
    server__give_back(rs);
    response_refuse(rs, 426, "%s %s needs \"Upgrade: %s\"", row->method, row->path, protocol);
}

static void handle(
    struct server__connection *c, const char *method, const char *path, struct response *rs)
{
    const struct server_config *config = &c->s->config;
    struct request rq = {.door_ctx = c->door_ctx,
        .from = c->from,
        .method = method,
        .path = path,
        .bytes = c->body,
        .n_bytes = c->body_len,
        .now = clock_now()};
    const struct route *row = NULL;

    if (c->too_long) {
        response_refuse(rs, 413, "the body is longer than %u bytes", BODY_MAX);
        return;
    }
    rq.query = c->mhd;
    rq.authorization = header_of(c, "Authorization");
    find_caller(c, &rq);
    if (config->begin)
        config->begin(config->ctx, &rq);
    if (is_meant(c, &rq, rs))
        row = route_find(config->routes, method, path, rq.params, rs);
    if (row && route_admits(row, &rq, rs))
        call(c, row, &rq, rs);
    if (config->end)
        config->end(config->ctx, &rq, row, rs);
}

static enum MHD_Result dispatch(struct server__connection *c, const char *method, const char *path)
{
    struct response rs = {0};

    /* Its door has been closed: what the door led to may be gone. */
    if (!c->listener)
        return MHD_NO;
    c->s->counts.requests++;
    c->has_asked = true;
    handle(c, method, path, &rs);
    if (rs.deferred) {
        c->deadline = clock_now() + SERVER__ANSWER_TIME;
        return server__defer(c, rs.deferred);
    }
    return server__answer(c, &rs);
}

/* A piece of the body. What goes beyond the limit is read and thrown away, up to a limit too. */
static enum MHD_Result take_body(struct server__connection *c, const char *p, size_t len)
{
    char *body;

    if (c->body_len + len > BODY_MAX || c->too_long) {
        c->too_long = true;
        c->discarded += len;
        return c->discarded > DISCARD_MAX ? MHD_NO : MHD_YES;
    }
    body = realloc(c->body, c->body_len + len);
    if (!body)
        return MHD_NO;
    c->body = body;
    memcpy(body + c->body_len, p, len);
    c->body_len += len;
    return MHD_YES;
}

/* Bytes of body that the header announces; 0: none, or it does not say. */
static unsigned long long announced(struct MHD_Connection *mhd)
{
    const char *text = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");

    return text ? strtoull(text, NULL, 10) : 0;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
    const char *method, const char *version, const char *data, size_t *data_len, void **request)
{
    struct server__connection *c = connection_of(mhd);

    if (!*request) {
        *request = c;
        c->too_long = announced(mhd) > BODY_MAX;
        /* Who is answered while it still sends may find the connection closed before it reads, so
         * only what would not be read to its end is refused before a byte of it is. */
        return announced(mhd) > DISCARD_MAX ? dispatch(c, method, path) : MHD_YES;
    }
    if (c->deferred)
        return server__answer_deferred(c);
    if (*data_len > 0) {
        size_t len = *data_len;

        *data_len = 0;
        return take_body(c, data, len);
    }
    return dispatch(c, method, path);
}

/* ---- the engine ----------------------------------------------------------------------------- */

static void on_engine(uv_poll_t *poll, int status, int events)
{
    server__run(poll->data);
}

/* The daemon alone, without a place in the loop yet. */
static int engine_open(struct server *s, struct err *e)
{
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_UPGRADE | MHD_ALLOW_SUSPEND_RESUME, 0,
        NULL, NULL, on_request, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER__CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, ENGINE_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    return s->daemon ? 0 : err_set(e, -EIO, "the HTTP server does not start");
}

static void engine_start(struct server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    (void)uv_poll_init(s->config.loop, &s->poll, info->epoll_fd);
    (void)uv_timer_init(s->config.loop, &s->again);
    s->poll.data = s;
    s->again.data = s;
    (void)uv_poll_start(&s->poll, UV_READABLE, on_engine);
}

static void engine_stop(struct server *s)
{
    uv_close((uv_handle_t *)&s->poll, NULL);
    uv_close((uv_handle_t *)&s->again, NULL);
    /* What was resumed has to be seen as resumed, or stopping would be an error. */
    (void)MHD_run(s->daemon);
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}

int server_new(struct server **ret, const struct server_config *config, struct err *e)
{
    struct server *s = calloc(1, sizeof(*s));
    struct rng rng = rng_kernel();
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for a server");
    s->config = *config;
    s->config.identity = NULL; /* only borrowed for this call */
    s->seed = rng_u64(&rng);
    list_init(&s->listeners);
    list_init(&s->connections);
    r = route_check(config->routes, e);
    if (r == 0)
        r = engine_open(s, e);
    if (r == 0 && config->identity)
        r = tls_front_new(&s->front, config->identity, e);
    if (r != 0) {
        if (s->daemon)
            MHD_stop_daemon(s->daemon);
        free(s);
        return r;
    }
    engine_start(s);
    (void)uv_timer_init(config->loop, &s->tick);
    s->tick.data = s;
    *ret = s;
    return 0;
}

void server_stop(struct server *s)
{
    struct server_listener *l;
    struct server_listener *tmp;
    struct server__connection *c;

    if (s->stopped)
        return;
    s->stopped = true;
    list_foreach_safe(l, tmp, &s->listeners, link)
        server_listener_close(l);
    list_foreach(c, &s->connections, link) {
        server__end_upgrade(c);
        server__resume(c);
    }
    engine_stop(s);
    s->front = tls_front_free(s->front);
    uv_close((uv_handle_t *)&s->tick, NULL);
}

struct server *server_free(struct server *s)
{
    free(s);
    return NULL;
}

struct server_counts server_counts(const struct server *s)
{
    return s->counts;
}
