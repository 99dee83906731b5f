/*
 * test-rendezvous.c - what becomes of a job's meeting, as the hub's answers tell; waiting until one
 * of several hubs serves it; and whether a node of the job was lost.
 *
 * The agent is a thread of this test, which answers each request with the next of a list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "train/job/again.h"
#include "train/job/lost.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

#define ANSWERS_MAX 4

struct said {
    unsigned status;
    const char *body;
};

struct agent {
    struct said answers[ANSWERS_MAX]; /* status 0: no more */
    char requests[ANSWERS_MAX][512];
    unsigned n;
    char path[108];
    int fd;
    pthread_t thread;
};

static const char *const meeting =
    "{\"run\":\"job.2\",\"epoch\":\"b\",\"c10d\":{\"endpoint\":\"10.0.0.1:1\"},"
    "\"etcdV2\":{\"endpoint\":\"10.0.0.1:2\"}}";

static const char *const not_served = "{\"error\":\"no hub serves it\"}";

/* A POST, or a PUT, has a JSON object behind its head. */
static bool is_whole(const char *request)
{
    size_t len = strlen(request);

    return strstr(request, "\r\n\r\n") &&
           (strncmp(request, "P", 1) != 0 || request[len - 1] == '}');
}

static void read_request(int fd, char *request, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    request[0] = '\0';
    while (!is_whole(request)) {
        n = recv(fd, request + len, cap - 1 - len, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        request[len] = '\0';
    }
}

static void *serve(void *arg)
{
    struct agent *a = arg;

    while (a->n < ANSWERS_MAX && a->answers[a->n].status != 0) {
        const struct said *said = &a->answers[a->n];
        char answer[512];
        int len = snprintf(answer, sizeof(answer),
            "HTTP/1.1 %u Said\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
            "Connection: close\r\n\r\n%s",
            said->status, strlen(said->body), said->body);
        int fd = accept(a->fd, NULL, NULL);

        read_request(fd, a->requests[a->n], sizeof(a->requests[0]));
        if (send(fd, answer, (size_t)len, MSG_NOSIGNAL) != len)
            abort();
        (void)close(fd);
        a->n++;
    }
    return NULL;
}

static void start(struct agent *a)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(a->path, sizeof(a->path), "/tmp/weft-test-rendezvous.%d", (int)getpid());
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", a->path);
    (void)unlink(a->path);
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(a->fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(a->fd, 4), 0);
    assert_int_equal(pthread_create(&a->thread, NULL, serve, a), 0);
}

static void end(struct agent *a)
{
    assert_int_equal(pthread_join(a->thread, NULL), 0);
    (void)close(a->fd);
    (void)unlink(a->path);
}

/* Neither a hub that does not answer the agent nor one that does not serve the job is the end. */
static void test_wait(void **state)
{
    struct agent a = {
        .answers = {{502, "{\"error\":\"away\"}"}, {421, not_served}, {200, meeting}}};

    struct interrupt i;

    interrupt_begin(&i);
    start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000, &i));
    assert_int_equal(a.n, 3);
    end(&a);
    assert_false(rendezvous_wait(a.path, "job", 1, &i));
    i.signal = SIGINT;
    assert_false(rendezvous_wait(a.path, "job", 60000, &i));
    i.signal = 0;

    /* A hub that has forgotten the job can make it again. */
    a = (struct agent){.answers = {{404, "{\"error\":\"no job\"}"}}};
    start(&a);
    assert_true(rendezvous_wait(a.path, "job", 60000, &i));
    end(&a);
    interrupt_end(&i);
}

static void test_ask(void **state)
{
    struct agent a = {.answers = {{421, not_served}, {200, meeting}}};
    struct env_meeting m;
    struct err e = ERR_NULL;

    start(&a);
    assert_int_equal(rendezvous_ask(a.path, "job", "job.1", "4", &m, &e), 0);
    end(&a);
    assert_string_equal(m.id, "job.2");
    assert_string_equal(m.epoch, "b");
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(strstr(a.requests[i], "POST /v1/jobs/job/rendezvous "));
        assert_non_null(strstr(a.requests[i], "{\"brokenRun\":\"job.1\",\"nnodes\":\"4\"}"));
    }
}

