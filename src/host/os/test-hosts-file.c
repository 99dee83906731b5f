/* test-hosts-file.c - a hosts file that several share, and one that cannot be renamed over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/file.h"
#include "os/hosts_file.h"
#include "os/process.h"

#define OTHERS    "127.0.0.1 localhost\n"
#define N_WRITERS 8

static char dir[] = "/tmp/weft-test-hosts-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/hosts", dir);
    return 0;
}

static int remove_dir(void **state)
{
    const char *const argv[] = {"/bin/rm", "-rf", dir, NULL};

    return process_run(argv, 5000, NULL);
}

static bool put(const char *owner, const char *block)
{
    struct err e = ERR_NULL;
    bool changed = false;

    if (hosts_file_put(path, owner, block, &changed, &e) != 0)
        fail_msg("%s", err_text(&e));
    return changed;
}

static char *text_of_file(void)
{
    char *text = NULL;

    assert_int_equal(statefile_read(path, 1 << 20, &text, NULL, NULL), 0);
    return text;
}

static void check_text(const char *expected)
{
    char *text = text_of_file();

    assert_string_equal(text, expected);
    free(text);
}

static void test_put(void **state)
{
    struct stat st;

    assert_int_equal(statefile_replace(path, OTHERS, strlen(OTHERS), 0640, NULL), 0);
    assert_true(put("a/n1", "1.2.3.4\tx.a.weft x\n"));
    assert_false(put("a/n1", "1.2.3.4\tx.a.weft x\n"));
    check_text(OTHERS "# weft begin a/n1\n1.2.3.4\tx.a.weft x\n# weft end a/n1\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_true(put("a/n1", NULL));
    check_text(OTHERS);
    assert_int_equal(unlink(path), 0);
    assert_false(put("a/n1", NULL));
    assert_int_equal(access(path, F_OK), -1);
    assert_true(put("a/n1", ""));
}

/* Many at once, each with a block of its own that grows: none may lose another's. */
static void test_writers(void **state)
{
    char *text;

    assert_int_equal(statefile_replace(path, OTHERS, strlen(OTHERS), 0644, NULL), 0);
    for (int w = 0; w < N_WRITERS; w++) {
        if (fork() == 0) {
            char owner[32];
            char block[64];
            bool changed;
            int r = 0;

            (void)snprintf(owner, sizeof(owner), "net/w%d", w);
            for (int i = 0; i <= 20 && r == 0; i++) {
                (void)snprintf(block, sizeof(block), "10.0.%d.%d\tn.net.weft n\n", w, i);
                r = hosts_file_put(path, owner, block, &changed, NULL);
            }
            _exit(r == 0 ? 0 : 1);
        }
    }
    for (int w = 0; w < N_WRITERS; w++) {
        int status = -1;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    text = text_of_file();
    for (int w = 0; w < N_WRITERS; w++) {
        char line[32];

        (void)snprintf(line, sizeof(line), "\n10.0.%d.20\t", w);
        assert_non_null(strstr(text, line));
    }
    free(text);
    for (int w = 0; w < N_WRITERS; w++) {
        char owner[32];

        (void)snprintf(owner, sizeof(owner), "net/w%d", w);
        assert_true(put(owner, NULL));
    }
    check_text(OTHERS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_writers),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
