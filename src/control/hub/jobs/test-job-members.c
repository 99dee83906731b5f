/* test-job-members.c - whose commands of a run are there, and which of them are lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "hub/jobs/job_members.h"

static void hear(
    struct job_members *m, const char *member, const char *command, bool ended, int at_s)
{
    const struct job_word word = {.command = command, .every_seconds = 3, .ended = ended};

    job_members_hear(m, member, &word, at_s * NSEC_PER_SEC);
}

static void check_as(const char *asker, struct job_members *m, int at_s, const char *all)
{
    json_t *presence = job_members_presence(m, asker, at_s * NSEC_PER_SEC);
    char *text = json_dumps(presence, JSON_COMPACT);

    assert_string_equal(text, all);
    free(text);
    json_decref(presence);
}

static void check(struct job_members *m, int at_s, const char *all)
{
    check_as("stranger", m, at_s, all);
}

/* A command is lost when it is silent for 15 s without having said that it has ended. */
static void test_a_command_is_lost(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    check(&m, 0,
        "{\"present\":0,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":0."
        "0}");
    job_members_add(&m, "a");
    job_members_add(&m, "old");
    hear(&m, "a", "x", false, 100);
    hear(&m, "b", "y", false, 101);
    hear(&m, "c", "z", false, 102);
    check(&m, 103,
        "{\"present\":4,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":3."
        "0}");
    hear(&m, "a", "x", false, 115);
    hear(&m, "c", "z", true, 115);
    check(&m, 116,
        "{\"present\":3,\"ended\":1,\"endedOn\":[\"c\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":15.0}");
    check(&m, 117,
        "{\"present\":2,\"ended\":1,\"endedOn\":[\"c\"],\"lost\":[\"b\"],\"lostNodes\":1,"
        "\"silentSeconds\":2.0}");
    /* Its machine is there again, with another command. The first one is lost all the same, until
     * it is heard. */
    hear(&m, "b", "new", false, 117);
    check(&m, 117,
        "{\"present\":3,\"ended\":1,\"endedOn\":[\"c\"],\"lost\":[\"b\"],\"lostNodes\":1,"
        "\"silentSeconds\":2.0}");
    hear(&m, "b", "y", false, 117);
    check(&m, 117,
        "{\"present\":4,\"ended\":1,\"endedOn\":[\"c\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":2.0}");
    job_members_begin(&m);
    check(&m, 117,
        "{\"present\":0,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":0."
        "0}");
    job_members_deinit(&m);
    job_members_deinit(&m);
}

#define NOBODY                                                                                     \
    "{\"present\":0,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":0.0"
#define ALONE                                                                                      \
    "{\"present\":1,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":0.0"
#define IN_TWO "\"ended\":1,\"endedOn\":[\"a\"]}}"

/* The commands of a and b are there, and that of c is lost, at 100 s. */
static void lose_one(struct job_members *m)
{
    *m = (struct job_members){.names = NULL};
    job_members_begin(m);
    hear(m, "c", "z", false, 10);
    hear(m, "a", "x", false, 100);
    hear(m, "b", "y", false, 100);
}

/* a waits for it in the next run, and ends there. */
static void test_a_run_ends_without_who_was_lost(void **state)
{
    struct job_members m;

    lose_one(&m);
    job_members_begin_next(&m, "j.1", 100 * NSEC_PER_SEC);
    check_as("c", &m, 100, NOBODY "}");
    hear(&m, "a", "x", false, 100);
    check_as("c", &m, 100, ALONE "}");
    hear(&m, "a", "x", true, 101);
    /* It comes, and is told; nobody else is. */
    check_as("c", &m, 101,
        "{\"present\":0,\"ended\":1,\"endedOn\":[\"a\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":0.0,\"endedWithout\":{" IN_TWO);
    hear(&m, "c", "z2", false, 101);
    check_as("c", &m, 101,
        "{\"present\":1,\"ended\":1,\"endedOn\":[\"a\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":0.0,\"endedWithout\":{" IN_TWO);
    check_as("b", &m, 101,
        "{\"present\":1,\"ended\":1,\"endedOn\":[\"a\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":0.0}");
    /* Somebody else is there as well. */
    hear(&m, "b", "y2", false, 101);
    check_as("c", &m, 101,
        "{\"present\":2,\"ended\":1,\"endedOn\":[\"a\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":0.0}");
    job_members_deinit(&m);
}

