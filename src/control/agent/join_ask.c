/* join_ask.c - see join_ask.h. */
#include "agent/join_ask.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "agent/join.h"
#include "api/client/client.h"
#include "api/content/body.h"
#include "backends/remote/remote_http.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/text.h"
#include "mesh/names/reserved.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "wire/member_proof.h"

#define ENROL_TIMEOUT_MS   10000
#define STATUS_CONFLICT    409
#define STATUS_UNAVAILABLE 503

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
    json = json_pack("{s:s, s:s, s:s*, s:o, s:s, s:o*, s:b, s:b}", "secret", secret, "publicKey",
        x25519_public_format(public, key), "name", name, "labels", encode_labels(wish), "engine",
        engine_kind_name(wish->engine), "routes",
        wish->routes && wish->routes->n ? subnets_encode(wish->routes) : NULL, "peers", 0, "dryRun",
        wish->is_dry_run);
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
static int ask_one(const struct join_wish *wish, const struct asked_hub *hub, const char *api,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    const char *proxy = wish->proxy;
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
    if (wish->on_proxy_passed_over)
        wish->on_proxy_passed_over(wish->ctx, e);
    *e = direct;
    return r;
}

/* Asks at each of the hub's addresses in turn. Return: as client_call(), with words about all; and
 * @ret says whether the failure at any of them may pass. */
static int ask_each(const struct join_wish *wish, const struct asked_hub *hub,
    struct member_proof_signer *signer, const json_t *body, struct client_answer *ret,
    struct err *e)
{
    _cleanup_(str_deinit) struct str tried = STR_NULL;
    int r = CLIENT_E_UNREACHABLE;
    bool may_pass = false;

    for (unsigned i = 0; i < hub->n_api; i++) {
        struct err once = ERR_NULL;

        r = ask_one(wish, hub, hub->api[i], signer, body, ret, &once);
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

static int ask_with_name(const struct join_wish *wish, const struct asked_hub *hub,
    const struct x25519_public *public, struct member_proof_signer *signer, const char *name,
    struct client_answer *ret, struct err *e)
{
    json_t *body = encode_request(wish, public, name);
    int r;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for the request");
    r = ask_each(wish, hub, signer, body, ret, e);
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

/* ---- which hub, and again ------------------------------------------------------------------- */

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
 * words are about the first. */
static int ask_any(const struct join_wish *wish, const struct x25519_secret *secret,
    const struct x25519_public *public, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e)
{
    const struct token *token = wish->token;
    struct asked_hub hub = {
        .api = token->api, .n_api = token->n_api, .pin = &token->pin, .key = &token->hub_key};
    int r = ask_proven(wish, &hub, secret, public, ret, e);
    bool may_pass = ret->may_pass;

    *ret_key = hub.key;
    for (unsigned i = 0; r == CLIENT_E_UNREACHABLE && i < token->n_others; i++) {
        const struct token_other *other = &token->others[i];
        struct err again = ERR_NULL;
        int once;

        hub = (struct asked_hub){
            .api = other->api, .n_api = other->n_api, .pin = &other->pin, .key = &other->key};
        client_answer_deinit(ret);
        once = ask_proven(wish, &hub, secret, public, ret, &again);
        may_pass |= ret->may_pass;
        if (once == CLIENT_E_UNREACHABLE)
            continue;
        *ret_key = hub.key;
        *e = again;
        r = once;
    }
    ret->may_pass = may_pass;
    return r;
}

/* May the same request succeed a little later? A hub that answers 503 says so itself. */
static bool may_succeed_later(int r, const struct client_answer *answer)
{
    if (r == CLIENT_E_REFUSED)
        return answer->status == STATUS_UNAVAILABLE;
    return (r == CLIENT_E_UNREACHABLE || r == CLIENT_E_UNTRUSTED) && answer->may_pass;
}

int join_ask(const struct join_wish *wish, const struct x25519_secret *secret,
    const struct x25519_public *public, nsec_t patience, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e)
{
    const nsec_t give_up_at = clock_now() + patience;
    struct remote_http_backoff backoff = {0};
    const struct rng rng = rng_kernel();
    int r = ask_any(wish, secret, public, ret, ret_key, e);

    while (may_succeed_later(r, ret)) {
        const unsigned wait_ms = remote_http_backoff_next(&backoff, &rng);
        const nsec_t left = give_up_at - clock_now();

        if (left <= (nsec_t)wait_ms * NSEC_PER_MSEC) {
            if (backoff.n > 1)
                (void)err_prefix(e, "asked %u times", backoff.n);
            return r;
        }
        if (backoff.n == 1 && wish->on_wait)
            wish->on_wait(wish->ctx, (unsigned)((left + NSEC_PER_SEC - 1) / NSEC_PER_SEC), e);
        (void)poll(NULL, 0, (int)wait_ms);
        client_answer_deinit(ret);
        r = ask_any(wish, secret, public, ret, ret_key, e);
    }
    return r;
}
