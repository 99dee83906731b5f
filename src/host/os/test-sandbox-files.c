/* test-sandbox-files.c - which files a child in a sandbox still reaches, and which programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/sandbox.h"
#include "test/support/sandboxed.h"

static char tree[64];

static const char *below(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", tree, name);
    return path;
}

static bool can_write(const char *name)
{
    int fd = open(below(name), O_WRONLY | O_CREAT, 0600);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static bool can_read(const char *name)
{
    int fd = open(below(name), O_RDONLY);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static int look_at_files(void)
{
    if (!can_read("read/file") || !can_read("write/file"))
        return 1;
    if (can_write("read/file") || can_write("read/new"))
        return 2;
    if (!can_write("write/file") || !can_write("write/new") || unlink(below("write/new")) < 0)
        return 3;
    if (can_read("out") || can_write("out"))
        return 4;
    (void)execl("/bin/true", "true", NULL);
    return errno == EACCES ? 0 : 5;
}

static void make_tree(void)
{
    (void)snprintf(tree, sizeof(tree), "/tmp/weft-sandbox-%d", (int)getpid());
    assert_int_equal(mkdir(tree, 0755), 0);
    assert_int_equal(mkdir(below("read"), 0755), 0);
    assert_int_equal(mkdir(below("write"), 0755), 0);
    assert_true(can_write("read/file") && can_write("write/file") && can_write("out"));
}

static void remove_tree(void)
{
    static const char *const files[] = {"read/file", "write/file", "out"};

    for (size_t i = 0; i < 3; i++)
        (void)unlink(below(files[i]));
    (void)rmdir(below("read"));
    (void)rmdir(below("write"));
    (void)rmdir(tree);
}

static void test_files(void **state)
{
    char readable[128];
    char writable[128];
    struct sandbox_path paths[] = {{readable, SANDBOX_READ},
        {writable, SANDBOX_READ | SANDBOX_WRITE}, {"/no/such/path", SANDBOX_READ},
        {"/dev/null", SANDBOX_READ | SANDBOX_WRITE}};
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);
    int r;

    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0) {
        print_message("this kernel has no Landlock\n");
        skip();
    }
    make_tree();
    (void)snprintf(readable, sizeof(readable), "%s", below("read"));
    (void)snprintf(writable, sizeof(writable), "%s", below("write"));
    s.all_files = false;
    s.paths = paths;
    s.n_paths = sizeof(paths) / sizeof(*paths);
    r = sandboxed_run(&s, look_at_files).status;
    remove_tree();
    assert_int_equal(r, 0);
}

static int start_listed(void)
{
    (void)execl("/bin/true", "true", NULL);
    return 1;
}

/* The loader counts as a program that is started. */
static void test_listed_program(void **state)
{
    struct sandbox_path paths[] = {{"/usr/bin/true", SANDBOX_READ | SANDBOX_EXEC},
        {"/usr/lib", SANDBOX_READ | SANDBOX_EXEC}, {"/lib64", SANDBOX_READ | SANDBOX_EXEC},
        {"/lib", SANDBOX_READ | SANDBOX_EXEC}, {"/etc", SANDBOX_READ}};
    struct sandbox s = sandboxed_plain(SANDBOX_AGENT);

    s.all_files = false;
    s.paths = paths;
    s.n_paths = sizeof(paths) / sizeof(*paths);
    assert_int_equal(sandboxed_run(&s, start_listed).status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_listed_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
