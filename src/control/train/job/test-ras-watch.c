/* test-ras-watch.c - NCCL's RAS is asked, by a stand-in that speaks its protocol. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "net/address/sockaddr.h"
#include "os/file.h"
#include "train/job/ras_watch.h"

#define SEC  NSEC_PER_SEC
#define HEAD "SERVER PROTOCOL 2\nOK\nOK\n"
#define ANSWER                                                                                     \
    HEAD "{\"communicators\": [{\"size\": 2, \"ranks\": [{\"rank\": 0, \"pid\": %u, "              \
         "\"collective_counts\": {\"AllReduce\": %u}}, {\"rank\": 1, \"pid\": 9, "                 \
         "\"collective_counts\": {\"AllReduce\": 4}}]}]}\n"

/* Looks in which something has to come of loopback. */
#define LOOKS_MAX 1000

static struct world {
    int listener;
    char address[ENDPOINT_TEXT_MAX];
    struct ras_watch watch;
    nsec_t now;
} w;

static bool is_own(const void *arg, uint32_t pid)
{
    return pid == 7 && arg == &w;
}

static void look(void)
{
    ras_watch_look(&w.watch, is_own, &w, w.now);
}

static int begin(void **state)
{
    union sockaddr_inet any = {.v4 = {.sin_family = AF_INET}};
    struct endpoint at;

    any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w = (struct world){.now = 100 * SEC, .watch = RAS_WATCH_NULL};
    w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(w.listener, &any.any, sizeof(any.v4)), 0);
    assert_int_equal(listen(w.listener, 4), 0);
    assert_int_equal(sockaddr_local(w.listener, &at), 0);
    (void)endpoint_format(&at, w.address);
    ras_watch_begin(&w.watch, w.address, w.now);
    return 0;
}

static int end(void **state)
{
    ras_watch_end(&w.watch);
    ras_watch_end(&w.watch);
    closep(&w.listener);
    return 0;
}

static void wait_for(int fd)
{
    assert_true(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10) >= 0);
}

/* Is it asking? */
static bool asks(void)
{
    int fd;

    look();
    wait_for(w.listener);
    fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* Answers the question that comes now. */
static void serve(const char *answer)
{
    static const char wanted[] = RAS_QUESTION;
    char question[sizeof(wanted)] = "";
    size_t len = 0;
    int fd = -1;

    for (unsigned i = 0; fd < 0 && i < LOOKS_MAX; i++) {
        look();
        wait_for(w.listener);
        fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    assert_true(fd >= 0);
    for (unsigned i = 0; len < strlen(wanted) && i < LOOKS_MAX; i++) {
        ssize_t n;

        look();
        wait_for(fd);
        n = read(fd, question + len, strlen(wanted) - len);
        len += n > 0 ? (size_t)n : 0;
    }
    assert_string_equal(question, wanted);
    /* In two parts, between which nothing is concluded. */
    assert_int_equal(write(fd, answer, strlen(answer) / 2), (ssize_t)(strlen(answer) / 2));
    look();
    assert_true(w.watch.fd >= 0);
    answer += strlen(answer) / 2;
    assert_int_equal(write(fd, answer, strlen(answer)), (ssize_t)strlen(answer));
    (void)close(fd);
    for (unsigned i = 0; w.watch.fd >= 0 && i < LOOKS_MAX; i++) {
        wait_for(w.watch.fd);
        look();
    }
    assert_int_equal(w.watch.fd, -1);
}

static void serve_ranks(unsigned pid, unsigned started)
{
    char answer[1024];

    (void)snprintf(answer, sizeof(answer), ANSWER, pid, started);
    serve(answer);
}

static struct ras_ranks said(void)
{
    struct ras_ranks r = {.n = 0};

    ras_watch_add(&r, &w.watch, w.now);
    return r;
}

static void test_who_has_the_first_rank(void **state)
{
    w.now += 4 * SEC;
    assert_false(asks());
    w.now += SEC;
    serve_ranks(7, 5);
    /* Once it is known only that it is so, not for how long. */
    assert_int_equal(said().n, 1);
    assert_int_equal(said().still_ms, 0);
    w.now += 5 * SEC;
    serve_ranks(7, 5);
    assert_int_equal(said().still_ms, 5000);
    assert_int_equal(said().items[0].rank, 1);
    w.now += 5 * SEC;
    serve_ranks(7, 6);
    assert_int_equal(said().still_ms, 0);
    /* What it has said is old after a while. */
    w.now += 30 * SEC;
    assert_false(said().is_known);
    serve_ranks(7, 4);
    assert_true(said().is_known && said().n == 0);
}

static void test_another_job(void **state)
{
    w.now += 5 * SEC;
    serve_ranks(8, 5);
    assert_false(said().is_known);
    w.now += 59 * SEC;
    assert_false(asks());
    w.now += SEC;
    serve_ranks(7, 5);
    assert_int_equal(said().n, 1);
}

static void test_an_old_nccl(void **state)
{
    w.now += 5 * SEC;
    serve("SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET FORMAT json\nNCCL version 2.24.3\n");
    w.now += 599 * SEC;
    assert_false(asks());
    w.now += SEC;
    assert_true(asks());
}

/* It is asked again, and nothing waits for it. */
static void test_one_that_says_nothing(void **state)
{
    w.now += 5 * SEC;
    look();
    w.now += 20 * SEC;
    look();
    assert_true(w.watch.fd >= 0);
    w.now += SEC;
    look();
    assert_int_equal(w.watch.fd, -1);
    look();
    assert_true(w.watch.fd >= 0);
}

static void test_nobody_listens(void **state)
{
    closep(&w.listener);
    w.now += 5 * SEC;
    for (unsigned i = 0; i < LOOKS_MAX; i++) {
        look();
        if (w.watch.fd < 0)
            break;
        wait_for(w.watch.fd);
    }
    assert_int_equal(w.watch.fd, -1);
    assert_true(w.watch.next_at > w.now && w.watch.next_at < NSEC_NEVER);
}

static void test_where_it_is_asked(void **state)
{
    static const struct {
        const char *address;
        unsigned n;
        uint16_t port;
    } cases[] = {{NULL, 2, 28028}, {"", 2, 28028}, {"localhost:4000", 2, 4000},
        {"10.77.0.1:4000", 1, 4000}, {"[fd5a::1]:4000", 1, 4000}, {"localhost:", 0, 0},
        {"localhost:99999", 0, 0}, {"gpu-1:4000", 0, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ras_watch_begin(&w.watch, cases[i].address, w.now);
        assert_int_equal(w.watch.n_at, cases[i].n);
        assert_int_equal(w.watch.at[0].port, cases[i].port);
        assert_true((w.watch.next_at == NSEC_NEVER) == (cases[i].n == 0));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_has_the_first_rank),
        TEST(test_another_job),
        TEST(test_an_old_nccl),
        TEST(test_one_that_says_nothing),
        TEST(test_nobody_listens),
        TEST(test_where_it_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
