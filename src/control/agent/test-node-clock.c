/* test-node-clock.c - what an agent knows of its machine: a clock that is off or was set back, a
 * copy, the fabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/node_machine.h"
#include "agent/state/state.h"
#include "mesh/object/node_status.h"
#include "os/log.h"
#include "os/machine.h"
#include "test/support/heard_log.h"

#define NOW  ((nsec_t)1790000000 * NSEC_PER_SEC)
#define HOUR (3600 * NSEC_PER_SEC)

#define PCI "/sys/bus/pci/devices"

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-clock.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[PATH_MAX];

    (void)unlink(state_timestamp_path(path, dir));
    return rmdir(dir);
}

static void test_off(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 10);
    node_clock_compare(&nc, -10);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 7200);
    assert_non_null(strstr(node_clock_why(&nc), "7200 s ahead of the hub's"));
    node_clock_compare(&nc, 10);
    assert_non_null(strstr(node_clock_why(&nc), "10 s ahead"));
    node_clock_compare(&nc, -11);
    assert_string_equal(node_clock_why(&nc),
        "this machine's clock is 11 s behind the hub's; let the one that is wrong follow a time "
        "server: \"timedatectl set-ntp true\", or chrony");
    /* It is over at eight seconds, and begins with eleven. */
    node_clock_compare(&nc, 9);
    assert_non_null(strstr(node_clock_why(&nc), "9 s ahead"));
    node_clock_compare(&nc, -8);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 11);
    assert_non_null(strstr(node_clock_why(&nc), "11 s ahead"));
    node_clock_compare(&nc, 0);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, INT64_MIN);
    assert_non_null(strstr(node_clock_why(&nc), "behind"));
}

/* By more than ten seconds; and it is over when the clock is within them again. */
static void test_how_far_back(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    assert_int_equal(nc.before, 0);
    node_clock_look(&nc, true, NOW, 1);
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC, 2);
    assert_string_equal(nc.lockout, "");
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC - 1, 3);
    assert_string_equal(nc.lockout,
        "this machine's clock was set back, and for 10 s more peers refuse the handshakes that the "
        "kernel's WireGuard begins, since they are dated before earlier ones");
    node_clock_look(&nc, true, NOW - HOUR, 4);
    assert_non_null(strstr(nc.lockout, "for 3600 s more"));
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC, 5);
    assert_string_equal(nc.lockout, "");
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW + 1, 6);
    assert_int_equal(nc.before, NOW + 1);
    timestamp_file_end(&nc.file, NOW, 7);
}

/* Beside the kernel's engine, in one run and in one after it. */
static void test_set_back(void **state)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct node_clock nc;

        node_clock_init(&nc, dir);
        node_clock_look(&nc, true, NOW + 2 * HOUR, 1);
        assert_string_equal(nc.lockout, "");
        if (restarts) {
            timestamp_file_end(&nc.file, NOW + 2 * HOUR, 1);
            node_clock_init(&nc, dir);
        }
        node_clock_compare(&nc, 0);
        node_clock_look(&nc, true, NOW, 2);
        assert_non_null(strstr(nc.lockout, "was set back"));
        assert_string_equal(node_clock_why(&nc), nc.lockout);
        node_clock_look(&nc, true, NOW + 3 * HOUR, 3);
        assert_string_equal(nc.lockout, "");
        timestamp_file_end(&nc.file, NOW + 3 * HOUR, 3);
        (void)unlink(nc.path);
    }
}

/* What a time server does, a restart, and the userspace engine, which dates its own later. */
static void test_no_lockout(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    node_clock_look(&nc, true, NOW, 1);
    node_clock_look(&nc, true, NOW - NSEC_PER_SEC, 2);
    assert_string_equal(nc.lockout, "");
    /* Killed, and at once started again. */
    node_clock_init(&nc, dir);
    node_clock_look(&nc, true, NOW + NSEC_PER_SEC, 3);
    assert_string_equal(nc.lockout, "");
    node_clock_look(&nc, true, NOW - HOUR, 4);
    assert_string_not_equal(nc.lockout, "");
    node_clock_look(&nc, false, NOW - HOUR, 5);
    assert_string_equal(nc.lockout, "");
    timestamp_file_end(&nc.file, NOW, 6);
}

