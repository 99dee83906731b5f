/*
 * test-rendezvous.c - what becomes of a job's meeting, as the hub's answers tell; waiting until one
 * of several hubs serves it; and whether a node of the job was lost.
 *
 * The agent is that of test/support/said_agent.h, which answers each request with the next of a
 * list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "train/job/lost.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"
#include "test/support/said_agent.h"

static const char *const rendezvous =
    "{\"run\":\"job.2\",\"epoch\":\"b\",\"c10d\":{\"endpoint\":\"10.0.0.1:1\"},"
    "\"etcdV2\":{\"endpoint\":\"10.0.0.1:2\"}}";

static const char *const not_served = "{\"error\":\"no hub serves it\"}";

/* Neither a hub that does not answer the agent nor one that does not serve the job is the end. */
static void test_wait(void **state)
{
    struct said_agent a = {
        .answers = {{502, "{\"error\":\"away\"}"}, {421, not_served}, {200, rendezvous}}};

    struct interrupt i;

    interrupt_begin(&i);
    said_agent_start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000, &i));
    said_agent_end(&a);
    assert_int_equal(a.n, 3);
    assert_false(rendezvous_wait(a.path, "job", 1, &i));
    i.signal = SIGINT;
    assert_false(rendezvous_wait(a.path, "job", 60000, &i));
    i.signal = 0;

    /* A hub that has forgotten the job can make it again. */
    a = (struct said_agent){.answers = {{404, "{\"error\":\"no job\"}"}}};
    said_agent_start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000, &i));
    said_agent_end(&a);
    interrupt_end(&i);
}

static void test_ask(void **state)
{
    struct said_agent a = {.answers = {{421, not_served}, {200, rendezvous}}};
    struct env_rendezvous m;
    struct err e = ERR_NULL;

    said_agent_start(&a);
    assert_int_equal(rendezvous_ask(a.path, "job",
                         &(struct rendezvous_arrival){.broken = "job.1", .nnodes = "4"}, &m, &e),
        0);
    said_agent_end(&a);
    assert_string_equal(m.id, "job.2");
    assert_string_equal(m.epoch, "b");
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(strstr(a.requests[i], "POST /v1/jobs/job/rendezvous "));
        assert_non_null(strstr(a.requests[i], "{\"brokenRun\":\"job.1\",\"nnodes\":\"4\"}"));
    }
}

/* Who only looks is no member of the job, whatever the version of the hub. */
static void test_dry_run(void **state)
{
    const struct rendezvous_arrival dry = {.nnodes = "4", .is_dry_run = true};
    struct said_agent a = {.answers = {{200, "{\"run\":\"job.3\",\"epoch\":\"b\",\"begins\":true,"
                                             "\"c10d\":{\"endpoint\":\"10.0.0.1:1\"}}"}}};
    struct env_rendezvous m;
    struct err e = ERR_NULL;

    said_agent_start(&a);
    assert_int_equal(rendezvous_ask(a.path, "job", &dry, &m, &e), 0);
    said_agent_end(&a);
    assert_string_equal(m.id, "job.3");
    assert_true(m.begins);
    assert_non_null(strstr(a.requests[0], "{\"nnodes\":\"4\",\"dryRun\":true}"));

    a = (struct said_agent){.answers = {{400, "{\"error\":\"unknown field\"}"}, {200, rendezvous}}};
    said_agent_start(&a);
    assert_int_equal(rendezvous_ask(a.path, "job", &dry, &m, &e), 0);
    said_agent_end(&a);
    assert_string_equal(m.id, "job.2");
    assert_false(m.begins);
    assert_non_null(strstr(a.requests[1], "GET /v1/jobs/job/rendezvous "));

    a = (struct said_agent){
        .answers = {{400, "{\"error\":\"unknown field\"}"}, {404, "{\"error\":\"no job\"}"}}};
    said_agent_start(&a);
    assert_int_not_equal(rendezvous_ask(a.path, "job", &dry, &m, &e), 0);
    said_agent_end(&a);
    assert_non_null(strstr(e.text, "only of a job that is there"));
}

