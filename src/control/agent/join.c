/* join.c - see join.h. */
#include "agent/join.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/state/removed.h"
#include "api/client/client.h"
#include "api/content/body.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/text.h"
#include "mesh/names/reserved.h"
#include "mesh/render/render.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/fd_cleanup.h"
#include "os/statefile.h"
#include "wire/member_proof.h"

#define ENROL_TIMEOUT_MS 10000
#define STATUS_CONFLICT  409

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

/* ---- the request ---------------------------------------------------------------------------- */

/* Makes a node's name of the host's: each run of characters that a name may not have becomes one
 * '-'. Return: false if nothing usable is left. */
static bool host_name(char ret[static NAME_MAX_LEN + 1])
{
    char host[256];
    size_t n = 0;

    if (gethostname(host, sizeof(host)) < 0)
        return false;
    host[sizeof(host) - 1] = '\0';
    host[strcspn(host, ".")] = '\0';
    for (const char *p = host; *p && n < NAME_MAX_LEN; p++) {
        if ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9'))
            ret[n++] = *p;
        else if (*p >= 'A' && *p <= 'Z')
            ret[n++] = "abcdefghijklmnopqrstuvwxyz"[*p - 'A'];
        else if (n > 0 && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n > 0 && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
    /* "localhost" is one of the reserved names, and many machines are called so. */
    return n > 0 && !reserved_is(ret);
}

static json_t *encode_labels(const struct join_wish *wish)
{
    json_t *labels = json_object();

    for (size_t i = 0; labels && i < wish->n_labels; i++)
        if (json_object_set_new(labels, wish->labels[i].key, json_string(wish->labels[i].value)) <
            0)
            labels = (json_decref(labels), NULL);
    return labels;
}

/* @name: NULL: the hub chooses it. The request holds the token's secret: see wipe_request(). */
static json_t *encode_request(
    const struct join_wish *wish, const struct x25519_public *public, const char *name)
{
    char secret[BASE64_ROOM(sizeof(wish->token->secret.b))];
    char key[X25519_BASE64_MAX];
    json_t *json;

    base64url_encode(wish->token->secret.b, sizeof(wish->token->secret.b), secret);
    json = json_pack("{s:s, s:s, s:s*, s:o, s:s, s:o*, s:b}", "secret", secret, "publicKey",
        x25519_public_format(public, key), "name", name, "labels", encode_labels(wish), "engine",
        engine_kind_name(wish->engine), "routes",
        wish->routes && wish->routes->n ? subnets_encode(wish->routes) : NULL, "peers", 0);
    secret_wipe(secret, sizeof(secret));
    return json;
}

/** A hub that may be asked: the one that made the token, or a further one. Borrowed. */
struct asked_hub {
    const char (*api)[TOKEN_API_MAX + 1];
    unsigned n_api;
    const struct tls_pin *pin;
    const struct x25519_public *key;
};

/* Asks at one of the hub's addresses: through the proxy if there is one, and if that fails without
 * it. */
static int ask_one(const struct asked_hub *hub, const char *api, const char *proxy,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    struct client_target target = {.access = CLIENT_ACCESS_HTTPS,
        .address = api,
        .pin = *hub->pin,
        .proxy = proxy,
        .signer = signer};
    char name[PROXY_TEXT_MAX];
    struct err direct = ERR_NULL;
    int r = client_call(&target, "POST", "/v1/enrol", body, ENROL_TIMEOUT_MS, ret, e);

    if (r != CLIENT_E_UNREACHABLE || !proxy)
        return r;
    (void)err_prefix(e, "through the proxy %s", proxy_name(proxy, name));
    target.proxy = NULL;
    r = client_call(&target, "POST", "/v1/enrol", body, ENROL_TIMEOUT_MS, ret, &direct);
    /* If both ways fail the words are about the proxy, which is the way that was asked for. */
    if (r != CLIENT_E_UNREACHABLE)
        *e = direct;
    return r;
}

/* Asks at each of the hub's addresses in turn. Return: as client_call(), with words about all. */
static int ask_each(const struct asked_hub *hub, const char *proxy,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    _cleanup_(str_deinit) struct str tried = STR_NULL;
    int r = CLIENT_E_UNREACHABLE;

    for (unsigned i = 0; i < hub->n_api; i++) {
        struct err once = ERR_NULL;

        r = ask_one(hub, hub->api[i], proxy, signer, body, ret, &once);
        /* A refusal comes from the hub itself, and would be the same at each address. */
        if (r == 0 || r == CLIENT_E_REFUSED) {
            (void)err_set(e, r, "the hub refuses: %s", err_text(&once));
            return r;
        }
        str_addf(&tried, "%s%s", i == 0 ? "" : "; ", err_text(&once));
    }
    return err_set(e, r, "the hub cannot be asked: %s", str_text(&tried));
}

static int ask_with_name(const struct join_wish *wish, const struct asked_hub *hub,
    const struct x25519_public *public, struct member_proof_signer *signer, const char *name,
    struct client_answer *ret, struct err *e)
{
    json_t *body = encode_request(wish, public, name);
    int r;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for the request");
    r = ask_each(hub, wish->proxy, signer, body, ret, e);
    body_wipe_text(body, "secret");
    json_decref(body);
    return r;
}

static int ask(const struct join_wish *wish, const struct asked_hub *hub,
    const struct x25519_public *public, struct member_proof_signer *signer,
    struct client_answer *ret, struct err *e)
{
    char host[NAME_MAX_LEN + 1];
    int r;

    if (wish->name || !host_name(host))
        return ask_with_name(wish, hub, public, signer, wish->name, ret, e);
    r = ask_with_name(wish, hub, public, signer, host, ret, e);
    if (r != CLIENT_E_REFUSED || ret->status != STATUS_CONFLICT)
        return r;
    /* The host's name is taken, and nobody has asked for it by an option: the hub chooses one. */
    client_answer_deinit(ret);
    return ask_with_name(wish, hub, public, signer, NULL, ret, e);
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

static int check_blocks(struct netlink *nl, const struct snapshot *s, struct err *e)
{
    int r = rtnl_check_free(nl, &s->network.cidr4, 0, e);

    if (r == 0)
        r = rtnl_check_free(nl, &s->network.cidr6, 0, e);
    if (r == -EADDRINUSE)
        (void)err_prefix(e, "the network \"%s\" cannot be joined here", s->network.meta.name);
    return r;
}

/* Takes the answer into @st, which has the key already; the caller releases @st also on failure. */
static int take_answer(const struct join_wish *wish, struct netlink *nl,
    const struct x25519_public *hub, const struct x25519_public *public, const json_t *body,
    struct state *st, struct err *e)
{
    int r = snapshot_decode(&st->snapshot, body, NULL, e);

    if (r < 0) {
        (void)err_prefix(e, "the hub's answer cannot be used");
        return r;
    }
    r = check_answer(&st->snapshot, wish->token, hub, public, e);
    if (r == 0)
        r = check_blocks(nl, &st->snapshot, e);
    return r;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int keep(const struct state *st, const char *dir, struct err *e)
{
    int r = state_write_snapshot(&st->snapshot, dir, e);

    /* With node.json the machine has joined, so only what is then of no use is removed after it. */
    if (r == 0)
        r = state_write(st, dir, e);
    if (r == 0)
        r = state_forget_join_key(dir, e);
    if (r == 0)
        r = removed_forget(dir, e);
    return r;
}

/* Asks with a proof of the key. The hub may have this node already, if an earlier answer was lost.
 */
static int ask_proven(const struct join_wish *wish, const struct asked_hub *hub,
    const struct x25519_secret *secret, const struct x25519_public *public,
    struct client_answer *ret, struct err *e)
{
    struct member_proof_signer signer;
    int r;

    if (!member_proof_signer_init(&signer, secret, hub->key))
        return err_set(e, -EINVAL, "the hub's key in the token is one that nobody can have");
    r = ask(wish, hub, public, &signer, ret, e);
    secret_wipe(&signer, sizeof(signer));
    return r;
}

/* Asks the hub that made the token and, when it does not answer, the further ones in turn. The
 * words are about the first. @ret_key: of the hub that has answered; borrowed from the token. */
static int ask_any(const struct join_wish *wish, const struct x25519_secret *secret,
    const struct x25519_public *public, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e)
{
    const struct token *token = wish->token;
    struct asked_hub hub = {
        .api = token->api, .n_api = token->n_api, .pin = &token->pin, .key = &token->hub_key};
    int r = ask_proven(wish, &hub, secret, public, ret, e);

    *ret_key = hub.key;
    for (unsigned i = 0; r == CLIENT_E_UNREACHABLE && i < token->n_others; i++) {
        const struct token_other *other = &token->others[i];
        struct err again = ERR_NULL;
        int once;

        hub = (struct asked_hub){
            .api = other->api, .n_api = other->n_api, .pin = &other->pin, .key = &other->key};
        client_answer_deinit(ret);
        once = ask_proven(wish, &hub, secret, public, ret, &again);
        if (once == CLIENT_E_UNREACHABLE)
            continue;
        *ret_key = hub.key;
        *e = again;
        r = once;
    }
    return r;
}

static int enrol(const struct join_wish *wish, struct netlink *nl, struct state *st, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const struct x25519_public *hub = NULL;
    struct x25519_public public;
    int r = state_join_key(&st->secret, wish->state_dir, e);

    if (r == 0 && !x25519_derive_public(&st->secret, &public))
        r = -ENOMEM;
    if (r == 0)
        r = ask_any(wish, &st->secret, &public, &answer, &hub, e);
    if (r == 0)
        r = take_answer(wish, nl, hub, &public, answer.body, st, e);
    if (r == 0)
        r = keep(st, wish->state_dir, e);
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
    if (wish->routes)
        st.routes = *wish->routes;
    st.keeps_sources = wish->keeps_sources;
    st.accepts = wish->accepts;
    st.listen_port = wish->listen_port;
    for (st.n_given = 0; st.n_given < wish->n_given; st.n_given++)
        st.given[st.n_given] = wish->given[st.n_given];
    (void)snprintf(st.interface, sizeof(st.interface), "%s", wish->interface);
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
