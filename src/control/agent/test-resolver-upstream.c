/*
 * test-resolver-upstream.c - whom a node's resolver asks for others' names, and what it hears; in a
 * network namespace, with name servers that the test answers for.
 */
#include "agent/resolver_upstream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "test/support/netns.h"
#include "wire/dns.h"

#define SERVERS 2

/* On them both name servers listen: one of IPv4, and one of IPv6. */
static const char *const addresses[SERVERS] = {"127.0.0.9", "::1"};

struct message {
    uint8_t bytes[DNS_QUERY_MAX];
    size_t len;
};

static struct world {
    uv_loop_t loop;
    uv_timer_t turn; /* ends a test that waits for something that does not come */
    char path[64];   /* of resolv.conf */
    struct resolver_upstream *upstream;
    int fd[SERVERS]; /* own */
    bool is_again;   /* the next answer has a question asked within the call */

    unsigned n_answers;
    unsigned n_without; /* of them those with none */
    uint8_t answer[DNS_QUERY_MAX];
    size_t answer_len;
} w;

/* ---- name servers ---------------------------------------------------------------------------- */

static int open_server(const char *address)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(53)};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (is_v4) {
        assert_int_equal(bind(fd, (struct sockaddr *)&v4, sizeof(v4)), 0);
        return fd;
    }
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&v6, sizeof(v6)), 0);
    return fd;
}

/* Takes all that has come to that server, and answers with "no such name" if it is to. Return: how
 * many questions these were. */
static unsigned take_questions(unsigned server, bool answers)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    struct message m;
    unsigned n = 0;
    ssize_t size;

    while ((size = recvfrom(
                w.fd[server], m.bytes, sizeof(m.bytes), 0, (struct sockaddr *)&from, &len)) > 0) {
        n++;
        be16_store(m.bytes + 2, 0x8180 | DNS_NO_SUCH_NAME);
        if (answers)
            assert_int_equal(
                sendto(w.fd[server], m.bytes, (size_t)size, 0, (struct sockaddr *)&from, len),
                size);
        len = sizeof(from);
    }
    return n;
}

