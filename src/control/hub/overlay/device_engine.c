/* device_engine.c - see device_engine.h. */
#include "hub/overlay/device_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "engine/engine.h"
#include "engine/uapi_client.h"
#include "mesh/config/wg_config.h"
#include "port/device.h"
#include "uapi/uapi.h"

struct device_engine {
    struct engine engine;
    struct device *device; /* pins */
};

static struct device *device_of(struct engine *engine)
{
    return ((struct device_engine *)engine)->device;
}

static int get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct device *device = device_of(engine);
    size_t len;
    char *text;
    int r = uapi_handle(device, UAPI_CLIENT_GET, strlen(UAPI_CLIENT_GET), &text, &len);

    if (r < 0)
        return err_set(e, r, "no memory to ask %s", device_name(device));
    r = uapi_client_decode(ret, text, len, e);
    /* The text holds the network's private key. */
    secret_wipe(text, len);
    free(text);
    return r;
}

static int apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    _cleanup_(str_deinit) struct str request = STR_NULL;
    struct device *device = device_of(engine);
    size_t answer_len;
    char *answer;
    int r;

    uapi_client_encode(d, secret, &request);
    if (request.failed)
        return err_set(e, -ENOMEM, "no memory to configure %s", device_name(device));
    r = uapi_handle(device, request.text, request.len, &answer, &answer_len);
    if (r < 0)
        return err_set(e, r, "no memory to configure %s", device_name(device));
    r = uapi_client_result(answer, answer_len, e);
    free(answer);
    return r == 0 ? 0 : err_prefix(e, "cannot configure %s", device_name(device));
}

static void close_engine(struct engine *engine)
{
    free(engine);
}

static const struct engine_ops ops = {
    .kind = ENGINE_KIND_USERSPACE, .get = get, .apply = apply, .close = close_engine};

int device_engine_new(struct engine **ret, struct device *device)
{
    struct device_engine *de = calloc(1, sizeof(*de));

    if (!de)
        return -ENOMEM;
    *de = (struct device_engine){.engine = {.ops = &ops}, .device = device};
    *ret = &de->engine;
    return 0;
}
