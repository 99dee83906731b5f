/* leave.c - see leave.h. */
#include "agent/leave.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/hublink/hub_health.h"
#include "agent/hublink/hub_link.h"
#include "agent/reconcile/reconcile.h"
#include "agent/resolved_link.h"
#include "agent/state/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/hosts_file.h"
#include "wire/member_proof.h"

/* ---- the hub is told ------------------------------------------------------------------------ */

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

static int call_hub(const struct client_target *target, const char *path, struct err *e)
{
    struct client_answer answer = CLIENT_ANSWER_NULL;
    int r = client_call(target, "POST", path, NULL, WAIT_MS, &answer, e);

    if (hub_ask_learn(target->signer, r, &answer)) {
        client_answer_deinit(&answer);
        if (e)
            *e = (struct err)ERR_NULL;
        r = client_call(target, "POST", path, NULL, WAIT_MS, &answer, e);
    }
    client_answer_deinit(&answer);
    return r;
}

static int tell_on_overlay(const struct endpoint *api, const char *interface,
    struct member_proof_signer *signer, struct err *e)
{
    char address[ENDPOINT_TEXT_MAX];
    const struct client_target target = {.access = CLIENT_ACCESS_OVERLAY,
        .address = endpoint_format(api, address),
        .interface = interface,
        .signer = signer};

    return call_hub(&target, "/v1/leave", e);
}

/* At each of @n addresses in turn: through the proxy if there is one, and then without it. */
static int tell_by_https(const struct tls_pin *pin, const char (*apis)[HOST_PORT_MAX + 1],
    unsigned n, const char *proxy, const char *path, struct member_proof_signer *signer,
    nsec_t until, struct err *e)
{
    struct client_target target = {.access = CLIENT_ACCESS_HTTPS, .pin = *pin, .signer = signer};
    int r = -ENOENT;

    for (unsigned i = 0; r != 0 && i < n && clock_now() < until; i++) {
        target.address = apis[i];
        target.proxy = proxy;
        r = call_hub(&target, path, e);
        if (r != 0 && proxy && clock_now() < until) {
            target.proxy = NULL;
            r = call_hub(&target, path, e);
        }
    }
    return r;
}

/* By the public API of one hub. The token has said the TLS key of one of them. */
static int tell_hub(const struct state *st, const struct node *hub, bool is_only,
    struct member_proof_signer *signer, const char *path, nsec_t until, struct err *e)
{
    const char *proxy = st->hub_api.proxy[0] ? st->hub_api.proxy : NULL;
    const struct node_hub *at = hub->hub;
    const struct state_hub_api none = {.n_api = 0};
    bool is_joined = is_only || !at->has_tls_pin ||
                     memcmp(&at->tls_pin, &st->hub_api.pin, sizeof(at->tls_pin)) == 0;
    const struct tls_pin *pin = is_joined ? &st->hub_api.pin : &at->tls_pin;
    struct hub_api_list apis;

