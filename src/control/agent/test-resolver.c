/*
 * test-resolver.c - what the node's name server answers, to whom, over UDP and TCP; in a network
 * namespace, with a name server of this machine's own that answers everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/resolver.h"
#include "agent/resolver_upstream.h"
#include "base/bytes.h"
#include "base/err.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "wire/dns.h"

#define OWN      "10.77.0.2"
#define UPSTREAM "127.0.0.9"
#define WAIT_MS  20000
#define RD       0x0100

static const char lines[] = "10.77.0.2\tgpu-1.default.weft gpu-1\n"
                            "fd77::2\tgpu-1.default.weft gpu-1\n"
                            "10.77.0.3\tgpu-2.default.weft gpu-2\n";

struct setting {
    struct tun overlay;
    struct resolver *resolver;
    struct resolver_place place;
    char conf[64]; /* path of the file that names UPSTREAM */
    int upstream;
    pthread_t thread;
    pthread_mutex_t answering; /* held by a test: nothing is answered there */
    bool has_upstream;
    int next_fd; /* the number that the next file gets */
};

static struct setting s;

/* ---- messages ---------------------------------------------------------------------------------
 */

struct message {
    uint8_t bytes[DNS_QUERY_MAX];
    size_t len;
};

static struct message query(uint16_t id, uint16_t flags, const char *name, uint16_t type)
{
    struct message m = {.len = DNS_HEADER_LEN};

    be16_store(m.bytes, id);
    be16_store(m.bytes + 2, flags);
    be16_store(m.bytes + 4, 1);
    while (*name) {
        size_t n = strcspn(name, ".");

        m.bytes[m.len++] = (uint8_t)n;
        memcpy(m.bytes + m.len, name, n);
        m.len += n;
        name += n + (name[n] == '.');
    }
    m.bytes[m.len++] = 0;
    be16_store(m.bytes + m.len, type);
    be16_store(m.bytes + m.len + 2, 1);
    m.len += 4;
    return m;
}

static void check(const struct message *m, uint16_t id, unsigned rcode, unsigned n_answers)
{
    assert_true(m->len >= DNS_HEADER_LEN);
    assert_int_equal(be16_load(m->bytes), id);
    assert_true(m->bytes[2] & 0x80);
    assert_int_equal(m->bytes[3] & 0x0f, rcode);
    assert_int_equal(be16_load(m->bytes + 6), n_answers);
}

/* ---- this machine's name server ---------------------------------------------------------------
 */

/* It answers each question with one address, 192.0.2.77, until it gets an empty datagram. */
static void *serve(void *arg)
{
    static const uint8_t record[] = {
        0xc0, DNS_HEADER_LEN, 0, DNS_TYPE_A, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 77};
    struct message m;

    for (;;) {
        struct sockaddr_in from;
        socklen_t from_len = sizeof(from);
        ssize_t n =
            recvfrom(s.upstream, m.bytes, sizeof(m.bytes), 0, (struct sockaddr *)&from, &from_len);
        size_t end = DNS_HEADER_LEN;

        if (n <= DNS_HEADER_LEN)
            return NULL;
        while (m.bytes[end] != 0)
            end += m.bytes[end] + 1U;
        end += 5;
        be16_store(m.bytes + 2, 0x8180);
        be16_store(m.bytes + 6, 1);
        be16_store(m.bytes + 10, 0);
        memcpy(m.bytes + end, record, sizeof(record));
        (void)pthread_mutex_lock(&s.answering);
        (void)pthread_mutex_unlock(&s.answering);
        (void)!sendto(
            s.upstream, m.bytes, end + sizeof(record), 0, (struct sockaddr *)&from, from_len);
    }
}

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};

    assert_int_equal(inet_pton(AF_INET, address, &sa.sin_addr), 1);
    return sa;
}

static void start_upstream(void)
{
    struct sockaddr_in sa = at(UPSTREAM, 53);

    assert_int_equal(pthread_mutex_init(&s.answering, NULL), 0);
    s.upstream = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s.upstream, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(pthread_create(&s.thread, NULL, serve, NULL), 0);
    s.has_upstream = true;
}