static void name_servers(const char *text)
{
    FILE *f = fopen(w.path, "we");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static struct message query(uint16_t id)
{
    static const uint8_t question[] = {4, 'n', 'a', 'm', 'e', 0, 0, DNS_TYPE_A, 0, 1};
    struct message m = {.len = DNS_HEADER_LEN + sizeof(question)};

    be16_store(m.bytes, id);
    be16_store(m.bytes + 2, 0x0100);
    be16_store(m.bytes + 4, 1);
    memcpy(m.bytes + DNS_HEADER_LEN, question, sizeof(question));
    return m;
}

static bool ask(void);

static void on_answer(void *ctx, const uint8_t *answer, size_t len)
{
    assert_ptr_equal(ctx, &w);
    w.n_answers++;
    w.n_without += !answer;
    assert_true(len <= sizeof(w.answer));
    if (answer)
        memcpy(w.answer, answer, len);
    w.answer_len = len;
    if (w.is_again) {
        w.is_again = false;
        assert_true(ask());
    }
}

static bool ask(void)
{
    struct message m = query(7);

    return resolver_upstream_ask(w.upstream, m.bytes, m.len, on_answer, &w);
}

/* Turns until there are so many answers; both servers answer meanwhile. */
static void wait_for_answers(unsigned n)
{
    while (w.n_answers < n) {
        (void)uv_run(&w.loop, UV_RUN_ONCE);
        for (unsigned i = 0; i < SERVERS; i++)
            (void)take_questions(i, true);
    }
}

/* Asks, and returns which of the servers gets it. */
static unsigned ask_whom(void)
{
    unsigned n[SERVERS];

    assert_true(ask());
    do {
        (void)uv_run(&w.loop, UV_RUN_ONCE);
        for (unsigned i = 0; i < SERVERS; i++)
            n[i] = take_questions(i, true);
    } while (n[0] + n[1] == 0);
    assert_int_equal(n[0] + n[1], 1);
    wait_for_answers(w.n_answers + 1);
    return n[1];
}

static void set_own(const char *first, const char *second)
{
    struct ip_addr own[2];

    assert_int_equal(ip_addr_parse(&own[0], first, NULL), 0);
    assert_int_equal(ip_addr_parse(&own[1], second, NULL), 0);
    resolver_upstream_set_own(w.upstream, own, 2);
}

static void count_active(uv_handle_t *handle, void *ret)
{
    *(unsigned *)ret += handle != (uv_handle_t *)&w.turn && uv_is_active(handle);
}

/* How many handles of the loop wait for something, besides the test's. */
static unsigned n_active(void)
{
    unsigned n = 0;

    uv_walk(&w.loop, count_active, &n);
    return n;
}

static void on_turn(uv_timer_t *timer)
{
}

static int enter(void **state)
{
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    memset(&w, 0, sizeof(w));
    (void)netns_raise_loopback(*state);
    for (unsigned i = 0; i < SERVERS; i++)
        w.fd[i] = open_server(addresses[i]);
    (void)snprintf(w.path, sizeof(w.path), "/tmp/weft-test-upstream.%d", (int)getpid());
    name_servers("nameserver 127.0.0.9\n");
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    assert_int_equal(uv_timer_start(&w.turn, on_turn, 2, 2), 0);
    w.upstream = resolver_upstream_new(&w.loop, w.path);
    assert_non_null(w.upstream);
    return 0;
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    w.upstream = resolver_upstream_free(w.upstream);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < SERVERS; i++)
        (void)close(w.fd[i]);
    (void)unlink(w.path);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    return netns_leave(state);
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* The answer is handed on as it is but for its ID; then nothing is waited for. */
static void test_an_answer(void **state)
{
    struct message m = query(7);

    (void)netns_need(state);
    assert_int_equal(n_active(), 0);
    assert_true(ask());
    /* The name server's socket, and the clock for what is lost. */
    assert_int_equal(n_active(), 2);
    wait_for_answers(1);
    assert_int_equal(w.n_without, 0);
    assert_int_equal(w.answer_len, m.len);
    assert_int_equal(be16_load(w.answer + 2), 0x8180 | DNS_NO_SUCH_NAME);
    assert_memory_equal(w.answer + 4, m.bytes + 4, m.len - 4);
    for (unsigned i = 0; i < 5; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(n_active(), 0);
    assert_int_equal(w.n_answers, 1);
}

/* Each question goes out with an ID that nobody can guess, and not with its own. */
static void test_ids(void **state)
{
    uint16_t ids[8];
    unsigned n_same = 0;

    (void)netns_need(state);
    for (unsigned i = 0; i < 8; i++) {
        uint8_t in[DNS_QUERY_MAX];
        ssize_t n = -1;

        assert_true(ask());
        while (n < 0) {
            (void)uv_run(&w.loop, UV_RUN_ONCE);
            n = recv(w.fd[0], in, sizeof(in), 0);
        }
        ids[i] = be16_load(in);
        for (unsigned k = 0; k < i; k++)
            n_same += ids[k] == ids[i];
        n_same += ids[i] == 7;
    }
    assert_true(n_same < 3);
    resolver_upstream_cancel(w.upstream);
    assert_int_equal(w.n_answers, 8);
    assert_int_equal(w.n_without, 8);
}

/* One that asks again while it is told. */
static void test_a_question_within_an_answer(void **state)
{
    (void)netns_need(state);
    w.is_again = true;
    assert_true(ask());
    wait_for_answers(2);
    assert_int_equal(w.n_without, 0);
}

static void test_more_than_are_taken(void **state)
{
    struct message m = query(7);

    (void)netns_need(state);
    for (unsigned i = 0; i < RESOLVER_UPSTREAM_MAX; i++)
        assert_true(ask());
    assert_false(ask());
    assert_int_equal(w.n_answers, 0);
    resolver_upstream_cancel(w.upstream);
    assert_int_equal(w.n_answers, RESOLVER_UPSTREAM_MAX);
    assert_int_equal(w.n_without, RESOLVER_UPSTREAM_MAX);
    assert_int_equal(w.answer_len, 0);
    assert_int_equal(take_questions(0, false), RESOLVER_UPSTREAM_MAX);
    /* Again there is room; the longest query is taken, and none that is longer. */
    memset(m.bytes + m.len, 0, sizeof(m.bytes) - m.len);
    assert_false(resolver_upstream_ask(w.upstream, m.bytes, DNS_QUERY_MAX + 1, on_answer, &w));
    assert_int_equal(w.n_answers, RESOLVER_UPSTREAM_MAX);
    assert_true(resolver_upstream_ask(w.upstream, m.bytes, DNS_QUERY_MAX, on_answer, &w));
    resolver_upstream_cancel(w.upstream);
    (void)take_questions(0, false);
    (void)ask_whom();
}

/* ---- whom ------------------------------------------------------------------------------------ */

/* The file is read again when it has changed: in place, with another time, or as another file. */
static void test_other_name_servers(void **state)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct timespec later[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 7}};
    char other[80];

    (void)netns_need(state);
    assert_int_equal(utimensat(AT_FDCWD, w.path, times, 0), 0);
    assert_int_equal(ask_whom(), 0);
    /* As far as anybody can see it is the same. */
    name_servers("nameserver ::1\n");
    assert_int_equal(utimensat(AT_FDCWD, w.path, times, 0), 0);
    assert_int_equal(ask_whom(), 0);
    assert_int_equal(utimensat(AT_FDCWD, w.path, later, 0), 0);
    assert_int_equal(ask_whom(), 1);
    name_servers("nameserver 127.0.0.9\n");
    later[1].tv_sec++;
    assert_int_equal(utimensat(AT_FDCWD, w.path, later, 0), 0);
    assert_int_equal(ask_whom(), 0);
    /* A file of the same age that takes its place. */
    (void)snprintf(other, sizeof(other), "%s.old", w.path);
    assert_int_equal(rename(w.path, other), 0);
    name_servers("nameserver ::1\n");
    assert_int_equal(utimensat(AT_FDCWD, w.path, later, 0), 0);
    assert_int_equal(ask_whom(), 1);
    assert_int_equal(unlink(other), 0);
}

