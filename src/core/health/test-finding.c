/*
 * test-finding.c - the set of what is found; and docs/HEALTH.md, which this prints with --print.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "health/finding.h"
#include "health/fitness.h"

/* What findings_done() has told: "+CODE SUBJECT;" and "-CODE SUBJECT;". */
struct told {
    char text[512];
};

static void tell(void *arg, const struct finding *f, bool is_over)
{
    struct told *told = arg;
    size_t len = strlen(told->text);

    (void)snprintf(told->text + len, sizeof(told->text) - len, "%c%s %s;", is_over ? '-' : '+',
        finding_kinds[f->code].code, f->subject);
}

static void test_it_begins_once_and_ends_once(void **state)
{
    struct findings f = {.n = 0};
    struct told told = {""};

    findings_look(&f, "a");
    assert_non_null(findings_add(&f, FINDING_NODE_DOWN, "a", 100, "it is down for %d s", 30));
    findings_done(&f, "a", tell, &told);
    assert_string_equal(told.text, "+WEFT-NODE-001 a;");

    findings_look(&f, "a");
    (void)findings_add(&f, FINDING_NODE_DOWN, "a", 110, "it is down for %d s", 40);
    findings_done(&f, "a", tell, &told);
    assert_string_equal(told.text, "+WEFT-NODE-001 a;");
    assert_int_equal(findings_find(&f, FINDING_NODE_DOWN, "a")->since, 100);
    assert_string_equal(findings_find(&f, FINDING_NODE_DOWN, "a")->text, "it is down for 40 s");

    findings_look(&f, "a");
    findings_done(&f, "a", tell, &told);
    assert_string_equal(told.text, "+WEFT-NODE-001 a;-WEFT-NODE-001 a;");
    assert_null(findings_find(&f, FINDING_NODE_DOWN, "a"));
    assert_int_equal(f.n, 0);
    findings_deinit(&f);
}

static void test_a_look_is_at_one_subject(void **state)
{
    static const char *const subjects[] = {"b", "a", "a--b", "aa"};
    struct findings f = {.n = 0};
    struct told told = {""};

    for (unsigned i = 0; i < 4; i++) {
        findings_look(&f, subjects[i]);
        (void)findings_add(&f, FINDING_NODE_COPIED, subjects[i], 1, "x");
        (void)findings_add(&f, FINDING_NODE_DOWN, subjects[i], 1, "x");
        findings_done(&f, subjects[i], NULL, NULL);
    }
    assert_int_equal(f.n, 8);
    /* One of the two goes on. */
    findings_look(&f, "a");
    (void)findings_add(&f, FINDING_NODE_COPIED, "a", 2, "y");
    findings_done(&f, "a", tell, &told);
    assert_string_equal(told.text, "-WEFT-NODE-001 a;");
    assert_int_equal(f.n, 7);
    assert_null(findings_find(&f, FINDING_NODE_DOWN, "a"));
    for (unsigned i = 0; i < 4; i++)
        assert_non_null(findings_find(&f, FINDING_NODE_COPIED, subjects[i]));
    findings_deinit(&f);
}

static void test_what_somebody_else_has_found(void **state)
{
    const unsigned kinds = 1u << FINDING_OF_JOB | 1u << FINDING_OF_RANK;
    struct findings theirs = {.n = 0};
    struct findings f = {.n = 0};
    struct told told = {""};

    (void)findings_add(&f, FINDING_BUDGET_SPENT, "train", 1, "x");
    findings_done(&f, "train", NULL, NULL);
    finding_set_fix(
        findings_add(&theirs, FINDING_RANK_STOPPED, "train/a", 7, "process 12 is stopped"), "y");
    (void)findings_add(&theirs, FINDING_JOB_STUCK, "train", 8, "x");
    /* Not of a kind that is taken. */
    (void)findings_add(&theirs, FINDING_NODE_DOWN, "b", 9, "x");
    for (unsigned i = 0; i < 2; i++)
        findings_take(&f, &theirs, kinds, tell, &told);
    assert_string_equal(told.text, "+WEFT-JOB-001 train;+WEFT-RANK-004 train/a;");
    assert_int_equal(f.n, 3);
    assert_int_equal(findings_find(&f, FINDING_RANK_STOPPED, "train/a")->since, 7);
    assert_string_equal(
        findings_find(&f, FINDING_RANK_STOPPED, "train/a")->text, "process 12 is stopped");
    assert_string_equal(findings_find(&f, FINDING_RANK_STOPPED, "train/a")->fix, "y");

    findings_look(&theirs, "train/a");
    findings_done(&theirs, "train/a", NULL, NULL);
    told.text[0] = '\0';
    findings_take(&f, &theirs, kinds, tell, &told);
    assert_string_equal(told.text, "-WEFT-RANK-004 train/a;");
    findings_take(&f, NULL, kinds, tell, &told);
    assert_string_equal(told.text, "-WEFT-RANK-004 train/a;-WEFT-JOB-001 train;");
    assert_non_null(findings_find(&f, FINDING_BUDGET_SPENT, "train"));
    assert_int_equal(f.n, 1);
    findings_deinit(&theirs);
    findings_deinit(&f);
}

