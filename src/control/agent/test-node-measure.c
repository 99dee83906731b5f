/*
 * test-node-measure.c - the process of the measuring service: what it is told, and that it comes
 * back.
 *
 * The agent starts its own program for it, which is this one here. As that process it writes down
 * what it is told, into the file that it is to have its socket at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "agent/node_measure.h"
#include "agent/paths/edge/reach.h"
#include "agent/state/state.h"
#include "measure/service_process.h"
#include "os/process.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"

/* ---- the process ----------------------------------------------------------------------------- */

/* The first message says where to write. */
static FILE *open_notes(const char *message)
{
    json_auto_t *json = json_loads(message, 0, NULL);
    const char *path = json_string_value(json_object_get(json, "socket"));
    FILE *notes = path ? fopen(path, "a") : NULL;
    struct rlimit memlock;

    if (!notes || getrlimit(RLIMIT_MEMLOCK, &memlock) < 0)
        return NULL;
    (void)fprintf(
        notes, "process %d\nmemlock %llu\n", (int)getpid(), (unsigned long long)memlock.rlim_cur);
    return notes;
}

static int write_notes(void)
{
    FILE *link = fdopen(PROCESS_LINK_FD, "r");
    FILE *notes = NULL;
    char *message = NULL;
    size_t cap = 0;

    while (link && getline(&message, &cap, link) > 0) {
        if (!notes)
            notes = open_notes(message);
        if (!notes)
            return 1;
        (void)fputs(message, notes);
        (void)fflush(notes);
    }
    return 0;
}

/* ---- the agent ------------------------------------------------------------------------------- */

static const struct x25519_secret secret2 = {{8, [31] = 0x40}};

/** The node n2 of four, and what its process has written down. */
static struct world {
    uv_loop_t loop;
    uv_timer_t turn; /* lets the loop turn while a file is looked at */
    char dir[64];
    char socket_path[96]; /* of the agent */
    char notes_path[112];
    char notes[2000000];
    struct snapshot snapshot;
    struct reach reach;
    struct node_measure nm;
    int next_fd; /* the number that the next file gets */
} w;

static void read_notes(void)
{
    FILE *f = fopen(w.notes_path, "r");
    size_t n = f ? fread(w.notes, 1, sizeof(w.notes) - 1, f) : 0;

    w.notes[n] = '\0';
    if (f)
        (void)fclose(f);
}

static unsigned count(const char *text)
{
    unsigned n = 0;

    for (const char *p = w.notes; (p = strstr(p, text)); p += strlen(text))
        n++;
    return n;
}

static void on_turn(uv_timer_t *timer)
{
}

/* Until the notes have @text @n times. */
static void wait_for(const char *text, unsigned n)
{
    for (unsigned i = 0; i < 2000; i++) {
        read_notes();
        if (count(text) >= n)
            return;
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    }
    fail_msg("it was not told %s %u times, but: %.2000s", text, n, w.notes);
}

static void tell(void)
{
    node_measure_tell(&w.nm, &w.snapshot, &w.reach);
}

static int next_fd(void)
{
    int fd = dup(STDIN_FILENO);

    (void)close(fd);
    return fd;
}

static int enter(void **state)
{
    const struct rlimit memlock = {.rlim_cur = 32768, .rlim_max = 32768};

    memset(&w, 0, sizeof(w));
    w.next_fd = next_fd();
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-measuring.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.socket_path, sizeof(w.socket_path), "%s/agent", w.dir);
    (void)snprintf(w.notes_path, sizeof(w.notes_path), "%s" AGENT_MEASURE_SUFFIX, w.socket_path);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    assert_int_equal(uv_timer_start(&w.turn, on_turn, 5, 5), 0);
    w.snapshot = sample_snapshot(4, 2);
    node_measure_start(&w.nm, &w.loop, &secret2, "weft9", w.socket_path, &memlock);
    wait_for("process ", 1);
    return 0;
}

static int leave(void **state)
{
    node_measure_stop(&w.nm);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(next_fd(), w.next_fd);
    snapshot_deinit(&w.snapshot);
    (void)unlink(w.notes_path);
    return rmdir(w.dir);
}

