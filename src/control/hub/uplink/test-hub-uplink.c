/*
 * test-hub-uplink.c - to which nodes a hub sends trains, and what it finds by them; the process is
 * a script that answers, crashes, hangs, or says too much.
 */
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

#include "hub/uplink/hub_uplink.h"
#include "measure/train_process.h"
#include "os/clock.h"
#include "relay/line.h"
#include "test/support/audience.h"

#define SEC   NSEC_PER_SEC
#define LIMIT (20 * SEC)
#define MBIT  UINT64_C(1000000)

/* What the task says of the node is kept, and the answer is this one. */
#define ANSWER(answer) "read -r task <&3\necho \"$task\" >>$0.tasks\necho '" answer "' >&3\n"
#define FOUND          ANSWER("{\"bitsPerSecond\":20000000,\"isLine\":true,\"why\":\"\"}")

static char program[64];
static char tasks[80];
static struct hub_uplink hu;
static struct relay_line line;
static nsec_t now;
static const char *away; /* a node that has no session */

static bool find_place(const struct model_node *node, nsec_t at, struct ip_addr *ret)
{
    *ret = ip_addr_v4((const uint8_t[4]){203, 0, 113, 7});
    return !away || strcmp(node->spec.meta.name, away) != 0;
}

static int enter(void **state)
{
    struct model_network *net;

    (void)snprintf(program, sizeof(program), "/tmp/weft-test-trains.%ld", (long)getpid());
    (void)snprintf(tasks, sizeof(tasks), "%s.tasks", program);
    if (audience_enter(state) != 0)
        return -1;
    net = audience_network();
    net->served->is_up = true;
    net->has_key = true;
    net->secret.b[0] = 8;
    net->secret.b[31] = 0x40;
    now = 1000 * SEC;
    away = NULL;
    line = (struct relay_line){.rate = 0};
    hub_uplink_init(&hu, find_place, 0, now);
    hu.program = program;
    return 0;
}

static int leave(void **state)
{
    hub_uplink_deinit(&hu);
    hub_uplink_deinit(&hu);
    (void)unlink(program);
    (void)unlink(tasks);
    return audience_leave(state);
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

static bool tick(void)
{
    return hub_uplink_tick(&hu, audience_network()->model, &line, now, 1800000000 + now / SEC);
}

/* Looks each ten seconds for @time. How many processes were started; each is waited for. Sets
 * whether something was found anew, or is not known any more. */
static unsigned play(nsec_t time, bool *ret_changed)
{
    nsec_t end = now + time;
    unsigned n = 0;

    *ret_changed = false;
    for (; now < end; now += 10 * SEC) {
        *ret_changed |= tick();
        n += hu.pid != 0;
        for (nsec_t until = clock_now() + LIMIT; hu.pid != 0; *ret_changed |= tick()) {
            assert_true(clock_now() < until);
            (void)poll(NULL, 0, 1);
        }
    }
    return n;
}

static void test_a_line_is_found(void **state)
{
    struct train_task t;
    char text[1024] = "";
    bool changed;
    json_t *json;
    FILE *f;

    write_program(FOUND);
    assert_int_equal(play(300 * SEC, &changed), 0);
    assert_int_equal(play(300 * SEC, &changed), 3);
    assert_true(changed);
    assert_int_equal(hu.found, 20 * MBIT);
    assert_int_equal(uplink_estimate(&hu.trains, 1800000000 + now / SEC).state, UPLINK_FOUND);
    /* Then it is left alone for some hours. */
    assert_int_equal(play(7200 * SEC, &changed), 0);
    assert_false(changed);
    f = fopen(tasks, "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    (void)fclose(f);
    json = json_loads(text, 0, NULL);
    assert_int_equal(train_task_decode(&t, json, NULL), 0);
    assert_true(ip_addr_equal(&t.own, &audience_network()->address4));
    assert_int_equal(t.underlay.b[15], 7);
    assert_int_equal(t.known, 0);
    json_decref(json);
    /* A day later nothing is known any more, where nobody answers. */
    away = "a";
    write_program("exit 1\n");
    (void)play(30 * 3600 * SEC, &changed);
    assert_true(changed);
    assert_int_equal(hu.found, 0);
}

static void test_a_line_that_is_fast(void **state)
{
    bool changed;

    write_program(ANSWER("{\"bitsPerSecond\":2400000000,\"isLine\":false,\"why\":\"\"}"));
    assert_int_equal(play(3600 * SEC, &changed), 1);
    assert_false(changed);
    assert_int_equal(hu.found, 0);
}

/* One that says nothing of use is as good as none. */
static void test_processes_that_fail(void **state)
{
    static const char *const programs[] = {
        ANSWER("{\"bitsPerSecond\":0,\"isLine\":false,\"why\":\"it measures for a right now\"}"),
        ANSWER("{\"bitsPerSecond\":-1,\"isLine\":true,\"why\":\"\"}"),
        ANSWER("nothing"),
        "exit 0\n",
        "kill -9 $$\n",
        "head -c 100000 /dev/zero >&3\n",
    };
    bool changed;

    for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
        write_program(programs[i]);
        (void)play(7200 * SEC, &changed);
        assert_false(changed);
        assert_int_equal(hu.trains.n, 0);
    }
    (void)unlink(program);
    (void)play(3600 * SEC, &changed);
    assert_int_equal(hu.pid, 0);
}

static void test_one_that_hangs_is_killed(void **state)
{
    write_program("exec sleep 1000\n");
    for (unsigned i = 0; hu.pid == 0 && i < 100; i++, now += 10 * SEC)
        (void)tick();
    assert_true(hu.pid != 0);
    now += 60 * SEC;
    (void)tick();
    assert_true(hu.pid != 0);
    now += 60 * SEC;
    for (nsec_t until = clock_now() + LIMIT; hu.pid != 0; (void)tick()) {
        assert_true(clock_now() < until);
        (void)poll(NULL, 0, 1);
    }
}

static void test_when_nothing_is_sent(void **state)
{
    struct hub_uplink off = HUB_UPLINK_NULL;
    struct model_network *net = audience_network();
    bool changed;

    write_program(FOUND);
    /* Much is relayed. */
    line.rate = 50 * MBIT;
    assert_int_equal(play(3600 * SEC, &changed), 0);
    line.rate = 0;
    net->served->is_up = false;
    assert_int_equal(play(3600 * SEC, &changed), 0);
    net->served->is_up = true;
    net->has_key = false;
    assert_int_equal(play(3600 * SEC, &changed), 0);
    net->has_key = true;
    assert_true(play(600 * SEC, &changed) > 0);
    assert_false(hub_uplink_tick(&off, audience_network()->model, &line, now, 1800000000));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_line_is_found),
        TEST(test_a_line_that_is_fast),
        TEST(test_processes_that_fail),
        TEST(test_one_that_hangs_is_killed),
        TEST(test_when_nothing_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
