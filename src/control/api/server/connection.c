/*
 * connection.c - a connection from when it is taken until it ends: answers, now, later or as a
 * stream, upgrades, and how long it may take; see server_internal.h.
 */
#include "api/server/server_internal.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/content/body.h"
#include "api/server/stream.h"
#include "api/server/tls_front.h"
#include "base/secret.h"
#include "net/socket/tcp.h"
#include "os/clock.h"

/* ---- the early end of a connection, of one that takes too long above all --------------------- */

/* How often the connections are looked through for those that have taken too long. */
#define TICK_MS 1000

/* It does not count in its listener's admission any more. Idempotent. */
static void leave_listener(struct server__connection *c)
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
    c->cut = true;
    set_untimed(c);
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

/* ---- answers that go on ---------------------------------------------------------------------- */

/*
 * Theory of operation. libmicrohttpd asks for a stream's next bytes (read_stream()). When there are
 * none the connection is suspended: libmicrohttpd has sent all that it had, stands between two
 * chunks (RFC 9112 section 7.1), and leaves the socket alone. What is then pushed, if it is short,
 * is written to the socket here, as a chunk of its own: send_chunk(). To have libmicrohttpd do it
 * takes two more system calls, and a walk over all connections that are suspended, which of a hub
 * are thousands of watches. What is longer, or comes while the kernel has not sent all of what was
 * before, is libmicrohttpd's, which waits until the socket takes it.
 */

/* Most bytes of a stream that libmicrohttpd is given at a time. */
#define STREAM_PIECE (SERVER__CONNECTION_MEMORY / 2)

/* Most bytes that are written past libmicrohttpd, and what is around them: the size in hexadecimal
 * digits, and the ends of two lines. */
#define CHUNK_MAX  4096u
#define CHUNK_HEAD 8
#define CHUNK_END  2

/* ---- by libmicrohttpd ----------------------------------------------------------------------- */

/* libmicrohttpd wants bytes of a stream. */
static ssize_t read_stream(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct server__connection *c = ctx;
    struct stream *st = c->stream;
    nsec_t now = clock_now();
    size_t n;

    /* A suspended connection would not be seen to have ended. */
    if (c->cut || st->aborted)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n = stream_take(st, buf, max, now);
    if (n == 0 && !st->ended) {
        st->on_drained(st, now);
        n = stream_take(st, buf, max, now);
    }
    if (n > 0)
        return (ssize_t)n;
    if (st->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    mhd_loop_suspend(&c->http);
    return 0;
}

/* ---- past libmicrohttpd --------------------------------------------------------------------- */

/* Are its next bytes such that send_chunk() may write them? Of what the other end has not taken yet
 * nothing is left in the kernel, so there is room. */
static bool is_direct(const struct server__connection *c)
{
    const struct stream *st = c->stream;
    int unsent;

    return c->http.is_suspended && c->is_chunked && !c->cut && !st->aborted && !st->ended &&
           st->n_free == 0 && st->bytes <= CHUNK_MAX - STREAM_TAKE_MIN &&
           ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent == 0;
}

static void send_chunk(struct server__connection *c, nsec_t now)
{
    char buf[CHUNK_HEAD + CHUNK_MAX + CHUNK_END];
    char digits[CHUNK_HEAD + 1];
    char *data = buf + CHUNK_HEAD;
    size_t len = stream_take(c->stream, data, CHUNK_MAX, now);
    size_t n_digits = (size_t)snprintf(digits, sizeof(digits), "%zx\r\n", len);
    size_t all = n_digits + len + CHUNK_END;
    ssize_t n;

    if (len == 0)
        return;
    memcpy(data - n_digits, digits, n_digits);
    memcpy(data + len, "\r\n", CHUNK_END);
    do
        n = send(c->fd, data - n_digits, all, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)all)
        c->stream->on_drained(c->stream, now);
    else
        /* It is closed, or the kernel has no memory; and half a chunk cannot be ended. */
        server__cut(c);
}

void server__send_streams(struct server *s)
{
    nsec_t now = list_is_empty(&s->ready) ? 0 : clock_now();
    struct server__connection *c;

    while ((c = list_first(&s->ready, struct server__connection, ready))) {
        list_remove(&c->ready);
        if (is_direct(c)) {
            send_chunk(c, now);
        } else {
            if (list_is_empty(&c->busy))
                list_add_tail(&c->s->busy, &c->busy);
            mhd_loop_resume(c->loop, &c->http);
        }
    }
}

/* What is pushed in one turn of the loop is sent together, at its end. */
static void wake_stream(struct stream *st)
{
    struct server__connection *c = st->server_ctx;

    if (list_is_empty(&c->ready))
        list_add_tail(&c->s->ready, &c->ready);
}

/* A client that has closed its end has nothing more to read. */
static void check_stream(struct stream *st)
{
    struct server__connection *c = st->server_ctx;
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (!c->cut && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
        server__cut(c);
}

static bool is_answered(struct stream *st, nsec_t within)
{
    const struct server__connection *c = st->server_ctx;

    return tcp_is_answered(c->fd, within);
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* The answer is @st; NULL: no memory. */
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
    st->check = check_stream;
    st->is_answered = is_answered;
    (void)MHD_add_response_header(r, "Content-Type", st->type);
    /* Only members are thousands, and what they are told of one another is no secret among them.
     * Where there is a secret, the length of packed text can betray it. */
    if ((c->access == API_ACCESS_OVERLAY &&
            line_accepts_packed(
                MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, "Accept-Encoding"))) &&
        stream_pack(st))
        (void)MHD_add_response_header(r, "Content-Encoding", "deflate");
    return r;
}