static void test_look(void **state)
{
    static const struct {
        struct env_meeting was;
        struct said now;
        enum rendezvous_state state;
    } cases[] = {
        {{.id = "job.2", .epoch = "b"}, {200, meeting}, RENDEZVOUS_STATE_SAME},
        {{.id = "job.2", .epoch = "a"}, {200, meeting}, RENDEZVOUS_STATE_MOVED},
        {{.id = "job.1", .epoch = "b"}, {200, meeting}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.1", .epoch = "a"}, {200, meeting}, RENDEZVOUS_STATE_BROKEN},
        {{.id = "job.2", .epoch = "b"}, {421, not_served}, RENDEZVOUS_STATE_UNKNOWN},
        {{.id = "job.2", .epoch = "b"}, {404, not_served}, RENDEZVOUS_STATE_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct agent a = {.answers = {cases[i].now}};

        start(&a);
        assert_int_equal(rendezvous_look(a.path, "job", &cases[i].was), cases[i].state);
        end(&a);
    }
}

#define MEETING "\"run\":\"job.2\",\"epoch\":\"b\""
#define PRESENCE(present, lost, silent)                                                            \
    "{" MEETING ",\"presence\":{\"present\":" present ",\"ended\":0,\"lost\":[" lost               \
    "],\"silentSeconds\":" silent "}}"

/* A command of a job of three nodes. */
static void make_run(struct run *run, const struct agent *a)
{
    *run = (struct run){.socket_path = a->path,
        .job = "job",
        .meeting = {.id = "job.2", .epoch = "b"},
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
        struct said now[ANSWERS_MAX];
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
        struct agent a = {.n = 0};
        struct run run;

        memcpy(a.answers, cases[i].now, sizeof(a.answers));
        start(&a);
        make_run(&run, &a);
        assert_int_equal(lost_judge(&run, &none), cases[i].r);
        end(&a);
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
    struct agent a = {.path = "/nonexistent"};
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    make_run(&run, &a);
    run.wait_lost = 0;
    assert_int_equal(lost_judge(&run, &i), 0);
    make_run(&run, &a);
    run.is_elastic = true;
    assert_int_equal(lost_judge(&run, &i), 0);
    assert_int_equal(lost_await(&run, 0, &i, NULL), 0);
    assert_false(lost_is_before(&run));
    interrupt_end(&i);
}

static void test_wait_for_all_nodes(void **state)
{
    static const struct {
        struct said now[ANSWERS_MAX];
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
        struct agent a = {.n = 0};
        struct err e = ERR_NULL;
        struct run run;

        memcpy(a.answers, cases[k].now, sizeof(a.answers));
        start(&a);
        make_run(&run, &a);
        assert_int_equal(lost_await(&run, clock_now() + cases[k].patience, &i, &e), cases[k].r);
        end(&a);
        assert_int_equal(a.n, cases[k].n_asked);
        if (cases[k].words)
            assert_string_equal(err_text(&e), cases[k].words);
    }
    interrupt_end(&i);
}

/* A signal of a person ends each wait after one look, and the others are told. */
static void test_a_person_does_not_wait(void **state)
{
    struct agent a = {.answers = {{502, "{\"error\":\"away\"}"}, {200, PRESENCE("2", "", "0")},
                          {200, PRESENCE("1", "", "0")}}};
    struct interrupt i;
    struct run run;

    interrupt_begin(&i);
    i.signal = SIGINT;
    start(&a);
    make_run(&run, &a);
    assert_int_equal(lost_judge(&run, &i), 0);
    assert_int_equal(lost_await(&run, NSEC_NEVER, &i, NULL), LOST_E_INTERRUPTED);
    lost_give_up(&run);
    end(&a);
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
    struct agent a = {.answers = {{500, "{\"error\":\"not yet\"}"}, {200, status}, {200, meeting},
                          {200, PRESENCE("3", "", "0")}}};
    char word[] = "torchrun";
    char *words[] = {word, NULL};
    struct run_wish wish = {.socket_path = a.path,
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
    (void)snprintf(run.meeting.id, sizeof(run.meeting.id), "job.1");
    start(&a);
    assert_int_equal(again_prepare(&run, &wish, &i, &e), 0);
    end(&a);
    assert_int_equal(a.n, 4);
    assert_non_null(strstr(a.requests[2], "{\"brokenRun\":\"job.1\""));
    assert_string_equal(run.meeting.id, "job.2");
    assert_null(wish.broken_run);

    /* A person does not wait for that; and the run that was stays. */
    a = (struct agent){.answers = {{500, "{\"error\":\"not yet\"}"}}};
    i.signal = SIGINT;
    start(&a);
    assert_int_equal(again_prepare(&run, &wish, &i, &e), AGAIN_E_INTERRUPTED);
    end(&a);
    assert_string_equal(run.meeting.id, "job.2");
    i.signal = 0;
    interrupt_end(&i);
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

    assert_int_equal(again_judge(&a, RUN_E_LOST, late), AGAIN_VERDICT_GO);
    assert_int_equal(again_judge(&a, RUN_E_MOVED, late), AGAIN_VERDICT_GO);
    assert_int_equal(again_judge(&a, RUN_E_CUT_OFF, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_judge(&a, RUN_E_LOST, late), AGAIN_VERDICT_USED_UP);
    a = (struct again){.max = 0};
    assert_int_equal(again_judge(&a, RUN_E_LOST, late), AGAIN_VERDICT_USED_UP);
    /* Killed soon after each start. */
    a = (struct again){.max = 100};
    assert_int_equal(again_judge(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_judge(&a, RUN_E_KILLED, late), AGAIN_VERDICT_GO);
    for (unsigned n = 0; n < 2; n++)
        assert_int_equal(again_judge(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_GO);
    assert_int_equal(again_judge(&a, RUN_E_KILLED, soon), AGAIN_VERDICT_KILLED);
}

/* The machine was started anew, and the command with it, while the others are still at work. */
static void test_an_earlier_command_of_this_node_is_lost(void **state)
{
    struct rendezvous_presence p = {.lost = {.n = 2, .names = {"gpu-3", "gpu-1"}}};
    struct agent a = {.path = ""};
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
    static const struct rendezvous_word word = {.command = "00ff", .every_s = 3};
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
        struct agent a = {.answers = {{200, cases[i].presence}}};
        struct env_meeting m = {.id = "job.2", .epoch = "b"};
        struct rendezvous_presence p;
        struct str lost = STR_NULL;
        struct str ended = STR_NULL;

        start(&a);
        assert_int_equal(rendezvous_say(a.path, "job", &m, &word, &p), RENDEZVOUS_STATE_SAME);
        end(&a);
        rendezvous_format_nodes(&lost, &p.lost);
        rendezvous_format_nodes(&ended, &p.ended);
        assert_string_equal(str_text(&lost), cases[i].lost);
        assert_string_equal(str_text(&ended), cases[i].ended);
        str_deinit(&lost);
        str_deinit(&ended);
    }
}

static void test_how_long_they_are_silent(void **state)
{
    static const struct rendezvous_word word = {.command = "00ff", .every_s = 3};
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
        struct agent a = {.answers = {{200, cases[i].answer}}};
        struct env_meeting m = {.id = "job.2", .epoch = "b"};
        struct rendezvous_presence p;

        start(&a);
        assert_int_equal(rendezvous_say(a.path, "job", &m, &word, &p), RENDEZVOUS_STATE_SAME);
        end(&a);
        assert_true(p.silent_for == cases[i].silent_for);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_look),
        cmocka_unit_test(test_who_is_named),
        cmocka_unit_test(test_how_long_they_are_silent),
        cmocka_unit_test(test_was_a_node_lost),
        cmocka_unit_test(test_nobody_waits_for_a_lost_node),
        cmocka_unit_test(test_wait_for_all_nodes),
        cmocka_unit_test(test_a_person_does_not_wait),
        cmocka_unit_test(test_the_next_run_is_asked_for_until_it_is_told),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_how_often_it_is_begun_again),
        cmocka_unit_test(test_an_earlier_command_of_this_node_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
