/* fuzz-uplink.c - what a node keeps of its uplink, and what it tells a hub of it; what is taken
 * must survive being written. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "agent/node_uplink.h"
#include "base/err.h"
#include "base/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_kept(const json_t *json)
{
    struct uplink a;
    struct uplink b;
    struct err e = ERR_NULL;
    struct uplink_estimate found;
    json_t *text;

    if (node_uplink_decode(&a, json, "uplink.json", &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(a.n <= UPLINK_TRAINS_MAX);
    for (unsigned i = 1; i < a.n; i++)
        assert(a.items[i - 1].at_s <= a.items[i].at_s);
    text = node_uplink_encode_kept(&a);
    assert(text && node_uplink_decode(&b, text, "uplink.json", &e) == 0);
    json_decref(text);
    assert(b.n == a.n);
    found = uplink_estimate(&a, a.n > 0 ? a.items[a.n - 1].at_s : 0);
    assert(found.state < UPLINK_STATE_N && found.n_trains <= a.n);
    assert(found.state == UPLINK_UNKNOWN || found.bits_per_s >= TRAFFIC_RATE_MIN);
}

static void check_report(const json_t *json)
{
    struct uplink_report a;
    struct uplink_report b;
    struct err e = ERR_NULL;
    json_t *text;

    if (uplink_report_decode(&a, json, "uplink", &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(a.state < UPLINK_STATE_N && a.from < UPLINK_FROM_N && a.at_s >= 0);
    text = uplink_report_encode(&a);
    assert(text && uplink_report_decode(&b, text, "uplink", &e) == 0);
    assert(uplink_report_equal(&a, &b));
    json_decref(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(json)) {
        check_kept(json);
        check_report(json);
    }
    json_decref(json);
    return 0;
}