static void test_look(void **state)
{
    static const struct {
        struct env_rendezvous was;
        struct said now;
        enum rendezvous_state state;
    } cases[] = {
        {{.id = "job.2", .epoch = "b"}, {200, rendezvous}, RENDEZVOUS_STATE_SAME},
        {{.id = "job.2", .epoch = "a"}, {200, rendezvous}, RENDEZVOUS_STATE_MOVED},
        {{.id = "job.1", .epoch = "b"}, {200, rendezvous}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.1", .epoch = "a"}, {200, rendezvous}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.2", .epoch = "b"}, {421, not_served}, RENDEZVOUS_STATE_UNKNOWN},
        {{.id = "job.2", .epoch = "b"}, {404, not_served}, RENDEZVOUS_STATE_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct said_agent a = {.answers = {cases[i].now}};

        said_agent_start(&a);
        assert_int_equal(rendezvous_look(a.path, "job", &cases[i].was), cases[i].state);
        said_agent_end(&a);
    }
}

#define MEETING "\"run\":\"job.2\",\"epoch\":\"b\""
#define PRESENCE(present, lost, silent)                                                            \
    "{" MEETING ",\"presence\":{\"present\":" present ",\"ended\":0,\"lost\":[" lost               \
    "],\"silentSeconds\":" silent "}}"

/* A command of a job of three nodes. */
static void make_run(struct run *run, const struct said_agent *a)
{
    *run = (struct run){.socket_path = a->path,
        .job = "job",
        .rendezvous = {.id = "job.2", .epoch = "b"},
        .min_nodes = 3,
        .can_begin_again = true,
        .wait_lost = NSEC_PER_SEC,
        .command_id = "00ff",
        .node.name = "gpu-1"};
}

/* The command has failed. */
static void test_was_a_node_lost(void **state)
{
    static const struct {
        struct said now[SAID_ANSWERS_MAX];
        unsigned n_asked;
        int r;
    } cases[] = {
        {{{200, PRESENCE("2", "\"gpu-3\"", "1.0")}}, 1, RUN_E_LOST},
        /* All are there: it was the script. */
        {{{200, PRESENCE("3", "", "2.5")}, {200, PRESENCE("3", "", "0.0")}}, 2, 0},
        {{{200, PRESENCE("3", "", "9")}, {200, PRESENCE("2", "\"gpu-3\"", "0")}}, 2, RUN_E_LOST},
        {{{200, "{\"run\":\"job.3\",\"epoch\":\"b\"}"}}, 1, RUN_E_CUT_OFF},
        {{{200, "{\"run\":\"job.2\",\"epoch\":\"c\"}"}}, 1, RUN_E_CUT_OFF},
        /* A hub of before, which knows no such call. */
        {{{405, "{\"error\":\"no PUT\"}"}, {200, "{" MEETING "}"}}, 2, 0},
        /* While none answers it is not known. */
        {{{502, "{\"error\":\"away\"}"}, {421, not_served},
             {200, PRESENCE("2", "\"gpu-3\"", "1.0")}},
            3, RUN_E_LOST},
        {{{502, "{\"error\":\"away\"}"}, {200, PRESENCE("3", "", "0.0")}}, 2, 0},
    };
    struct interrupt none;

    interrupt_begin(&none);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct said_agent a = {.n = 0};
        struct run run;

        memcpy(a.answers, cases[i].now, sizeof(a.answers));
        said_agent_start(&a);
        make_run(&run, &a);
        assert_int_equal(lost_assess(&run, &none), cases[i].r);
        said_agent_end(&a);
        assert_int_equal(a.n, cases[i].n_asked);
        assert_non_null(strstr(a.requests[0], "PUT /v1/jobs/job/rendezvous "));
        assert_non_null(strstr(a.requests[0],
            "{\"run\":\"job.2\",\"command\":\"00ff\",\"everySeconds\":3,\"ended\":false}"));
    }
    interrupt_end(&none);
}

/* Nobody is asked of a job that goes on without a node, or is not to wait. */
static void test_nobody_waits_for_a_lost_node(void **state)
{
    struct said_agent a = {.path = "/nonexistent"};
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    make_run(&run, &a);
    run.wait_lost = 0;
    assert_int_equal(lost_assess(&run, &i), 0);
    make_run(&run, &a);
    run.is_elastic = true;
    assert_int_equal(lost_assess(&run, &i), 0);
    assert_int_equal(lost_await(&run, 0, &i, NULL), 0);
    assert_false(lost_is_before(&run));
    interrupt_end(&i);
}

