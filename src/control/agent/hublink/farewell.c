/* farewell.c - see farewell.h. */
#include "agent/hublink/farewell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/hublink/hub_ask.h"
#include "agent/hublink/hub_ways.h"
#include "agent/state/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "wire/member_proof.h"

#define WAIT_MS  3000
#define PATIENCE (10 * NSEC_PER_SEC)

/* "/v1/leave/default/" and the node's public key in hex. */
static bool make_path(
    const struct x25519_secret *secret, const char *network, char ret[static HUB_ASK_PATH_MAX + 1])
{
    struct x25519_public public;
    char hex[2 * sizeof(public.b) + 1];

    if (!x25519_derive_public(secret, &public))
        return false;
    hex_encode(public.b, sizeof(public.b), hex);
    (void)snprintf(ret, HUB_ASK_PATH_MAX + 1, "/v1/leave/%.*s/%s", NAME_MAX_LEN, network, hex);
    return true;
}

static int ask(const struct hub_ask_call *call, struct err *e)
{
    struct client_answer answer = CLIENT_ANSWER_NULL;
    int r = hub_ask_wait(call, &answer, e);

    client_answer_deinit(&answer);
    return r;
}

static int tell_on_overlay(const struct endpoint *api, const char *interface,
    struct member_proof_signer *signer, struct err *e)
{
    char address[ENDPOINT_TEXT_MAX];
    struct hub_ask_call call = {.target = {.access = CLIENT_ACCESS_OVERLAY,
                                    .address = endpoint_format(api, address),
                                    .interface = interface,
                                    .signer = signer},
        .method = "POST",
        .path = "/v1/leave",
        .timeout_ms = WAIT_MS};

    return ask(&call, e);
}

static int tell_by_https(const struct tls_pin *pin, const char *api, const char *proxy,
    const char *path, struct member_proof_signer *signer, struct err *e)
{
    struct hub_ask_call call = {.target = {.access = CLIENT_ACCESS_HTTPS,
                                    .address = api,
                                    .pin = *pin,
                                    .proxy = proxy,
                                    .signer = signer},
        .method = "POST",
        .path = path,
        .timeout_ms = WAIT_MS};

    return ask(&call, e);
}

/* By the public API of one hub. The token has said the TLS key of one of them. */
static int tell_hub(const struct state *st, const struct node *hub, bool is_only,
    struct member_proof_signer *signer, const char *path, nsec_t until, struct err *e)
{
    const char *proxy = st->ways.proxy[0] ? st->ways.proxy : NULL;
    const struct node_hub *at = hub->hub;
    const struct state_ways none = {.n_api = 0};
    bool is_joined = is_only || !at->has_tls_pin ||
                     memcmp(&at->tls_pin, &st->ways.pin, sizeof(at->tls_pin)) == 0;
    const struct tls_pin *pin = is_joined ? &st->ways.pin : &at->tls_pin;
    struct hub_ways_api apis;
    int r = -ENOENT;

    hub_ways_list_api(&apis, is_joined ? &st->ways : &none, at);
    for (unsigned i = 0; r != 0 && i < apis.n && clock_now() < until; i++) {
        r = tell_by_https(pin, apis.items[i], proxy, path, signer, e);
        if (r != 0 && proxy && clock_now() < until)
            r = tell_by_https(pin, apis.items[i], NULL, path, signer, e);
    }
    return r;
}

/* With a signer of its own, for another hub than the one that serves this node. */
static int tell_other(
    const struct state *st, const struct node *hub, const char *path, nsec_t until, struct err *e)
{
    struct member_proof_signer signer;
    int r;

    if (!member_proof_signer_init(&signer, &st->secret, &hub->key))
        return err_set(e, -EINVAL, "the hub's key is one that nobody can have");
    r = tell_hub(st, hub, false, &signer, path, until, e);
    secret_wipe(&signer, sizeof(signer));
    return r;
}

int farewell_tell(const struct state *st, const struct snapshot *s, const struct endpoint *api,
    struct member_proof_signer *signer, struct err *e)
{
    nsec_t until = clock_now() + PATIENCE;
    char path[HUB_ASK_PATH_MAX + 1];
    int r = tell_on_overlay(api, st->interface, signer, e);
    unsigned n = 0;

    for (size_t i = 0; i < s->nodes.n; i++)
        n += s->nodes.items[i]->node.hub ? 1 : 0;
    if (r == 0 || n == 0 || !make_path(&st->secret, st->snapshot.network.meta.name, path))
        return r;
    for (size_t i = 0; i < s->nodes.n && r != 0 && clock_now() < until; i++)
        if (s->nodes.items[i]->node.hub)
            r = n == 1 ? tell_hub(st, &s->nodes.items[i]->node, true, signer, path, until, e)
                       : tell_other(st, &s->nodes.items[i]->node, path, until, e);
    return r;
}

int farewell_by_token(
    const struct x25519_secret *secret, const struct token *token, const char *proxy, struct err *e)
{
    const nsec_t until = clock_now() + PATIENCE;
    struct member_proof_signer signer;
    char path[HUB_ASK_PATH_MAX + 1];
    int r = -ENOENT;

    if (!make_path(secret, token->network, path) ||
        !member_proof_signer_init(&signer, secret, &token->hub_key))
        return err_set(e, -EINVAL, "the key of the hub or of this machine is none");
    for (unsigned i = 0; r != 0 && i < token->n_api && clock_now() < until; i++) {
        r = tell_by_https(&token->pin, token->api[i], proxy, path, &signer, e);
        if (r != 0 && proxy && clock_now() < until)
            r = tell_by_https(&token->pin, token->api[i], NULL, path, &signer, e);
    }
    secret_wipe(&signer, sizeof(signer));
    return r;
}
