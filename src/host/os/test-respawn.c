/* test-respawn.c - what is started again, what is not, and how a signal ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "os/process.h"

static char dir[] = "/tmp/weft-test-respawn-XXXXXX";

struct said {
    unsigned n;        /* how often it was started again */
    unsigned most;     /* after so many it is not */
    nsec_t pauses[8];  /* before each */
    char how[64];      /* of the last */
    bool signals_self; /* a signal that asks for the end comes in the pause */
};

static bool may_start(void *ctx, const char *how, nsec_t pause)
{
    struct said *s = ctx;

    (void)snprintf(s->how, sizeof(s->how), "%s", how);
    if (s->n >= s->most)
        return false;
    s->pauses[s->n++] = pause;
    if (s->signals_self)
        (void)kill(getpid(), SIGTERM);
    return true;
}

/* Runs a script, of which "$0" is the folder. */
static struct respawn_end run(const char *script, struct said *said, nsec_t proves_itself)
{
    char *words[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, dir, NULL};
    struct respawn r = {.words = words,
        .proves_itself = proves_itself,
        .shortest_pause = NSEC_PER_MSEC,
        .longest_pause = 4 * NSEC_PER_MSEC,
        .settled = 3600 * NSEC_PER_SEC,
        .may_start = may_start,
        .ctx = said};
    struct respawn_end end = {.status = -1};
    struct err e = ERR_NULL;

    if (respawn_run(&r, &end, &e) != 0)
        fail_msg("%s", err_text(&e));
    return end;
}

static int enter(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int leave(void **state)
{
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/n", dir);
    (void)unlink(path);
    (void)rmdir(dir);
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
    return 0;
}

/* Killed, and killed again; the pauses grow up to the longest. The fifth run ends well. */
static void test_killed(void **state)
{
    struct said said = {.most = 8};
    struct respawn_end end =
        run("echo x >> $0/n; [ $(wc -l < $0/n) -lt 5 ] || exit 0; kill -9 $$", &said, 0);

    (void)state;
    assert_int_equal(said.n, 4);
    assert_string_equal(said.how, "was ended by signal 9");
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(said.pauses[i], (i < 2 ? 1 + i : 4) * NSEC_PER_MSEC);
    assert_int_equal(end.status, 0);
    assert_false(end.was_signalled);
}

static void test_a_first_run_without_prospects(void **state)
{
    struct said said = {.most = 8};

    (void)state;
    assert_int_equal(run("exit 7", &said, 3600 * NSEC_PER_SEC).status, 7);
    assert_int_equal(said.n, 0);
}

static void test_nothing_more_to_do(void **state)
{
    struct said said = {.most = 2};

    (void)state;
    assert_int_equal(run("exit 7", &said, 0).status, 7);
    assert_int_equal(said.n, 2);
    assert_string_equal(said.how, "ended with status 7");
}

static void test_told_in_the_pause(void **state)
{
    struct said said = {.most = 8, .signals_self = true};
    struct respawn_end end = run("exit 7", &said, 0);

    (void)state;
    assert_true(end.was_signalled);
    assert_int_equal(said.n, 1);
}

/* The program hears of it, and its status counts, but it is not started again. */
static void test_told_while_it_runs(void **state)
{
    struct said said = {.most = 8};
    struct respawn_end end =
        run("trap 'exit 3' TERM; kill -TERM $PPID; while :; do :; done", &said, 0);

    (void)state;
    assert_true(end.was_signalled);
    assert_int_equal(end.status, 3);
    assert_int_equal(said.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_first_run_without_prospects, enter, leave),
        cmocka_unit_test_setup_teardown(test_nothing_more_to_do, enter, leave),
        cmocka_unit_test_setup_teardown(test_told_in_the_pause, enter, leave),
        cmocka_unit_test_setup_teardown(test_told_while_it_runs, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
