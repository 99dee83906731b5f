/* farewell.c - see farewell.h. */
#include "agent/hublink/farewell.h"

#include <stdio.h>

#include "agent/hublink/hub_ask.h"
#include "agent/hublink/hub_ways.h"
#include "agent/state/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/render/render.h"
#include "os/clock.h"

#define WAIT_MS  3000
#define PATIENCE (10 * NSEC_PER_SEC)

/* "/v1/leave/default/" and the node's public key in hex. */
static bool make_path(const struct state *st, char ret[static HUB_ASK_PATH_MAX + 1])
{
    struct x25519_public public;
    char hex[2 * sizeof(public.b) + 1];

    if (!x25519_derive_public(&st->secret, &public))
        return false;
    hex_encode(public.b, sizeof(public.b), hex);
    (void)snprintf(ret, HUB_ASK_PATH_MAX + 1, "/v1/leave/%.*s/%s", NAME_MAX_LEN,
        st->snapshot.network.meta.name, hex);
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

static int tell_by_https(const struct state *st, const char *api, const char *proxy,
    const char *path, struct member_proof_signer *signer, struct err *e)
{
    struct hub_ask_call call = {.target = {.access = CLIENT_ACCESS_HTTPS,
                                    .address = api,
                                    .pin = st->ways.pin,
                                    .proxy = proxy,
                                    .signer = signer},
        .method = "POST",
        .path = path,
        .timeout_ms = WAIT_MS};

    return ask(&call, e);
}

int farewell_tell(const struct state *st, const struct endpoint *api,
    struct member_proof_signer *signer, struct err *e)
{
    const char *proxy = st->ways.proxy[0] ? st->ways.proxy : NULL;
    const struct node *hub = render_hub(&st->snapshot);
    nsec_t until = clock_now() + PATIENCE;
    struct hub_ways_api apis;
    char path[HUB_ASK_PATH_MAX + 1];
    int r = tell_on_overlay(api, st->interface, signer, e);

    if (r == 0 || !hub || !make_path(st, path))
        return r;
    hub_ways_list_api(&apis, &st->ways, hub->hub);
    for (unsigned i = 0; r != 0 && i < apis.n && clock_now() < until; i++) {
        r = tell_by_https(st, apis.items[i], proxy, path, signer, e);
        if (r != 0 && proxy && clock_now() < until)
            r = tell_by_https(st, apis.items[i], NULL, path, signer, e);
    }
    return r;
}
