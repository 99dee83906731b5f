/* test-way-loss.c - loss of one direction as a finding: which, when it begins, when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>

#include "health/finding.h"
#include "health/way_loss.h"
#include "path/loss.h"

/* The code that is found at a look at a>b; "": none. */
static const char *look(struct findings *f, const struct loss_rate *r, int64_t at)
{
    const char *code = "";

    findings_look(f, "a>b");
    way_loss_find(f, "a", "b", r, false, at);
    findings_done(f, "a>b", NULL, NULL);
    for (size_t i = 0; i < f->n; i++) {
        assert_string_equal(code, "");
        assert_string_equal(f->items[i]->subject, "a>b");
        code = finding_kinds[f->items[i]->code].code;
    }
    return code;
}

static void test_which_is_found(void **state)
{
    static const struct {
        struct loss_rate rate;
        const char *code;
    } looks[] = {
        {{.packets = 0}, ""},
        /* Too few of them, in too few periods, or of too few datagrams. */
        {{.packets = 9000, .lost = 9, .seconds = 60, .periods = 6}, ""},
        {{.packets = 100000, .lost = 900, .seconds = 60, .periods = 2}, ""},
        {{.packets = 999, .lost = 500, .seconds = 60, .periods = 6}, ""},
        {{.packets = 100000, .lost = 99, .seconds = 60, .periods = 6}, ""},
        {{.packets = 100000, .lost = 100, .seconds = 60, .periods = 3}, "WEFT-LOSS-001"},
        /* It lasts until half of the limit. */
        {{.packets = 100000, .lost = 51, .seconds = 60, .periods = 2}, "WEFT-LOSS-001"},
        {{.packets = 100000, .lost = 50, .seconds = 60, .periods = 6}, ""},
        {{.packets = 100000, .lost = 51, .seconds = 60, .periods = 6}, ""},
        /* It gets worse, and better. */
        {{.packets = 100000, .lost = 999, .seconds = 60, .periods = 6}, "WEFT-LOSS-001"},
        {{.packets = 100000, .lost = 1000, .seconds = 60, .periods = 6}, "WEFT-LOSS-002"},
        {{.packets = 100000, .lost = 501, .seconds = 60, .periods = 6}, "WEFT-LOSS-002"},
        {{.packets = 100000, .lost = 500, .seconds = 60, .periods = 6}, "WEFT-LOSS-001"},
        {{.packets = 100000, .lost = 999, .seconds = 60, .periods = 6}, "WEFT-LOSS-001"},
        {{.packets = 100000, .lost = 0, .seconds = 60, .periods = 0}, ""},
        {{.packets = 100000, .lost = 100000, .seconds = 60, .periods = 6}, "WEFT-LOSS-002"},
        /* Nothing is known any more. */
        {{.packets = 100, .lost = 50, .seconds = 600, .periods = 6}, ""},
    };
    struct findings f = {.n = 0};

    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
        const char *code = look(&f, &looks[i].rate, 100);

        if (strcmp(code, looks[i].code) != 0)
            fail_msg("look %zu finds \"%s\"", i, code);
    }
    findings_deinit(&f);
}

static void test_what_it_says(void **state)
{
    static const struct loss_rate rate = {
        .packets = 73210, .lost = 96, .seconds = 58, .periods = 6};
    struct findings f = {.n = 0};
    const struct finding *found;

    assert_string_equal(look(&f, &rate, 100), "WEFT-LOSS-001");
    assert_string_equal(look(&f, &rate, 130), "WEFT-LOSS-001");
    found = findings_find(&f, FINDING_WAY_LOSS, "a>b");
    assert_int_equal(found->since, 100);
    assert_string_equal(found->text, "0.13 % of what a sends to b does not arrive: 96 of 73210 "
                                     "datagrams in 58 s, by WireGuard's "
                                     "counters at b");
    assert_string_equal(found->fix, finding_kinds[FINDING_WAY_LOSS].fix);
    findings_look(&f, "a>b");
    way_loss_find(&f, "a", "b", &rate, true, 140);
    findings_done(&f, "a>b", NULL, NULL);
    assert_non_null(strstr(found->fix, "from a to the relay"));
    /* What is old is no ground for anything. */
    assert_string_equal(look(&f, NULL, 150), "");
    findings_deinit(&f);
}

/* All that is found of a>b at a look, as "001 003 ". */
static const char *look_all(struct findings *f, const struct loss_rate *r)
{
    static char codes[80];

    findings_look(f, "a>b");
    way_loss_find(f, "a", "b", r, false, 100);
    findings_done(f, "a>b", NULL, NULL);
    codes[0] = '\0';
    for (size_t i = 0; i < f->n; i++) {
        size_t len = strlen(codes);

        /* What tells them apart. */
        (void)snprintf(codes + len, sizeof(codes) - len, "%s ",
            finding_kinds[f->items[i]->code].code + strlen("WEFT-LOSS-"));
    }
    return codes;
}

/* That it is worse is found beside the limits where these do not tell it. */
static void test_worse_than_usual(void **state)
{
    static const struct {
        struct loss_rate rate;
        const char *codes;
    } looks[] = {
        {{.packets = 60000,
             .lost = 360,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .is_worse = true},
            "001 "},
        {{.packets = 60000,
             .lost = 120,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .usual_ppm = 2000},
            "001 "},
        {{.packets = 60000,
             .lost = 360,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .usual_ppm = 2000,
             .is_worse = true},
            "001 003 "},
        {{.packets = 60000,
             .lost = 120,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .usual_ppm = 2000},
            "001 "},
        /* The second limit tells it. */
        {{.packets = 60000,
             .lost = 3600,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .usual_ppm = 2000,
             .is_worse = true},
            "002 "},
        {{.packets = 60000,
             .lost = 3600,
             .seconds = 58,
             .periods = 6,
             .has_usual = true,
             .usual_ppm = 15000,
             .is_worse = true},
            "002 003 "},
        {{.packets = 60000, .lost = 3600, .seconds = 58, .periods = 6}, "002 "},
        {{.packets = 60000, .lost = 0, .seconds = 58, .has_usual = true, .usual_ppm = 15000}, ""},
    };
    struct findings f = {.n = 0};
    const struct finding *found;

    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
        const char *codes = look_all(&f, &looks[i].rate);

        if (strcmp(codes, looks[i].codes) != 0)
            fail_msg("look %zu finds %s", i, codes);
    }
    (void)look_all(&f, &looks[2].rate);
    found = findings_find(&f, FINDING_WAY_LOSS_WORSE, "a>b");
    assert_string_equal(found->text, "0.60 % of what a sends to b does not arrive, and in the last "
                                     "hour it was 0.20 %: 360 of 60000 datagrams in 58 s, by "
                                     "WireGuard's counters at b");
    found = findings_find(&f, FINDING_WAY_LOSS, "a>b");
    assert_non_null(strstr(found->text, " at b; in the last hour it was 0.20 %"));
    findings_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_is_found),
        cmocka_unit_test(test_what_it_says),
        cmocka_unit_test(test_worse_than_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
