/* test-top-model.c - rows from answers of a hub and of an agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "test/support/sample_top.h"

static struct top_model model;

static int tear_down(void **state)
{
    top_model_deinit(&model);
    return 0;
}

/* The cells of a row, with | between them. */
static void expect_row(enum top_pane pane, size_t index, enum top_mark mark, const char *expected)
{
    struct str s = STR_NULL;

    assert_true(index < model.panes[pane].n);
    for (unsigned i = 0; i < top_panes[pane].n_columns; i++)
        str_addf(&s, "%s%s", i > 0 ? "|" : "", model.panes[pane].items[index].cells[i]);
    assert_string_equal(str_text(&s), expected);
    assert_int_equal(model.panes[pane].items[index].mark, mark);
    str_deinit(&s);
}

static const char *note_of(enum top_pane pane, size_t index)
{
    return model.panes[pane].items[index].note;
}

static void test_of_a_hub(void **state)
{
    sample_top_read(&model, "hub");
    assert_false(model.failed);
    assert_string_equal(model.title, "network default, hub hub-1");
    assert_int_equal(model.n_up, 3);
    assert_int_equal(model.n_down, 1);
    assert_int_equal(model.severities[FINDING_CRITICAL], 2);
    assert_int_equal(model.severities[FINDING_WARNING], 1);
    assert_true(model.rate > 2251333 && model.rate < 2251334);
    assert_int_equal(model.panes[TOP_NODES].n, 5);
    expect_row(TOP_NODES, 0, TOP_MARK_NONE, "gpu-1|up|333 B/s|2.3 MB/s|42.0 %|2|10.77.0.2");
    expect_row(TOP_NODES, 1, TOP_MARK_NONE, "gpu-2|up|2.1 MB/s|333 B/s|7.0 %|1|10.77.0.3");
    expect_row(TOP_NODES, 3, TOP_MARK_NONE, "hub-1|hub|-|-|-|0|10.77.0.1");
    expect_row(TOP_NODES, 4, TOP_MARK_NONE, "laptop|away|-|-|-|0|10.77.0.9");
    assert_int_equal(model.panes[TOP_PAIRS].n, 3);
    expect_row(TOP_PAIRS, 1, TOP_MARK_WARNING,
        "gpu-1--gpu-2|direct|12.3 ms|2.0 %|0 %|2.1 MB/s|333 B/s|2 h|");
    assert_string_equal(note_of(TOP_PAIRS, 1),
        "warning WEFT-LOSS-001 gpu-1>gpu-2: 2.0 % of 4800 datagrams from gpu-1 did not arrive.\n"
        "-> Look at the line in that direction.");
    expect_row(TOP_PAIRS, 2, TOP_MARK_NONE,
        "gpu-1--laptop|relay|-|-|-|-|-|-|gpu-1: laptop is a stock WireGuard");
    assert_int_equal(model.panes[TOP_JOBS].n, 2);
    expect_row(TOP_JOBS, 0, TOP_MARK_CRITICAL,
        "train|held up|2|1200|2000 ms|200 kB/s|11.0 MB/s|gpu-1 > gpu-2: 0.20 MB/s while it sends, "
        "was 11 MB/s.");
    assert_non_null(strstr(note_of(TOP_JOBS, 0), "\n-> Look at the line from gpu-1."));
    expect_row(TOP_JOBS, 1, TOP_MARK_NONE, "sweep|nobody|0|-|-|-|-|-");
    assert_int_equal(model.panes[TOP_FINDINGS].n, 3);
    expect_row(TOP_FINDINGS, 2, TOP_MARK_WARNING,
        "warning|WEFT-LOSS-001|gpu-1>gpu-2|60 min|2.0 % of 4800 datagrams from gpu-1 did not "
        "arrive.");
}

/* What was said before it went down is nobody's figure any more, though it is there. */
static void test_what_is_dead_has_no_figure(void **state)
{
    const struct top_row *row;

    sample_top_read(&model, "hub");
    expect_row(TOP_NODES, 2, TOP_MARK_CRITICAL, "gpu-3|down|-|-|-|1|10.77.0.4");
    row = &model.panes[TOP_PAIRS].items[0];
    for (unsigned i = 2; i < 7; i++)
        if (strcmp(row->cells[i], "-") != 0 || !isnan(row->numbers[i]))
            fail_msg("%s is %s", top_panes[TOP_PAIRS].columns[i].head, row->cells[i]);
    assert_string_equal(row->cells[7], "20 s");
    assert_int_equal(row->mark, TOP_MARK_WARNING);
}