/* The number of the process that was started last. */
static pid_t last_process(void)
{
    const char *last = NULL;

    for (const char *p = w.notes; (p = strstr(p, "process ")); p++)
        last = p;
    assert_non_null(last);
    return (pid_t)strtol(last + strlen("process "), NULL, 10);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_it_is_told_where_it_listens(void **state)
{
    char socket[160];

    wait_for("\"config\"", 1);
    assert_int_equal(count("\"interface\":\"weft9\""), 1);
    (void)snprintf(socket, sizeof(socket), "\"socket\":\"%s\"", w.notes_path);
    assert_int_equal(count(socket), 1);
    /* What a program of this machine may lock, not what the agent has got for itself. */
    assert_int_equal(count("memlock 32768\n"), 1);
    /* There is no list before the agent has told one. */
    assert_int_equal(count("\"list\""), 0);
}

static void test_it_is_told_who_the_members_are(void **state)
{
    tell();
    wait_for("\"member\"", 4);
    assert_int_equal(count("\"list\""), 1);
    assert_int_equal(count("\"members\":4"), 1);
    assert_int_equal(count("\"own\":\"10.42.0.2\""), 1);
    assert_int_equal(count("\"name\":\"n3\""), 1);
    /* This node itself has no key. */
    assert_int_equal(count("\"key\":"), 3);
}

/* The interface may have been replaced all the same. */
static void test_the_same_list_has_it_look(void **state)
{
    tell();
    wait_for("\"member\"", 4);
    tell();
    wait_for("\"look\"", 1);
    assert_int_equal(count("\"list\""), 1);
}

static void test_another_list_replaces_it(void **state)
{
    tell();
    wait_for("\"member\"", 4);
    sample_put(&w.snapshot, sample_node(5));
    tell();
    wait_for("\"member\"", 9);
    assert_int_equal(count("\"members\":5"), 1);
    assert_int_equal(count("\"look\""), 0);
}

static void test_another_own_address(void **state)
{
    struct object self = sample_node(2);

    tell();
    wait_for("\"member\"", 4);
    self.node.address4.b[15] = 77;
    sample_put(&w.snapshot, self);
    tell();
    wait_for("\"own\":\"10.42.0.77\"", 1);
}

static void test_it_is_told_how_many_jobs_run(void **state)
{
    node_measure_tell_jobs(&w.nm, 0);
    node_measure_tell_jobs(&w.nm, 2);
    wait_for("\"jobs\":2", 1);
    node_measure_tell_jobs(&w.nm, 2);
    node_measure_tell_jobs(&w.nm, 3);
    wait_for("\"jobs\":3", 1);
    assert_int_equal(count("\"jobs\":"), 2);
}

/* More than it takes are told of as the most. */
static void test_more_jobs_than_it_takes(void **state)
{
    node_measure_tell_jobs(&w.nm, SERVICE_WIRE_JOBS_MAX + 1);
    wait_for("\"jobs\":65536", 1);
}

static void test_one_that_has_ended_is_started_again(void **state)
{
    pid_t first;

    tell();
    node_measure_tell_jobs(&w.nm, 2);
    wait_for("\"jobs\":2", 1);
    first = last_process();
    assert_int_equal(kill(first, SIGKILL), 0);
    /* It is told everything anew. */
    wait_for("\"jobs\":2", 2);
    assert_int_equal(count("\"config\""), 2);
    assert_int_equal(count("\"member\""), 8);
    assert_int_not_equal(last_process(), first);
    /* Nothing is left of the first one. */
    assert_int_equal(kill(first, 0), -1);
}

/* A list that is told while no process runs is told to the next one. */
static void test_a_list_while_none_runs(void **state)
{
    assert_int_equal(kill(last_process(), SIGKILL), 0);
    for (unsigned i = 0; i < 4; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    tell();
    node_measure_tell_jobs(&w.nm, 1);
    wait_for("\"jobs\":1", 1);
    assert_int_equal(count("\"member\""), 4);
    assert_int_equal(count("process "), 2);
}

static void put_many(unsigned n)
{
    for (unsigned i = 5; i < 5 + n; i++)
        sample_put(&w.snapshot, sample_node(i));
}

/* Of the lists that wait for a process that does not read only the newest is sent. */
static void test_a_process_that_does_not_read(void **state)
{
    struct snapshot all;
    pid_t pid = last_process();

    assert_int_equal(kill(pid, SIGSTOP), 0);
    put_many(3000);
    tell();
    all = w.snapshot;
    w.snapshot = sample_snapshot(3, 2);
    tell();
    node_measure_tell_jobs(&w.nm, 6);
    snapshot_deinit(&w.snapshot);
    w.snapshot = sample_snapshot(2, 2);
    tell();
    node_measure_tell_jobs(&w.nm, 7);
    assert_int_equal(kill(pid, SIGCONT), 0);
    wait_for("\"jobs\":7", 1);
    assert_int_equal(count("\"members\":3004"), 1);
    assert_int_equal(count("\"member\""), 3004 + 2);
    assert_int_equal(count("\"members\":2}"), 1);
    assert_int_equal(count("\"members\":3}"), 0);
    assert_int_equal(count("\"jobs\":6"), 0);
    snapshot_deinit(&all);
}

/* What waited for a process that has ended is not said to the next one, which is told all anew. */
static void test_a_process_that_ends_unread(void **state)
{
    pid_t pid = last_process();

    assert_int_equal(kill(pid, SIGSTOP), 0);
    put_many(3000);
    tell();
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_for("\"member\"", 3004);
    node_measure_tell_jobs(&w.nm, 1);
    wait_for("\"jobs\":1", 1);
    assert_int_equal(count("process "), 2);
    assert_int_equal(count("\"config\""), 2);
    assert_int_equal(count("\"list\""), 1);
    assert_int_equal(count("\"member\""), 3004);
}

static void take_other_timer(uv_handle_t *handle, void *ret)
{
    if (handle->type == UV_TIMER && handle != (uv_handle_t *)&w.turn)
        *(uv_timer_t **)ret = (uv_timer_t *)handle;
}

/* Until the next start. */
static uv_timer_t *start_timer(void)
{
    uv_timer_t *timer = NULL;

    uv_walk(&w.loop, take_other_timer, (void *)&timer);
    assert_non_null(timer);
    return timer;
}

/* Until the next start is planned: in so many ms. */
static uint64_t wait_for_plan(void)
{
    uv_timer_t *timer = start_timer();

    while (!uv_is_active((uv_handle_t *)timer))
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    return uv_timer_get_due_in(timer);
}

/* One that ends again is waited for longer; the wait is over, and then it is started. */
static void test_it_ends_again_and_again(void **state)
{
    uint64_t due_ms = 0;

    for (unsigned i = 2; i < 5; i++) {
        assert_int_equal(kill(last_process(), SIGKILL), 0);
        due_ms = wait_for_plan();
        assert_true(due_ms <= 25u << (i - 1));
        wait_for("process ", i);
        wait_for("\"config\"", i);
    }
    assert_true(due_ms > 50);
    node_measure_tell_jobs(&w.nm, 1);
    wait_for("\"jobs\":1", 1);
}

/* One that cannot be started is waited for longer, too, and it is said why. */
static void test_it_cannot_be_started(void **state)
{
    static const char words[] =
        "warning: weft: weft preflight and weft bench do not find this node: no process for them: "
        "no socket: Too many open files\n";
    struct rlimit before;
    struct rlimit full;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(kill(last_process(), SIGKILL), 0);
    assert_true(wait_for_plan() <= 50);
    heard_log_begin();
    full = (struct rlimit){.rlim_cur = (rlim_t)next_fd(), .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
    for (unsigned i = 0; i < 4000 && uv_timer_get_due_in(start_timer()) <= 100; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_non_null(strstr(heard_log_end(), words));
    assert_true(uv_timer_get_due_in(start_timer()) > 100);
    wait_for("process ", 2);
}

static void test_it_ends_with_the_agent(void **state)
{
    pid_t pid = last_process();

    node_measure_stop(&w.nm);
    assert_int_equal(kill(pid, 0), -1);
    assert_null(w.nm.host);
    assert_null(w.nm.keys);
    /* An agent that offers no service has nobody to tell. */
    tell();
    node_measure_tell_jobs(&w.nm, 1);
    node_measure_stop(&w.nm);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        TEST(test_it_is_told_where_it_listens),
        TEST(test_it_is_told_who_the_members_are),
        TEST(test_the_same_list_has_it_look),
        TEST(test_another_list_replaces_it),
        TEST(test_another_own_address),
        TEST(test_it_is_told_how_many_jobs_run),
        TEST(test_more_jobs_than_it_takes),
        TEST(test_one_that_has_ended_is_started_again),
        TEST(test_a_list_while_none_runs),
        TEST(test_a_process_that_does_not_read),
        TEST(test_a_process_that_ends_unread),
        TEST(test_it_ends_again_and_again),
        TEST(test_it_cannot_be_started),
        TEST(test_it_ends_with_the_agent),
    };

    if (argc == 2 && strcmp(argv[1], "measuring") == 0)
        return write_notes();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