static void test_a_pair_has_one_name(void **state)
{
    char buf[FINDING_SUBJECT_MAX];

    assert_string_equal(finding_name_pair(buf, "a", "b"), "a--b");
    assert_string_equal(finding_name_pair(buf, "b", "a"), "a--b");
}

static void test_severities(void **state)
{
    struct findings f = {.n = 0};

    assert_int_equal(findings_worst(&f), 0);
    (void)findings_add(&f, FINDING_BUDGET_NEAR, "train", 1, "x");
    assert_int_equal(findings_worst(&f), 0);
    (void)findings_add(&f, FINDING_PAIR_FELL_BACK, "a--b", 1, "x");
    assert_int_equal(findings_worst(&f), 1);
    assert_true(findings_has(&f, "a--b", FINDING_WARNING));
    assert_false(findings_has(&f, "a--b", FINDING_CRITICAL));
    assert_false(findings_has(&f, "a", FINDING_NOTE));
    (void)findings_add(&f, FINDING_NODE_DOWN, "a", 1, "x");
    assert_int_equal(findings_worst(&f), 2);
    findings_deinit(&f);
}

static void test_a_full_set_counts_what_it_leaves_out(void **state)
{
    struct findings f = {.n = 0};
    char subject[FINDING_SUBJECT_MAX];

    for (unsigned i = 0; i < FINDINGS_MAX; i++) {
        (void)snprintf(subject, sizeof(subject), "node-%u", i);
        assert_non_null(findings_add(&f, FINDING_NODE_DOWN, subject, 1, "x"));
    }
    assert_null(findings_add(&f, FINDING_NODE_DOWN, "one-more", 1, "x"));
    assert_int_equal(f.n_left_out, 1);
    /* What is there already is found again. */
    assert_non_null(findings_add(&f, FINDING_NODE_DOWN, "node-7", 1, "y"));
    finding_set_fix(NULL, "fixes nothing");
    findings_deinit(&f);
}

static void test_the_gravest_and_oldest_are_shown_first(void **state)
{
    struct findings f = {.n = 0};
    json_t *json;
    json_t *list;

    (void)findings_add(&f, FINDING_PAIR_FELL_BACK, "a--b", 10, "x");
    (void)findings_add(&f, FINDING_NODE_DOWN, "c", 30, "x");
    finding_set_fix(findings_add(&f, FINDING_NODE_DOWN, "d", 20, "it is\ndown"), "start %s", "d");
    json = findings_encode(&f, 50);
    list = json_object_get(json, "findings");
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(json_integer_value(json_object_get(json, "leftOut")), 0);
#define FIELD(i, name) json_string_value(json_object_get(json_array_get(list, i), name))
    assert_string_equal(FIELD(0, "subject"), "d");
    assert_string_equal(FIELD(0, "code"), "WEFT-NODE-001");
    assert_string_equal(FIELD(0, "severity"), "critical");
    assert_string_equal(FIELD(0, "about"), "node");
    assert_string_equal(FIELD(0, "text"), "it is?down");
    assert_string_equal(FIELD(0, "fix"), "start d");
    assert_string_equal(FIELD(1, "subject"), "c");
    assert_string_equal(FIELD(1, "fix"), finding_kinds[FINDING_NODE_DOWN].fix);
    assert_string_equal(FIELD(2, "about"), "pair");
#undef FIELD
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(list, 0), "forSeconds")), 30);
    json_decref(json);
    findings_deinit(&f);
}

