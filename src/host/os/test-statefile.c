/* test-statefile.c - files are replaced whole or not at all, also when the disk is full. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "os/file.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-file.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static unsigned turn;

    turn = !turn;
    (void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void assert_holds(const char *path, const char *expected)
{
    struct err e = ERR_NULL;
    char *text;
    size_t len;

    assert_int_equal(statefile_read(path, 1 << 20, &text, &len, &e), 0);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(text, expected);
    free(text);
}

static unsigned count_entries(void)
{
    char command[128];
    unsigned n = 0;
    FILE *f;

    (void)snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
    f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    (void)pclose(f);
    return n;
}

static void test_replace_and_read(void **state)
{
    struct err e = ERR_NULL;
    const char *path = in_dir("a");
    struct stat st;
    char *text;

    assert_int_equal(statefile_read(path, 10, &text, NULL, &e), STATEFILE_E_ABSENT);
    assert_int_equal(statefile_replace(path, "one", 3, 0600, &e), 0);
    assert_holds(path, "one");
    assert_int_equal(statefile_replace(path, "three", 5, 0640, &e), 0);
    assert_holds(path, "three");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_true(statefile_read(path, 4, &text, NULL, &e) < 0);
    assert_non_null(strstr(e.text, "longer than 4 bytes"));
    assert_int_equal(statefile_read(path, 5, &text, NULL, &e), 0);
    free(text);
    assert_int_equal(count_entries(), 1);
}

/* A file size limit makes write() fail in the middle, as a full disk does. */
static void test_full_disk(void **state)
{
    static char big[64 << 10];
    struct rlimit old;
    struct rlimit small;
    struct err e = ERR_NULL;
    const char *path = in_dir("b");
    int r;

    assert_int_equal(statefile_replace(path, "old", 3, 0600, &e), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    memset(big, 'x', sizeof(big));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    r = statefile_replace(path, big, sizeof(big), 0600, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(r < 0);
    assert_non_null(strstr(e.text, path));
    assert_holds(path, "old");
    assert_int_equal(count_entries(), 2);
}

/* A device, say, or a pipe: with its name replaced, whoever reads or writes it would do so in vain.
 */
static void test_what_is_no_regular_file(void **state)
{
    struct err e = ERR_NULL;
    const char *path = in_dir("pipe");
    char expected[256];
    struct stat st;

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(statefile_replace(path, "text", 4, 0600, &e), -EINVAL);
    (void)snprintf(
        expected, sizeof(expected), "%s is not a regular file, and is not replaced by one", path);
    assert_string_equal(err_text(&e), expected);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unlink(path), 0);
}

static void test_make_dir(void **state)
{
    struct err e = ERR_NULL;
    struct stat st;

    assert_int_equal(statefile_make_dir(in_dir("x/y/z"), 0700, &e), 0);
    assert_int_equal(statefile_make_dir(in_dir("x/y/z"), 0700, &e), 0);
    assert_int_equal(stat(in_dir("x/y/z"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_true(statefile_make_dir(in_dir("a/b"), 0700, &e) < 0);
    assert_true(statefile_make_dir(in_dir("a"), 0700, &e) < 0);
}

static void test_lock(void **state)
{
    struct err e = ERR_NULL;
    int first;
    int second;

    assert_int_equal(statefile_lock(in_dir("lock"), &first, &e), 0);
    assert_true(statefile_lock(in_dir("lock"), &second, &e) < 0);
    assert_non_null(strstr(e.text, "another process holds"));
    (void)close(first);
    assert_int_equal(statefile_lock(in_dir("lock"), &second, &e), 0);
    (void)close(second);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace_and_read),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_what_is_no_regular_file),
        cmocka_unit_test(test_make_dir),
        cmocka_unit_test(test_lock),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
