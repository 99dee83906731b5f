/* server_upgrade.c - the server's side of upgrade.h. */
#include <fcntl.h>
#include <strings.h>

#include "api/server/server_internal.h"
#include "api/server/upgrade.h"

/* The other end is through: @sock is bytes. */
static void on_upgraded(void *ctx, struct MHD_Connection *mhd, void *request, const char *early,
    size_t len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
    struct server__connection *c = ctx;
    int flags = fcntl(sock, F_GETFL);

    c->urh = urh;
    c->cut_at = NSEC_NEVER;
    server__leave_listener(c);
    (void)fcntl(sock, F_SETFL, flags | O_NONBLOCK);
    c->upgrade->on_open(c->upgrade, sock, early, len);
}

bool server__wants_upgrade(const struct server__connection *c, const char *protocol)
{
    const char *asked = MHD_lookup_connection_value(c->http.mhd, MHD_HEADER_KIND, "Upgrade");

    return asked && strcasecmp(asked, protocol) == 0;
}

struct MHD_Response *server__make_upgrade(struct server__connection *c, struct upgrade *u)
{
    struct MHD_Response *r = MHD_create_response_for_upgrade(on_upgraded, c);

    if (!r)
        return NULL;
    c->upgrade = u;
    u->server_ctx = c;
    (void)MHD_add_response_header(r, "Upgrade", u->protocol);
    return r;
}

/* libmicrohttpd frees what belongs to it in its next run. */
static void close_bytes(struct server__connection *c)
{
    struct MHD_UpgradeResponseHandle *urh = c->urh;

    c->upgrade = NULL;
    c->urh = NULL;
    if (urh)
        (void)MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
    mhd_loop_run_soon(&c->s->http);
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