static void test_wait_for_all_nodes(void **state)
{
    static const struct {
        struct said now[SAID_ANSWERS_MAX];
        nsec_t patience;
        unsigned n_asked;
        int r;
        const char *words;
    } cases[] = {
        {{{200, PRESENCE("2", "", "0")}, {421, not_served}, {200, PRESENCE("3", "", "1")}},
            60 * NSEC_PER_SEC, 3, 0, NULL},
        {{{200, PRESENCE("2", "", "0")}}, 0, 1, LOST_E_ALONE,
            "2 of the 3 nodes of the job job.2 are there"},
        {{{200, "{\"run\":\"job.3\",\"epoch\":\"b\"}"}}, 0, 1, LOST_E_AGAIN, NULL},
        /* A person has ended it on two of the nodes, or nobody has come there in time. */
        {{{200, PRESENCE("3", "", "0")}}, 0, 1, 0, NULL},
        {{{200, PRESENCE("2", "", "0")},
             {200, "{" MEETING ",\"presence\":{\"present\":1,\"ended\":2,\"endedOn\":"
                   "[\"gpu-2\",\"gpu-3\"],\"lost\":[],\"silentSeconds\":0}}"}},
            60 * NSEC_PER_SEC, 2, LOST_E_ENDED,
            "the command of the job job.2 has ended on gpu-2, gpu-3"},
    };
    struct interrupt i;

    interrupt_begin(&i);
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct said_agent a = {.n = 0};
        struct err e = ERR_NULL;
        struct run run;

        memcpy(a.answers, cases[k].now, sizeof(a.answers));
        said_agent_start(&a);
        make_run(&run, &a);
        assert_int_equal(lost_await(&run, clock_now() + cases[k].patience, &i, &e), cases[k].r);
        said_agent_end(&a);
        assert_int_equal(a.n, cases[k].n_asked);
        if (cases[k].words)
            assert_string_equal(err_text(&e), cases[k].words);
    }
    interrupt_end(&i);
}

/* A signal of a person ends each wait after one look, and the others are told. */
static void test_a_person_does_not_wait(void **state)
{
    struct said_agent a = {.answers = {{502, "{\"error\":\"away\"}"}, {200, PRESENCE("2", "", "0")},
                               {200, PRESENCE("1", "", "0")}}};
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    i.signal = SIGINT;
    said_agent_start(&a);
    make_run(&run, &a);
    assert_int_equal(lost_assess(&run, &i), 0);
    assert_int_equal(lost_await(&run, NSEC_NEVER, &i, NULL), LOST_E_INTERRUPTED);
    lost_give_up(&run);
    said_agent_end(&a);
    assert_non_null(strstr(a.requests[2],
        "{\"run\":\"job.2\",\"command\":\"00ff\",\"everySeconds\":3,\"ended\":true}"));
    i.signal = 0;
    interrupt_end(&i);
}

static const char *const status =
    "{\"self\":{\"name\":\"gpu-1\",\"network\":\"default\",\"interface\":\"weft0\",\"address4\":"
    "\"10.0.0.2\"},\"hub\":{\"address4\":\"10.0.0.1\",\"apiPort\":8443,\"reachable\":true},"
    "\"peers\":[]}";

/* The agent and the hub were started anew with the machine, and do not answer at once. */
static void test_the_next_run_is_asked_for_until_it_is_told(void **state)
{
    struct said_agent a = {.answers = {{500, "{\"error\":\"not yet\"}"}, {200, status},
                               {200, rendezvous}, {200, PRESENCE("3", "", "0")}}};
    char word[] = "torchrun";
    char *words[] = {word, NULL};
    struct run_options opt = {.socket_path = a.path,
        .job = "job",
        .nnodes = "3",
        .wait_lost = 60 * NSEC_PER_SEC,
        .command_id = "00ff",
        .words = words};
    struct err e = ERR_NULL;
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    make_run(&run, &a);
    (void)snprintf(run.rendezvous.id, sizeof(run.rendezvous.id), "job.1");
    said_agent_start(&a);
    assert_int_equal(again_prepare(&run, &opt, &i, &e), 0);
    said_agent_end(&a);
    assert_int_equal(a.n, 4);
    assert_non_null(strstr(a.requests[2], "{\"brokenRun\":\"job.1\""));
    assert_string_equal(run.rendezvous.id, "job.2");
    assert_null(opt.broken_run);

    /* A person does not wait for that; and the run that was stays. */
    a = (struct said_agent){.answers = {{500, "{\"error\":\"not yet\"}"}}};
    i.signal = SIGINT;
    said_agent_start(&a);
    assert_int_equal(again_prepare(&run, &opt, &i, &e), LOST_E_INTERRUPTED);
    said_agent_end(&a);
    assert_string_equal(run.rendezvous.id, "job.2");
    i.signal = 0;
    interrupt_end(&i);
}

