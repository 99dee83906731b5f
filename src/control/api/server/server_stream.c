/*
 * server_stream.c - answers that go on.
 *
 * Theory of operation. libmicrohttpd asks for a stream's next bytes (read_stream()). When there are
 * none the connection is suspended: libmicrohttpd has sent all that it had, stands between two
 * chunks (RFC 9112 section 7.1), and leaves the socket alone. What is then pushed, if it is short,
 * is written to the socket here, as a chunk of its own: send_chunk(). To have libmicrohttpd do it
 * takes two more system calls, and a walk over all connections that are suspended, which of a hub
 * are thousands of watches. What is longer, or comes while the kernel has not sent all of what was
 * before, is libmicrohttpd's, which waits until the socket takes it.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "os/clock.h"

/* Most bytes of a stream that libmicrohttpd is given at a time. */
#define STREAM_PIECE (SERVER__CONNECTION_MEMORY / 2)

/* Most bytes that are written past libmicrohttpd, and what is around them: the size in hexadecimal
 * digits, and the ends of two lines. */
#define CHUNK_MAX  4096u
#define CHUNK_HEAD 8
#define CHUNK_END  2

/* ---- by libmicrohttpd ----------------------------------------------------------------------- */

static void resume(struct server__connection *c)
{
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
        c->stream->on_drained(c->stream);
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
        if (is_direct(c))
            send_chunk(c, now);
        else
            resume(c);
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

/* ---- the answer ----------------------------------------------------------------------------- */

/* Only members are thousands, and what they are told of one another is no secret among them. Where
 * there is a secret, the length of packed text can betray it. */
static bool wants_packed(const struct server__connection *c)
{
    return c->access == API_ACCESS_OVERLAY && line_accepts_packed(MHD_lookup_connection_value(
                                                  c->http.mhd, MHD_HEADER_KIND, "Accept-Encoding"));
}

struct MHD_Response *server__make_stream(struct server__connection *c, struct stream *st)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_PIECE, read_stream, c, NULL);

    if (!r)
        return NULL;
    c->stream = st;
    server__set_untimed(c);
    list_add_tail(&c->s->busy, &c->busy);
    st->server_ctx = c;
    st->wake = wake_stream;
    st->check = check_stream;
    (void)MHD_add_response_header(r, "Content-Type", "application/x-ndjson");
    if (wants_packed(c) && stream_pack(st))
        (void)MHD_add_response_header(r, "Content-Encoding", "deflate");
    return r;
}