/* The same, and that run was over when it comes. */
static void test_who_was_lost_comes_to_a_later_run(void **state)
{
    struct job_members m;

    lose_one(&m);
    job_members_begin_next(&m, "j.1", 100 * NSEC_PER_SEC);
    hear(&m, "a", "x", true, 101);
    job_members_begin_next(&m, "j.2", 200 * NSEC_PER_SEC);
    hear(&m, "c", "z2", false, 200);
    check_as("c", &m, 200, ALONE ",\"endedWithout\":{\"run\":\"j.2\"," IN_TWO);
    check_as("a", &m, 200, ALONE "}");
    /* It ends, and comes again. */
    hear(&m, "c", "z2", true, 201);
    job_members_begin_next(&m, "j.3", 300 * NSEC_PER_SEC);
    hear(&m, "c", "z3", false, 300);
    check_as("c", &m, 300, ALONE ",\"endedWithout\":{\"run\":\"j.2\"," IN_TWO);
    /* The others begin, too. */
    job_members_add(&m, "a");
    check_as("c", &m, 302,
        "{\"present\":2,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":2.0}");
    job_members_begin_next(&m, "j.4", 400 * NSEC_PER_SEC);
    hear(&m, "c", "z3", false, 400);
    check_as("c", &m, 400, ALONE "}");
    job_members_deinit(&m);
}

/* Nobody waited: they have ended in the run in which it was lost. */
static void test_nobody_waits_for_who_was_lost(void **state)
{
    struct job_members m;

    lose_one(&m);
    hear(&m, "a", "x", true, 101);
    hear(&m, "b", "y", true, 101);
    job_members_begin_next(&m, "j.1", 200 * NSEC_PER_SEC);
    hear(&m, "c", "z2", false, 200);
    check_as("c", &m, 200,
        ALONE ",\"endedWithout\":{\"run\":\"j.1\",\"ended\":2,\"endedOn\":[\"a\",\"b\"]}}");
    job_members_deinit(&m);
    /* All were lost. */
    lose_one(&m);
    job_members_begin_next(&m, "j.1", 300 * NSEC_PER_SEC);
    hear(&m, "c", "z2", false, 300);
    check_as("c", &m, 300, ALONE "}");
    job_members_deinit(&m);
}

static void test_commands_are_bounded(void **state)
{
    struct job_members m = {.names = NULL};

    for (char name[] = "a"; name[0] <= 'z'; name[0]++)
        hear(&m, "a", name, false, 1);
    check(&m, 1,
        "{\"present\":16,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":"
        "0.0}");
    job_members_deinit(&m);
}

/* However many are lost, and have ended, few are named; who asks and is lost itself is one of them.
 */
static void test_few_are_named(void **state)
{
    struct job_members m = {.names = NULL};
    char name[16];

    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        hear(&m, name, "x", false, 1);
        (void)snprintf(name, sizeof(name), "e%u", i);
        hear(&m, name, "x", true, 1);
    }
#define ENDED                                                                                      \
    "{\"present\":0,\"ended\":20,\"endedOn\":[\"e0\",\"e1\",\"e2\",\"e3\",\"e4\",\"e5\",\"e6\","   \
    "\"e7\"],"
    check(&m, 99,
        ENDED "\"lost\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\",\"n7\"],"
              "\"lostNodes\":20,\"silentSeconds\":0.0}");
    check_as("n19", &m, 99,
        ENDED "\"lost\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\",\"n19\"],"
              "\"lostNodes\":20,\"silentSeconds\":0.0}");
    check_as("e19", &m, 99,
        ENDED "\"lost\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\",\"n7\"],"
              "\"lostNodes\":20,\"silentSeconds\":0.0}");
    job_members_deinit(&m);
}

