/* test-tcp-watch.c - connections that move data, on the loopback of this namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "net/socket/tcp.h"

/* How long the kernel may take to tell, ms: it does so from a thread of its own. */
#define PATIENCE_MS 20000

struct pair {
    int a;         /* has connected */
    int b;         /* was accepted */
    uint16_t port; /* of @b */
    uint16_t from; /* of @a */
};

/* @family: of the listening socket; an IPv4 client comes to it in any case. */
static struct pair connect_pair(int family)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 got = {0};
    socklen_t len = sizeof(got);
    struct pair p = {.a = socket(AF_INET, SOCK_STREAM, 0)};
    int fd = socket(family, SOCK_STREAM, 0);

    if (family == AF_INET6)
        assert_int_equal(bind(fd, (struct sockaddr *)&any6, sizeof(any6)), 0);
    else
        assert_int_equal(bind(fd, (struct sockaddr *)&any4, sizeof(any4)), 0);
    assert_int_equal(listen(fd, 1), 0);
    /* The port lies at the same place in both. */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&got, &len), 0);
    to.sin_port = got.sin6_port;
    assert_int_equal(connect(p.a, (struct sockaddr *)&to, sizeof(to)), 0);
    p.b = accept(fd, NULL, NULL);
    assert_true(p.b >= 0);
    p.port = ntohs(to.sin_port);
    len = sizeof(got);
    assert_int_equal(getsockname(p.a, (struct sockaddr *)&got, &len), 0);
    p.from = ntohs(got.sin6_port);
    (void)close(fd);
    return p;
}

static void say(const struct pair *p)
{
    char buf[4];

    assert_int_equal(send(p->a, "abc", 3, 0), 3);
    assert_int_equal(recv(p->b, buf, sizeof(buf), 0), 3);
}

static void end(struct pair *p)
{
    (void)close(p->a);
    (void)close(p->b);
}

/* The kernel at the other end acknowledges what comes, whether or not anybody reads it. */
static void test_an_answer(void **state)
{
    struct pair p = connect_pair(AF_INET);
    int none[2];

    assert_true(tcp_is_answered(p.a, NSEC_PER_SEC));
    assert_int_equal(send(p.a, "abc", 3, 0), 3);
    assert_true(tcp_is_answered(p.a, NSEC_PER_SEC));
    /* What is no connection cannot tell. */
    assert_int_equal(pipe(none), 0);
    assert_true(tcp_is_answered(none[0], 0));
    (void)close(none[0]);
    (void)close(none[1]);
    end(&p);
}

/* The connections of one pair that are told. */
struct reported {
    const struct pair *of;
    unsigned n_a; /* of the end that has connected */
    unsigned n_b;
};

static void take(void *ctx, const struct tcp_watch_pair *p)
{
    struct reported *t = ctx;
    const uint8_t loopback[4] = {127, 0, 0, 1};
    const struct ip_addr at = ip_addr_v4(loopback);

    if (!ip_addr_equal(&p->local.addr, &at) || !ip_addr_equal(&p->remote.addr, &at))
        return;
    t->n_a += p->local.port == t->of->from && p->remote.port == t->of->port;
    t->n_b += p->local.port == t->of->port && p->remote.port == t->of->from;
}

static struct reported list(struct tcp_watch *w, const struct pair *p)
{
    struct reported t = {.of = p};

    tcp_watch_list(w, take, &t);
    return t;
}

/* Until both ends of @p were told. */
static void hear_both(struct tcp_watch *w, const struct pair *p)
{
    struct reported t = {.of = p};
    struct pollfd updates = {.fd = w->updates_fd, .events = POLLIN};

    while (t.n_a == 0 || t.n_b == 0) {
        if (poll(&updates, 1, PATIENCE_MS) != 1)
            fail_msg("%u and %u were told", t.n_a, t.n_b);
        tcp_watch_hear(w, take, &t);
    }
}

static void open_watch(struct tcp_watch *ret)
{
    if (tcp_watch_open(ret) < 0)
        skip(); /* as on a kernel without inet_diag */
}

static void test_data_is_told(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; i < 2; i++) {
        struct tcp_watch w = TCP_WATCH_NULL;
        struct pair p;

        open_watch(&w);
        p = connect_pair(families[i]);
        assert_int_equal(list(&w, &p).n_a + list(&w, &p).n_b, 0);
        say(&p);
        assert_int_equal(list(&w, &p).n_a, 1);
        assert_int_equal(list(&w, &p).n_b, 1);
        end(&p);
        hear_both(&w, &p);
        assert_false(w.has_missed);
        tcp_watch_close(&w);
        tcp_watch_close(&w);
    }
}

/* Two pairs, of which the second is told of last. */
struct both {
    struct reported silent;
    struct reported last;
};

static void take_both(void *ctx, const struct tcp_watch_pair *p)
{
    struct both *both = ctx;

    take(&both->silent, p);
    take(&both->last, p);
}

/* One on which nothing was said. The kernel tells of ends in their order. */
static void test_no_data_is_not_told(void **state)
{
    struct tcp_watch w = TCP_WATCH_NULL;
    struct pair silent;
    struct pair last;
    struct both both;
    struct pollfd updates;

    open_watch(&w);
    silent = connect_pair(AF_INET);
    end(&silent);
    last = connect_pair(AF_INET);
    say(&last);
    end(&last);
    both = (struct both){.silent.of = &silent, .last.of = &last};
    updates = (struct pollfd){.fd = w.updates_fd, .events = POLLIN};
    while (both.last.n_a == 0 || both.last.n_b == 0) {
        assert_int_equal(poll(&updates, 1, PATIENCE_MS), 1);
        tcp_watch_hear(&w, take_both, &both);
    }
    assert_int_equal(both.silent.n_a + both.silent.n_b, 0);
    tcp_watch_close(&w);
}

/* Neither while it goes on nor when it ends. */
static void test_what_was_there_is_passed_over(void **state)
{
    struct tcp_watch w = TCP_WATCH_NULL;
    struct pair p = connect_pair(AF_INET);
    struct pair next;
    struct both both;
    struct pollfd updates;

    open_watch(&w);
    say(&p);
    assert_int_equal(list(&w, &p).n_a + list(&w, &p).n_b, 0);
    next = connect_pair(AF_INET);
    say(&next);
    assert_int_equal(list(&w, &next).n_a, 1);
    end(&p);
    end(&next);
    both = (struct both){.silent.of = &p, .last.of = &next};
    updates = (struct pollfd){.fd = w.updates_fd, .events = POLLIN};
    while (both.last.n_a == 0 || both.last.n_b == 0) {
        assert_int_equal(poll(&updates, 1, PATIENCE_MS), 1);
        tcp_watch_hear(&w, take_both, &both);
    }
    assert_int_equal(both.silent.n_a + both.silent.n_b, 0);
    tcp_watch_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_data_is_told),
        cmocka_unit_test(test_no_data_is_not_told),
        cmocka_unit_test(test_what_was_there_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