    hub_api_list_make(&apis, is_joined ? &st->hub_api : &none, at);
    return tell_by_https(pin, apis.items, apis.n, proxy, path, signer, until, e);
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

int leave_tell_hub(const struct state *st, const struct snapshot *s, const struct endpoint *api,
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

int leave_by_token(
    const struct x25519_secret *secret, const struct token *token, const char *proxy, struct err *e)
{
    const nsec_t until = clock_now() + PATIENCE;
    struct member_proof_signer signer;
    char path[HUB_ASK_PATH_MAX + 1];
    int r;

    if (!make_path(secret, token->network, path) ||
        !member_proof_signer_init(&signer, secret, &token->hub_key))
        return err_set(e, -EINVAL, "the key of the hub or of this machine is none");
    r = tell_by_https(&token->pin, token->api, token->n_api, proxy, path, &signer, until, e);
    secret_wipe(&signer, sizeof(signer));
    return r;
}

/* ---- without an agent ----------------------------------------------------------------------- */

/* The interface may still be there and carry packets, although no agent runs. */
static void tell_serving_hub(const struct state *st, struct leave_result *ret)
{
    const struct node *hub = render_hub(&st->snapshot);
    struct member_proof_signer signer;
    struct err e = ERR_NULL;
    struct endpoint api;

    if (!hub || !member_proof_signer_init(&signer, &st->secret, &hub->key)) {
        (void)snprintf(ret->why, sizeof(ret->why), "it is not known");
        return;
    }
    api = (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
    ret->has_reported_hub = leave_tell_hub(st, &st->snapshot, &api, &signer, &e) == 0;
    secret_wipe(&signer, sizeof(signer));
    if (!ret->has_reported_hub)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", (int)sizeof(ret->why) - 1, err_text(&e));
}

/* Removes the interface, and then the names. That names stay is no failure: @ret says why. */
static int take_down(const struct state *st, struct leave_result *ret, struct err *e)
{
    struct reconcile rc = RECONCILE_NULL;
    const struct render_input in = {.snapshot = &st->snapshot};
    int r = reconcile_init(&rc, st->interface, st->engine, st->accepts, e);
    struct err why = ERR_NULL;
    bool changed;

    if (r == 0) {
        reconcile_assume(&rc, &in);
        r = reconcile_take_down(&rc, e);
    }
    if (r == 0)
        (void)hosts_owner(&st->snapshot, ret->hosts_owner);
    if (r == 0 && st->keeps_hosts &&
        hosts_file_put(HOSTS_FILE_DEFAULT, ret->hosts_owner, NULL, &changed, &why) < 0)
        (void)snprintf(ret->names_why, sizeof(ret->names_why), "%.*s",
            (int)sizeof(ret->names_why) - 1, err_text(&why));
    reconcile_deinit(&rc);
    return r;
}

/* Removes what is at @path if it is a socket, and nothing else. */
static void remove_socket(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path);
}

/* Removes the sockets that an agent left behind when it was killed, and what it had root tell. */
static void remove_stale_files(const char *path)
{
    char measure[PATH_MAX];

    (void)snprintf(measure, sizeof(measure), "%s%s", path, AGENT_MEASURE_SUFFIX);
    remove_socket(path);
    remove_socket(measure);
    (void)snprintf(measure, sizeof(measure), "%s" UNIX_SOCKET_USERS_SUFFIX, path);
    remove_socket(measure);
    if (strcmp(path, STATE_SOCKET_DEFAULT) == 0)
        (void)unlink(RESOLVED_LINK_FILE);
}

/* Reads the node's state, and takes the lock so that no agent starts meanwhile. */
static int load_state(const char *state_dir, struct state *st, int *ret_lock_fd,
    struct leave_result *ret, struct err *e)
{
    char text[REMOVED_TEXT_MAX];
    struct removed rm;
    int r = state_check_dir(state_dir, e);

    if (r == 0)
        r = state_read(st, state_dir, e);
    if (r == STATE_E_ABSENT && removed_read(&rm, state_dir, NULL) == 0)
        return err_set(
            e, LEAVE_E_REMOVED, "nothing of it is left here: %s", removed_explain(&rm, text));
    if (r == STATE_E_ABSENT)
        return err_set(
            e, r, "this machine has not joined a network (%s has no node.json)", state_dir);
    if (r == 0)
        r = state_lock(state_dir, ret_lock_fd, e);
    if (r < 0)
        return r;
    *ret = (struct leave_result){0};
    (void)snprintf(
        ret->network, sizeof(ret->network), "%.*s", NAME_MAX_LEN, st->snapshot.network.meta.name);
    (void)snprintf(ret->node, sizeof(ret->node), "%s", st->snapshot.self);
    (void)snprintf(ret->interface, sizeof(ret->interface), "%s", st->interface);
    return 0;
}

int leave_without_agent(const char *state_dir, const char *socket_path, bool stays_joined,
    struct leave_result *ret, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    _cleanup_(closep) int lock_fd = -1;
    int r = load_state(state_dir, &st, &lock_fd, ret, e);

    if (r != 0)
        return r;
    if (!stays_joined)
        tell_serving_hub(&st, ret);
    r = take_down(&st, ret, e);
    if (r == 0 && !stays_joined)
        r = state_remove(state_dir, e);
    if (r == 0)
        remove_stale_files(socket_path);
    return r;
}