/* This resolver itself is not asked, at whichever of its addresses. */
static void test_own_addresses_are_left_out(void **state)
{
    (void)netns_need(state);
    name_servers("nameserver 127.0.0.9\nnameserver ::1\n");
    set_own("127.0.0.9", "192.0.2.1");
    assert_int_equal(ask_whom(), 1);
    set_own("192.0.2.1", "127.0.0.9");
    assert_int_equal(ask_whom(), 1);
    set_own("192.0.2.1", "::1");
    assert_int_equal(ask_whom(), 0);
    set_own("127.0.0.9", "::1");
    assert_false(ask());
    set_own("192.0.2.1", "192.0.2.2");
    assert_int_equal(ask_whom(), 0);
}

/* What was asked before has no answer then. */
static void test_own_addresses_that_change(void **state)
{
    (void)netns_need(state);
    assert_true(ask());
    set_own("192.0.2.1", "192.0.2.2");
    assert_int_equal(w.n_answers, 1);
    assert_int_equal(w.n_without, 1);
    resolver_upstream_cancel(w.upstream);
    assert_int_equal(w.n_answers, 1);
}

/* A server at which nobody listens is passed over. */
static void test_a_server_that_is_away(void **state)
{
    (void)netns_need(state);
    name_servers("nameserver 127.0.0.8\nnameserver ::1\n");
    assert_int_equal(ask_whom(), 1);
    assert_int_equal(w.n_without, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_an_answer),
        TEST(test_ids),
        TEST(test_a_question_within_an_answer),
        TEST(test_more_than_are_taken),
        TEST(test_other_name_servers),
        TEST(test_own_addresses_are_left_out),
        TEST(test_own_addresses_that_change),
        TEST(test_a_server_that_is_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
