/*
 * server.c - requests, and the server as a whole; see server.h.
 *
 * Theory of operation. listener.c accepts a connection, and server.c hands it to
 * libmicrohttpd (mhd_loop.h). Between the public API's connections and libmicrohttpd is
 * tls_front.h, which speaks TLS. libmicrohttpd calls on_request() with what has arrived. A
 * connection that takes too long is shut down, which libmicrohttpd sees as its end.
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/content/body.h"
#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"

/* ---- server answer --------------------------------------------------------------------------- */

/* what becomes of a request: an answer, at once or later; a stream; or bytes both ways. */

/* ---- upgrades -------------------------------------------------------------------------------- */

/* The answer 101 is out: from now on @sock carries the protocol's bytes. */
static void on_upgraded(void *ctx, struct MHD_Connection *mhd, void *request, const char *early,
    size_t len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
    struct server__connection *c = ctx;
    int flags = fcntl(sock, F_GETFL);

    c->urh = urh;
    server__set_untimed(c);
    server__leave_listener(c);
    (void)fcntl(sock, F_SETFL, flags | O_NONBLOCK);
    c->upgrade->on_open(c->upgrade, sock, early, len);
}

bool server__wants_upgrade(const struct server__connection *c, const char *protocol)
{
    const char *asked = MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, "Upgrade");

    return asked && strcasecmp(asked, protocol) == 0;
}

/* The answer 101; NULL: no memory. */
static struct MHD_Response *make_upgrade(struct server__connection *c, struct upgrade *u)
{
    struct MHD_Response *r = MHD_create_response_for_upgrade(on_upgraded, c);

    if (!r)
        return NULL;
    c->upgrade = u;
    u->server_ctx = c;
    (void)MHD_add_response_header(r, "Upgrade", u->protocol);
    return r;
}

/* Closes the bytes' descriptor; libmicrohttpd frees the connection in its next run. */
static void close_bytes(struct server__connection *c)
{
    struct MHD_UpgradeResponseHandle *urh = c->urh;

    c->upgrade = NULL;
    c->urh = NULL;
    if (urh)
        (void)MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
    mhd_loop_run_soon(c->loop);
}

void upgrade_end(struct upgrade *u)
{
    close_bytes(u->server_ctx);
}

