/* test-thread.c - the gate, and lists of CPUs. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/thread.h"

#define READERS 3
#define ROUNDS  2000

/** What the gate guards: two numbers that are equal except while it is closed. */
static struct {
    struct gate gate;
    int a, b; /* plain on purpose: a race would be seen by TSan, and torn pairs by the test */
    atomic_bool stop;
    atomic_uint torn;
} shared;

static void *reader(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&shared.stop)) {
        gate_enter(&shared.gate, i);
        if (shared.a != shared.b)
            atomic_fetch_add(&shared.torn, 1);
        gate_leave(&shared.gate, i);
    }
    return NULL;
}

/* Readers that never rest do not keep the closer out, and never see a change half made. */
static void test_gate(void **state)
{
    pthread_t threads[READERS];

    assert_int_equal(gate_init(&shared.gate, READERS), 0);
    for (uintptr_t i = 0; i < READERS; i++)
        assert_int_equal(thread_start(&threads[i], "reader", -1, reader, (void *)i), 0);
    for (int i = 0; i < ROUNDS; i++) {
        gate_close(&shared.gate);
        shared.a++;
        shared.b++;
        gate_open(&shared.gate);
    }
    atomic_store(&shared.stop, true);
    for (unsigned i = 0; i < READERS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&shared.torn), 0);
    assert_int_equal(shared.a, ROUNDS);
    gate_deinit(&shared.gate);
    gate_deinit(&shared.gate);
}

static void test_cpulist(void **state)
{
    static const char *const bad[] = {
        "", ",", "1,", "-1", "1-", "3-1", "a", "1 2", "0-99999", "1--2", "+1"};
    struct err e = ERR_NULL;
    struct cpulist l;

    assert_int_equal(cpulist_parse(&l, "3,0-1,1", &e), 0);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.cpu[0], 0);
    assert_int_equal(l.cpu[1], 1);
    assert_int_equal(l.cpu[2], 3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (cpulist_parse(&l, bad[i], &e) != -EINVAL)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(l.n, 3);
    }
    cpulist_allowed(&l);
    assert_true(l.n >= 1);
    /* Servers for GPUs have more than 256. */
    assert_int_equal(cpulist_parse(&l, "0-383,1023", &e), 0);
    assert_int_equal(l.n, 385);
    assert_int_equal(l.cpu[383], 383);
    assert_int_equal(l.cpu[384], 1023);
}

static void test_cpulist_format(void **state)
{
    static const char *const texts[] = {"0", "0-1", "0-1,3,7-9", "1023"};
    char buf[CPULIST_TEXT_MAX];
    struct cpulist l;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_int_equal(cpulist_parse(&l, texts[i], NULL), 0);
        assert_string_equal(cpulist_format(&l, buf), texts[i]);
    }
    l.n = 0;
    for (unsigned cpu = 1; cpu < 500; cpu += 2)
        l.cpu[l.n++] = (unsigned short)cpu;
    assert_string_equal(cpulist_format(&l, buf) + strlen(buf) - 4, ",...");
}

static void *use_stack(void *ret)
{
    volatile uint8_t space[600 * 1024];

    for (size_t i = 0; i < sizeof(space); i += 1024)
        space[i] = 1;
    *(bool *)ret = space[0] == 1;
    return NULL;
}

/* The threads that speak TLS and resolve names run libraries that are generous with the stack. */
static void test_stack(void **state)
{
    bool is_done = false;
    pthread_t thread;

    assert_int_equal(thread_start(&thread, "deep", -1, use_stack, &is_done), 0);
    (void)pthread_join(thread, NULL);
    assert_true(is_done);
}

static void *allowed_here(void *ret)
{
    cpulist_allowed(ret);
    return NULL;
}

/* A thread that is started later is confined, too; a CPU that is not allowed is named. */
static void test_confine(void **state)
{
    struct cpulist before, one, seen;
    struct err e = ERR_NULL;
    pthread_t thread;

    cpulist_allowed(&before);
    one = (struct cpulist){.cpu = {before.cpu[before.n - 1]}, .n = 1};
    assert_int_equal(cpulist_confine(&one, &e), 0);
    assert_int_equal(thread_start(&thread, "confined", -1, allowed_here, &seen), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.cpu[0], one.cpu[0]);
    one.cpu[0] = CPU_SETSIZE - 1;
    assert_int_equal(cpulist_confine(&one, &e), -EINVAL);
    assert_non_null(strstr(e.text, "CPU 1023 cannot be used: this process may run on "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_cpulist),
        cmocka_unit_test(test_cpulist_format),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_confine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
