/*
 * test-loss.c - what a test of loss says of a peer that loses some of what it is sent, answers as
 * an earlier version did, or answers nothing.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "measure/link_test.h"
#include "measure/order.h"
#include "net/address/sockaddr.h"

/* A measuring service as a line makes it look. */
struct peer {
    int fd;
    uint32_t lose_each;   /* of counted pings, one in so many; 0: none */
    bool answers_all;     /* an earlier version, which knows of no silent ping */
    bool answers_nothing; /* not even a question */
    bool repeats;         /* the network makes a second one of each */
    uint32_t heard;       /* what it says in pongs */
    uint32_t came;        /* counted pings, with those that are lost */
    uint32_t n_pongs;
    _Atomic bool is_over;
    pthread_t thread;
};

static const struct session_id session = {{1, 2, 3}};

static void take(struct peer *p, const struct frame *ping, const struct sockaddr_in *from)
{
    struct frame pong = *ping;
    uint8_t out[FRAME_LEN];

    if (ping->counted && p->lose_each > 0 && ++p->came % p->lose_each == 0)
        return;
    p->heard += ping->counted ? (p->repeats ? 2 : 1) : 0;
    if (p->answers_nothing || (ping->is_silent && !p->answers_all))
        return;
    pong.kind = FRAME_PONG;
    pong.heard = p->heard;
    frame_encode(&pong, out);
    (void)sendto(p->fd, out, sizeof(out), 0, (const struct sockaddr *)from, sizeof(*from));
    p->n_pongs++;
}

static void *serve(void *arg)
{
    struct peer *p = arg;
    struct pollfd fds = {.fd = p->fd, .events = POLLIN};

    while (!p->is_over) {
        struct sockaddr_in from;
        socklen_t len = sizeof(from);
        uint8_t in[FRAME_LEN];
        struct frame ping;
        ssize_t n;

        if (poll(&fds, 1, 10) <= 0)
            continue;
        n = recvfrom(p->fd, in, sizeof(in), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (n == FRAME_LEN && frame_decode(&ping, in, (size_t)n) &&
            session_id_equal(&ping.id, &session))
            take(p, &ping, &from);
    }
    return NULL;
}

/* Sends @o to @p, whose thread runs meanwhile. */
static struct loss_test run(struct peer *p, const struct order *o)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct dial_target to = {.id = session};
    struct endpoint at;
    struct loss_test l;

    p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->fd, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(sockaddr_local(p->fd, &at), 0);
    to.peer = at.addr;
    to.port = at.port;
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
    loss_test_run(&l, &to, o);
    p->is_over = true;
    (void)pthread_join(p->thread, NULL);
    (void)close(p->fd);
    return l;
}

static const struct order thousand = {
    .kind = ORDER_LOSS, .datagrams = 1000, .per_second = 50000, .ms = 20000};

static void test_all_arrive(void **state)
{
    struct peer p = {.heard = 77};
    struct loss_test l = run(&p, &thousand);

    assert_string_equal(l.why, "");
    assert_int_equal(l.sent, 1000);
    assert_int_equal(l.heard, 1000);
    /* One in sixteen is answered, and two questions. */
    assert_in_range(p.n_pongs, 60, 80);
}

static void test_some_are_lost(void **state)
{
    struct peer p = {.lose_each = 50};
    struct loss_test l = run(&p, &thousand);

    assert_string_equal(l.why, "");
    assert_int_equal(l.sent, 1000);
    assert_int_equal(l.heard, 980);
}

/* It answers each, which is not needed, and is not in the way. */
static void test_an_earlier_version(void **state)
{
    struct peer p = {.lose_each = 50, .answers_all = true};
    struct loss_test l = run(&p, &thousand);

    assert_string_equal(l.why, "");
    assert_int_equal(l.sent, 1000);
    assert_int_equal(l.heard, 980);
    assert_true(p.n_pongs > 900);
}

/* More have not come than were sent. */
static void test_duplicates(void **state)
{
    struct peer p = {.repeats = true};
    struct loss_test l = run(&p, &thousand);

    assert_int_equal(l.sent, 1000);
    assert_int_equal(l.heard, 1000);
}

/* All counted ones are lost: the window does not keep it for ever, nor beyond its time. */
static void test_all_are_lost(void **state)
{
    struct order o = thousand;
    struct peer p = {.lose_each = 1};
    struct loss_test l;

    o.ms = 100;
    l = run(&p, &o);
    assert_string_equal(l.why, "");
    assert_in_range(l.sent, 1, 128);
    assert_int_equal(l.heard, 0);
    assert_in_range(l.ms, 100, 20000);
}

static void test_no_answer(void **state)
{
    struct peer p = {.answers_nothing = true};
    struct loss_test l = run(&p, &thousand);

    assert_string_equal(l.why, "nothing that was sent is answered");
    assert_int_equal(l.sent, 0);
}

/* A slow line is not sent more than it takes. */
static void test_pace(void **state)
{
    struct order o = thousand;
    struct peer p = {.heard = 0};
    struct loss_test l;

    o.per_second = 200;
    o.ms = 200;
    l = run(&p, &o);
    assert_in_range(l.sent, 1, 41);
    assert_int_equal(l.heard, l.sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrive),
        cmocka_unit_test(test_some_are_lost),
        cmocka_unit_test(test_an_earlier_version),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_all_are_lost),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
