/* join.c - see join.h. */
#include "agent/join.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/hublink/farewell.h"
#include "agent/join_ask.h"
#include "agent/reconcile/ownership.h"
#include "agent/state/blocks_file.h"
#include "agent/state/removed.h"
#include "api/client/client.h"
#include "base/err.h"
#include "mesh/render/render.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/udp_owner.h"
#include "os/fd_cleanup.h"
#include "os/machine.h"
#include "os/statefile.h"

/* ---- before --------------------------------------------------------------------------------- */

static int check_not_joined(const char *dir, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    int r = state_read(&st, dir, e);

    if (r == STATE_E_ABSENT)
        return 0;
    if (r < 0)
        return r;
    return err_set(e, -EEXIST,
        "this machine is \"%s\" in the network \"%s\" already; weft leave ends that, and "
        "--state, --socket and --interface make room for another one",
        st.snapshot.self, st.snapshot.network.meta.name);
}

static int check_interface(struct netlink *nl, const char *interface, struct err *e)
{
    struct rtnl_link link;
    int r = rtnl_find_link(nl, interface, &link);

    if (r == RTNL_E_ABSENT)
        return 0;
    if (r < 0)
        return err_set(e, r, "the interfaces cannot be looked at: %s", strerror(-r));
    return err_set(
        e, -EEXIST, "an interface %s exists already; --interface chooses another name", interface);
}