/* What the hub says of a second machine with this node's key. */
static void test_a_copy(void **state)
{
    struct node_copy nc = {.is_copy = false};
    json_t *body = json_pack("{s:{s:s, s:b}}", "copy", "why", "two\nmachines", "isCopy", 1);

    node_copy_on_answer(&nc, body);
    assert_true(nc.is_copy);
    assert_string_equal(nc.why, "two machines");
    json_decref(body);
    body = json_object();
    node_copy_on_answer(&nc, body);
    assert_false(nc.is_copy);
    assert_string_equal(nc.why, "");
    json_decref(body);
}

static const char *log_of_answer(struct node_copy *nc, const char *why)
{
    json_t *body = json_pack("{s:{s:s*}}", "copy", "why", why);

    heard_log_begin();
    node_copy_on_answer(nc, body);
    json_decref(body);
    return heard_log_end();
}

/* What is new of it is told once. */
static void test_what_is_told_of_a_copy(void **state)
{
    struct node_copy nc = {.is_copy = false};

    log_init("test", LOG_LEVEL_INFO);
    assert_string_equal(log_of_answer(&nc, NULL), "");
    assert_string_equal(log_of_answer(&nc, "two of them"), "warning: test: two of them\n");
    assert_string_equal(log_of_answer(&nc, "two of them"), "");
    assert_string_equal(log_of_answer(&nc, "three of them"), "warning: test: three of them\n");
    assert_string_equal(
        log_of_answer(&nc, NULL), "info: test: no other machine uses this node's key any more\n");
    assert_string_equal(log_of_answer(&nc, NULL), "");
    log_init("test", LOG_LEVEL_ERROR);
}

/* What the hub is told of this machine, and whether the node joined here. */
static void test_which_machine_it_is(void **state)
{
    struct state st = {.has_machine = false};
    char place[MACHINE_PLACE_MAX];
    struct node_copy nc;

    machine_place(place);
    node_copy_init(&nc, &st);
    assert_false(nc.is_copy);
    assert_string_equal(json_string_value(json_object_get(nc.machine, "place")), place);
    assert_true(json_is_string(json_object_get(nc.machine, "host")));
    assert_null(json_object_get(nc.machine, "joinedHere"));
    json_decref(nc.machine);
    st.has_machine = true;
    machine_traits_read(&st.machine);
    node_copy_init(&nc, &st);
    assert_true(json_is_true(json_object_get(nc.machine, "joinedHere")));
    json_decref(nc.machine);
}

/* The name of this machine as it is told; lent until the next call. */
static const char *host_told(const char *name)
{
    static char told[64];
    struct state st = {.has_machine = false};
    struct node_copy nc;

    assert_int_equal(sethostname(name, strlen(name)), 0);
    node_copy_init(&nc, &st);
    (void)snprintf(
        told, sizeof(told), "%s", json_string_value(json_object_get(nc.machine, "host")));
    json_decref(nc.machine);
    return told;
}

static void test_the_name_of_this_machine(void **state)
{
    if (unshare(CLONE_NEWUTS) < 0)
        skip();
    assert_string_equal(host_told("rack-7"), "rack-7");
    assert_string_equal(host_told("rack\n7"), "rack-7");
    assert_string_equal(
        host_told("a23456789-123456789-123456789-1"), "a23456789-123456789-123456789-1");
    /* Of a longer one the end is cut. */
    assert_string_equal(
        host_told("a23456789-123456789-123456789-1.internal"), "a23456789-123456789-123456789-1");
}