static void stop_upstream(void)
{
    struct sockaddr_in sa = at(UPSTREAM, 53);

    if (!s.has_upstream)
        return;
    (void)sendto(s.upstream, "", 0, 0, (struct sockaddr *)&sa, sizeof(sa));
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    (void)close(s.upstream);
}

static int next_fd(void)
{
    int fd = dup(STDIN_FILENO);

    (void)close(fd);
    return fd;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void add_address(struct netlink *nl, unsigned ifindex, const char *text)
{
    struct ip_prefix own = netns_prefix(text);

    assert_int_equal(rtnl_add_address(nl, ifindex, &own, false), 0);
}

static void write_conf(const char *text)
{
    FILE *f = fopen(s.conf, "we");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

/* Tell it where, and wait until it listens there. */
static void place(const char *address4, const char *address6)
{
    nsec_t deadline = clock_now() + 20 * NSEC_PER_SEC;

    s.place = (struct resolver_place){.network = "default"};
    s.place.blocks[0] = netns_prefix("10.77.0.0/16");
    s.place.blocks[1] = netns_prefix("fd77::/64");
    assert_int_equal(ip_addr_parse(&s.place.address4, address4, NULL), 0);
    if (address6)
        assert_int_equal(ip_addr_parse(&s.place.address6, address6, NULL), 0);
    do {
        assert_true(clock_now() < deadline);
        assert_true(resolver_set(s.resolver, &s.place, lines));
        (void)poll(NULL, 0, 2);
    } while (!resolver_is_listening(s.resolver));
}

static int leave(void **state)
{
    resolver_free(s.resolver);
    tun_close(&s.overlay);
    stop_upstream();
    if (s.conf[0])
        (void)unlink(s.conf);
    if (s.has_upstream)
        assert_int_equal(next_fd(), s.next_fd);
    return netns_leave(state);
}

static void begin(void **state)
{
    struct netlink *nl = netns_need(state);
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;
    struct rtnl_link link;

    s = (struct setting){.overlay = TUN_NULL, .next_fd = next_fd()};
    if (tun_open(&s.overlay, "weft0", 1, &offloads, &e) != 0)
        skip();
    (void)netns_raise_loopback(nl);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    add_address(nl, link.ifindex, OWN "/16");
    add_address(nl, link.ifindex, "10.77.0.5/16");
    add_address(nl, link.ifindex, "fd77::2/64");
    (void)snprintf(s.conf, sizeof(s.conf), "/tmp/weft-test-resolv.%d", (int)getpid());
    /* It never asks itself. */
    write_conf("nameserver " OWN "\nnameserver " UPSTREAM "\n");
    start_upstream();
    if (resolver_new(&s.resolver, "weft0", s.conf, &e) != 0)
        fail_msg("%s", err_text(&e));
}

/* ---- asking -----------------------------------------------------------------------------------
 */

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, WAIT_MS) == 1;
}

static struct message hear(int fd)
{
    struct message m = {.len = 0};
    ssize_t n;

    assert_true(is_readable(fd));
    n = recv(fd, m.bytes, sizeof(m.bytes), 0);
    assert_true(n > 0);
    m.len = (size_t)n;
    return m;
}

