/* server_answer.c - what becomes of a request: an answer, at once or later; a stream; or bytes both
 * ways. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "os/clock.h"

/* ---- upgrades -----------------------------------------------------------------------------------
 */

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
