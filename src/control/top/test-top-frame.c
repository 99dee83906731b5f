/* test-top-frame.c - frames, line by line; `make golden` writes those of test/golden/top anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "test/support/sample_top.h"
#include "top/top_frame.h"

/* ---- frames as they are kept ----------------------------------------------------------------- */

static void expect_file(const char *name, const struct str *frame)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    bool is_rewritten = getenv("GOLDEN_REWRITE") != NULL;
    char path[512];
    char *kept;
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/test/golden/top/%s", root ? root : ".", name);
    f = fopen(path, is_rewritten ? "we" : "re");
    if (!f)
        fail_msg("%s is not there", path);
    if (is_rewritten) {
        assert_true(fputs(str_text(frame), f) >= 0 && fputc('\n', f) != EOF);
        assert_int_equal(fclose(f), 0);
        return;
    }
    kept = calloc(1, frame->len + 1000);
    assert_non_null(kept);
    n = fread(kept, 1, frame->len + 999, f);
    (void)fclose(f);
    assert_true(n > 0 && kept[n - 1] == '\n');
    kept[n - 1] = '\0';
    assert_string_equal(str_text(frame), kept);
    free(kept);
}

static void test_frames(void **state)
{
    static const struct {
        const char *name;
        const char *sample;
        unsigned n_columns;
        unsigned n_lines;
        const char *keys;
        const char *said;
    } cases[] = {
        {"hub-nodes.txt", "hub", 80, 24, "", ""},
        {"hub-nodes-selected.txt", "hub", 80, 24, "jj", ""},
        {"hub-pairs.txt", "hub", 80, 24, "pj", ""},
        {"hub-jobs.txt", "hub", 80, 24, "J", ""},
        {"hub-findings.txt", "hub", 80, 24, "f", ""},
        {"hub-detail.txt", "hub", 80, 24, "J\n", ""},
        {"hub-help.txt", "hub", 80, 24, "?", ""},
        {"hub-filter.txt", "hub", 80, 24, "/gpu", ""},
        {"hub-no-row.txt", "hub", 80, 24, "/none\n", ""},
        {"hub-sorted.txt", "hub", 80, 24, "pssss", ""},
        {"hub-small.txt", "hub", 40, 8, "p", ""},
        {"hub-large.txt", "hub", 100, 50, "pj", ""},
        {"hub-silent.txt", "hub", 80, 24, "",
            "no answer for 3 s: the hub at /run/weft/hub.sock ends"},
        {"agent-nodes.txt", "agent", 80, 24, "", ""},
        {"agent-pairs.txt", "agent", 100, 24, "pj", ""},
        {"evil.txt", "evil", 80, 24, "p", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct top_view view = {.n_columns = cases[i].n_columns, .n_lines = cases[i].n_lines};
        struct top_model model;
        struct str frame = STR_NULL;

        sample_top_read(&model, cases[i].sample);
        for (const char *key = cases[i].keys; *key; key++)
            assert_int_equal(top_view_key(&view, &model, *key), TOP_ACTION_NONE);
        top_frame_format(&frame, &model, &view, cases[i].said);
        expect_file(cases[i].name, &frame);
        str_deinit(&frame);
        top_model_deinit(&model);
    }
}

static void test_as_text(void **state)
{
    struct top_model model;
    struct str text = STR_NULL;

    sample_top_read(&model, "hub");
    top_frame_format_all(&text, &model, "");
    /* A file ends with one newline. */
    text.text[--text.len] = '\0';
    expect_file("hub-once.out", &text);
    str_deinit(&text);
    top_model_deinit(&model);
}

/* ---- what holds of all ----------------------------------------------------------------------- */

/* So many lines, none wider than that; escape sequences take no place. */
static void check_size(const char *frame, unsigned n_columns, unsigned n_lines)
{
    unsigned column = 0;
    unsigned lines = 1;

    for (const char *c = frame; *c; c++) {
        if (*c == '\033') {
            c += strcspn(c, "m");
            continue;
        }
        column = *c == '\n' ? 0 : column + 1;
        lines += *c == '\n';
        if (column > n_columns)
            fail_msg("line %u of %ux%u is too long: %s", lines, n_columns, n_lines, frame);
    }
    if (lines != n_lines)
        fail_msg("%u lines in %ux%u: %s", lines, n_columns, n_lines, frame);
}

static void test_each_size(void **state)
{
    static const unsigned columns[] = {1, 20, 39, 40, 41, 60, 79, 80, 132, 500, 3000};
    static const char *const keys[] = {"", "p", "Jj", "f\n", "?", "pG/x"};
    struct top_model model;

    sample_top_read(&model, "hub");
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        for (unsigned lines = 1; lines < 60; lines++)
            for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
                struct top_view view = {
                    .n_columns = columns[i], .n_lines = lines, .has_colours = k % 2 == 0};
                struct str frame = STR_NULL;

                for (const char *key = keys[k]; *key; key++)
                    (void)top_view_key(&view, &model, *key);
                top_frame_format(&frame, &model, &view, "it does not answer");
                check_size(str_text(&frame), columns[i], lines);
                str_deinit(&frame);
            }
    top_model_deinit(&model);
}

/* The selected row is shown wherever it is. */
static void test_many_rows(void **state)
{
    json_t *list = json_array();
    json_t *json;
    struct top_view view = {.n_columns = 80, .n_lines = 24};
    struct top_model model;

    for (unsigned i = 0; i < 300; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "node-%03u", i);
        (void)json_array_append_new(list, json_pack("{s:{s:s}}", "metadata", "name", name));
    }
    json = json_pack("{s:{s:o}}", "nodes", "nodes", list);
    assert_non_null(json);
    sample_top_make(&model, json);
    for (unsigned i = 0; i < 300; i++) {
        struct str frame = STR_NULL;
        char row[32];

        (void)snprintf(row, sizeof(row), "\n> node-%03u ", i);
        top_frame_format(&frame, &model, &view, "");
        if (!strstr(str_text(&frame), row))
            fail_msg("no \"%s\" in %s", row, str_text(&frame));
        str_deinit(&frame);
        (void)top_view_key(&view, &model, 'j');
    }
    json_decref(json);
    top_model_deinit(&model);
}

static void test_colours(void **state)
{
    struct top_view view = {.n_columns = 80, .n_lines = 24, .has_colours = true};
    struct top_model model;
    struct str frame = STR_NULL;

    sample_top_read(&model, "hub");
    top_frame_format(&frame, &model, &view, "");
    assert_non_null(strstr(str_text(&frame), "\033[7m> gpu-1"));
    assert_non_null(strstr(str_text(&frame), "\033[31m !gpu-3"));
    str_deinit(&frame);
    view.has_colours = false;
    top_frame_format(&frame, &model, &view, "");
    assert_null(strchr(str_text(&frame), '\033'));
    str_deinit(&frame);
    top_model_deinit(&model);
}

/* Who is asked does not answer any more: nothing that it said is shown. */
static void test_nothing_is_known(void **state)
{
    struct top_view view = {.n_columns = 80, .n_lines = 10};
    struct top_model model = {.is_silent = true};
    struct str frame = STR_NULL;

    top_frame_format(&frame, &model, &view, "no answer for 20 s");
    assert_non_null(strstr(str_text(&frame), "nothing is known now"));
    assert_non_null(strstr(str_text(&frame), "no answer for 20 s"));
    assert_null(strstr(str_text(&frame), "no finding"));
    check_size(str_text(&frame), 80, 10);
    str_deinit(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_as_text),
        cmocka_unit_test(test_each_size),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
