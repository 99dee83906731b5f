/* test-tun.c - what a TUN interface says of itself, in a network namespace of our own. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "test/support/emulated.h"

/* By the old call, so that it is the kernel that says it. */
static unsigned speed_of(const struct tun *t)
{
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    struct ifreq ifr = {.ifr_data = (char *)&cmd};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(ifr.ifr_name, t->name, IFNAMSIZ);
    assert_int_equal(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    (void)close(fd);
    return ethtool_cmd_speed(&cmd);
}

static void test_speed(void **state)
{
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0 ||
        emulated_lacks("SIOCETHTOOL"))
        skip();
    if (tun_open(&t, "weft%d", 1, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(tun_set_speed(&t, 25000), 0);
    assert_int_equal(speed_of(&t), 25000);
    assert_int_equal(tun_set_speed(&t, 10000), 0);
    assert_int_equal(speed_of(&t), 10000);
    tun_close(&t);
}

/* Brings the interface up with an address, so that its network is reached through it. */
static void bring_up(const struct tun *t)
{
    struct ifreq ifr = {0};
    struct sockaddr_in *address = (struct sockaddr_in *)&ifr.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(ifr.ifr_name, t->name, IFNAMSIZ);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(0x0a070001);
    assert_int_equal(ioctl(fd, SIOCSIFADDR, &ifr), 0);
    address->sin_addr.s_addr = htonl(0xffffff00);
    assert_int_equal(ioctl(fd, SIOCSIFNETMASK, &ifr), 0);
    ifr.ifr_flags = IFF_UP;
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
    (void)close(fd);
}

#define FLOWS    1024
#define PORT     7000
#define UDP_AT   (TUN_HEADER + 20)
#define EACH_GOT 3

/* A datagram of each flow, whose port is its number. */
static void send_flows(int fd)
{
    for (unsigned i = 0; i < FLOWS; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET,
            .sin_port = htons((uint16_t)(PORT + i)),
            .sin_addr.s_addr = htonl(0x0a070002)};

        assert_int_equal(sendto(fd, "flow", 4, 0, (struct sockaddr *)&to, sizeof(to)), 4);
    }
}

/* The flows that wait in queue @q, which are noted in @queue_of. Returns how many packets. */
static unsigned drain(const struct tun *t, unsigned q, int queue_of[static FLOWS])
{
    uint8_t frame[2048];
    unsigned n = 0;
    ssize_t len;

    while ((len = read(t->fd[q], frame, sizeof(frame))) > 0) {
        unsigned flow;

        /* The kernel has packets of its own to send, too. */
        if (len < (ssize_t)UDP_AT + 8 || frame[TUN_HEADER] != 0x45 || frame[TUN_HEADER + 9] != 17)
            continue;
        flow = (unsigned)(frame[UDP_AT + 2] << 8 | frame[UDP_AT + 3]) - PORT;
        assert_true(flow < FLOWS);
        if (queue_of[flow] < 0)
            queue_of[flow] = (int)q;
        assert_int_equal(queue_of[flow], q);
        n++;
    }
    return n;
}

/* An answer through a queue moves its flow there, unless the interface is steered. */
static void write_answer(const struct tun *t, unsigned q, unsigned flow, uint16_t port)
{
    uint8_t frame[TUN_HEADER + 28] = {0};
    uint8_t *p = frame + TUN_HEADER;
    static const uint8_t head[20] = {
        0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0x26, 0xc1, 10, 7, 0, 2, 10, 7, 0, 1};

    memcpy(p, head, sizeof(head));
    p[20] = (uint8_t)((PORT + flow) >> 8);
    p[21] = (uint8_t)(PORT + flow);
    p[22] = (uint8_t)(port >> 8);
    p[23] = (uint8_t)port;
    p[25] = 8;
    assert_int_equal(write(t->fd[q], frame, sizeof(frame)), sizeof(frame));
}

static void test_a_flow_keeps_its_queue(void **state)
{
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;
    struct sockaddr_in self;
    socklen_t self_len = sizeof(self);
    int queue_of[FLOWS];
    unsigned used = 0, n = 0;
    int fd;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    if (tun_open(&t, "weft%d", 2, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    if (t.each == 1) {
        tun_close(&t);
        skip();
    }
    assert_int_equal(tun_readers(&t), 2);
    assert_int_equal(t.each, TUN_QUEUES_EACH);
    bring_up(&t);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memset(queue_of, -1, sizeof(queue_of));
    for (unsigned turn = 0; turn < EACH_GOT; turn++) {
        send_flows(fd);
        for (unsigned q = 0; q < t.n; q++)
            n += drain(&t, q, queue_of);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&self, &self_len), 0);
        for (unsigned i = 0; i < FLOWS; i++)
            write_answer(&t, (unsigned)(queue_of[i] + 1) % t.n, i, ntohs(self.sin_port));
    }
    assert_int_equal(n, FLOWS * EACH_GOT);
    for (unsigned q = 0; q < t.n; q++) {
        bool is_used = false;

        for (unsigned i = 0; i < FLOWS; i++)
            is_used |= queue_of[i] == (int)q;
        used += is_used;
    }
    /* By chance 1,024 flows leave none of 128 queues empty, mostly. */
    assert_in_range(used, t.n * 9 / 10, t.n);
    (void)close(fd);
    tun_close(&t);
}

/* The queue that packets of DSCP @dscp wait in, or -1 when none came. */
static int queue_of_dscp(const struct tun *t, int fd, uint8_t dscp)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int tos = dscp << 2;
    uint8_t frame[2048];
    int queue = -1;

    to.sin_addr.s_addr = htonl(0x0a070002);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
    assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
    for (unsigned q = 0; q < t->n; q++) {
        while (read(t->fd[q], frame, sizeof(frame)) > 0) {
            if (frame[TUN_HEADER] == 0x45 && frame[TUN_HEADER + 1] >> 2 == dscp)
                queue = (int)q;
        }
    }
    return queue;
}

