/*
 * server_answer.c - what a handler said, as libmicrohttpd takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "api/server/upgrade.h"
#include "os/clock.h"

/* A stream's bytes are asked for in pieces of at most so many. */
#define STREAM_PIECE (SERVER__CONNECTION_MEMORY / 2)

static void wake_stream(struct stream *st)
{
    struct server__connection *c = st->server_ctx;

    mhd_loop_resume(&c->s->http, &c->http);
}

/* libmicrohttpd wants bytes of a stream. */
static ssize_t read_stream(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct server__connection *c = ctx;
    struct stream *st = c->stream;
    size_t n;

    /* Suspended again, it would never be seen to have ended. */
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

static struct MHD_Response *make_stream(struct server__connection *c, struct stream *st)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_PIECE, read_stream, c, NULL);

    if (!r)
        return NULL;
    c->stream = st;
    c->cut_at = NSEC_NEVER;
    st->server_ctx = c;
    st->wake = wake_stream;
    (void)MHD_add_response_header(r, "Content-Type", "application/x-ndjson");
    return r;
}

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
    return r;
}

/* A handler has handed over what nobody will look after now. */
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
        return server__make_upgrade(c, rs->upgrade);
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
