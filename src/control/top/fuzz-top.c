/* fuzz-top.c - what a hub or an agent answers, and keys: no frame is wider or longer than its
 * terminal, or has a byte that it would obey. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "test/support/sample_top.h"
#include "top/top_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_frame(const struct top_model *m, const struct top_view *v)
{
    struct str frame = STR_NULL;
    unsigned n_lines = 1;
    size_t column = 0;

    top_frame_format(&frame, m, v, "");
    for (const char *c = str_text(&frame); *c; c++) {
        column = *c == '\n' ? 0 : column + 1;
        n_lines += *c == '\n';
        assert(*c == '\n' || (*c >= ' ' && *c <= '~'));
        assert(column <= v->n_columns);
    }
    assert(n_lines == v->n_lines);
    str_deinit(&frame);
}

/* The bytes are also those that somebody types. */
static void check_keys(const struct top_model *m, const uint8_t *data, size_t len)
{
    struct top_view view = {.n_columns = 80, .n_lines = 24};
    struct top_keys keys = {.n = 0};

    for (size_t i = 0; i < len && i < 200; i++) {
        int key = top_keys_take(&keys, (char)data[i]);

        if (key != TOP_KEY_NONE)
            (void)top_view_key(&view, m, key);
        top_view_follow(&view, m);
    }
    check_frame(m, &view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const unsigned sizes[][2] = {{40, 8}, {80, 24}, {133, 55}};
    json_t *json = json_loadb((const char *)data, len, JSON_ALLOW_NUL, NULL);
    struct top_model model;
    struct str all = STR_NULL;

    sample_top_make(&model, json);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (unsigned pane = 0; pane < TOP_PANE_N; pane++) {
            struct top_view view = {
                .n_columns = sizes[i][0], .n_lines = sizes[i][1], .pane = (enum top_pane)pane};

            check_frame(&model, &view);
            view.places[pane].sort = 1 + i;
            view.is_detail = true;
            check_frame(&model, &view);
        }
    check_keys(&model, data, len);
    top_frame_format_all(&all, &model, "");
    str_deinit(&all);
    top_model_deinit(&model);
    json_decref(json);
    return 0;
}
