/* test-node-gpus.c - GPUs are asked for by a process: one that answers, says too much, crashes,
 * hangs, or is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/node_machine.h"
#include "health/gpu.h"
#include "os/clock.h"

#define LIMIT (20 * NSEC_PER_SEC)
#define AT    1790000000

/* By its time it tells whether it is asked again. */
#define ANSWER                                                                                     \
    "printf '\\n\\n{\"driver\":\"ok\",\"version\":\"%s\",\"why\":\"\",\"milliseconds\":1,"         \
    "\"gpus\":[],\"lines\":[]}\\n' \"$2\" >&3\n"

static char program[64];

static int set_up(void **state)
{
    (void)snprintf(program, sizeof(program), "/tmp/weft-test-gpus.%ld", (long)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(program);
    return 0;
}

static void write_program(const char *text)
{
    FILE *f;

    (void)unlink(program);
    f = fopen(program, "we");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\n%s", text) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(program, 0700), 0);
}

/* Looks as of @now until a sample was taken at @at. */
static const struct gpu_watch *look(struct node_gpus *ng, nsec_t now, int64_t at)
{
    const struct gpu_watch *seen = NULL;

    for (nsec_t until = clock_now() + LIMIT; !seen || seen->at != at;) {
        assert_true(clock_now() < until);
        (void)poll(NULL, 0, 1);
        seen = node_gpus_look(ng, now, at);
    }
    return seen;
}

static void test_it_answers_each_minute(void **state)
{
    struct node_gpus *ng;
    const struct gpu_watch *seen;
    char version[GPU_VERSION_MAX];

    write_program(ANSWER);
    ng = node_gpus_new(program);
    assert_null(node_gpus_seen(ng));
    assert_null(node_gpus_look(ng, NSEC_PER_SEC, AT));
    seen = look(ng, NSEC_PER_SEC, AT);
    assert_int_equal(seen->now.driver, GPU_DRIVER_OK);
    /* The first one is told nothing of before this agent. */
    assert_string_equal(seen->version, "1000000");
    assert_ptr_equal(node_gpus_seen(ng), seen);
    memcpy(version, seen->version, sizeof(version));
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(node_gpus_look(ng, NODE_GPUS_EACH, AT + 1)->at, AT);
    (void)node_gpus_look(ng, NSEC_PER_SEC + NODE_GPUS_EACH, AT + 60);
    seen = look(ng, NSEC_PER_SEC + NODE_GPUS_EACH, AT + 60);
    assert_string_equal(seen->version, "1000000"); /* when the last one began */
    assert_string_equal(version, seen->version);
    (void)node_gpus_free(ng);
}

/* No sample, or a bad one, of a process that has ended: it is asked again after ten minutes. */
static void test_it_cannot_be_asked(void **state)
{
    static const char *const programs[] = {"exit 3\n", "echo '{\"driver\": \"ok\"}' >&3\n",
        "head -c 100000 /dev/zero >&3\n", "kill -SYS $$\n"};

    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
        struct node_gpus *ng;
        const struct gpu_watch *seen;

        write_program(programs[i]);
        ng = node_gpus_new(program);
        seen = look(ng, NSEC_PER_SEC, AT);
        assert_int_equal(seen->now.driver, GPU_DRIVER_FAILED);
        assert_string_equal(seen->now.why, "it cannot be asked from here");
        assert_int_equal(node_gpus_look(ng, NODE_GPUS_EACH + 2 * NSEC_PER_SEC, AT + 1)->at, AT);
        (void)look(ng, NODE_GPUS_EACH_NEVER + 2 * NSEC_PER_SEC, AT + 600);
        (void)node_gpus_free(ng);
    }
}

static void test_there_is_no_program(void **state)
{
    struct node_gpus *ng = node_gpus_new("/nowhere/weft");

    for (unsigned i = 0; i < 5; i++)
        assert_null(node_gpus_look(ng, NSEC_PER_SEC, AT));
    (void)node_gpus_free(ng);
}

static void test_it_crashes(void **state)
{
    struct node_gpus *ng;
    const struct gpu_watch *seen;

    write_program("kill -SEGV $$\n");
    ng = node_gpus_new(program);
    seen = look(ng, NSEC_PER_SEC, AT);
    assert_int_equal(seen->now.driver, GPU_DRIVER_SILENT);
    assert_string_equal(seen->now.why, "its library crashes whoever asks it");
    /* That is looked at again soon. */
    seen = look(ng, NODE_GPUS_EACH + NSEC_PER_SEC, AT + 60);
    assert_int_equal(seen->n_silent, 2);
    (void)node_gpus_free(ng);
}

/* What has said its sample has done what it is for, however it ends. */
static void test_it_crashes_after_its_answer(void **state)
{
    struct node_gpus *ng;

    write_program(ANSWER "kill -SEGV $$\n");
    ng = node_gpus_new(program);
    assert_int_equal(look(ng, NSEC_PER_SEC, AT)->now.driver, GPU_DRIVER_OK);
    (void)node_gpus_free(ng);
}

static void test_it_hangs(void **state)
{
    struct node_gpus *ng;
    const struct gpu_watch *seen;
    nsec_t until = clock_now() + LIMIT;

    write_program("echo >&3\nexec sleep 1000 > /dev/null 2>&1\n");
    ng = node_gpus_new(program);
    for (unsigned i = 0; i < 5; i++)
        assert_null(node_gpus_look(ng, NODE_GPUS_SILENT - NSEC_PER_SEC, AT));
    /* What it says at first makes it live for longer. */
    seen = node_gpus_seen(ng);
    for (nsec_t now = NODE_GPUS_SILENT; !seen; now += NODE_GPUS_SILENT) {
        assert_true(clock_now() < until);
        (void)poll(NULL, 0, 10);
        seen = node_gpus_look(ng, now, AT + 30);
    }
    assert_int_equal(seen->now.driver, GPU_DRIVER_SILENT);
    assert_string_equal(seen->now.why, "it has said nothing for 30 s");
    (void)node_gpus_free(ng);
}

static void test_it_ends_while_it_asks(void **state)
{
    struct node_gpus *ng;

    write_program("exec sleep 1000 > /dev/null 2>&1\n");
    ng = node_gpus_new(program);
    assert_null(node_gpus_look(ng, NSEC_PER_SEC, AT));
    assert_null(node_gpus_free(ng));
    assert_null(node_gpus_look(NULL, 1, AT));
    assert_null(node_gpus_seen(NULL));
    assert_null(node_gpus_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_answers_each_minute),
        cmocka_unit_test(test_it_cannot_be_asked),
        cmocka_unit_test(test_there_is_no_program),
        cmocka_unit_test(test_it_crashes),
        cmocka_unit_test(test_it_crashes_after_its_answer),
        cmocka_unit_test(test_it_hangs),
        cmocka_unit_test(test_it_ends_while_it_asks),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