void server__end_upgrade(struct server__connection *c)
{
    struct upgrade *u = c->upgrade;

    if (!u)
        return;
    u->on_closed(u);
    close_bytes(c);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct MHD_Response *make_text(struct response *rs)
{
    struct MHD_Response *r;
    char *text = rs->body ? body_format(rs->body) : rs->text;

    if (!rs->body)
        rs->text = NULL;
    if (!text)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!r)
        free(text);
    else
        (void)MHD_add_response_header(r, "Content-Type", rs->body ? "application/json" : rs->type);
    if (r && rs->policy) {
        (void)MHD_add_response_header(r, "Content-Security-Policy", rs->policy);
        (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
        (void)MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    }
    if (r && rs->is_asked_who)
        (void)MHD_add_response_header(
            r, "WWW-Authenticate", "Basic realm=\"weft: an admin token is the password\"");
    return r;
}

void server__give_back(struct response *rs)
{
    if (rs->stream)
        rs->stream->on_closed(rs->stream);
    if (rs->upgrade)
        rs->upgrade->on_closed(rs->upgrade);
}

static struct MHD_Response *make_answer(struct server__connection *c, struct response *rs)
{
    if (rs->upgrade)
        return make_upgrade(c, rs->upgrade);
    return rs->stream ? server__make_stream(c, rs->stream) : make_text(rs);
}

enum MHD_Result server__answer(struct server__connection *c, struct response *rs)
{
    struct MHD_Response *r = make_answer(c, rs);
    enum MHD_Result result;

    if (!r) {
        server__give_back(rs);
        response_deinit(rs);
        return MHD_NO;
    }
    if (!rs->stream)
        c->cut_at = clock_now() + SERVER__ANSWER_TIME;
    if (!rs->upgrade)
        (void)MHD_add_response_header(r, "Connection", "close");
    (void)MHD_add_response_header(r, "Cache-Control", "no-store");
    result = MHD_queue_response(c->http.mhd, (unsigned)(rs->status ? rs->status : 500), r);
    MHD_destroy_response(r);
    response_deinit(rs);
    return result;
}

/* ---- answers that come later ----------------------------------------------------------------- */

void deferred_answer(struct deferred *d, struct response *rs)
{
    d->rs = *rs;
    *rs = (struct response){0};
    d->is_ready = true;
    if (d->wake)
        d->wake(d);
}

static void wake_deferred(struct deferred *d)
{
    struct server__connection *c = d->server_ctx;

    mhd_loop_resume(c->loop, &c->http);
}

void server__end_deferred(struct server__connection *c)
{
    struct deferred *d = c->deferred;

    if (!d)
        return;
    c->deferred = NULL;
    d->wake = NULL;
    response_deinit(&d->rs);
    d->on_closed(d);
}

enum MHD_Result server__answer_deferred(struct server__connection *c)
{
    enum MHD_Result result = MHD_NO;

    /* Without an answer the connection was resumed only to be ended. */
    if (c->deferred->is_ready)
        result = server__answer(c, &c->deferred->rs);
    server__end_deferred(c);
    return result;
}

enum MHD_Result server__defer(struct server__connection *c, struct deferred *d)
{
    c->deferred = d;
    d->server_ctx = c;
    if (d->is_ready)
        return server__answer_deferred(c);
    d->wake = wake_deferred;
    mhd_loop_suspend(&c->http);
    return MHD_YES;
}

/* ---- the early end of a connection, of one that takes too long above all --------------------- */

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

/* ---- server begin ---------------------------------------------------------------------------- */

/* how a connection begins: its limits, which other one it may replace, and how libmicrohttpd gets
 * it; and how it ends. */

/* How long bytes may be unacknowledged before the kernel ends a connection. */
#define TCP_GIVE_UP_MS 30000

/* Most unsent bytes that the kernel takes: in a stream, more would delay what is newer. */
#define TCP_UNSENT_MAX (256 << 10)

/* Who is at the other end of a unix socket; uid UINT32_MAX and pid 0 when the kernel does not say.
 */
static struct ucred peer_of(int fd)
{
    struct ucred who = {.uid = UINT32_MAX};
    socklen_t len = sizeof(who);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    return who;
}

static void set_tcp(int fd)
{
    int one = 1;
    int give_up = TCP_GIVE_UP_MS;
    int unsent = TCP_UNSENT_MAX;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

/*
 * Ends the oldest connection from @from that has sent no request yet. Any program on a member's
 * machine can hold all connections that the member may have, and its agent would get none without
 * this. Connections without a request are at most SERVER__REQUEST_TIME old, so only those are
 * walked.
 */
static bool make_room(struct server_listener *l, const struct ip_addr *from, nsec_t now)
{
    struct list *all = &l->s->connections;
    struct ip_addr block = admission_block(from);
    struct server__connection *oldest = NULL;

    for (struct list *it = all->prev; it != all; it = it->prev) {
        struct server__connection *c = container_of(it, struct server__connection, link);
        struct ip_addr theirs = admission_block(&c->from.addr);

        if (now - c->began_at >= SERVER__REQUEST_TIME)
            break;
        if (c->listener == l && c->is_inside && !c->has_asked && ip_addr_equal(&theirs, &block))
            oldest = c;
    }
    if (!oldest)
        return false;
    server__leave_listener(oldest);
    server__cut(oldest);
    return true;
}

static bool enter(struct server_listener *l, const struct ip_addr *from, nsec_t now)
{
    if (admission_enter(&l->admission, from))
        return true;
    return l->access == API_ACCESS_OVERLAY && make_room(l, from, now) &&
           admission_enter(&l->admission, from);
}

void server__connection_free(struct server__connection *c)
{
    list_remove(&c->link);
    list_remove(&c->timed);
    list_remove(&c->busy);
    list_remove(&c->ready);
    c->s->counts.connections--;
    server__leave_listener(c);
    server__end_upgrade(c);
    server__end_deferred(c);
    if (c->stream) {
        c->stream->wake = NULL;
        c->stream->check = NULL;
        c->stream->on_closed(c->stream);
    }
    if (c->body)
        secret_wipe(c->body, c->body_len);
    free(c->body);
    free(c);
}

/* Where a connection of @l goes. */
static struct mhd_loop *loop_of(const struct server_listener *l)
{
    struct server *s = l->s;

    if (l->access != API_ACCESS_OVERLAY)
        return &s->http;
    return &s->members[s->next_members++ % SERVER__MEMBERS_LOOPS];
}

static void start(struct server__connection *c)
{
    struct mhd_loop *loop = c->loop;

    if (!mhd_loop_add(loop, c->fd, &c->http))
        server__connection_free(c);
    mhd_loop_run_soon(loop);
}

bool server__take(struct server_listener *l, int fd, const struct endpoint *from, nsec_t now)
{
    struct server *s = l->s;
    struct server__connection *c = calloc(1, sizeof(*c));
    struct ucred who = {.uid = 0};

    if (l->access != API_ACCESS_ADMIN)
        set_tcp(fd);
    if (!c || !enter(l, &from->addr, now)) {
        s->counts.refused++;
        (void)close(fd);
        free(c);
        return false;
    }
    if (l->access == API_ACCESS_PUBLIC && tls_front_wrap(s->front, fd, &fd) < 0) {
        s->counts.refused++;
        admission_leave(&l->admission, &from->addr);
        free(c);
        return false;
    }
    if (l->access == API_ACCESS_ADMIN)
        who = peer_of(fd);
    *c = (struct server__connection){.s = s,
        .loop = loop_of(l),
        .listener = l,
        .fd = fd,
        .access = l->access,
        .listener_ctx = l->listener_ctx,
        .from = *from,
        .uid = who.uid,
        .pid = who.pid,
        .role = l->role,
        .is_inside = true,
        .began_at = now,
        .cut_at = now + SERVER__REQUEST_TIME};
    list_add_tail(&s->connections, &c->link);
    list_add_tail(&s->timed, &c->timed);
    list_init(&c->busy);
    list_init(&c->ready);
    server__watch_deadlines(s);
    s->counts.accepted++;
    s->counts.connections++;
    start(c);
    return true;
}

/* ---- requests, and the server as a whole; see server.h --------------------------------------- */

/* Most bytes that are read of a body that is too long. After more, the connection ends without an
 * answer. */
#define DISCARD_MAX (1u << 20)

/* ---- requests ------------------------------------------------------------------------------- */

static const char *header_of(const struct server__connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, name);
}

const char *request_query(const struct request *rq, const char *name)
{
    /* libmicrohttpd wants a pointer that is not const. */
    return rq->query ? MHD_lookup_connection_value(
                           (struct MHD_Connection *)rq->query, MHD_GET_ARGUMENT_KIND, name)
                     : NULL;
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

/* Who asks? A request at the public API with a valid admin token is an administrator's. */
static void find_caller(const struct server__connection *c, struct request *rq)
{
    char buf[BASIC_MAX];
    const struct server_config *config = &c->s->config;
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
    rq.authorization = header_of(c, "Authorization");
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
