/*
 * server.c - requests, and the server as a whole; see server.h.
 *
 * Theory of operation. listener.c accepts a connection, and connection.c hands it to
 * libmicrohttpd (mhd_loop.h). Between the public API's connections and libmicrohttpd is
 * tls_front.h, which speaks TLS. libmicrohttpd calls on_request() with what has arrived. A
 * connection that takes too long is shut down, which libmicrohttpd sees as its end.
 */
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/server_internal.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"

/* Most bytes that are read of a body that is too long. After more, the connection ends without an
 * answer. */
#define DISCARD_MAX (1u << 20)

/* ---- requests ------------------------------------------------------------------------------- */

static const char *header_of(const struct server__connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, name);
}

/* libmicrohttpd wants a pointer that is not const. */
static const char *query_value(const void *query, const char *name)
{
    return MHD_lookup_connection_value((struct MHD_Connection *)query, MHD_GET_ARGUMENT_KIND, name);
}

const char *request_query(const struct request *rq, const char *name)
{
    return rq->query ? rq->query_value(rq->query, name) : NULL;
}

/* Longest credentials of a browser: a name, a colon and an admin token. */
#define BASIC_MAX 384

/*
 * The admin token of a request, into @buf; "": it has none. A browser has it as a password (RFC
 * 7617), and sends it along with whatever another site's page makes it ask of this hub; so it is
 * taken for GET only, by which nothing changes, and whose answer that page does not see.
 */
static const char *token_of(const struct request *rq, char buf[static BASIC_MAX])
{
    static const char bearer[] = "Bearer ";
    static const char basic[] = "Basic ";
    const char *text = rq->authorization ? rq->authorization : "";
    size_t len;
    char *colon;

    buf[0] = '\0';
    if (strncmp(text, bearer, sizeof(bearer) - 1) == 0)
        return text + sizeof(bearer) - 1;
    if (strncmp(text, basic, sizeof(basic) - 1) != 0 || strcmp(rq->method, "GET") != 0)
        return buf;
    text += sizeof(basic) - 1;
    len = strlen(text);
    if (len == 0 || len % 4 != 0 || len / 4 * 3 >= BASIC_MAX)
        return buf;
    len = len / 4 * 3 - (text[len - 1] == '=') - (text[len - 2] == '=');
    if (!base64_decode(text, buf, len)) {
        buf[0] = '\0';
        return buf;
    }
    buf[len] = '\0';
    colon = strchr(buf, ':');
    return colon ? colon + 1 : buf + len;
}

/*
 * Does the daemon's own page ask? A browser says whose page asks in Sec-Fetch-Site, and in Origin
 * (RFC 6454) always if something is to change. It sends a cookie along with what another site's
 * page asks only where SameSite is not heeded, and what that page asks is not taken.
 */
static bool is_from_page(const struct server__connection *c, const char *method)
{
    static const char scheme[] = "https://";
    const char *site = header_of(c, "Sec-Fetch-Site");
    const char *origin = header_of(c, "Origin");
    const char *host = header_of(c, "Host");

    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return false;
    if (!origin)
        return strcmp(method, "GET") == 0;
    return host && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcmp(origin + strlen(scheme), host) == 0;
}

/* Who asks? A request at the public API with a valid admin token is an administrator's. */
static void find_caller(const struct server__connection *c, struct request *rq)
{
    char buf[BASIC_MAX];
    const struct server_config *config = &c->s->config;
    const char *cookie = header_of(c, "Cookie");
    struct caller *caller = &rq->caller;
    const char *token;

    rq->access = c->access;
    if (c->access == API_ACCESS_ADMIN) {
        *caller = (struct caller){.role = c->role, .verdict = CALLER_KNOWN, .pid = c->pid};
        (void)snprintf(caller->name, sizeof(caller->name), "uid:%u", c->uid);
        return;
    }
    if (c->access != API_ACCESS_PUBLIC || !config->identify)
        return;
    token = token_of(rq, buf);
    if (token[0])
        caller->verdict = config->identify(config->ctx, token, &rq->from, rq->now, caller);
    else if (cookie && config->identify_page && rq->is_from_page && !rq->authorization &&
             config->identify_page(config->ctx, cookie, rq->now, caller))
        caller->verdict = CALLER_KNOWN;
    secret_wipe(buf, sizeof(buf));
    if (caller->verdict == CALLER_KNOWN)
        rq->access = API_ACCESS_ADMIN;
}

