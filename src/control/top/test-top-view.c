/* test-top-view.c - bytes to keys, and keys to what is looked at. */
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
#include "top/top_view.h"

static struct top_model model;
static struct top_view view;

static int set_up(void **state)
{
    sample_top_read(&model, "hub");
    view = (struct top_view){.n_columns = 80, .n_lines = 24};
    return 0;
}

static int tear_down(void **state)
{
    top_model_deinit(&model);
    return 0;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void test_bytes(void **state)
{
    static const struct {
        const char *bytes;
        int keys[4];
    } cases[] = {
        {"q", {'q'}},
        {"\r\n", {TOP_KEY_ENTER, TOP_KEY_ENTER}},
        {"\t\b\x7f", {TOP_KEY_TAB, TOP_KEY_ERASE, TOP_KEY_ERASE}},
        {"\033[A\033[B", {TOP_KEY_UP, TOP_KEY_DOWN}},
        {"\033OA\033OFx", {TOP_KEY_UP, TOP_KEY_END, 'x'}},
        {"\033[5~\033[6~", {TOP_KEY_PAGE_UP, TOP_KEY_PAGE_DOWN}},
        {"\033[Z", {TOP_KEY_BACK_TAB}},
        /* Others are passed over whole. */
        {"\033[1;5Ax", {'x'}},
        {"\033[15~x", {'x'}},
        {"\033xy", {'y'}},
        {"\033\033[A", {TOP_KEY_UP}},
        {"\033[1234567890123456789x", {'5', '6', '7', '8'}},
        {"\xff", {0xff}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct top_keys k = {.n = 0};
        int keys[32] = {0};
        unsigned n = 0;

        for (const char *c = cases[i].bytes; *c; c++) {
            int key = top_keys_take(&k, *c);

            if (key != TOP_KEY_NONE)
                keys[n++] = key;
        }
        if (memcmp(keys, cases[i].keys, sizeof(cases[i].keys)) != 0)
            fail_msg("case %zu: %d %d %d %d", i, keys[0], keys[1], keys[2], keys[3]);
    }
}

static void test_an_escape_alone(void **state)
{
    struct top_keys k = {.n = 0};

    assert_int_equal(top_keys_pause(&k), TOP_KEY_NONE);
    assert_int_equal(top_keys_take(&k, 27), TOP_KEY_NONE);
    assert_int_equal(top_keys_pause(&k), TOP_KEY_ESCAPE);
    /* A sequence that is cut off is none. */
    assert_int_equal(top_keys_take(&k, 27), TOP_KEY_NONE);
    assert_int_equal(top_keys_take(&k, '['), TOP_KEY_NONE);
    assert_int_equal(top_keys_pause(&k), TOP_KEY_NONE);
    assert_int_equal(top_keys_take(&k, 'A'), 'A');
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void hit(const char *keys)
{
    for (; *keys; keys++)
        assert_int_equal(top_view_key(&view, &model, *keys), TOP_ACTION_NONE);
}

/* The names of the rows that are shown, with > before the selected one. */
static void expect_shown(const char *expected)
{
    struct str s = STR_NULL;
    size_t n;
    size_t *shown = top_view_rows(&view, &model, view.pane, &n);
    size_t selected = top_view_selected(&view, &model, view.pane, shown, n);

    for (size_t i = 0; i < n; i++)
        str_addf(&s, "%s%s%s", i > 0 ? " " : "", i == selected ? ">" : "",
            model.panes[view.pane].items[shown[i]].cells[0]);
    assert_string_equal(str_text(&s), expected);
    str_deinit(&s);
    free(shown);
}

static void test_moving(void **state)
{
    expect_shown(">gpu-1 gpu-2 gpu-3 hub-1 laptop");
    hit("jj");
    expect_shown("gpu-1 gpu-2 >gpu-3 hub-1 laptop");
    hit("k");
    expect_shown("gpu-1 >gpu-2 gpu-3 hub-1 laptop");
    hit("G");
    expect_shown("gpu-1 gpu-2 gpu-3 hub-1 >laptop");
    hit("j");
    expect_shown("gpu-1 gpu-2 gpu-3 hub-1 >laptop");
    (void)top_view_key(&view, &model, TOP_KEY_PAGE_UP);
    expect_shown(">gpu-1 gpu-2 gpu-3 hub-1 laptop");
    (void)top_view_key(&view, &model, TOP_KEY_PAGE_DOWN);
    expect_shown("gpu-1 gpu-2 gpu-3 hub-1 >laptop");
    hit("g");
    expect_shown(">gpu-1 gpu-2 gpu-3 hub-1 laptop");
}

static void test_panes(void **state)
{
    static const struct {
        int key;
        enum top_pane pane;
    } cases[] = {{'p', TOP_PAIRS}, {'J', TOP_JOBS}, {'f', TOP_FINDINGS}, {'n', TOP_NODES},
        {TOP_KEY_BACK_TAB, TOP_FINDINGS}, {TOP_KEY_TAB, TOP_NODES}, {TOP_KEY_TAB, TOP_PAIRS},
        {'3', TOP_JOBS}, {'1', TOP_NODES}, {'5', TOP_NODES}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(top_view_key(&view, &model, cases[i].key), TOP_ACTION_NONE);
        assert_int_equal(view.pane, cases[i].pane);
    }
    /* Each keeps what is selected in it. */
    hit("jpjj");
    expect_shown("gpu-1--gpu-3 gpu-1--gpu-2 >gpu-1--laptop");
    hit("n");
    expect_shown("gpu-1 >gpu-2 gpu-3 hub-1 laptop");
}

static void test_sorting(void **state)
{
    hit("jks");
    expect_shown(">gpu-1 gpu-2 gpu-3 hub-1 laptop");
    hit("s");
    /* By STATE: away, down, hub, up. */
    expect_shown("laptop gpu-3 hub-1 >gpu-1 gpu-2");
    hit("s");
    /* By IN, the greatest first; what is not known comes last. */
    expect_shown("gpu-2 >gpu-1 gpu-3 hub-1 laptop");
    hit("sssss");
    expect_shown(">gpu-1 gpu-2 gpu-3 hub-1 laptop");
    assert_int_equal(view.places[TOP_NODES].sort, 0);
}

static void test_filtering(void **state)
{
    hit("j/PU-");
    expect_shown("gpu-1 >gpu-2 gpu-3");
    (void)top_view_key(&view, &model, TOP_KEY_ERASE);
    (void)top_view_key(&view, &model, TOP_KEY_ERASE);
    hit("q");
    assert_string_equal(view.filter, "Pq");
    expect_shown("");
    (void)top_view_key(&view, &model, TOP_KEY_ENTER);
    /* Moving in nothing. */
    hit("jkG");
    (void)top_view_key(&view, &model, TOP_KEY_ESCAPE);
    expect_shown("gpu-1 >gpu-2 gpu-3 hub-1 laptop");
    hit("/a");
    (void)top_view_key(&view, &model, TOP_KEY_ESCAPE);
    assert_string_equal(view.filter, "");
    hit("/");
    for (unsigned i = 0; i < 100; i++)
        hit("x");
    assert_int_equal(strlen(view.filter), TOP_FILTER_MAX - 1);
}

/* The selected row is followed by its name, and when it is gone, the one in its place is. */
static void test_another_model(void **state)
{
    json_t *json =
        json_loads("{\"nodes\":{\"nodes\":[{\"metadata\":{\"name\":\"a\"}},"
                   "{\"metadata\":{\"name\":\"gpu-2\"}},{\"metadata\":{\"name\":\"z\"}}]}}",
            0, NULL);

    hit("j");
    top_model_deinit(&model);
    sample_top_make(&model, json);
    top_view_follow(&view, &model);
    expect_shown("a >gpu-2 z");
    assert_int_equal(
        json_array_remove(json_object_get(json_object_get(json, "nodes"), "nodes"), 1), 0);
    top_model_deinit(&model);
    sample_top_make(&model, json);
    expect_shown("a >z");
    json_decref(json);
}

static void test_all_about_a_row(void **state)
{
    assert_int_equal(top_view_key(&view, &model, TOP_KEY_ENTER), TOP_ACTION_NONE);
    assert_true(view.is_detail);
    hit("jj");
    assert_int_equal(view.scrolled, 2);
    hit("kq");
    assert_false(view.is_detail);
    assert_int_equal(view.scrolled, 0);
    hit("?G");
    assert_true(view.is_help);
    (void)top_view_key(&view, &model, TOP_KEY_ESCAPE);
    assert_false(view.is_help);
    assert_int_equal(top_view_key(&view, &model, 'r'), TOP_ACTION_ASK);
    assert_int_equal(top_view_key(&view, &model, 'q'), TOP_ACTION_QUIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_an_escape_alone),
        cmocka_unit_test_setup_teardown(test_moving, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_panes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sorting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filtering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_about_a_row, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