/* The command has ended on another node: the run is ended, so that who starts it again, on all
 * nodes, gets another one than that in which torchrun has been. */
static void test_no_next_run(void **state)
{
    static const char over[] = "{\"error\":\"has ended on gpu-2\",\"endedOn\":\"gpu-2\"}";
    struct said_agent a = {.answers = {{200, status}, {409, over}}};
    char word[] = "torchrun";
    char *words[] = {word, NULL};
    struct run_options opt = {.socket_path = a.path,
        .job = "job",
        .nnodes = "3",
        .wait_lost = 60 * NSEC_PER_SEC,
        .command_id = "00ff",
        .words = words};
    struct err e = ERR_NULL;
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    make_run(&run, &a);
    said_agent_start(&a);
    assert_int_equal(again_prepare(&run, &opt, &i, &e), RENDEZVOUS_E_OVER);
    said_agent_end(&a);
    assert_string_equal(err_text(&e), "has ended on gpu-2");
    interrupt_end(&i);

    a = (struct said_agent){
        .answers = {{200, status}, {409, over}, {200, PRESENCE("0", "", "0")}, {200, "{}"}}};
    said_agent_start(&a);
    again_give_up(&run, &opt);
    said_agent_end(&a);
    assert_non_null(strstr(a.requests[2], "\"run\":\"job.2\",\"command\":\"00ff\""));
    assert_non_null(strstr(a.requests[2], "\"ended\":true"));
    assert_non_null(strstr(a.requests[3], "DELETE /v1/jobs/job/rendezvous "));
}

static void test_pauses(void **state)
{
    static const unsigned ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

    for (unsigned n = 0; n < sizeof(ms) / sizeof(*ms); n++)
        assert_int_equal(again_pause_ms(n + 1), ms[n]);
    assert_int_equal(again_pause_ms(UINT32_MAX), 30000);
}

