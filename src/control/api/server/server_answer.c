/*
 * server_answer.c - what becomes of a request: an answer, at once or later; a stream; bytes both
 * ways; or an early end, when the connection takes too long.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "os/clock.h"

/* How often the connections are looked through for those that have taken too long. */
#define TICK_MS 1000

/* Most bytes of a stream that libmicrohttpd is given at a time. */
#define STREAM_PIECE (SERVER__CONNECTION_MEMORY / 2)

/* ---- deadlines ----------------------------------------------------------------------------------
 */

void server__leave_listener(struct server__connection *c)
{
    if (c->listener && c->is_inside)
        admission_leave(&c->listener->admission, &c->from.addr);
    c->is_inside = false;
}

/* It may take as long as it likes. */
static void set_untimed(struct server__connection *c)
{
    c->cut_at = NSEC_NEVER;
    list_remove(&c->timed);
}

void server__cut(struct server__connection *c)
{
    c->s->counts.cut++;
    c->cut = true;
    set_untimed(c);
    /* libmicrohttpd owns the descriptor. It sees the end, and closes it. */
    (void)shutdown(c->fd, SHUT_RDWR);
    mhd_loop_resume(c->loop, &c->http);
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
            server__cut(c);
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
            server__cut(c);
    }
    cut_stalled(s, now);
}

void server__watch_deadlines(struct server *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tick))
        (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}

/* ---- upgrades -----------------------------------------------------------------------------------
 */

/* The answer 101 is out: from now on @sock carries the protocol's bytes. */
static void on_upgraded(void *ctx, struct MHD_Connection *mhd, void *request, const char *early,
    size_t len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
    struct server__connection *c = ctx;
    int flags = fcntl(sock, F_GETFL);

    c->urh = urh;
    set_untimed(c);
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

/* ---- streams ------------------------------------------------------------------------------------
 */

static void wake_stream(struct stream *st)
{
    struct server__connection *c = st->server_ctx;

    if (list_is_empty(&c->busy))
        list_add_tail(&c->s->busy, &c->busy);
    mhd_loop_resume(c->loop, &c->http);
}

/* libmicrohttpd wants bytes of a stream. */
static ssize_t read_stream(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct server__connection *c = ctx;
    struct stream *st = c->stream;
    size_t n;

    /* A suspended connection would not be seen to have ended. */
    if (c->cut || st->aborted)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n = stream_take(st, buf, max, clock_now());
    if (n == 0 && !st->ended) {
        st->on_drained(st);
        n = stream_take(st, buf, max, clock_now());
    }
    if (n > 0)
        return (ssize_t)n;
    if (st->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    mhd_loop_suspend(&c->http);
    return 0;
}

/* Only members are thousands, and what they are told of one another is no secret among them. Where
 * there is a secret, the length of packed text can betray it. */
static bool wants_packed(const struct server__connection *c)
{
    return c->access == API_ACCESS_OVERLAY && line_accepts_packed(MHD_lookup_connection_value(
                                                  c->http.mhd, MHD_HEADER_KIND, "Accept-Encoding"));
}

static struct MHD_Response *make_stream(struct server__connection *c, struct stream *st)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_PIECE, read_stream, c, NULL);

    if (!r)
        return NULL;
    c->stream = st;
    set_untimed(c);
    list_add_tail(&c->s->busy, &c->busy);
    st->server_ctx = c;
    st->wake = wake_stream;
    (void)MHD_add_response_header(r, "Content-Type", "application/x-ndjson");
    if (wants_packed(c) && stream_pack(st))
        (void)MHD_add_response_header(r, "Content-Encoding", "deflate");
    return r;
}

/* ---- answers ------------------------------------------------------------------------------------
 */

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
    return rs->stream ? make_stream(c, rs->stream) : make_text(rs);
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

/* ---- answers that come later --------------------------------------------------------------------
 */

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