static void test_a_class_has_its_queues(void **state)
{
    static const struct {
        uint8_t dscp;
        int class;
    } cases[] = {{48, 0}, {46, 0}, {40, 0}, {34, 1}, {26, 1}, {16, 1}, {0, 2}, {2, 2}, {1, 3},
        {8, 3}, {10, 3}, {63, 0}};
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;
    int fd;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    if (tun_open(&t, "weft%d", 3, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    if (t.each == 1) {
        assert_int_equal(tun_set_classes(&t, true), -EOPNOTSUPP);
        tun_close(&t);
        skip();
    }
    assert_int_equal(t.each % TUN_STEER_N_CLASSES, 0);
    bring_up(&t);
    assert_int_equal(tun_set_classes(&t, true), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (unsigned flow = 0; flow < 4;
             flow++) { /* A port of its own, hence a hash of its own. */
            fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            assert_int_equal(
                queue_of_dscp(&t, fd, cases[i].dscp) % TUN_STEER_N_CLASSES, cases[i].class);
            (void)close(fd);
        }
    }
    assert_int_equal(tun_set_classes(&t, false), 0);
    tun_close(&t);
}

static void test_another_process_is_refused(void **state)
{
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL, other = TUN_NULL;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    if (tun_open(&t, "weft0", 1, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(tun_open(&other, "weft0", 1, &offloads, &e), -EBUSY);
    tun_close(&t);
}

/* One that ip-tuntap(8) made, with one queue, which has one reader however many are asked for. */
static void test_persistent(void **state)
{
    struct offloads offloads = {0};
    struct ifreq ifr = {.ifr_name = "weft1", .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;
    int fd;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
    assert_int_equal(ioctl(fd, TUNSETPERSIST, 1), 0);
    assert_int_equal(tun_open(&t, "weft1", 2, &offloads, &e), -EBUSY);
    (void)close(fd);
    if (tun_open(&t, "weft1", 2, &offloads, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(t.n, 1);
    assert_int_equal(tun_readers(&t), 1);
    tun_close(&t);
}

/* From one process to the next, and then as mortal as before. */
static void test_stays_as_long_as_it_is_to(void **state)
{
    struct offloads offloads = {0};
    struct err e = ERR_NULL;
    struct tun t = TUN_NULL;
    unsigned ifindex;

    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", W_OK) < 0)
        skip();
    assert_int_equal(tun_open(&t, "weft2", 2, &offloads, &e), 0);
    assert_false(t.was_there);
    ifindex = t.ifindex;
    assert_int_equal(tun_set_persistent(&t, true), 0);
    tun_close(&t);
    assert_int_equal(tun_open(&t, "weft2", 1, &offloads, &e), 0);
    assert_true(t.was_there);
    assert_int_equal(t.ifindex, ifindex);
    assert_int_equal(tun_set_persistent(&t, false), 0);
    tun_close(&t);
    assert_int_equal(if_nametoindex("weft2"), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_a_flow_keeps_its_queue),
        cmocka_unit_test(test_a_class_has_its_queues),
        cmocka_unit_test(test_another_process_is_refused),
        cmocka_unit_test(test_persistent),
        cmocka_unit_test(test_stays_as_long_as_it_is_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