/* ---- upgrades -------------------------------------------------------------------------------- */

/* The answer 101 is out: from now on @sock carries the protocol's bytes. */
static void on_upgraded(void *ctx, struct MHD_Connection *mhd, void *request, const char *early,
    size_t len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
    struct server__connection *c = ctx;
    int flags = fcntl(sock, F_GETFL);

    c->urh = urh;
    set_untimed(c);
    leave_listener(c);
    (void)fcntl(sock, F_SETFL, flags | O_NONBLOCK);
    c->upgrade->on_open(c->upgrade, sock, early, len);
}

bool server__wants_upgrade(const struct server__connection *c, const char *protocol)
{
    const char *asked = MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, "Upgrade");

    return asked && strcasecmp(asked, protocol) == 0;
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
        (void)MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
        (void)MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    }
    if (r && rs->cookie)
        (void)MHD_add_response_header(r, "Set-Cookie", rs->cookie);
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
    if (rs->upgrade) {
        struct MHD_Response *r = MHD_create_response_for_upgrade(on_upgraded, c);

        /* The answer 101. */
        if (!r)
            return NULL;
        c->upgrade = rs->upgrade;
        rs->upgrade->server_ctx = c;
        (void)MHD_add_response_header(r, "Upgrade", rs->upgrade->protocol);
        return r;
    }
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

/* The connection ends; nothing if no answer is waited for. */
static void end_deferred(struct server__connection *c)
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
    end_deferred(c);
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

/* ---- it begins and ends: its limits, and which other one it may replace --------------------- */

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

/*
 * Ends the oldest connection from @from that has sent no request yet. Any program on a member's
 * machine can hold all connections that the member may have, and its agent would get none without
 * this. Connections without a request are at most SERVER__REQUEST_TIME old, so only those are
 * walked.
 */
static bool make_space(struct server_listener *l, const struct ip_addr *from, nsec_t now)
{
    struct list *all = &l->s->connections;
    struct ip_addr block = ip_addr_block(from);
    struct server__connection *oldest = NULL;

    for (struct list *it = all->prev; it != all; it = it->prev) {
        struct server__connection *c = container_of(it, struct server__connection, link);
        struct ip_addr theirs = ip_addr_block(&c->from.addr);

        if (now - c->began_at >= SERVER__REQUEST_TIME)
            break;
        if (c->listener == l && c->is_inside && !c->has_asked && ip_addr_equal(&theirs, &block))
            oldest = c;
    }
    if (!oldest)
        return false;
    leave_listener(oldest);
    server__cut(oldest);
    return true;
}

void server__connection_free(struct server__connection *c)
{
    list_remove(&c->link);
    list_remove(&c->timed);
    list_remove(&c->busy);
    list_remove(&c->ready);
    c->s->counts.connections--;
    leave_listener(c);
    server__end_upgrade(c);
    end_deferred(c);
    if (c->stream) {
        c->stream->wake = NULL;
        c->stream->check = NULL;
        c->stream->is_answered = NULL;
        c->stream->on_closed(c->stream);
    }
    if (c->body)
        secret_wipe(c->body, c->body_len);
    free(c->body);
    free(c);
}

bool server__take(struct server_listener *l, int fd, const struct endpoint *from, nsec_t now)
{
    struct server *s = l->s;
    struct server__connection *c = calloc(1, sizeof(*c));
    struct ucred who = {.uid = 0};
    struct mhd_loop *loop;

    if (l->access != API_ACCESS_ADMIN) {
        int one = 1;
        int give_up = TCP_GIVE_UP_MS;
        int unsent = TCP_UNSENT_MAX;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    }
    if (!c || !(admission_enter(&l->admission, &from->addr) ||
                  (l->access == API_ACCESS_OVERLAY && make_space(l, &from->addr, now) &&
                      admission_enter(&l->admission, &from->addr)))) {
        s->counts.refused++;
        (void)close(fd);
        free(c);
        return false;
    }
    if ((l->access == API_ACCESS_PUBLIC || (l->access == API_ACCESS_METRICS && s->front)) &&
        tls_front_wrap(s->front, fd, &fd) < 0) {
        s->counts.refused++;
        admission_leave(&l->admission, &from->addr);
        free(c);
        return false;
    }
    if (l->access == API_ACCESS_ADMIN)
        who = peer_of(fd);
    *c = (struct server__connection){.s = s,
        .loop = l->access == API_ACCESS_OVERLAY
                    ? &s->members[s->next_members++ % SERVER__MEMBERS_LOOPS]
                    : &s->http,
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
    /* Look for late connections each second, for as long as there are any. */
    if (!uv_is_active((uv_handle_t *)&s->tick))
        (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    s->counts.accepted++;
    s->counts.connections++;
    loop = c->loop;
    if (!mhd_loop_add(loop, c->fd, &c->http))
        server__connection_free(c);
    mhd_loop_run_soon(loop);
    return true;
}