static void test_of_an_agent(void **state)
{
    sample_top_read(&model, "agent");
    assert_string_equal(model.title, "network lab, node n2");
    assert_int_equal(model.n_up, 3);
    assert_int_equal(model.n_down, 2);
    expect_row(TOP_NODES, 0, TOP_MARK_NONE, "n2|this node|10.0 MB/s|16.7 kB/s|12.5 %|1|10.77.0.3");
    expect_row(TOP_NODES, 1, TOP_MARK_NONE, "hub-1|hub|-|-|-|0|10.77.0.1");
    expect_row(TOP_NODES, 2, TOP_MARK_NONE, "n1|up|16.7 kB/s|10.0 MB/s|-|0|10.77.0.2");
    expect_row(TOP_NODES, 3, TOP_MARK_NONE, "n3|silent 33 s|-|-|-|1|10.77.0.4");
    expect_row(TOP_NODES, 4, TOP_MARK_NONE, "n4|not reached|-|-|-|0|10.77.0.5");
    expect_row(TOP_PAIRS, 0, TOP_MARK_NONE, "n1--n2|lan|0.2 ms|0.040 %|-|10.0 MB/s|16.7 kB/s|2 h|");
    expect_row(TOP_PAIRS, 1, TOP_MARK_WARNING,
        "n2--n3|relay|-|-|-|-|-|45 s|the NAT of n3 maps by destination");
    assert_non_null(strstr(note_of(TOP_PAIRS, 1), "\n-> Let UDP in at one of both."));
    expect_row(TOP_PAIRS, 2, TOP_MARK_NONE, "n2--n4|none|-|-|-|-|-|5 s|the hub does not answer");
    expect_row(TOP_JOBS, 0, TOP_MARK_NONE, "train|runs|2|-|-|-|-|-");
}

/* Of a hub of an earlier version, which does not know all of it. */
static void test_what_nobody_says(void **state)
{
    static const char *const texts[] = {"{\"network\":\"x\",\"nodes\":{\"nodes\":[]}}",
        "{\"network\":\"x\",\"nodes\":{},\"edges\":{\"leftOut\":7},\"jobs\":{},\"findings\":"
        "{\"findings\":[]}}"};

    for (unsigned i = 0; i < 2; i++) {
        json_t *json = json_loads(texts[i], 0, NULL);

        assert_non_null(json);
        sample_top_make(&model, json);
        json_decref(json);
        assert_int_equal(model.is_unknown[TOP_PAIRS], i == 0);
        assert_int_equal(model.is_unknown[TOP_JOBS], i == 0);
        assert_int_equal(model.is_unknown[TOP_FINDINGS], i == 0);
        assert_int_equal(model.n_left_out, i == 0 ? 0 : 7);
        assert_string_equal(model.title, "network x, hub ?");
        assert_true(isnan(model.rate));
        top_model_deinit(&model);
    }
}

/* Each byte of a text is one that a terminal shows as it is. */
static void test_what_a_terminal_would_obey(void **state)
{
    static const struct {
        const char *text;
        const char *plain;
    } cases[] = {
        {"", ""},
        {"a b~", "a b~"},
        {"\033[2J", "\\x1b[2J"},
        {"\xc2\x9b\x33\x31m\x7f", "\\xc2\\x9b31m\\x7f"},
        {"a\r\n\tb", "a\\x0d\\x0a\\x09b"},
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xc3\xa9\xe2\x82\xac", "??"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *plain = top_plain(cases[i].text);

        assert_non_null(plain);
        assert_string_equal(plain, cases[i].plain);
        free(plain);
    }
    sample_top_read(&model, "evil");
    for (unsigned pane = 0; pane < TOP_PANE_N; pane++)
        for (size_t k = 0; k < model.panes[pane].n; k++)
            for (unsigned i = 0; i < top_panes[pane].n_columns; i++)
                for (const char *c = model.panes[pane].items[k].cells[i]; *c; c++)
                    assert_in_range(*c, ' ', '~');
    assert_string_equal(
        model.title, "network a\\x1b[2J, hub x\\x1b[2J\\xc2\\x9b31m\\x7f\\x0d\\x0a\\x08?");
}

static void test_figures(void **state)
{
    static const struct {
        double v;
        const char *rate;
        const char *span;
    } cases[] = {
        {NAN, "-", "-"},
        {-1, "-", "-"},
        {0, "0 B/s", "0 s"},
        {119.9, "120 B/s", "119 s"},
        {120, "120 B/s", "2 min"},
        {999.4, "999 B/s", "16 min"},
        {999.5, "1.0 kB/s", "16 min"},
        {7200, "7.2 kB/s", "2 h"},
        {99940, "99.9 kB/s", "27 h"},
        {99960, "100 kB/s", "27 h"},
        {172800, "173 kB/s", "2 d"},
        {1e9, "1.0 GB/s", "11574 d"},
        {1e30, "1000000000 GB/s", "11574074 d"},
    };
    char buf[TOP_CELL_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_string_equal(top_format_rate(cases[i].v, buf), cases[i].rate);
        assert_string_equal(top_format_span(cases[i].v, buf), cases[i].span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_of_a_hub, tear_down),
        cmocka_unit_test_teardown(test_what_is_dead_has_no_figure, tear_down),
        cmocka_unit_test_teardown(test_of_an_agent, tear_down),
        cmocka_unit_test_teardown(test_what_nobody_says, tear_down),
        cmocka_unit_test_teardown(test_what_a_terminal_would_obey, tear_down),
        cmocka_unit_test(test_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