static int check_port(uint16_t port, struct err *e)
{
    int r = udp_owner_check(port, e);

    if (r != 0)
        r = err_prefix(e, "--listen cannot be had, and the token is not used");
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static const struct node *find_hub(const struct snapshot *s, const struct x25519_public *key)
{
    for (size_t i = 0; i < s->nodes.n; i++)
        if (s->nodes.items[i]->node.hub && x25519_public_equal(&s->nodes.items[i]->node.key, key))
            return &s->nodes.items[i]->node;
    return NULL;
}

/* Is the answer about the hub that was asked, whose key @hub the token names, and about this node's
 * key? */
static int check_answer(const struct snapshot *s, const struct token *token,
    const struct x25519_public *hub, const struct x25519_public *public, struct err *e)
{
    const struct node *first = render_hub(s);
    char theirs[X25519_BASE64_MAX];
    char ours[X25519_BASE64_MAX];

    if (strcmp(s->network.meta.name, token->network) != 0)
        return err_set(e, -EINVAL, "the token is for the network \"%s\", and the hub says \"%s\"",
            token->network, s->network.meta.name);
    if (!first)
        return err_set(e, -EINVAL, "the hub's answer names no hub");
    if (!find_hub(s, hub))
        return err_set(e, -EINVAL, "the hub's key is %s, and the token says %s",
            x25519_public_format(&first->key, theirs), x25519_public_format(hub, ours));
    if (!x25519_public_equal(&snapshot_self(s)->key, public))
        return err_set(e, -EINVAL, "the hub's answer is about another node's key");
    return 0;
}

/* @own: the hub's interface on this machine; 0: it runs elsewhere. */
static int check_blocks(struct netlink *nl, const char *network, const struct ip_prefix *cidr4,
    const struct ip_prefix *cidr6, unsigned own, struct err *e)
{
    int r = rtnl_check_free(nl, cidr4, own, e);

    if (r == 0)
        r = rtnl_check_free(nl, cidr6, own, e);
    if (r == -EADDRINUSE)
        (void)err_prefix(e, "the network \"%s\" cannot be joined here", network);
    return r;
}

/* The hub's interface for the network, if the hub that gave this answer runs on this machine; else
 * 0. What it says is not believed, or it could have any interface's addresses and routes passed
 * over: its interface is a WireGuard that has the hub's key @hub, which the token names. */
static unsigned find_own_hub(
    struct netlink *nl, const json_t *answer, const struct x25519_public *hub)
{
    const char *place = json_string_value(json_object_get(answer, "place"));
    const char *interface = json_string_value(json_object_get(answer, "interface"));
    char here[MACHINE_PLACE_MAX];
    unsigned own = 0;

    machine_place(here);
    if (!place || !interface || here[0] == '\0' || strcmp(place, here) != 0 ||
        !ownership_is_of_key(nl, interface, hub, &own))
        return 0;
    return own;
}

/* May this machine have the blocks? Asked before the hub takes it in, so that a refusal leaves no
 * node there and takes no use of the token. */
static int ask_first(const struct join_wish *wish, struct netlink *nl,
    const struct x25519_secret *secret, const struct x25519_public *public, unsigned *ret_own,
    struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const struct x25519_public *hub = NULL;
    struct join_wish question = *wish;
    struct ip_prefix cidr4;
    struct ip_prefix cidr6;
    const char *text4;
    const char *text6;
    int r;

    question.is_dry_run = true;
    r = join_ask(&question, secret, public, JOIN_ASK_FOR, &answer, &hub, e);
    if (r != 0)
        return r;
    text4 = json_string_value(json_object_get(answer.body, "cidr4"));
    text6 = json_string_value(json_object_get(answer.body, "cidr6"));
    if (!text4 || !text6)
        return 0; /* a hub of before this question: it has taken the machine in */
    r = ip_prefix_parse(&cidr4, text4, e);
    if (r == 0)
        r = ip_prefix_parse(&cidr6, text6, e);
    if (r < 0)
        return err_prefix(e, "the hub's answer cannot be used");
    *ret_own = find_own_hub(nl, answer.body, hub);
    r = check_blocks(nl, wish->token->network, &cidr4, &cidr6, *ret_own, e);
    if (r == -EADDRINUSE)
        (void)err_prefix(e, "the token is not used");
    return r;
}

/* Takes the answer into @st, which has the key already; the caller releases @st also on failure. */
static int take_answer(const struct join_wish *wish, struct netlink *nl,
    const struct x25519_public *hub, const struct x25519_public *public, unsigned own,
    const json_t *body, struct state *st, struct err *e)
{
    int r = snapshot_decode(&st->snapshot, body, NULL, e);

    if (r < 0) {
        (void)err_prefix(e, "the hub's answer cannot be used");
        return r;
    }
    r = check_answer(&st->snapshot, wish->token, hub, public, e);
    if (r == 0)
        r = check_blocks(nl, st->snapshot.network.meta.name, &st->snapshot.network.cidr4,
            &st->snapshot.network.cidr6, own, e);
    return r;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int keep(const struct state *st, const char *dir, struct err *e)
{
    const struct hosts_rules rules = blocks_file_rules(&st->snapshot);
    int r;

    /* Only for names in the hosts file. Where it cannot be written, the start of the agent says so;
     * the hub has taken this machine in already. */
    if (st->keeps_hosts)
        (void)blocks_file_write(&rules, dir, NULL);
    r = state_write_snapshot(&st->snapshot, dir, e);
    /* With node.json the machine has joined, so only what is then of no use is removed after it. */
    if (r == 0)
        r = state_write(st, dir, e);
    if (r == 0)
        r = state_forget_join_key(dir, e);
    if (r == 0)
        r = removed_forget(dir, e);
    return r;
}

/* The hub has taken the machine in, and it cannot be a node all the same, as @e says. */
static void undo(const struct join_wish *wish, const struct x25519_secret *secret, struct err *e)
{
    const struct err before = *e;
    struct err why = ERR_NULL;

    if (farewell_by_token(secret, wish->token, wish->proxy, &why) == 0) {
        (void)state_remove(wish->state_dir, NULL);
        (void)err_set(e, before.code,
            "%s; the hub has removed the machine again, and the token can be used once more",
            err_text(&before));
    } else {
        (void)err_set(e, before.code,
            "%s; the hub has it as a node already and could not be told (%s): the same command "
            "goes on where this one ended",
            err_text(&before), err_text(&why));
    }
}

static int enrol(const struct join_wish *wish, struct netlink *nl, struct state *st, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const struct x25519_public *hub = NULL;
    struct x25519_public public;
    unsigned own = 0;
    bool is_old;
    int r = state_join_key(&st->secret, &is_old, wish->state_dir, e);

    if (r == 0 && !x25519_derive_public(&st->secret, &public))
        r = -ENOMEM;
    if (r == 0)
        r = ask_first(wish, nl, &st->secret, &public, &own, e);
    /* A join that was killed may have left a node there, which stands in the way of another token.
     */
    if (r == CLIENT_E_REFUSED && is_old &&
        farewell_by_token(&st->secret, wish->token, wish->proxy, NULL) == 0)
        r = ask_first(wish, nl, &st->secret, &public, &own, e);
    if (r == 0)
        r = join_ask(wish, &st->secret, &public, JOIN_ASK_FOR, &answer, &hub, e);
    if (r != 0)
        return r;
    r = take_answer(wish, nl, hub, &public, own, answer.body, st, e);
    if (r == 0)
        r = keep(st, wish->state_dir, e);
    if (r != 0)
        undo(wish, &st->secret, e);
    return r;
}

/* Fills in what the node keeps of the hub's public API, and the proxy. */
static int take_ways(const struct join_wish *wish, struct state_ways *ways, struct err *e)
{
    const struct token *token = wish->token;
    int r = 0;

    if (wish->proxy && strcmp(wish->proxy, "none") != 0) {
        r = proxy_check(wish->proxy, e);
        if (r == 0)
            (void)snprintf(ways->proxy, sizeof(ways->proxy), "%s", wish->proxy);
    } else if (!wish->proxy) {
        r = proxy_from_environment(token->api[0], ways->proxy, e);
    }
    ways->n_api = token->n_api;
    memcpy(ways->api, token->api, sizeof(ways->api));
    ways->pin = token->pin;
    return r == PROXY_E_NONE ? 0 : r;
}

/* A relay needs the userspace engine: the kernel's WireGuard forwards no sealed packets. */
static int choose_engine(const struct join_wish *wish, struct state *st, struct err *e)
{
    st->engine = wish->engine;
    st->wants_relay = wish->wants_relay;
    if (!wish->wants_relay)
        return 0;
    if (wish->engine == ENGINE_KIND_KERNEL)
        return err_set(e, -EINVAL,
            "a relay needs the userspace engine, and --engine says kernel: leave it out, or say "
            "userspace");
    st->engine = ENGINE_KIND_USERSPACE;
    return 0;
}

int join_enrol(const struct join_wish *wish, struct state *ret, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    _cleanup_(netlink_close) struct netlink nl = NETLINK_NULL;
    _cleanup_(closep) int lock_fd = -1;
    struct join_wish chosen = *wish;
    int r = state_check_dir(wish->state_dir, e);

    if (r == 0)
        r = choose_engine(wish, &st, e);
    if (r == 0)
        r = state_check_interface(wish->interface, e);
    if (r == 0)
        r = statefile_make_dir(wish->state_dir, 0700, e);
    if (r == 0)
        r = check_not_joined(wish->state_dir, e);
    if (r == 0)
        r = state_lock(wish->state_dir, &lock_fd, e);
    if (r == 0) {
        r = netlink_open(&nl, NETLINK_ROUTE);
        if (r < 0)
            (void)err_set(e, r, "the kernel's netlink cannot be opened: %s", strerror(-r));
    }
    if (r == 0)
        r = check_interface(&nl, wish->interface, e);
    st.keeps_hosts = wish->keeps_hosts;
    st.answers_dns = wish->answers_dns;
    if (wish->routes)
        st.routes = *wish->routes;
    st.keeps_sources = wish->keeps_sources;
    st.accepts = wish->accepts;
    st.listen_port = wish->listen_port;
    machine_traits_read(&st.machine);
    st.has_machine = true;
    for (st.n_given = 0; st.n_given < wish->n_given; st.n_given++)
        st.given[st.n_given] = wish->given[st.n_given];
    (void)snprintf(st.interface, sizeof(st.interface), "%s", wish->interface);
    if (r == 0 && wish->listen_port != 0)
        r = check_port(wish->listen_port, e);
    if (r == 0)
        r = take_ways(wish, &st.ways, e);
    chosen.proxy = st.ways.proxy[0] ? st.ways.proxy : NULL;
    chosen.engine = st.engine;
    /* The last check before the hub is asked, so that a token is not used up in vain. */
    if (r == 0 && engine_check(st.engine, wish->interface, e) != 0)
        r = err_prefix(e, "this machine cannot have the interface, and the token is not used");
    if (r == 0)
        r = enrol(&chosen, &nl, &st, e);
    if (r != 0)
        return r;
    *ret = st;
    st = (struct state)STATE_NULL;
    return 0;
}
