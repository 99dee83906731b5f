/*
 * test-resolver-containers.c - how many questions and connections the containers of a machine have
 * at its name server, beside those of the machine itself, and what strangers get.
 *
 * The containers are addresses in a network namespace of their own, at the other end of a pair. The
 * machine's name server answers nothing, so all that is asked there stays under way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
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
#include "test/support/netns.h"
#include "wire/dns.h"

#define OWN      "10.77.0.2"
#define UPSTREAM "127.0.0.9"

/* Containers, each with as many connections as it may have, that fill the room of all. */
#define CONTAINERS (RESOLVER_CONNECTIONS_MAX / RESOLVER_ASKER_CONNECTIONS_MAX)

static struct world {
    struct tun overlay;
    struct resolver *resolver;
    char conf[64];
    int upstream;         /* owns; nobody reads it */
    unsigned ifindex;     /* of this machine's end of the pair */
    pthread_barrier_t at; /* the containers' thread and the test's */
    pid_t tid;            /* that thread's */
    int udp[CONTAINERS];  /* own; from each container to the name server */
    int tcp[CONTAINERS][RESOLVER_ASKER_CONNECTIONS_MAX]; /* own; not connected yet */
} w;

/* ---- the containers -------------------------------------------------------------------------- */

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};

    assert_int_equal(inet_pton(AF_INET, address, &sa.sin_addr), 1);
    return sa;
}

static int open_from(int type, const char *address)
{
    struct sockaddr_in sa = at(address, 0);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    return bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? fd : -1;
}

/* Makes the sockets of all containers, in a namespace that lives as long as they do. */
static void *make_containers(void *arg)
{
    struct netlink nl = NETLINK_NULL;
    struct rtnl_link link;
    struct ip_prefix prefix;
    char text[32];

    w.tid = unshare(CLONE_NEWNET) == 0 ? gettid() : 0;
    (void)pthread_barrier_wait(&w.at);
    /* Meanwhile the test hands over the link. */
    (void)pthread_barrier_wait(&w.at);
    if (w.tid == 0 || netlink_open(&nl, NETLINK_ROUTE) != 0 ||
        rtnl_find_link(&nl, "veth0", &link) != 0)
        return NULL;
    (void)rtnl_set_link(&nl, link.ifindex, true, 0);
    for (unsigned i = 0; i < CONTAINERS; i++) {
        (void)snprintf(text, sizeof(text), "172.18.0.%u/24", i + 2);
        prefix = netns_prefix(text);
        (void)rtnl_add_address(&nl, link.ifindex, &prefix, false);
    }
    prefix = netns_prefix("10.77.0.0/16");
    (void)rtnl_add_route(&nl, link.ifindex, &prefix, NULL);
    for (unsigned i = 0; i < CONTAINERS; i++) {
        (void)snprintf(text, sizeof(text), "172.18.0.%u", i + 2);
        w.udp[i] = open_from(SOCK_DGRAM, text);
        for (unsigned k = 0; k < RESOLVER_ASKER_CONNECTIONS_MAX; k++)
            w.tcp[i][k] = open_from(SOCK_STREAM, text);
    }
    netlink_close(&nl);
    return NULL;
}

static void give_away(struct netlink *nl, const char *name, pid_t tid)
{
    struct netlink_message rq;
    struct ifinfomsg *ifi = netlink_start(&rq, RTM_NEWLINK, NLM_F_ACK, sizeof(*ifi));

    ifi->ifi_index = (int)if_nametoindex(name);
    mnl_attr_put_u32(rq.nlh, IFLA_NET_NS_PID, (uint32_t)tid);
    assert_int_equal(netlink_request(nl, rq.nlh, NULL, NULL), 0);
}

static unsigned add_address(struct netlink *nl, const char *name, const char *text)
{
    struct ip_prefix own = netns_prefix(text);
    struct rtnl_link link;

    assert_int_equal(rtnl_find_link(nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &own, false), 0);
    return link.ifindex;
}