/* What is wrong is told once, and that it is over. */
static void test_what_is_told_of_the_clock(void **state)
{
    struct node_clock nc;

    log_init("test", LOG_LEVEL_INFO);
    node_clock_init(&nc, dir);
    heard_log_begin();
    node_clock_compare(&nc, 10);
    node_clock_compare(&nc, 11);
    node_clock_compare(&nc, 12);
    node_clock_compare(&nc, 8);
    node_clock_compare(&nc, 7);
    assert_string_equal(heard_log_end(),
        "warning: test: this machine's clock is 11 s ahead of the hub's; let the one that is wrong "
        "follow a time server: \"timedatectl set-ntp true\", or chrony\n"
        "info: test: this machine's clock agrees with the hub's again\n");
    heard_log_begin();
    node_clock_look(&nc, true, NOW, 1);
    node_clock_look(&nc, true, NOW - HOUR, 2);
    node_clock_look(&nc, true, NOW - HOUR / 2, 3);
    node_clock_look(&nc, true, NOW, 4);
    node_clock_look(&nc, true, NOW, 5);
    assert_string_equal(heard_log_end(),
        "warning: test: this machine's clock was set back, and for 3600 s more peers refuse the "
        "handshakes that the kernel's WireGuard begins, since they are dated before earlier ones; "
        "the userspace engine has none of that\n"
        "info: test: this machine's clock has caught up with its earlier handshakes\n");
    timestamp_file_end(&nc.file, NOW, 6);
    log_init("test", LOG_LEVEL_ERROR);
}

/* The file of an earlier run is ahead of the clock, by as much as it goes back. */
static void test_what_an_earlier_run_has_kept(void **state)
{
    struct node_clock nc;
    nsec_t kept;

    node_clock_init(&nc, dir);
    node_clock_look(&nc, true, NOW, 1);
    assert_int_equal(timestamp_file_read(&kept, nc.path, NULL), 0);
    node_clock_init(&nc, dir);
    assert_int_equal(nc.before, kept - TIMESTAMP_FILE_BACK);
    /* While nothing is kept, the file is written no more. */
    nc.path[0] = '\0';
    node_clock_look(&nc, true, NOW, 2);
    node_clock_look(&nc, true, NOW - HOUR, 3);
    assert_string_equal(nc.lockout, "");
}

/* ---- its fabric ------------------------------------------------------------------------------ */

static void write_word(const char *path, const char *word)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fputs(word, f);
    assert_int_equal(fclose(f), 0);
}

/* This process is on a machine with no device but perhaps one GPU, as far as its files go. */
static void take_devices(bool has_gpu)
{
    static const char *const dirs[] = {"/sys/bus", "/sys/bus/pci", PCI, PCI "/0000:01:00.0"};

    assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
    for (unsigned i = 0; has_gpu && i < sizeof(dirs) / sizeof(*dirs); i++)
        assert_int_equal(mkdir(dirs[i], 0755), 0);
    if (has_gpu) {
        write_word(PCI "/0000:01:00.0/vendor", "0x10de\n");
        write_word(PCI "/0000:01:00.0/class", "0x030200\n");
    }
}

/* Threads of this process beside this one. */
static bool has_threads(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/task");

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n > 3; /* "." and ".." are read, too */
}

/* How many GPUs are told once all is known; -1: nothing is worth telling. */
static int gpus_told(bool has_gpu)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        const struct fabric_report *report;
        struct node_fabric *nf;
        int n;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(77);
        take_devices(has_gpu);
        nf = node_fabric_new();
        for (unsigned i = 0; i < 1000 && has_threads(); i++)
            (void)poll(NULL, 0, 10);
        report = node_fabric_report(nf);
        n = report ? (int)report->n_gpus : 70;
        (void)node_fabric_free(nf);
        exit(n);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    return WEXITSTATUS(status) == 70 ? -1 : WEXITSTATUS(status);
}

static void test_the_fabric_of_a_machine(void **state)
{
    assert_int_equal(gpus_told(true), 1);
    assert_int_equal(gpus_told(false), -1);
}

static void test_no_fabric(void **state)
{
    assert_null(node_fabric_report(NULL));
    assert_null(node_fabric_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_far_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_lockout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_copy, set_up, tear_down),
        cmocka_unit_test(test_what_is_told_of_a_copy),
        cmocka_unit_test(test_which_machine_it_is),
        cmocka_unit_test(test_the_name_of_this_machine),
        cmocka_unit_test_setup_teardown(test_what_is_told_of_the_clock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_an_earlier_run_has_kept, set_up, tear_down),
        cmocka_unit_test(test_the_fabric_of_a_machine),
        cmocka_unit_test(test_no_fabric),
    };

    log_init("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
