/* fuzz-uapi-client.c - an answer that decodes must decode to the same after it was written again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "engine/uapi_client.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/tun/offload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct x25519_secret secret = {.b = {1}};
    static const struct wg_config nothing = WG_CONFIG_NULL;
    struct wg_config a = WG_CONFIG_NULL;
    struct wg_config b = WG_CONFIG_NULL;
    struct diff d = DIFF_NULL;
    struct str text = STR_NULL;
    struct err e = ERR_NULL;
    struct offloads offloads;

    (void)uapi_client_decode_stats(&offloads, NULL, (const char *)data, len, &e);
    if (uapi_client_decode(&a, (const char *)data, len, &e) < 0)
        return 0;
    if (wg_config_sort(&a, &e) == 0 && diff_make(&d, &nothing, &a, NULL) == 0) {
        uapi_client_encode(&d, &secret, &text);
        text.len--; /* What would end a request is not in an answer. */
        str_add(&text, "errno=0\n\n");
        assert(uapi_client_decode(&b, str_text(&text), text.len, &e) == 0);
        assert(wg_config_sort(&b, &e) == 0);
        diff_deinit(&d);
        a.public = b.public;
        assert(diff_make(&d, &b, &a, NULL) == 0 && diff_is_empty(&d));
    }
    str_deinit(&text);
    diff_deinit(&d);
    wg_config_deinit(&a);
    wg_config_deinit(&b);
    return 0;
}
