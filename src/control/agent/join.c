/* join.c - see join.h. */
#include "agent/join.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/leave.h"
#include "agent/reconcile/reconcile.h"
#include "agent/state/blocks_file.h"
#include "agent/state/state.h"
#include "api/client/client.h"
#include "api/content/body.h"
#include "backends/remote/remote_http.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/names/hosts.h"
#include "mesh/object/fields.h"
#include "mesh/render/render.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/machine.h"
#include "wire/member_proof.h"

/* For how long a hub that does not answer is asked again. */
#define ASK_FOR (20 * NSEC_PER_SEC)

#define ENROL_TIMEOUT_MS   10000
#define STATUS_CONFLICT    409
#define STATUS_UNAVAILABLE 503

/* ---- asking the hubs: the request ----------------------------------------------------------- */

/* Makes a node's name of the host's: each run of characters that a name may not have becomes one
 * '-'. Return: false if nothing usable is left. */
static bool host_name(char ret[static NAME_MAX_LEN + 1])
{
    char host[256] = "";
    size_t n = 0;

    (void)gethostname(host, sizeof(host));
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

static json_t *encode_labels(const struct join_options *options)
{
    json_t *labels = json_object();

    for (size_t i = 0; i < options->n_labels; i++)
        fields_set(&labels, options->labels[i].key, json_string(options->labels[i].value));
    return labels;
}

/* @name: NULL: the hub chooses it. The request holds the token's secret: see body_wipe_text(). */
static json_t *encode_request(
    const struct join_options *options, const struct x25519_public *public, const char *name)
{
    char secret[BASE64_SIZE(sizeof(options->token->secret.b))];
    char key[X25519_BASE64_MAX];
    json_t *json;

    base64url_encode(options->token->secret.b, sizeof(options->token->secret.b), secret);
    json = json_pack("{s:s, s:s, s:s*, s:o, s:s, s:o*, s:b, s:b}", "secret", secret, "publicKey",
        x25519_public_format(public, key), "name", name, "labels", encode_labels(options), "engine",
        engine_kind_names[options->engine], "routes",
        options->routes && options->routes->n ? subnets_encode(options->routes) : NULL, "peers", 0,
        "dryRun", options->is_dry_run);
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
static int ask_one(const struct join_options *options, const struct asked_hub *hub, const char *api,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    const char *proxy = options->proxy;
    struct client_target target = {.access = CLIENT_ACCESS_HTTPS,
        .address = api,
        .pin = *hub->pin,
        .proxy = proxy,
        .signer = signer};
    char name[PROXY_TEXT_MAX];
    struct err direct = ERR_NULL;
    bool may_pass;
    int r = client_call(&target, "POST", "/v1/enrol", body, ENROL_TIMEOUT_MS, ret, e);

    if (r != CLIENT_E_UNREACHABLE || !proxy)
        return r;
    (void)err_prefix(e, "through the proxy %s", proxy_name(proxy, name));
    may_pass = ret->may_pass;
    target.proxy = NULL;
    r = client_call(&target, "POST", "/v1/enrol", body, ENROL_TIMEOUT_MS, ret, &direct);
    /* If both ways fail the words are about the proxy, which is the way that was asked for; and so
     * is whether it makes sense to ask again. */
    if (r == CLIENT_E_UNREACHABLE) {
        ret->may_pass = may_pass;
        return r;
    }
    if (options->on_proxy_passed_over)
        options->on_proxy_passed_over(options->ctx, e);
    *e = direct;
    return r;
}

/* Asks at each of the hub's addresses in turn. Return: as client_call(), with words about all; and
 * @ret says whether the failure at any of them may pass. */
static int ask_each(const struct join_options *options, const struct asked_hub *hub,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    _cleanup_(str_deinit) struct str tried = STR_NULL;
    int r = CLIENT_E_UNREACHABLE;
    bool may_pass = false;

    for (unsigned i = 0; i < hub->n_api; i++) {
        struct err once = ERR_NULL;

        r = ask_one(options, hub, hub->api[i], signer, body, ret, &once);
        /* A refusal comes from the hub itself, and would be the same at each address. */
        if (r == 0 || r == CLIENT_E_REFUSED) {
            (void)err_set(e, r, "the hub refuses: %s", err_text(&once));
            return r;
        }
        str_addf(&tried, "%s%s", i == 0 ? "" : "; ", err_text(&once));
        may_pass |= ret->may_pass;
    }
    ret->may_pass = may_pass;
    return err_set(e, r, "the hub cannot be asked: %s", str_text(&tried));
}

static int ask_with_name(const struct join_options *options, const struct asked_hub *hub,
    const struct x25519_public *public, struct member_proof_signer *signer, const char *name,
    struct client_answer *ret, struct err *e)
{
    json_t *body = encode_request(options, public, name);
    int r;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for the request");
    r = ask_each(options, hub, signer, body, ret, e);
    body_wipe_text(body, "secret");
    json_decref(body);
    return r;
}

static int ask_hub(const struct join_options *options, const struct asked_hub *hub,
    const struct x25519_public *public, struct member_proof_signer *signer,
    struct client_answer *ret, struct err *e)
{
    char host[NAME_MAX_LEN + 1];
    int r;

    if (options->name || !host_name(host))
        return ask_with_name(options, hub, public, signer, options->name, ret, e);
    r = ask_with_name(options, hub, public, signer, host, ret, e);
    if (r != CLIENT_E_REFUSED || ret->status != STATUS_CONFLICT)
        return r;
    /* The host's name is taken, and nobody has asked for it by an option: the hub chooses one. */
    client_answer_deinit(ret);
    return ask_with_name(options, hub, public, signer, NULL, ret, e);
}

/* ---- asking the hubs: which one, and again -------------------------------------------------- */

/* Asks with a proof of the key. The hub may have this node already, if an earlier answer was lost.
 */
static int ask_proven(const struct join_options *options, const struct asked_hub *hub,
    const struct x25519_secret *secret, const struct x25519_public *public,
    struct client_answer *ret, struct err *e)
{
    struct member_proof_signer signer;
    int r;

    if (!member_proof_signer_init(&signer, secret, hub->key))
        return err_set(e, -EINVAL, "the hub's key in the token is one that nobody can have");
    r = ask_hub(options, hub, public, &signer, ret, e);
    secret_wipe(&signer, sizeof(signer));
    return r;
}

/* Asks the hub that made the token and, when it does not answer, the further ones in turn. The
 * words are about the first. */
static int ask_any(const struct join_options *options, const struct x25519_secret *secret,
    const struct x25519_public *public, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e)
{
    const struct token *token = options->token;
    struct asked_hub hub = {
        .api = token->api, .n_api = token->n_api, .pin = &token->pin, .key = &token->hub_key};
    int r = ask_proven(options, &hub, secret, public, ret, e);
    bool may_pass = ret->may_pass;

    for (unsigned i = 0; r == CLIENT_E_UNREACHABLE && i < token->n_others; i++) {
        const struct token_other *other = &token->others[i];
        struct err again = ERR_NULL;

        hub = (struct asked_hub){
            .api = other->api, .n_api = other->n_api, .pin = &other->pin, .key = &other->key};
        client_answer_deinit(ret);
        r = ask_proven(options, &hub, secret, public, ret, &again);
        may_pass |= ret->may_pass;
        if (r != CLIENT_E_UNREACHABLE)
            *e = again;
    }
    *ret_key = hub.key;
    ret->may_pass = may_pass;
    return r;
}

/* May the same request succeed a little later? A hub that answers 503 says so itself. */
static bool may_retry(int r, const struct client_answer *answer)
{
    if (r == CLIENT_E_REFUSED)
        return answer->status == STATUS_UNAVAILABLE;
    return (r == CLIENT_E_UNREACHABLE || r == CLIENT_E_UNTRUSTED) && answer->may_pass;
}

int join_ask(const struct join_options *options, const struct x25519_secret *secret,
    const struct x25519_public *public, nsec_t patience, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e)
{
    const nsec_t give_up_at = clock_now() + patience;
    struct remote_http_backoff backoff = {0};
    const struct rng rng = rng_kernel();
    int r = ask_any(options, secret, public, ret, ret_key, e);

    while (may_retry(r, ret)) {
        const unsigned wait_ms = remote_http_backoff_next(&backoff, &rng);
        const nsec_t left = give_up_at - clock_now();

        if (left <= (nsec_t)wait_ms * NSEC_PER_MSEC) {
            if (backoff.n > 1)
                (void)err_prefix(e, "asked %u times", backoff.n);
            return r;
        }
        if (backoff.n == 1 && options->on_wait)
            options->on_wait(options->ctx, (unsigned)((left + NSEC_PER_SEC - 1) / NSEC_PER_SEC), e);
        (void)poll(NULL, 0, (int)wait_ms);
        client_answer_deinit(ret);
        r = ask_any(options, secret, public, ret, ret_key, e);
    }
    return r;
}

/* ---- the join: before ----------------------------------------------------------------------- */

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

/* ---- the join: the answer ------------------------------------------------------------------- */

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
    int r = rtnl_check_free(nl, cidr4, &own, own != 0, e);

    if (r == 0)
        r = rtnl_check_free(nl, cidr6, &own, own != 0, e);
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
static int ask_first(const struct join_options *options, struct netlink *nl,
    const struct x25519_secret *secret, const struct x25519_public *public, unsigned *ret_own,
    struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const struct x25519_public *hub = NULL;
    struct join_options question = *options;
    struct ip_prefix cidr4;
    struct ip_prefix cidr6;
    const char *text4;
    const char *text6;
    int r;

    question.is_dry_run = true;
    r = join_ask(&question, secret, public, ASK_FOR, &answer, &hub, e);
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
    r = check_blocks(nl, options->token->network, &cidr4, &cidr6, *ret_own, e);
    if (r == -EADDRINUSE)
        (void)err_prefix(e, "the token is not used");
    return r;
}

/* Takes the answer into @st, which has the key already; the caller releases @st also on failure. */
static int take_answer(const struct join_options *options, struct netlink *nl,
    const struct x25519_public *hub, const struct x25519_public *public, unsigned own,
    const json_t *body, struct state *st, struct err *e)
{
    int r = snapshot_decode(&st->snapshot, body, NULL, e);

    if (r < 0) {
        (void)err_prefix(e, "the hub's answer cannot be used");
        return r;
    }
    r = check_answer(&st->snapshot, options->token, hub, public, e);
    if (r == 0)
        r = check_blocks(nl, st->snapshot.network.meta.name, &st->snapshot.network.cidr4,
            &st->snapshot.network.cidr6, own, e);
    return r;
}

/* ---- the join: all of it -------------------------------------------------------------------- */

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
static void undo(
    const struct join_options *options, const struct x25519_secret *secret, struct err *e)
{
    const struct err before = *e;
    struct err why = ERR_NULL;

    if (leave_by_token(secret, options->token, options->proxy, &why) == 0) {
        (void)state_remove(options->state_dir, NULL);
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

static int enrol(
    const struct join_options *options, struct netlink *nl, struct state *st, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const struct x25519_public *hub = NULL;
    struct x25519_public public;
    unsigned own = 0;
    bool is_old;
    int r = state_join_key(&st->secret, &is_old, options->state_dir, e);

    if (r == 0 && !x25519_derive_public(&st->secret, &public))
        r = -ENOMEM;
    if (r == 0)
        r = ask_first(options, nl, &st->secret, &public, &own, e);
    /* A join that was killed may have left a node there, which stands in the way of another token.
     */
    if (r == CLIENT_E_REFUSED && is_old &&
        leave_by_token(&st->secret, options->token, options->proxy, NULL) == 0)
        r = ask_first(options, nl, &st->secret, &public, &own, e);
    if (r == 0)
        r = join_ask(options, &st->secret, &public, ASK_FOR, &answer, &hub, e);
    if (r != 0)
        return r;
    r = take_answer(options, nl, hub, &public, own, answer.body, st, e);
    if (r == 0)
        r = keep(st, options->state_dir, e);
    if (r != 0)
        undo(options, &st->secret, e);
    return r;
}

/* Fills in what the node keeps of the hub's public API, and the proxy. */
static int take_hub_api(
    const struct join_options *options, struct state_hub_api *hub_api, struct err *e)
{
    const struct token *token = options->token;
    int r = 0;

    if (options->proxy && strcmp(options->proxy, "none") != 0) {
        r = proxy_check(options->proxy, e);
        if (r == 0)
            (void)snprintf(hub_api->proxy, sizeof(hub_api->proxy), "%s", options->proxy);
    } else if (!options->proxy) {
        r = proxy_from_environment(token->api[0], hub_api->proxy, e);
    }
    hub_api->n_api = token->n_api;
    memcpy(hub_api->api, token->api, sizeof(hub_api->api));
    hub_api->pin = token->pin;
    return r == PROXY_E_NONE ? 0 : r;
}

/* A relay needs the userspace engine: the kernel's WireGuard forwards no sealed packets. */
static int choose_engine(const struct join_options *options, struct state *st, struct err *e)
{
    st->engine = options->engine;
    st->wants_relay = options->wants_relay;
    if (!options->wants_relay)
        return 0;
    if (options->engine == ENGINE_KIND_KERNEL)
        return err_set(e, -EINVAL,
            "a relay needs the userspace engine, and --engine says kernel: leave it out, or say "
            "userspace");
    st->engine = ENGINE_KIND_USERSPACE;
    return 0;
}

int join_enrol(const struct join_options *options, struct state *ret, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    _cleanup_(netlink_close) struct netlink nl = NETLINK_NULL;
    _cleanup_(closep) int lock_fd = -1;
    struct join_options chosen = *options;
    int r = state_check_dir(options->state_dir, e);

    if (r == 0)
        r = choose_engine(options, &st, e);
    if (r == 0)
        r = state_check_interface(options->interface, e);
    if (r == 0)
        r = statefile_make_dir(options->state_dir, 0700, e);
    if (r == 0)
        r = check_not_joined(options->state_dir, e);
    if (r == 0)
        r = state_lock(options->state_dir, &lock_fd, e);
    if (r == 0) {
        r = netlink_open(&nl, NETLINK_ROUTE);
        if (r < 0)
            (void)err_set(e, r, "the kernel's netlink cannot be opened: %s", strerror(-r));
    }
    if (r == 0)
        r = check_interface(&nl, options->interface, e);
    st.keeps_hosts = options->keeps_hosts;
    st.answers_dns = options->answers_dns;
    if (options->routes)
        st.routes = *options->routes;
    st.keeps_sources = options->keeps_sources;
    st.accepts = options->accepts;
    st.listen_port = options->listen_port;
    machine_traits_read(&st.machine);
    st.has_machine = true;
    for (st.n_given = 0; st.n_given < options->n_given; st.n_given++)
        st.given[st.n_given] = options->given[st.n_given];
    (void)snprintf(st.interface, sizeof(st.interface), "%s", options->interface);
    if (r == 0 && options->listen_port != 0 && udp_owner_check(options->listen_port, e) != 0)
        r = err_prefix(e, "--listen cannot be had, and the token is not used");
    if (r == 0)
        r = take_hub_api(options, &st.hub_api, e);
    chosen.proxy = st.hub_api.proxy[0] ? st.hub_api.proxy : NULL;
    chosen.engine = st.engine;
    /* The last check before the hub is asked, so that a token is not used up in vain. */
    if (r == 0 && engine_check(st.engine, options->interface, e) != 0)
        r = err_prefix(e, "this machine cannot have the interface, and the token is not used");
    if (r == 0)
        r = enrol(&chosen, &nl, &st, e);
    if (r != 0)
        return r;
    *ret = st;
    st = (struct state)STATE_NULL;
    return 0;
}
