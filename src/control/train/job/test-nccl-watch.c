/* test-nccl-watch.c - logs that grow while they are read; what is said of them, and only once. */
#include "train/job/nccl_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "train/job/run.h"
#include "train/profile/profile.h"

#define LINE "gpu-1:188:585 [0] NCCL INFO "

static struct nccl_watch w;
static char dir[RUN_DIR_MAX];
static char file[RUN_DIR_MAX + 32];

static int make_dir(const char *path, struct err *e)
{
    static struct run run;

    run.has_dir = false;
    (void)snprintf(run.dir, sizeof(run.dir), "%s", path);
    return run_make_dir(&run, e);
}

static int set_up(void **state)
{
    struct err e = ERR_NULL;

    memset(&w, 0, sizeof(w));
    assert_int_equal(run_dir_name(dir, &e), 0);
    assert_int_equal(access(dir, F_OK), -1); /* What is interrupted leaves nothing. */
    assert_int_equal(make_dir(dir, &e), 0);
    w.wanted = profile_plain();
    w.interface = "weft0";
    (void)snprintf(file, sizeof(file), "%s/%s", dir, NCCL_WATCH_FILE);
    nccl_watch_init(&w, file);
    return 0;
}

static int tear_down(void **state)
{
    run_dir_remove(dir);
    nccl_watch_deinit(&w);
    return 0;
}

/* Appends to the log of a process, as NCCL does. */
static void write_log(unsigned pid, const char *text)
{
    char path[sizeof(file) + 16];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/nccl.%u", dir, pid);
    f = fopen(path, "ae");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    (void)fclose(f);
}