/* Of many members the commands are counted once a second, and their silence goes on meanwhile. */
static void test_many_are_counted_once_a_second(void **state)
{
    struct job_members m = {.names = NULL};
    char name[16];

    for (unsigned i = 0; i <= JOB_MEMBERS_FEW; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        hear(&m, name, "x", false, 1);
    }
    check(&m, 3,
        "{\"present\":65,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":"
        "2.0}");
    hear(&m, "n0", "x", true, 3);
    check(&m, 3,
        "{\"present\":65,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":"
        "2.0}");
    check(&m, 4,
        "{\"present\":64,\"ended\":1,\"endedOn\":[\"n0\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":3.0}");
    m.count.at -= NSEC_PER_SEC / 2;
    check(&m, 4,
        "{\"present\":64,\"ended\":1,\"endedOn\":[\"n0\"],\"lost\":[],\"lostNodes\":0,"
        "\"silentSeconds\":3.5}");
    job_members_begin(&m);
    check(&m, 4,
        "{\"present\":0,\"ended\":0,\"endedOn\":[],\"lost\":[],\"lostNodes\":0,\"silentSeconds\":0."
        "0}");
    job_members_deinit(&m);
}

/* ---- places --------------------------------------------------------------------------------- */

/* Who has the two places of the job, when @name asks; "": it may come. */
static void check_full(const struct job_members *m, const char *name, int at_s, const char *names)
{
    struct str out = STR_NULL;

    assert_int_equal(job_members_is_full(m, name, 2, at_s * NSEC_PER_SEC, &out), names[0] != '\0');
    assert_string_equal(str_text(&out), names);
    str_deinit(&out);
}

static void come(struct job_members *m, const char *name, int at_s)
{
    job_members_come(m, name, at_s * NSEC_PER_SEC);
}

/* A third one is refused while both are there, and may come for one that is lost. */
static void test_a_job_has_its_nodes(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    check_full(&m, "c", 100, "");
    come(&m, "b", 100);
    check_full(&m, "c", 100, "");
    come(&m, "a", 100);
    check_full(&m, "c", 100, "a, b");
    check_full(&m, "b", 100, "");
    hear(&m, "a", "x", false, 101);
    hear(&m, "b", "y", false, 101);
    check_full(&m, "c", 104, "a, b");
    hear(&m, "a", "x", false, 110);
    check_full(&m, "c", 110, "a, b (not heard for 9 s: if it is lost, its place is free in 7 s)");
    check_full(&m, "c", 117, "");
    /* c has the place of b now, which was lost, and comes too late. */
    come(&m, "c", 117);
    hear(&m, "a", "x", false, 117);
    check_full(&m, "b", 117, "a, c");
    check_full(&m, "c", 117, "");
    job_members_deinit(&m);
}

/* One that has ended is not replaced while the other one is there; when both have, all is free. */
static void test_a_place_of_one_that_has_ended(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    come(&m, "a", 100);
    hear(&m, "a", "x", true, 101);
    come(&m, "b", 100);
    hear(&m, "b", "y", false, 101);
    check_full(&m, "c", 101, "a, b");
    hear(&m, "b", "y", true, 102);
    check_full(&m, "c", 102, "");
    job_members_deinit(&m);
}

/* All have ended, and nobody has said so of the run; who comes then begins with free places. */
static void test_places_when_others_begin(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    come(&m, "a", 100);
    hear(&m, "a", "x", true, 101);
    come(&m, "b", 101);
    hear(&m, "b", "y", true, 102);
    assert_string_equal(job_members_ended_on(&m, 102 * NSEC_PER_SEC), "a");
    check_full(&m, "c", 103, "");
    come(&m, "c", 103);
    check_full(&m, "d", 103, "");
    assert_null(job_members_ended_on(&m, 103 * NSEC_PER_SEC));
    assert_true(job_members_is_back(&m, "a", 103 * NSEC_PER_SEC));
    come(&m, "d", 103);
    check_full(&m, "a", 104, "c, d");
    hear(&m, "c", "z", true, 105);
    assert_string_equal(job_members_ended_on(&m, 105 * NSEC_PER_SEC), "c");
    assert_false(job_members_is_back(&m, "c", 105 * NSEC_PER_SEC));
    check_full(&m, "a", 105, "c, d");
    /* One of them begins again, and has not said yet that its command is there. */
    come(&m, "c", 106);
    check_full(&m, "a", 106, "c, d");
    job_members_deinit(&m);
}

