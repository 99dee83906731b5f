/* test-unix-socket.c - where a socket may be, who may reach it, and what is in its place. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "net/socket/unix_socket.h"

static char folder[64];

static const char *at(char buf[static 128], const char *name)
{
    (void)snprintf(buf, 128, "%s/%s", folder, name);
    return buf;
}

static void test_life(void **state)
{
    char path[128];
    struct stat st;
    int fd;
    int client;

    assert_int_equal(unix_socket_connect(at(path, "run/weft/s"), SOCK_STREAM), -ENOENT);
    fd = unix_socket_listen(path, SOCK_STREAM, 0600);
    assert_true(fd >= 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    client = unix_socket_connect(path, SOCK_STREAM);
    assert_true(client >= 0);
    (void)close(client);
    assert_int_equal(unix_socket_listen(path, SOCK_STREAM, 0600), -EADDRINUSE);

    /* Its process has ended: the file is still there, and is replaced. */
    (void)close(fd);
    assert_int_equal(unix_socket_connect(path, SOCK_STREAM), -ECONNREFUSED);
    fd = unix_socket_listen(path, SOCK_STREAM, 0600);
    assert_true(fd >= 0);
    client = unix_socket_connect(path, SOCK_STREAM);
    assert_true(client >= 0);
    (void)close(client);
    (void)close(fd);
}

static void test_refused(void **state)
{
    char long_path[UNIX_SOCKET_PATH_MAX + 2];
    char path[128];
    struct stat st;
    int fd = open(at(path, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_int_equal(write(fd, "kept", 4), 4);
    (void)close(fd);
    assert_int_equal(unix_socket_listen(path, SOCK_STREAM, 0600), -EEXIST);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(unix_socket_listen(at(path, "file/s"), SOCK_STREAM, 0600), -ENOTDIR);

    /* The kernel would give a socket without a place in the file system. */
    assert_int_equal(unix_socket_listen("", SOCK_STREAM, 0600), -EINVAL);
    assert_int_equal(unix_socket_connect("", SOCK_STREAM), -EINVAL);
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(unix_socket_listen(long_path, SOCK_STREAM, 0600), -ENAMETOOLONG);
    assert_int_equal(unix_socket_connect(long_path, SOCK_STREAM), -ENAMETOOLONG);
}

static int set_up(void **state)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/weft-socket-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"run/weft/s", "run/weft", "run", "file", ""};
    char path[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        (void)remove(at(path, names[i]));
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