/* Is it a request for the listener that @rq came through? If not, @rs says 403. */
static bool is_meant(
    const struct server__connection *c, const struct request *rq, struct response *rs)
{
    struct origin o = {.host = header_of(c, "Host"),
        .origin = header_of(c, "Origin"),
        .access = rq->access,
        .is_unix = endpoint_is_none(&c->from),
        .is_page = rq->caller.session != 0,
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
    struct request rq = {.listener_ctx = c->listener_ctx,
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
    rq.query = c->http.mhd;
    rq.query_value = query_value;
    rq.authorization = header_of(c, "Authorization");
    rq.last_event = header_of(c, "Last-Event-ID");
    rq.is_from_page = c->access == API_ACCESS_PUBLIC && is_from_page(c, method);
    find_caller(c, &rq);
    if (config->begin)
        config->begin(config->ctx, &rq);
    if (is_meant(c, &rq, rs))
        row = route_find(config->routes, method, path, rq.params, rs);
    if (row && route_admits(row, &rq, rs) &&
        (!config->admits || config->admits(config->ctx, row, &rq, rs)))
        call(c, row, &rq, rs);
    rs->is_asked_who = row && row->is_page && rs->status == 401;
    if (config->end)
        config->end(config->ctx, &rq, row, rs);
}

static enum MHD_Result dispatch(struct server__connection *c, const char *method, const char *path)
{
    struct response rs = {0};

    /* Its listener is closed, and listener_ctx may be freed. */
    if (!c->listener)
        return MHD_NO;
    c->s->counts.requests++;
    c->has_asked = true;
    handle(c, method, path, &rs);
    if (rs.deferred) {
        c->cut_at = clock_now() + SERVER__ANSWER_TIME;
        return server__defer(c, rs.deferred);
    }
    return server__answer(c, &rs);
}

/* Keeps a piece of the body. Once the body is too long, pieces are read and dropped, up to
 * DISCARD_MAX. */
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

/* The body's length as the header says it, bytes; 0: there is none, or the header does not say. */
static unsigned long long announced(struct MHD_Connection *mhd)
{
    const char *text = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");

    return text ? strtoull(text, NULL, 10) : 0;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
    const char *method, const char *version, const char *data, size_t *data_len, void **request)
{
    struct server__connection *c =
        container_of(mhd_loop_conn_of(mhd), struct server__connection, http);

    if (!*request) {
        *request = c;
        c->is_chunked = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
        c->too_long = announced(mhd) > BODY_MAX;
        /* A client that is answered while it still sends may find the connection closed before it
         * reads the answer. So only a body that would not be read to its end is refused at once. */
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

/* ---- life ----------------------------------------------------------------------------------- */

static void on_ended(struct mhd_loop_conn *http)
{
    server__connection_free(container_of(http, struct server__connection, http));
}

static void stop_http(struct server *s)
{
    mhd_loop_stop(&s->http);
    for (unsigned i = 0; i < SERVER__MEMBERS_LOOPS; i++)
        mhd_loop_stop(&s->members[i]);
}

/* The time-outs of libmicrohttpd are off: they are about idle connections, and one that sends a
 * byte now and then is never idle. Ours are about the time since the start; see server__cut(). */
static int start_http(struct server *s, struct err *e)
{
    const struct mhd_loop_config config = {.connection_memory = SERVER__CONNECTION_MEMORY,
        .has_upgrades = true,
        .is_strict = true,
        .ctx = s,
        .on_request = on_request,
        .on_ended = on_ended};

    int r = mhd_loop_start(&s->http, s->config.loop, &config, e);

    for (unsigned i = 0; r == 0 && i < SERVER__MEMBERS_LOOPS; i++)
        r = mhd_loop_start(&s->members[i], s->config.loop, &config, e);
    if (r != 0)
        stop_http(s);
    return r;
}

static void on_turn_end(uv_prepare_t *prepare)
{
    server__send_streams(prepare->data);
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
    list_init(&s->timed);
    list_init(&s->busy);
    list_init(&s->ready);
    r = route_check(config->routes, e);
    if (r == 0 && config->identity)
        r = tls_front_new(&s->front, config->identity, e);
    if (r == 0)
        r = start_http(s, e);
    if (r != 0) {
        tls_front_free(s->front);
        /* With one of the loops started, handles that are inside @s are still to be closed. Its
         * memory is left alone then, because a daemon that cannot start its server ends. */
        if (!s->http.poll.data)
            free(s);
        return r;
    }
    (void)uv_timer_init(config->loop, &s->tick);
    (void)uv_prepare_init(config->loop, &s->turn_end);
    (void)uv_prepare_start(&s->turn_end, on_turn_end);
    uv_unref((uv_handle_t *)&s->turn_end);
    s->tick.data = s;
    s->turn_end.data = s;
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
        mhd_loop_resume(c->loop, &c->http);
    }
    stop_http(s);
    s->front = tls_front_free(s->front);
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_close((uv_handle_t *)&s->turn_end, NULL);
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
