/* server_deferred.c - the server's side of deferred.h. */
#include "api/server/deferred.h"
#include "api/server/server_internal.h"

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

    mhd_loop_resume(&c->s->http, &c->http);
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

    /* Without an answer it has been resumed only to end. */
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