static void start_containers(struct netlink *nl)
{
    pthread_t thread;

    assert_int_equal(rtnl_add_link(nl, "cali1", "veth"), 0);
    w.ifindex = add_address(nl, "cali1", "172.18.0.1/24");
    assert_int_equal(pthread_barrier_init(&w.at, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, make_containers, NULL), 0);
    (void)pthread_barrier_wait(&w.at);
    if (w.tid != 0)
        give_away(nl, "veth0", w.tid);
    (void)pthread_barrier_wait(&w.at);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&w.at);
    assert_true(w.udp[CONTAINERS - 1] > 0);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void begin(void **state)
{
    static const char lines[] = "10.77.0.2\tgpu-1.default.weft gpu-1\n";
    struct resolver_place place = {
        .network = "default", .blocks = {netns_prefix("10.77.0.0/16"), netns_prefix("fd77::/64")}};
    nsec_t deadline = clock_now() + 20 * NSEC_PER_SEC;
    struct sockaddr_in upstream = at(UPSTREAM, 53);
    struct netlink *nl = netns_need(state);
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;
    FILE *f;

    w = (struct world){.overlay = TUN_NULL};
    if (tun_open(&w.overlay, "weft0", 1, &offloads, &e) != 0)
        skip();
    (void)netns_raise_loopback(nl);
    (void)add_address(nl, "weft0", OWN "/16");
    start_containers(nl);
    w.upstream = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w.upstream, (struct sockaddr *)&upstream, sizeof(upstream)), 0);
    (void)snprintf(w.conf, sizeof(w.conf), "/tmp/weft-test-containers.%d", (int)getpid());
    f = fopen(w.conf, "we");
    assert_non_null(f);
    (void)fputs("nameserver " UPSTREAM "\n", f);
    (void)fclose(f);
    if (resolver_new(&w.resolver, "weft0", w.conf, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(ip_addr_parse(&place.address4, OWN, NULL), 0);
    do {
        assert_true(clock_now() < deadline);
        assert_true(resolver_set(w.resolver, &place, lines));
        (void)poll(NULL, 0, 2);
    } while (!resolver_is_listening(w.resolver));
}

static int leave(void **state)
{
    w.resolver = resolver_free(w.resolver);
    tun_close(&w.overlay);
    if (w.conf[0]) {
        (void)unlink(w.conf);
        (void)close(w.upstream);
    }
    for (unsigned i = 0; i < CONTAINERS; i++) {
        if (w.udp[i] > 0)
            (void)close(w.udp[i]);
        for (unsigned k = 0; k < RESOLVER_ASKER_CONNECTIONS_MAX; k++)
            if (w.tcp[i][k] > 0)
                (void)close(w.tcp[i][k]);
    }
    return netns_leave(state);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct message {
    uint8_t bytes[64];
    size_t len;
};

/* For a name of the network's, or of others. */
static struct message query(uint16_t id, bool is_ours)
{
    static const uint8_t ours[] = {5, 'g', 'p', 'u', '-', '1', 0, 0, DNS_TYPE_A, 0, 1};
    static const uint8_t others[] = {5, 'o', 't', 'h', 'e', 'r', 0, 0, DNS_TYPE_A, 0, 1};
    struct message m = {.len = DNS_HEADER_LEN + sizeof(ours)};

    be16_store(m.bytes, id);
    be16_store(m.bytes + 2, 0x0100);
    be16_store(m.bytes + 4, 1);
    memcpy(m.bytes + DNS_HEADER_LEN, is_ours ? ours : others, sizeof(ours));
    return m;
}

static void say(int fd, uint16_t id, bool is_ours)
{
    struct sockaddr_in to = at(OWN, 53);
    struct message m = query(id, is_ours);

    assert_int_equal(
        sendto(fd, m.bytes, m.len, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)m.len);
}

/* The next answer that comes there is to that question, and says that. */
static void hear(int fd, uint16_t id, unsigned rcode)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t answer[DNS_ANSWER_MAX];

    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_true(recv(fd, answer, sizeof(answer), 0) >= DNS_HEADER_LEN);
    assert_int_equal(be16_load(answer), id);
    assert_int_equal(answer[3] & 0x0f, rcode);
}

/* Asks for so many names of others, which is not refused. */
static void ask_much(int fd, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        say(fd, 1, false);
    /* They have arrived when a question after them is answered. */
    say(fd, 2, true);
    hear(fd, 2, DNS_OK);
}

static void ask_in_vain(int fd)
{
    say(fd, 3, false);
    hear(fd, 3, DNS_SERVER_FAILURE);
}

/* Each container has its own questions, all of them some, and the machine has what is left. */
static void test_questions_of_all(void **state)
{
    const unsigned n_full = RESOLVER_UPSTREAM_MAX / RESOLVER_QUESTIONS_MAX - 1;
    int one;
    int two;

    begin(state);
    for (unsigned i = 0; i < n_full; i++) {
        ask_much(w.udp[i], RESOLVER_QUESTIONS_MAX - 1);
        if (i + 1 < n_full) {
            ask_much(w.udp[i], 1);
            ask_in_vain(w.udp[i]);
        }
    }
    /* Between them they have one more. */
    ask_much(w.udp[n_full], 1);
    ask_in_vain(w.udp[n_full]);
    ask_in_vain(w.udp[n_full - 1]);
    /* The machine is one asker, from whichever of its addresses. */
    one = open_from(SOCK_DGRAM, OWN);
    two = open_from(SOCK_DGRAM, "172.18.0.1");
    ask_much(one, RESOLVER_QUESTIONS_MAX / 2);
    ask_much(two, RESOLVER_QUESTIONS_MAX / 2);
    ask_in_vain(one);
    ask_in_vain(two);
    (void)close(one);
    (void)close(two);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connect_it(int fd)
{
    struct sockaddr_in to = at(OWN, 53);

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

/* It is answered there. */
static void ask_at(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t bytes[DNS_ANSWER_MAX];
    struct message m = query(4, true);

    be16_store(bytes, (uint16_t)m.len);
    memcpy(bytes + 2, m.bytes, m.len);
    assert_int_equal(send(fd, bytes, m.len + 2, MSG_NOSIGNAL), (ssize_t)m.len + 2);
    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_true(recv(fd, bytes, sizeof(bytes), 0) > DNS_HEADER_LEN);
    assert_int_equal(be16_load(bytes + 2), 4);
}

/* The other end has closed it, and not only since it was idle. */
static void expect_end(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;

    assert_int_equal(poll(&p, 1, 8000), 1);
    assert_true(recv(fd, &c, 1, 0) <= 0);
}

/* All together have so many connections; for one more, the one that was idle longest ends. */
static void test_connections_of_all(void **state)
{
    int fd;

    begin(state);
    for (unsigned i = 0; i < CONTAINERS; i++)
        for (unsigned k = 0; k < RESOLVER_ASKER_CONNECTIONS_MAX; k++) {
            connect_it(w.tcp[i][k]);
            ask_at(w.tcp[i][k]);
        }
    /* By a clock of whole milliseconds this one is used later than all others. */
    (void)poll(NULL, 0, 3);
    ask_at(w.tcp[0][0]);
    fd = open_from(SOCK_STREAM, OWN);
    connect_it(fd);
    ask_at(fd);
    expect_end(w.tcp[0][1]);
    for (unsigned i = 0; i < CONTAINERS; i++)
        for (unsigned k = 0; k < RESOLVER_ASKER_CONNECTIONS_MAX; k++)
            if (i != 0 || k != 1)
                ask_at(w.tcp[i][k]);
    (void)close(fd);
}

/* ---- strangers ------------------------------------------------------------------------------- */

/* By the default route come those who are no containers. */
static void test_strangers(void **state)
{
    struct ip_prefix all = netns_prefix("0.0.0.0/0");

    begin(state);
    ask_much(w.udp[0], 1);
    assert_int_equal(rtnl_add_route(*state, w.ifindex, &all, NULL), 0);
    say(w.udp[1], 5, true);
    hear(w.udp[1], 5, DNS_REFUSED);
    say(w.udp[1], 6, false);
    hear(w.udp[1], 6, DNS_REFUSED);
    connect_it(w.tcp[1][0]);
    expect_end(w.tcp[1][0]);
    /* Without that route they are containers again. */
    assert_int_equal(rtnl_remove_route(*state, w.ifindex, &all, NULL), 0);
    connect_it(w.tcp[1][1]);
    ask_at(w.tcp[1][1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_questions_of_all, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_connections_of_all, netns_enter, leave),
        cmocka_unit_test_setup_teardown(test_strangers, netns_enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