static void test_a_log_that_grows(void **state)
{
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    write_log(7, LINE "NET/Socket : Using [0]weft0:10.77.0.2<0>\n" LINE "Using netw");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    assert_false(nccl_watch_has_verdict(&w));
    write_log(7, "ork Socket\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_WANTED);
    assert_string_equal(w.said, "NCCL uses Socket on weft0, as the fabric profile sockets wants");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    assert_true(nccl_watch_has_verdict(&w));
    assert_false(nccl_watch_explain_failure(&w));
}

static void test_each_sentence_once(void **state)
{
    static const char good[] =
        LINE "NET/Socket : Using [0]weft0:10.77.0.2<0>\n" LINE "Using network Socket\n";

    write_log(1, good);
    write_log(2, good);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_WANTED);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    assert_false(w.is_other);
    write_log(3, LINE "NET/Socket : Using [0]eth0:10.0.0.7<0> [1]weft0:10.77.0.2<0>\n" LINE
                      "Using network Socket\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_OTHER);
    assert_string_equal(w.said, "NCCL was to use weft0, and uses sockets on eth0,weft0, whose "
                                "addresses other nodes may not reach");
    assert_true(w.is_other);
    /* That is told to the hub with what goes wrong, and not said twice. */
    assert_int_equal(w.faults.kinds[NCCL_FAULT_NETWORK].n, 1);
    assert_string_equal(w.faults.kinds[NCCL_FAULT_NETWORK].text, w.said);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
}

static void test_a_failure_before_the_network(void **state)
{
    assert_false(nccl_watch_explain_failure(&w));
    write_log(9, "gpu-1:1:1 [0] init.cc:9 NCCL WARN Error: network AWS Libfabric not found.\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    assert_true(nccl_watch_explain_failure(&w));
    assert_string_equal(w.said, "NCCL has not said which network it uses; its last word on that: "
                                "Error: network AWS Libfabric not found.");
}

#define CLOSED "socketProgress: Connection closed by remote peer 10.77.0.3<47634>"

/* A log is read to its end: what goes wrong after NCCL has said which network it uses counts. */
static void test_what_goes_wrong_afterwards(void **state)
{
    write_log(7, LINE "NET/Socket : Using [0]weft0:10.77.0.2<0>\n" LINE "Using network Socket\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_WANTED);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    write_log(7, "gpu-1:1:1 [0] socket.cc:9 NCCL WARN " CLOSED);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    write_log(7, "\ngpu-1:1:1 [0] socket.cc:9 NCCL WARN " CLOSED "\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_FAULT);
    assert_string_equal(w.fault, CLOSED);
    assert_int_equal(w.faults.kinds[NCCL_FAULT_CLOSED].n, 2);
    /* Another process says the same, and then something else. */
    write_log(8, "gpu-1:1:1 [0] socket.cc:9 NCCL WARN " CLOSED "\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_NOTHING);
    assert_int_equal(w.faults.kinds[NCCL_FAULT_CLOSED].n, 3);
    write_log(8, "gpu-1:1:1 [0] ibvwrap.cc:9 NCCL WARN Call to ibv_poll_cq() returned -1\n");
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_FAULT);
    assert_string_equal(w.fault, "Call to ibv_poll_cq() returned -1");
    assert_int_equal(w.faults.kinds[NCCL_FAULT_NETWORK].n, 0);
}

/* Of a line that is longer than what is read at once the beginning counts; and a hole, as is left
 * where a log was emptied, is passed. */
static void test_lines_that_are_long(void **state)
{
    static char line[50000];
    char path[sizeof(file) + 16];
    FILE *f;

    memset(line, 'x', sizeof(line) - 1);
    memcpy(line, "NCCL WARN " CLOSED, strlen("NCCL WARN " CLOSED));
    write_log(7, line);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_FAULT);
    (void)snprintf(path, sizeof(path), "%s/nccl.7", dir);
    f = fopen(path, "r+e");
    assert_non_null(f);
    assert_int_equal(fseek(f, 200000, SEEK_SET), 0);
    assert_true(fputs("\nNCCL WARN Call to ibv_poll_cq() returned -1\n", f) >= 0);
    (void)fclose(f);
    assert_int_equal(nccl_watch_look(&w), NCCL_WATCH_FAULT);
    assert_int_equal(w.faults.kinds[NCCL_FAULT_POLL].n, 1);
}

static void test_names_of_files(void **state)
{
    char host[256] = "";

    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    host[strcspn(host, ".")] = '\0';
    nccl_watch_init(&w, "/logs/[a]*/nccl.%h.%p.%x");
    assert_int_equal(strncmp(w.pattern, "/logs/\\[a\\]\\*/nccl.", 19), 0);
    assert_int_equal(strncmp(w.pattern + 19, host, strlen(host)), 0);
    assert_string_equal(w.pattern + 19 + strlen(host), ".*.%x");
}

static void test_the_directory(void **state)
{
    struct stat st;

    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    write_log(1, "x\n");
    /* As it is below a folder that hands its group on, which many clusters have. */
    assert_int_equal(chmod(dir, 02700), 0);
    run_dir_remove(dir);
    assert_int_equal(stat(dir, &st), -1);
    run_dir_remove("");
}

/* What somebody else has put at the name is neither taken nor emptied. */
static void test_a_directory_of_somebody_else(void **state)
{
    char other[RUN_DIR_MAX];
    struct err e = ERR_NULL;
    struct stat st;

    write_log(1, "x\n");
    assert_int_equal(run_dir_name(other, &e), 0);
    assert_int_equal(symlink(dir, other), 0);
    assert_int_equal(make_dir(other, NULL), -EEXIST);
    run_dir_remove(other);
    assert_int_equal(lstat(other, &st), 0);
    assert_int_equal(unlink(other), 0);
    (void)snprintf(other, sizeof(other), "%.200s/nccl.1", dir);
    assert_int_equal(stat(other, &st), 0);

    assert_int_equal(chmod(dir, 0755), 0);
    run_dir_remove(dir);
    assert_int_equal(stat(other, &st), 0);
    assert_int_equal(chmod(dir, 0700), 0);
}

/* The name is never there before the directory is made: who watches the folder learns nothing. */
static void test_a_name_is_not_shown(void **state)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char name[RUN_DIR_MAX];
    struct err e = ERR_NULL;
    char events[512];

    assert_true(fd >= 0);
    assert_true(inotify_add_watch(fd, dir, IN_CREATE) >= 0);
    assert_int_equal(setenv("TMPDIR", dir, 1), 0);
    assert_int_equal(run_dir_name(name, &e), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(strncmp(name, dir, strlen(dir)), 0);
    assert_int_equal(read(fd, events, sizeof(events)), -1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_log_that_grows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_sentence_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_failure_before_the_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_goes_wrong_afterwards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_that_are_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_of_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_directory_of_somebody_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_is_not_shown, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