/* However the command ends, it is not begun again for ever. */
static void test_how_often_it_is_begun_again(void **state)
{
    const nsec_t soon = NSEC_PER_SEC;
    const nsec_t late = 3600 * NSEC_PER_SEC;
    struct again a = {.max = 3};

    assert_int_equal(again_decide(&a, RUN_E_LOST, late), AGAIN_VERDICT_GO);
    assert_int_equal(again_decide(&a, RUN_E_MOVED, late), AGAIN_VERDICT_GO);
    assert_int_equal(again_decide(&a, RUN_E_CUT_OFF, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_decide(&a, RUN_E_LOST, late), AGAIN_VERDICT_USED_UP);
    a = (struct again){.max = 0};
    assert_int_equal(again_decide(&a, RUN_E_LOST, late), AGAIN_VERDICT_USED_UP);
    /* Killed soon after each start. */
    a = (struct again){.max = 100};
    assert_int_equal(again_decide(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_decide(&a, RUN_E_KILLED, late), AGAIN_VERDICT_GO);
    for (unsigned n = 0; n < 2; n++)
        assert_int_equal(again_decide(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_decide(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_KILLED);
}

/* The machine was started anew, and the command with it, while the others are still at work. */
static void test_an_earlier_command_of_this_node_is_lost(void **state)
{
    struct rendezvous_presence p = {.lost = {.n = 2, .names = {"gpu-3", "gpu-1"}}};
    struct said_agent a = {.path = ""};
    struct lost_looks own = {0};
    struct run run;

    make_run(&run, &a);
    assert_false(lost_is_own(&run, &p, &own));
    p.lost.n = 1;
    assert_false(lost_is_own(&run, &p, &own));
    p.lost.n = 2;
    assert_false(lost_is_own(&run, &p, &own));
    assert_true(lost_is_own(&run, &p, &own));
    /* torchrun of this node waits in vain if it has no workers. */
    assert_false(lost_is_idle(&run, &p, true, &own));
    assert_false(lost_is_idle(&run, &p, false, &own));
    assert_false(lost_is_idle(&run, &p, true, &own));
    assert_true(lost_is_idle(&run, &p, true, &own));
}

/* What is printed is bounded, and has only names in it. */
static void test_who_is_named(void **state)
{
    static const struct {
        const char *presence;
        const char *lost;
        const char *ended;
    } cases[] = {
        {PRESENCE("1", "\"gpu-2\",\"\\u001b[2J\",7", "0"), "gpu-2", ""},
        {"{" MEETING
         ",\"presence\":{\"ended\":3,\"endedOn\":[\"a\",\"b\"],\"lostNodes\":12,\"lost\":"
         "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]}}",
            "a, b, c, d, e, f, g, h and 4 more", "a, b and 1 more"},
        {"{" MEETING ",\"presence\":{\"ended\":-3,\"lostNodes\":99999999999}}", "", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct said_agent a = {.answers = {{200, cases[i].presence}}};
        struct env_rendezvous m = {.id = "job.2", .epoch = "b"};
        struct rendezvous_presence p;
        struct str lost = STR_NULL;
        struct str ended = STR_NULL;

        said_agent_start(&a);
        assert_int_equal(
            rendezvous_say(a.path, "job", &m, "00ff", 3, false, &p), RENDEZVOUS_STATE_SAME);
        said_agent_end(&a);
        rendezvous_format_nodes(&lost, &p.lost);
        rendezvous_format_nodes(&ended, &p.ended);
        assert_string_equal(str_text(&lost), cases[i].lost);
        assert_string_equal(str_text(&ended), cases[i].ended);
        str_deinit(&lost);
        str_deinit(&ended);
    }
}

/* Of nodes that are drained it is said once, until they were well in between. */
static void test_who_is_drained(void **state)
{
    struct said_agent a = {
        .answers = {{200, "{" MEETING ",\"presence\":{\"drained\":[7,{},{\"node\":\"A\"},"
                          "{\"node\":\"gpu-2\",\"why\":\"disk\\u001b full\"},"
                          "{\"node\":\"gpu-3\"}]}}"}}};
    struct env_rendezvous m = {.id = "job.2", .epoch = "b"};
    struct run run = {.job = "job", .rendezvous = {.id = "job.2"}};
    struct rendezvous_presence nobody = {.is_known = true};
    struct rendezvous_presence unknown = {.is_known = false};
    struct lost_looks looks = {0};
    struct rendezvous_presence p;

    said_agent_start(&a);
    assert_int_equal(
        rendezvous_say(a.path, "job", &m, "00ff", 3, false, &p), RENDEZVOUS_STATE_SAME);
    said_agent_end(&a);
    assert_int_equal(p.n_drained, 2);
    assert_string_equal(p.drained[0].name, "gpu-2");
    assert_string_equal(p.drained[0].why, "disk? full");
    assert_string_equal(p.drained[1].why, "");
    lost_tell_drained(&run, &p, &looks);
    assert_int_equal(looks.n_drained, 2);
    assert_string_equal(looks.drained[1], "gpu-3");
    /* A hub that does not answer has not said that they are well. */
    lost_tell_drained(&run, &unknown, &looks);
    assert_int_equal(looks.n_drained, 2);
    lost_tell_drained(&run, &nobody, &looks);
    assert_int_equal(looks.n_drained, 0);
}

static void test_how_long_they_are_silent(void **state)
{
    static const struct {
        const char *answer;
        nsec_t silent_for;
    } cases[] = {
        {PRESENCE("1", "", "1.5"), NSEC_PER_SEC * 3 / 2},
        {PRESENCE("1", "", "-1"), 0},
        {PRESENCE("1", "", "\"long\""), 0},
        {PRESENCE("1", "", "1e300"), 365 * 86400 * NSEC_PER_SEC},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct said_agent a = {.answers = {{200, cases[i].answer}}};
        struct env_rendezvous m = {.id = "job.2", .epoch = "b"};
        struct rendezvous_presence p;

        said_agent_start(&a);
        assert_int_equal(
            rendezvous_say(a.path, "job", &m, "00ff", 3, false, &p), RENDEZVOUS_STATE_SAME);
        said_agent_end(&a);
        assert_true(p.silent_for == cases[i].silent_for);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_dry_run),
        cmocka_unit_test(test_look),
        cmocka_unit_test(test_who_is_named),
        cmocka_unit_test(test_who_is_drained),
        cmocka_unit_test(test_how_long_they_are_silent),
        cmocka_unit_test(test_was_a_node_lost),
        cmocka_unit_test(test_nobody_waits_for_a_lost_node),
        cmocka_unit_test(test_wait_for_all_nodes),
        cmocka_unit_test(test_a_person_does_not_wait),
        cmocka_unit_test(test_the_next_run_is_asked_for_until_it_is_told),
        cmocka_unit_test(test_no_next_run),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_how_often_it_is_begun_again),
        cmocka_unit_test(test_an_earlier_command_of_this_node_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
