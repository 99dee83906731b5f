/* test-isolate.c - which ports are a job's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "train/job/isolate.h"
#include "net/socket/socket.h"

static void test_whose_ports_they_are(void **state)
{
    static const struct isolate_socket all[] = {{7, 40001}, {8, 40002}, {9, 22}, {10, 40001}};
    static const uint32_t own[] = {8, 9};
    struct job_ports_word w = JOB_PORTS_WORD_NULL;

    assert_true(isolate_sort(all, 4, own, 2, &w));
    assert_int_equal(w.own.n, 1);
    assert_int_equal(w.own.items[0], 40002);
    assert_int_equal(w.others.n, 1);
    assert_int_equal(w.others.items[0], 40001);
    assert_true(w.first >= JOB_PORTS_FIRST && w.last >= w.first);
    job_ports_word_deinit(&w);
    /* Without any process of the job all are others'. */
    assert_true(isolate_sort(all, 4, NULL, 0, &w));
    assert_int_equal(w.own.n, 0);
    assert_int_equal(w.others.n, 2);
    job_ports_word_deinit(&w);
}

/** A port that is looked for among those that listen. */
struct wanted {
    uint16_t port;
    uint64_t inode;
};

static void find(void *ctx, uint16_t port, uint64_t inode)
{
    struct wanted *w = ctx;

    if (port == w->port)
        w->inode = inode;
}

static void test_who_listens(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct wanted w = {.port = 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    w.port = ntohs(at.sin_port);
    /* One that is bound does not listen yet. */
    listeners_list(find, &w);
    assert_int_equal(w.inode, 0);
    assert_int_equal(listen(fd, 1), 0);
    listeners_list(find, &w);
    assert_int_not_equal(w.inode, 0);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_ports_they_are),
        cmocka_unit_test(test_who_listens),
    };

    return cmocka_run_group_tests_name("isolate", tests, NULL, NULL);
}