static int open_udp(const char *address)
{
    struct sockaddr_in sa = at(address, 53);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static struct message ask(const char *address, const struct message *m)
{
    int fd = open_udp(address);
    struct message answer;

    assert_int_equal(send(fd, m->bytes, m->len, 0), m->len);
    answer = hear(fd);
    (void)close(fd);
    return answer;
}

static void expect(const struct message *m, unsigned rcode, unsigned n_answers)
{
    struct message answer = ask(OWN, m);

    check(&answer, be16_load(m->bytes), rcode, n_answers);
}

/* ---- over UDP ---------------------------------------------------------------------------------
 */

static void test_names(void **state)
{
    static const uint8_t gpu_2[] = {10, 77, 0, 3};
    struct message m = query(7, RD, "gpu-2.default.weft", DNS_TYPE_A);
    struct message answer;

    begin(state);
    place(OWN, NULL);
    answer = ask(OWN, &m);
    check(&answer, 7, DNS_OK, 1);
    assert_memory_equal(answer.bytes + answer.len - 4, gpu_2, 4);
    m = query(8, 0, "gpu-9.default.weft", DNS_TYPE_A);
    expect(&m, DNS_NO_SUCH_NAME, 0);
    m = query(9, 0, "gpu-1", DNS_TYPE_AAAA);
    expect(&m, DNS_OK, 1);
}

static void test_what_is_no_question(void **state)
{
    struct message good = query(9, 0, "gpu-1", DNS_TYPE_A);
    struct message m = good;
    struct message answer;
    uint8_t long_one[DNS_QUERY_MAX + 1];
    int fd;

    begin(state);
    place(OWN, NULL);
    m.len -= 3;
    expect(&m, DNS_FORMAT_ERROR, 0);
    m = query(8, 0x1000, "gpu-1", DNS_TYPE_A);
    expect(&m, DNS_NOT_IMPLEMENTED, 0);
    /* An answer gets none: the next one is that of the next question. */
    fd = open_udp(OWN);
    m = query(8, 0x8000, "gpu-1", DNS_TYPE_A);
    assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
    /* Nor does nothing, nor what is too long to be one. */
    assert_int_equal(send(fd, m.bytes, 0, 0), 0);
    memset(long_one, 0, sizeof(long_one));
    m = query(7, 0, "gpu-1", DNS_TYPE_A);
    memcpy(long_one, m.bytes, m.len);
    assert_int_equal(send(fd, long_one, sizeof(long_one), 0), sizeof(long_one));
    assert_int_equal(send(fd, good.bytes, good.len, 0), good.len);
    answer = hear(fd);
    check(&answer, 9, DNS_OK, 1);
    (void)close(fd);
}

/* What is no name of the network's is taken to the machine's name servers, for whom that may. */
static void test_names_of_others(void **state)
{
    static const uint8_t theirs[] = {192, 0, 2, 77};
    struct message m = query(0x1234, RD, "example.com", DNS_TYPE_A);
    struct message answer;

    begin(state);
    place(OWN, NULL);
    for (unsigned i = 0; i < 3; i++) {
        answer = ask(OWN, &m);
        check(&answer, 0x1234, DNS_OK, 1);
        assert_memory_equal(answer.bytes + answer.len - 4, theirs, 4);
    }
    m = query(5, 0, "example.com", DNS_TYPE_A);
    expect(&m, DNS_REFUSED, 0);
}

/* ---- over TCP ---------------------------------------------------------------------------------
 */

static int open_tcp(void)
{
    struct sockaddr_in sa = at(OWN, 53);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* The message with its length in front. */
static size_t frame(const struct message *m, uint8_t *out)
{
    be16_store(out, (uint16_t)m->len);
    memcpy(out + 2, m->bytes, m->len);
    return m->len + 2;
}

static void read_all(int fd, uint8_t *out, size_t len)
{
    size_t n = 0;

    while (n < len) {
        ssize_t more;

        assert_true(is_readable(fd));
        more = read(fd, out + n, len - n);
        assert_true(more > 0);
        n += (size_t)more;
    }
}

static struct message hear_frame(int fd)
{
    struct message m = {.len = 0};
    uint8_t len[2];

    read_all(fd, len, 2);
    m.len = be16_load(len);
    assert_true(m.len <= sizeof(m.bytes));
    read_all(fd, m.bytes, m.len);
    return m;
}

/* The other end has closed it, and not only since it was idle. */
static void expect_end(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;

    assert_int_equal(poll(&p, 1, 8000), 1);
    assert_true(read(fd, &c, 1) <= 0);
    (void)close(fd);
}

/* Several at once, ours and others', are answered one after the other; a byte now and then does. */
static void test_several_over_tcp(void **state)
{
    const struct message all[] = {
        query(1, RD, "example.com", DNS_TYPE_A),
        query(2, RD, "gpu-1", DNS_TYPE_A),
        query(3, RD, "example.org", DNS_TYPE_A),
        query(4, 0, "example.org", DNS_TYPE_A),
        query(5, 0, "gpu-2", DNS_TYPE_A),
    };
    static const unsigned rcodes[] = {DNS_OK, DNS_OK, DNS_OK, DNS_REFUSED, DNS_OK};
    uint8_t bytes[1024];
    size_t len = 0;
    int fd;

    begin(state);
    place(OWN, NULL);
    fd = open_tcp();
    for (size_t i = 0; i < 5; i++)
        len += frame(&all[i], bytes + len);
    assert_int_equal(write(fd, bytes, len), len);
    for (uint16_t i = 0; i < 5; i++) {
        struct message answer = hear_frame(fd);

        check(&answer, i + 1, rcodes[i], rcodes[i] == DNS_OK);
    }
    len = frame(&all[1], bytes);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(write(fd, bytes + i, 1), 1);
    {
        struct message answer = hear_frame(fd);

        check(&answer, 2, DNS_OK, 1);
    }
    (void)close(fd);
}

static void test_what_ends_a_connection(void **state)
{
    struct message m = query(8, 0x8000, "gpu-1", DNS_TYPE_A);
    uint8_t bytes[1300];
    int fd;

    begin(state);
    place(OWN, NULL);
    fd = open_tcp();
    be16_store(bytes, DNS_QUERY_MAX + 1);
    assert_int_equal(write(fd, bytes, 2), 2);
    expect_end(fd);
    fd = open_tcp();
    be16_store(bytes, 0);
    assert_int_equal(write(fd, bytes, 2), 2);
    expect_end(fd);
    fd = open_tcp();
    assert_int_equal(write(fd, bytes, frame(&m, bytes)), m.len + 2);
    expect_end(fd);
    /* The longest that is taken, with nothing in it that is understood. */
    fd = open_tcp();
    m = query(9, 0, "gpu-1", DNS_TYPE_A);
    memset(m.bytes + m.len, 0, sizeof(m.bytes) - m.len);
    m.len = DNS_QUERY_MAX;
    assert_int_equal(write(fd, bytes, frame(&m, bytes)), DNS_QUERY_MAX + 2);
    m = hear_frame(fd);
    assert_int_equal(be16_load(m.bytes), 9);
    (void)close(fd);
}

/* One asker has eight at once: with the ninth the one that was idle longest ends. */
static void test_connections_of_one_asker(void **state)
{
    struct message m = query(1, 0, "gpu-1", DNS_TYPE_A);
    int fds[RESOLVER_ASKER_CONNECTIONS_MAX + 1];
    uint8_t bytes[256];
    struct message answer;
    size_t len = frame(&m, bytes);

    begin(state);
    place(OWN, NULL);
    for (unsigned i = 0; i < RESOLVER_ASKER_CONNECTIONS_MAX; i++) {
        fds[i] = open_tcp();
        assert_int_equal(write(fds[i], bytes, len), len);
        answer = hear_frame(fds[i]);
        check(&answer, 1, DNS_OK, 1);
        /* By a clock of whole milliseconds each is used later than the one before. */
        (void)poll(NULL, 0, 3);
    }
    assert_int_equal(write(fds[0], bytes, len), len);
    answer = hear_frame(fds[0]);
    fds[RESOLVER_ASKER_CONNECTIONS_MAX] = open_tcp();
    expect_end(fds[1]);
    for (unsigned i = 0; i <= RESOLVER_ASKER_CONNECTIONS_MAX; i++) {
        if (i == 1)
            continue;
        assert_int_equal(write(fds[i], bytes, len), len);
        answer = hear_frame(fds[i]);
        check(&answer, 1, DNS_OK, 1);
        (void)close(fds[i]);
    }
}

/* Of those that came in the same moment the first one ends. */
static void test_connections_of_one_moment(void **state)
{
    struct message m = query(1, 0, "gpu-1", DNS_TYPE_A);
    int fds[RESOLVER_ASKER_CONNECTIONS_MAX + 1];
    uint8_t bytes[256];
    size_t len = frame(&m, bytes);

    begin(state);
    place(OWN, NULL);
    for (unsigned i = 0; i <= RESOLVER_ASKER_CONNECTIONS_MAX; i++)
        fds[i] = open_tcp();
    expect_end(fds[0]);
    for (unsigned i = 1; i <= RESOLVER_ASKER_CONNECTIONS_MAX; i++) {
        struct message answer;

        assert_int_equal(write(fds[i], bytes, len), len);
        answer = hear_frame(fds[i]);
        check(&answer, 1, DNS_OK, 1);
        (void)close(fds[i]);
    }
}

/* ---- while others' names are asked for ---------------------------------------------------------
 */

/* A machine whose only name server is this one has nobody to ask. */
static void test_nobody_to_ask(void **state)
{
    struct message m = query(5, RD, "example.com", DNS_TYPE_A);
    struct message answer;
    uint8_t bytes[64];
    size_t len = frame(&m, bytes);
    int fd;

    begin(state);
    write_conf("nameserver " OWN "\n");
    place(OWN, NULL);
    fd = open_tcp();
    for (unsigned i = 0; i < 3; i++) {
        expect(&m, DNS_SERVER_FAILURE, 0);
        assert_int_equal(write(fd, bytes, len), len);
        answer = hear_frame(fd);
        check(&answer, 5, DNS_SERVER_FAILURE, 0);
    }
    m = query(6, RD, "gpu-1", DNS_TYPE_A);
    expect(&m, DNS_OK, 1);
    (void)close(fd);
}

/* One asker has so many questions under way; the next one fails, and so do all when it moves. */
static void test_questions_of_one_asker(void **state)
{
    struct message m = query(1, RD, "example.com", DNS_TYPE_A);
    bool is_answered[RESOLVER_QUESTIONS_MAX] = {false};
    struct message answer;
    int fd;

    begin(state);
    place(OWN, NULL);
    (void)pthread_mutex_lock(&s.answering);
    fd = open_udp(OWN);
    for (uint16_t i = 0; i <= RESOLVER_QUESTIONS_MAX; i++) {
        be16_store(m.bytes, i);
        assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
    }
    answer = hear(fd);
    check(&answer, RESOLVER_QUESTIONS_MAX, DNS_SERVER_FAILURE, 0);
    place("10.77.0.5", NULL);
    for (unsigned i = 0; i < RESOLVER_QUESTIONS_MAX; i++) {
        answer = hear(fd);
        assert_true(be16_load(answer.bytes) < RESOLVER_QUESTIONS_MAX);
        check(&answer, be16_load(answer.bytes), DNS_SERVER_FAILURE, 0);
        is_answered[be16_load(answer.bytes)] = true;
    }
    for (unsigned i = 0; i < RESOLVER_QUESTIONS_MAX; i++)
        assert_true(is_answered[i]);
    (void)pthread_mutex_unlock(&s.answering);
    (void)close(fd);
    /* Now there is room again. */
    m = query(9, RD, "example.com", DNS_TYPE_A);
    answer = ask("10.77.0.5", &m);
    check(&answer, 9, DNS_OK, 1);
}

/* What is asked meanwhile waits outside, however much it is. */
static void test_much_is_asked_meanwhile(void **state)
{
    struct message first = query(1, RD, "example.com", DNS_TYPE_A);
    struct message m = query(2, 0, "gpu-1", DNS_TYPE_A);
    struct message answer;
    uint8_t bytes[64];
    size_t len = frame(&first, bytes);
    int fd;

    begin(state);
    place(OWN, NULL);
    (void)pthread_mutex_lock(&s.answering);
    fd = open_tcp();
    assert_int_equal(write(fd, bytes, len), len);
    len = frame(&m, bytes);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(write(fd, bytes, len), len);
    /* Others are answered. */
    expect(&m, DNS_OK, 1);
    (void)pthread_mutex_unlock(&s.answering);
    answer = hear_frame(fd);
    check(&answer, 1, DNS_OK, 1);
    for (unsigned i = 0; i < 200; i++) {
        answer = hear_frame(fd);
        check(&answer, 2, DNS_OK, 1);
    }
    (void)close(fd);
}

/* Who asked has gone: the answer goes nowhere. */
static void test_an_asker_that_has_gone(void **state)
{
    struct message m = query(1, RD, "example.com", DNS_TYPE_A);
    struct message answer;
    uint8_t bytes[64];
    size_t len = frame(&m, bytes);

    begin(state);
    place(OWN, NULL);
    (void)pthread_mutex_lock(&s.answering);
    for (unsigned i = 0; i < 2 * RESOLVER_ASKER_CONNECTIONS_MAX; i++) {
        int fd = open_tcp();

        assert_int_equal(write(fd, bytes, len), len);
        /* The question has arrived when one after it is answered. */
        m = query(2, 0, "gpu-1", DNS_TYPE_A);
        expect(&m, DNS_OK, 1);
        (void)close(fd);
    }
    (void)pthread_mutex_unlock(&s.answering);
    m = query(3, RD, "example.org", DNS_TYPE_A);
    answer = ask(OWN, &m);
    check(&answer, 3, DNS_OK, 1);
}

/* ---- members ----------------------------------------------------------------------------------
 */

/* A member's question, as the overlay hands it to the kernel. */
static void say_as_member(const struct message *m)
{
    uint8_t frame[TUN_HEADER + 28 + DNS_QUERY_MAX] = {0};
    uint8_t *ip = frame + TUN_HEADER;
    size_t len = 28 + m->len;
    uint32_t sum = 0;

    ip[0] = 0x45;
    be16_store(ip + 2, (uint16_t)len);
    ip[8] = 64;
    ip[9] = IPPROTO_UDP;
    memcpy(ip + 12, (const uint8_t[]){10, 77, 0, 9, 10, 77, 0, 2}, 8);
    for (unsigned i = 0; i < 20; i += 2)
        sum += be16_load(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    be16_store(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    be16_store(ip + 20, 4000);
    be16_store(ip + 22, 53);
    be16_store(ip + 24, (uint16_t)(8 + m->len));
    memcpy(ip + 28, m->bytes, m->len);
    assert_int_equal(write(s.overlay.fd[0], frame, TUN_HEADER + len), TUN_HEADER + len);
}

/* What the kernel hands to the overlay for that member; what else goes out there is passed over. */
static struct message hear_as_member(void)
{
    static uint8_t frame[TUN_FRAME_MAX];
    struct pollfd all[TUN_QUEUES_MAX];
    nsec_t deadline = clock_now() + 20 * NSEC_PER_SEC;
    struct message m = {.len = 0};

    for (;;) {
        assert_true(clock_now() < deadline);
        for (unsigned i = 0; i < s.overlay.n; i++)
            all[i] = (struct pollfd){.fd = s.overlay.fd[i], .events = POLLIN};
        (void)poll(all, s.overlay.n, 1000);
        for (unsigned i = 0; i < s.overlay.n; i++) {
            const uint8_t *ip = frame + TUN_HEADER;
            ssize_t n = all[i].revents ? read(all[i].fd, frame, sizeof(frame)) : 0;

            if (n < (ssize_t)(TUN_HEADER + 28) || ip[0] != 0x45 || ip[9] != IPPROTO_UDP ||
                be16_load(ip + 20) != 53)
                continue;
            m.len = (size_t)n - TUN_HEADER - 28;
            assert_true(m.len <= sizeof(m.bytes));
            memcpy(m.bytes, ip + 28, m.len);
            return m;
        }
    }
}

/* Members are told the network's names, and ask nobody else through this machine. */
static void test_a_member_asks(void **state)
{
    struct message m = query(21, RD, "gpu-1.default.weft", DNS_TYPE_A);
    struct message answer;

    begin(state);
    place(OWN, NULL);
    say_as_member(&m);
    answer = hear_as_member();
    check(&answer, 21, DNS_OK, 1);
    m = query(22, RD, "example.com", DNS_TYPE_A);
    say_as_member(&m);
    answer = hear_as_member();
    check(&answer, 22, DNS_REFUSED, 0);
}

/* ---- where ------------------------------------------------------------------------------------
 */

static void expect_why(const char *words)
{
    nsec_t deadline = clock_now() + 20 * NSEC_PER_SEC;
    bool is_it = false;

    while (!is_it) {
        json_t *json = resolver_encode(s.resolver);
        const char *why = json_string_value(json_object_get(json, "why"));

        assert_true(clock_now() < deadline);
        is_it = strcmp(why, words) == 0;
        if (is_it)
            assert_int_equal(json_is_true(json_object_get(json, "listening")), words[0] == '\0');
        json_decref(json);
        (void)poll(NULL, 0, 2);
    }
}

/* It goes where it is told, and nowhere else. */
static void test_places(void **state)
{
    struct message m = query(1, 0, "gpu-1", DNS_TYPE_A);
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    struct message answer;
    char c;
    int fd;

    begin(state);
    place(OWN, "fd77::2");
    expect_why("");
    assert_int_equal(inet_pton(AF_INET6, "fd77::2", &sa.sin6_addr), 1);
    fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
    answer = hear(fd);
    check(&answer, 1, DNS_OK, 1);
    (void)close(fd);
    place("10.77.0.5", NULL);
    answer = ask("10.77.0.5", &m);
    check(&answer, 1, DNS_OK, 1);
    fd = open_udp(OWN);
    assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
    assert_true(is_readable(fd));
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
    (void)close(fd);
}

/* Told the same again it goes on as it is. */
static void test_the_same_place_again(void **state)
{
    struct message m = query(1, 0, "gpu-1", DNS_TYPE_A);
    struct message answer;
    uint8_t bytes[64];
    size_t len = frame(&m, bytes);
    int fd;

    begin(state);
    place(OWN, NULL);
    fd = open_tcp();
    for (unsigned i = 0; i < 20; i++) {
        assert_true(resolver_set(s.resolver, &s.place, lines));
        assert_int_equal(write(fd, bytes, len), len);
        answer = hear_frame(fd);
        check(&answer, 1, DNS_OK, 1);
    }
    (void)close(fd);
}

/* One of its addresses is not there: it answers nowhere until it is, and says each reason once. */
static void test_an_address_that_is_not_there(void **state)
{
    struct message m = query(1, 0, "gpu-1", DNS_TYPE_A);
    char c;
    int fd;

    begin(state);
    place(OWN, NULL);
    expect_why("");
    heard_log_begin();
    assert_int_equal(ip_addr_parse(&s.place.address6, "fd77::99", NULL), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(resolver_set(s.resolver, &s.place, lines));
        expect_why("UDP address [fd77::99]:53 cannot be used: Cannot assign requested address");
        assert_false(resolver_is_listening(s.resolver));
    }
    fd = open_udp(OWN);
    assert_int_equal(send(fd, m.bytes, m.len, 0), m.len);
    assert_true(is_readable(fd));
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
    (void)close(fd);
    assert_int_equal(ip_addr_parse(&s.place.address4, "10.77.0.98", NULL), 0);
    assert_true(resolver_set(s.resolver, &s.place, lines));
    expect_why("UDP address 10.77.0.98:53 cannot be used: Cannot assign requested address");
    place("10.77.0.5", NULL);
    expect_why("");
    assert_string_equal(heard_log_end(),
        "info: weft: the nodes' names are not answered by DNS, trying again: UDP address "
        "[fd77::99]:53 cannot be used: Cannot assign requested address\n"
        "info: weft: the nodes' names are not answered by DNS, trying again: UDP address "
        "10.77.0.98:53 cannot be used: Cannot assign requested address\n"
        "info: weft: the nodes' names are answered on 10.77.0.5, port 53\n");
}

static void test_no_interface(void **state)
{
    struct err e = ERR_NULL;

    begin(state);
    resolver_free(s.resolver);
    heard_log_begin();
    assert_int_equal(resolver_new(&s.resolver, "weft9", s.conf, &e), 0);
    s.place = (struct resolver_place){.network = "default"};
    s.place.blocks[0] = netns_prefix("10.77.0.0/16");
    s.place.blocks[1] = netns_prefix("fd77::/64");
    assert_int_equal(ip_addr_parse(&s.place.address4, OWN, NULL), 0);
    assert_true(resolver_set(s.resolver, &s.place, lines));
    expect_why("there is no interface weft9");
    assert_string_equal(heard_log_end(), "");
    assert_false(resolver_is_listening(s.resolver));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_question, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_names_of_others, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_nobody_to_ask, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_several_over_tcp, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_what_ends_a_connection, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_connections_of_one_asker, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_connections_of_one_moment, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_questions_of_one_asker, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_much_is_asked_meanwhile, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_an_asker_that_has_gone, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_a_member_asks, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_places, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_the_same_place_again, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_an_address_that_is_not_there, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_no_interface, netns_enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
