/* fuzz-watch-event.c - a stream of lines keeps a snapshot whole, whatever the lines say. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/watch_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void take_line(struct snapshot *s, const char *line, size_t len)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    struct err e = ERR_NULL;

    if (watch_event_decode(&ev, line, len, &e) == 0)
        (void)watch_event_apply(s, &ev, &e);
}

static void format(const struct wg_config *c, const struct snapshot *s)
{
    static const struct wg_quick_style style = {.key_file = WG_QUICK_KEY_FILE};

    free(wg_quick_format(c, s, &style, NULL));
    free(wg_quick_format_peers(c, s, NULL));
}

/* Whatever was taken in must survive its own encoding, and must render or say why not. */
static void check(const struct snapshot *s)
{
    struct render_input in = {.snapshot = s};
    struct wg_config c = WG_CONFIG_NULL;
    struct snapshot copy = SNAPSHOT_NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct err e = ERR_NULL;
    json_t *json = snapshot_encode(s);

    assert(json && snapshot_decode(&copy, json, &skips, &e) == 0);
    assert(skips.n == 0);
    json_decref(json);
    snapshot_deinit(&copy);
    if (render_config(&c, &in, &e) < 0)
        assert(e.text[0] != '\0');
    else
        format(&c, s);
    wg_config_deinit(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct snapshot s = SNAPSHOT_NULL;
    const char *p = (const char *)data;
    const char *end = p + len;

    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;

        take_line(&s, p, (size_t)(stop - p));
        p = newline ? newline + 1 : end;
    }
    if (s.self[0] != '\0')
        check(&s);
    snapshot_deinit(&s);
    return 0;
}
