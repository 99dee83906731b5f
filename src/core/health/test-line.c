/* test-line.c - what is found of the line of a relay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "health/line.h"

static struct findings set;

static void look(const struct line_facts *f)
{
    const char *subject = f->node ? f->node : FINDING_HUB;

    findings_look(&set, subject);
    line_find(f, &set, 1000);
    findings_done(&set, subject, NULL, NULL);
}

static void expect(enum finding_code code, const char *subject, const char *text)
{
    assert_int_equal(set.n, 1);
    assert_string_equal(finding_kinds[set.items[0]->code].code, finding_kinds[code].code);
    assert_string_equal(set.items[0]->subject, subject);
    assert_string_equal(set.items[0]->text, text);
}

static int end(void **state)
{
    findings_deinit(&set);
    return 0;
}

static void test_the_line_of_a_hub(void **state)
{
    struct relay_line_report line = {
        .level = RELAY_LINE_FULL, .rate = 9640000, .capacity = 10000000};
    struct line_facts facts = {.line = &line,
        .pairs = {{.nodes = {"d", "c"}, .rate = 5100000, .is_away = true},
            {.nodes = {"a", "b"}, .rate = 4540000}, {.nodes = {"e", "f"}, .is_away = true}},
        .n_pairs = 3};

    look(&facts);
    expect(FINDING_HUB_LINE_FULL, "hub",
        "The hub relays 9.6 Mbit/s, and its line carries 10.0 Mbit/s, as it was told, most of it "
        "for c--d (5.1 Mbit/s, asked to go another way), a--b (4.5 Mbit/s).");
    line.level = RELAY_LINE_NEAR;
    facts.n_pairs = 0;
    look(&facts);
    expect(FINDING_HUB_LINE_NEAR, "hub",
        "The hub relays 9.6 Mbit/s, and its line carries 10.0 Mbit/s, as it was told.");
    line.is_measured = true;
    look(&facts);
    expect(FINDING_HUB_LINE_NEAR, "hub",
        "The hub relays 9.6 Mbit/s, and its line carries 10.0 Mbit/s, as was measured.");
    line.level = RELAY_LINE_OPEN;
    look(&facts);
    assert_int_equal(set.n, 0);
}

static void test_the_line_of_a_node(void **state)
{
    struct relay_line_report line = {
        .level = RELAY_LINE_NEAR, .rate = 80000000, .capacity = 100000000};
    struct line_facts facts = {.node = "r1", .line = &line};

    look(&facts);
    expect(FINDING_RELAY_LINE_NEAR, "r1",
        "r1 relays 80.0 Mbit/s, and its line carries 100.0 Mbit/s, as it was told.");
    line.level = RELAY_LINE_FULL;
    for (unsigned i = 0; i < 5; i++)
        facts.pairs[facts.n_pairs++] =
            (struct line_pair){.nodes = {"a", "b"}, .rate = 20000000 - i * 1000000};
    look(&facts);
    expect(FINDING_RELAY_LINE_FULL, "r1",
        "r1 relays 80.0 Mbit/s, and its line carries 100.0 Mbit/s, as it was told, most of it for "
        "a--b (20.0 Mbit/s), a--b (19.0 Mbit/s), a--b (18.0 Mbit/s).");
    /* What nobody knows is not judged. */
    line.capacity = 0;
    look(&facts);
    assert_int_equal(set.n, 0);
}

/* Long names are cut, and what is said stays a sentence. */
static void test_long_names(void **state)
{
    static const char name[] = "n23456789012345678901234567890123456789012345678901234567890123";
    struct relay_line_report line = {
        .level = RELAY_LINE_FULL, .rate = 9640000, .capacity = 10000000};
    struct line_facts facts = {.node = name, .line = &line};

    for (unsigned i = 0; i < 3; i++)
        facts.pairs[facts.n_pairs++] =
            (struct line_pair){.nodes = {name, name}, .rate = 5000000, .is_away = true};
    look(&facts);
    assert_int_equal(set.n, 1);
    assert_true(strlen(set.items[0]->text) < FINDING_TEXT_MAX);
    assert_non_null(strstr(set.items[0]->text, "asked to go another way"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_line_of_a_hub, end),
        cmocka_unit_test_teardown(test_the_line_of_a_node, end),
        cmocka_unit_test_teardown(test_long_names, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
