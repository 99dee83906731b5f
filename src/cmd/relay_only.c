/*
 * relay_only.c - see relay_only.h.
 *
 * Such a relay is a node like any other, with an agent and the userspace engine:
 * no API, no store, nothing that a network could not do without.
 */
#include "cmd/relay_only.h"

#include <signal.h>

#include "agent/agent.h"
#include "agent/hosts_helper.h"
#include "agent/join.h"
#include "agent/paths/socket/echo_socket.h"
#include "api/content/token.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/agent_privileges.h"
#include "os/log.h"

static void on_wait(void *ctx, unsigned for_s, const struct err *e)
{
    log_warning("%s: asking again, for up to %u s", err_text(e), for_s);
}

static int join(const struct relay_only *wish, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct token token = TOKEN_NULL;
    struct join_wish asked = {
        .token = &token,
        .name = wish->name,
        .engine = ENGINE_KIND_USERSPACE,
        .wants_relay = true,
        .interface = wish->interface,
        .listen_port = wish->listen_port,
        .given = wish->publics,
        .n_given = wish->n_publics,
        .state_dir = wish->state_dir,
        .on_wait = on_wait,
    };
    int r;

    if (!wish->token)
        return err_set(e, -1,
            "this machine has not joined a network yet (%s has no node.json): say --token TOKEN, "
            "from weft token new --relay",
            wish->state_dir);
    if (wish->n_publics > STATE_GIVEN_MAX)
        return err_set(e, -1, "--public gives %u addresses, and a relay tells %d at most",
            wish->n_publics, STATE_GIVEN_MAX);
    r = token_decode(&token, wish->token, e);
    if (r == 0)
        r = join_enrol(&asked, &st, e);
    token_wipe(&token);
    if (r == 0 && !snapshot_self(&st.snapshot)->relay)
        log_warning("the hub does not admit this node as a relay yet: weft node set %s --relay yes",
            st.snapshot.self);
    return r;
}

int relay_only_run(const struct relay_only *wish, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    struct agent_config config = {
        .state_dir = wish->state_dir, .socket_path = wish->socket_path, .no_measure = true};
    enum agent_end end;
    int r = state_check_dir(wish->state_dir, e);

    if (r == 0)
        r = state_read(&st, wish->state_dir, e);
    if (r == STATE_E_ABSENT)
        r = join(wish, e);
    else if (r == 0 && !st.wants_relay)
        r = err_set(e, -1,
            "%s is the state of a node that joined without --relay; say another --state",
            wish->state_dir);
    if (r == 0)
        r = agent_privileges_drop(&config, wish->user, e);
    if (r == 0)
        r = agent_run(&config, &end, e);
    (void)hosts_helper_free(config.hosts);
    (void)echo_socket_free(config.pings);
    return r;
}