static void test_each_code_is_there_once(void **state)
{
    for (unsigned i = 0; i < FINDING_CODE_N; i++) {
        assert_true(strncmp(finding_kinds[i].code, "WEFT-", 5) == 0);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(finding_kinds[i].code, finding_kinds[k].code);
    }
}

/* ---- the document --------------------------------------------------------------------------- */

static const char *const about[FINDING_SUBJECT_N] = {
    [FINDING_OF_HUB] = "A hub: `hub`",
    [FINDING_OF_NODE] = "A node: `a`",
    [FINDING_OF_PAIR] = "A pair of nodes: `a--b`",
    [FINDING_OF_WAY] = "A pair, one way: `a>b`, from a to b",
    [FINDING_OF_JOB] = "A job: `train`",
    [FINDING_OF_RANK] = "A job's part on one node: `train/a`",
    [FINDING_OF_BUDGET] = "A budget: `train`, the job that has it, or the network's name",
};

#define DOCUMENT_COLUMNS 120

/* A paragraph that begins with a label, which may be empty. */
static void add_paragraph(struct str *out, const char *label, const char *text)
{
    size_t column = strlen(label);

    str_add(out, label);
    for (const char *word = text; *word != '\0';) {
        size_t len = strcspn(word, " ");

        if (word > text || *label) {
            bool is_full = column + 1 + len > DOCUMENT_COLUMNS;

            str_add(out, is_full ? "\n" : " ");
            column = is_full ? 0 : column + 1;
        }
        str_addf(out, "%.*s", (int)len, word);
        column += len;
        word += len + (word[len] == ' ');
    }
    str_add(out, "\n");
}

static void add_finding(struct str *out, const struct finding_kind *kind)
{
    str_addf(out, "\n### %s: %s\n\nSeverity: %s.\n\n", kind->code, kind->title,
        finding_severity_names[kind->severity]);
    add_paragraph(out, "", kind->means);
    if (fitness_counts(kind->code))
        str_add(out, "\nIt fails the health check.\n");
    str_add(out, "\n");
    add_paragraph(out, "**What to do:**", kind->fix);
    str_add(out, "\n");
    add_paragraph(out, "**To see it:**", kind->provoke);
}

static void make_document(struct str *out)
{
    str_add(out,
        "# Findings\n\n"
        "Made from the table in `src/core/health/finding_*.h` by `make docs`; a unit test "
        "compares.\n\n"
        "What Weft finds wrong has a code that stays from version to version, a subject, a "
        "severity,\n"
        "since when it holds, one sentence with the figures that it rests on, and what to do.\n"
        "`weft get findings` lists what holds now in a network, `weft doctor` what a node finds.\n"
        "`note`: worth knowing. `warning`: something is worse than it should be. `critical`:\n"
        "something does not work. What fails the health check drains the machine where that is\n"
        "wanted: `weft health`.\n");
    for (unsigned s = 0; s < FINDING_SUBJECT_N; s++) {
        bool has_head = false;

        for (unsigned i = 0; i < FINDING_CODE_N; i++) {
            const struct finding_kind *kind = &finding_kinds[i];

            if (kind->subject != s)
                continue;
            if (!has_head)
                str_addf(out, "\n## %s\n", about[s]);
            has_head = true;
            add_finding(out, kind);
        }
    }
}

static void test_document(void **state)
{
    static char kept[1 << 18];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    struct str made = STR_NULL;
    char path[4096];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/docs/HEALTH.md", root ? root : ".");
    f = fopen(path, "rb");
    assert_non_null(f);
    kept[fread(kept, 1, sizeof(kept) - 1, f)] = '\0';
    (void)fclose(f);
    make_document(&made);
    if (strcmp(kept, str_text(&made)) != 0)
        fail_msg("docs/HEALTH.md is not what the table says; run `make docs`");
    str_deinit(&made);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_begins_once_and_ends_once),
        cmocka_unit_test(test_a_look_is_at_one_subject),
        cmocka_unit_test(test_what_somebody_else_has_found),
        cmocka_unit_test(test_a_pair_has_one_name),
        cmocka_unit_test(test_severities),
        cmocka_unit_test(test_a_full_set_counts_what_it_leaves_out),
        cmocka_unit_test(test_the_gravest_and_oldest_are_shown_first),
        cmocka_unit_test(test_each_code_is_there_once),
        cmocka_unit_test(test_document),
    };

    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        struct str made = STR_NULL;

        make_document(&made);
        (void)fputs(str_text(&made), stdout);
        str_deinit(&made);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
