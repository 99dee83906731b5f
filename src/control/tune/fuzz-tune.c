/* fuzz-tune.c - what was measured, of which settings are made, and the file with what was before.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "tune/tune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was taken in is read back as what it was. */
static void check_saved(const json_t *json)
{
    struct tune_saved s;
    struct tune_saved again;
    struct err e = ERR_NULL;
    json_t *text;

    if (tune_saved_decode(&s, json, &e) != 0) {
        assert(e.text[0] != '\0');
        return;
    }
    text = tune_saved_encode(&s);
    assert(text && tune_saved_decode(&again, text, NULL) == 0);
    assert(memcmp(&s, &again, sizeof(s)) == 0);
    json_decref(text);
}

/* Whatever was measured, no value is lowered, nor beyond what the kernel takes. */
static void check_plan(const json_t *json)
{
    struct tune_facts f = {.now = {"212992", "212992", "4096 131072 6291456", "4096 16384 4194304",
                               "1000", "1", "0", "fq_codel", "cubic"},
        .has_bbr = true,
        .has_fq = true,
        .is_userspace = true,
        .devices =
            {{.name = "eth0", .now = {"512", "512", "off"}, .max = {4096, 4096}, .has_gro = true}},
        .n_devices = 1};
    struct str out = STR_NULL;
    struct tune_plan p;

    tune_take_measured(&f, json, "gpu-1");
    tune_take_merging(&f, json);
    assert(memchr(f.merging_device, '\0', sizeof(f.merging_device)) && f.merging_percent <= 100);
    assert(isfinite(f.rate_bps) && f.rate_bps >= 0 && isfinite(f.rtt_s) && f.rtt_s >= 0);
    assert(f.loss >= 0 && f.loss <= 1);
    tune_plan_make(&p, &f);
    for (unsigned s = 0; s < TUNE_SETTING_N; s++) {
        assert(memchr(p.items[s].wanted, '\0', TUNE_VALUE_MAX) && p.items[s].why[0] != '\0');
        assert(p.items[s].changes == (strcmp(p.items[s].wanted, f.now[s]) != 0));
    }
    assert(!p.devices[0][TUNE_RING_RX].changes ||
           strtoul(p.devices[0][TUNE_RING_RX].wanted, NULL, 10) <= 4096);
    tune_format(&p, &f, &out);
    assert(out.len > 0);
    str_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);

    check_saved(json);
    check_plan(json);
    json_decref(json);
    return 0;
}