/* `weft env` says nothing more. */
static void test_a_place_of_one_that_is_silent(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    come(&m, "a", 100);
    come(&m, "b", 100);
    check_full(&m, "c", 120, "a, b");
    come(&m, "b", 690);
    check_full(&m, "c", 699, "a (not heard for 599 s: if it is lost, its place is free in 2 s), b");
    check_full(&m, "c", 700, "");
    job_members_deinit(&m);
}

/* A run is broken: who was there has its place in the next one, and who was lost has not. */
static void test_places_in_the_next_run(void **state)
{
    struct job_members m;

    lose_one(&m); /* of three: c */
    job_members_begin_next(&m, "j.1", 100 * NSEC_PER_SEC);
    check_full(&m, "d", 105,
        "a (not heard for 5 s: if it is lost, its place is free in 56 s), "
        "b (not heard for 5 s: if it is lost, its place is free in 56 s)");
    check_full(&m, "a", 105, "");
    come(&m, "a", 105);
    hear(&m, "a", "x", false, 159);
    check_full(&m, "d", 159, "a, b (not heard for 59 s: if it is lost, its place is free in 2 s)");
    /* It has not come. */
    check_full(&m, "d", 160, "");
    job_members_deinit(&m);
}

/* It alone has a place, of one. */
static void check_names_kept(const struct job_members *m, const char *name)
{
    struct str out = STR_NULL;

    assert_true(job_members_is_full(m, "other", 1, 100 * NSEC_PER_SEC, &out));
    assert_string_equal(str_text(&out), name);
    assert_false(job_members_is_full(m, name, 1, 100 * NSEC_PER_SEC, &out));
    str_deinit(&out);
}

static void check_names(struct job_members *m, int at_s, const char *names)
{
    char buf[8] = "";

    assert_int_equal(job_members_names(m, at_s * NSEC_PER_SEC, buf, sizeof(buf)), names != NULL);
    if (names)
        assert_string_equal(buf, names);
}

/* They are written down when all have come, and are there again after a start of the hub. */
static void test_names_are_written_down(void **state)
{
    struct job_members m = {.names = NULL};

    job_members_begin(&m);
    come(&m, "b", 100);
    check_names(&m, 100, NULL);
    job_members_set_nnodes(&m, "b", "2");
    check_names(&m, 100, NULL);
    come(&m, "a", 100);
    check_names(&m, 100, "a b");
    m.is_noted = true;
    check_names(&m, 100, NULL);
    come(&m, "long-name", 100);
    check_names(&m, 100, "");
    job_members_set_nnodes(&m, "b", "2:3");
    check_names(&m, 100, NULL);
    job_members_deinit(&m);
    job_members_keep(&m, "a b", 200 * NSEC_PER_SEC);
    check_full(&m, "b", 200, "");
    check_full(&m, "c", 200, "a, b");
    come(&m, "a", 201);
    check_full(&m, "c", 203, "a, b (not heard for 3 s: if it is lost, its place is free in 58 s)");
    check_full(&m, "c", 260, "");
    job_members_keep(&m, "a b", 300 * NSEC_PER_SEC);
    job_members_keep_none(&m);
    check_full(&m, "c", 300, "");
    job_members_deinit(&m);
}

/* The longest name that a node may have keeps its place like any other. */
static void test_a_long_name(void **state)
{
    struct job_members m = {.names = NULL};
    char name[NAME_MAX_LEN + 1] = "";

    memset(name, 'n', NAME_MAX_LEN);
    job_members_keep(&m, name, 100 * NSEC_PER_SEC);
    check_names_kept(&m, name);
    job_members_deinit(&m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command_is_lost),
        cmocka_unit_test(test_a_run_ends_without_who_was_lost),
        cmocka_unit_test(test_who_was_lost_comes_to_a_later_run),
        cmocka_unit_test(test_nobody_waits_for_who_was_lost),
        cmocka_unit_test(test_commands_are_bounded),
        cmocka_unit_test(test_few_are_named),
        cmocka_unit_test(test_many_are_counted_once_a_second),
        cmocka_unit_test(test_a_job_has_its_nodes),
        cmocka_unit_test(test_a_place_of_one_that_has_ended),
        cmocka_unit_test(test_places_when_others_begin),
        cmocka_unit_test(test_a_place_of_one_that_is_silent),
        cmocka_unit_test(test_places_in_the_next_run),
        cmocka_unit_test(test_names_are_written_down),
        cmocka_unit_test(test_a_long_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
