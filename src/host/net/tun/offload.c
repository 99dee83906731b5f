/* offload.c - see offload.h. */
#include "net/tun/offload.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "os/file.h"

const char *const offload_names[] = {
    [OFFLOAD_UDP_GSO] = "udp-gso",
    [OFFLOAD_UDP_GRO] = "udp-gro",
    [OFFLOAD_TSO] = "tso",
    [OFFLOAD_USO] = "uso",
};
_Static_assert(sizeof(offload_names) / sizeof(*offload_names) == OFFLOAD_N, "a name each");

struct offloads offloads_all(void)
{
    struct offloads o = {0};

    for (int i = 0; i < OFFLOAD_N; i++)
        o.on[i] = true;
    return o;
}

void offload_off(struct offloads *o, enum offload which, const char *fmt, ...)
{
    va_list ap;

    if (!o->on[which])
        return;
    o->on[which] = false;
    va_start(ap, fmt);
    (void)vsnprintf(o->why[which], sizeof(o->why[which]), fmt, ap);
    va_end(ap);
}

int offload_find(const char *name, size_t len)
{
    for (int i = 0; i < OFFLOAD_N; i++)
        if (strlen(offload_names[i]) == len && memcmp(offload_names[i], name, len) == 0)
            return i;
    return -1;
}

int offload_parse(struct offloads *o, const char *list, struct err *e)
{
    struct offloads tmp = *o;
    const char *p = list;

    if (strcmp(list, "all") == 0)
        list = p = "udp-gso,udp-gro,tso,uso";
    for (;;) {
        size_t len = strcspn(p, ",");
        int which = offload_find(p, len);

        if (which < 0)
            return err_set(e, -EINVAL,
                "\"%.*s\" is not an offload; they are udp-gso, udp-gro, tso and uso, or \"all\"",
                len > 40 ? 40 : (int)len, p);
        offload_off(&tmp, (enum offload)which, "turned off on the command line");
        if (p[len] == '\0')
            break;
        p += len + 1;
    }
    *o = tmp;
    return 0;
}

/* Four datagrams of which the last is short: the general case of a batch. */
#define TEST_SEG     200
#define TEST_LEN     (3 * TEST_SEG + 57)
#define TEST_N       4
#define TEST_WAIT_MS 300

static int loopback_socket(struct sockaddr_in *at)
{
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*at);

    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) < 0 ||
        getsockname(fd, (struct sockaddr *)at, &len) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Takes what arrives until @n_datagrams are there; false: nothing more came, or a wrong byte. */
static bool receive_all(int fd, const uint8_t *want, unsigned n_datagrams, bool *ret_timeout)
{
    size_t off = 0;

    *ret_timeout = false;
    while (n_datagrams > 0) {
        uint8_t got[TEST_LEN + 1];
        char control[CMSG_SPACE(sizeof(int))];
        struct iovec iov = {got, sizeof(got)};
        struct msghdr mh = {.msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof(control)};
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        int seg = 0;
        ssize_t n;

        if (poll(&pfd, 1, TEST_WAIT_MS) <= 0) {
            *ret_timeout = true;
            return false;
        }
        n = recvmsg(fd, &mh, 0);
        if (n <= 0 || (size_t)n > TEST_LEN - off || memcmp(got, want + off, (size_t)n) != 0)
            return false;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
            if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
                memcpy(&seg, CMSG_DATA(c), sizeof(seg));
        if (seg == 0 && n > TEST_SEG)
            return false;
        n_datagrams -= seg ? ((unsigned)n + TEST_SEG - 1) / TEST_SEG : 1;
        off += (size_t)n;
    }
    return off == TEST_LEN;
}

static void test_through_loopback(struct offloads *o, int tx, int rx)
{
    uint8_t data[TEST_LEN];
    bool timeout;
    ssize_t n;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8));
    n = send(tx, data, sizeof(data), 0);
    if (n < 0 && (errno == ENETUNREACH || errno == EADDRNOTAVAIL || errno == EPERM))
        return;
    if (n != TEST_LEN) {
        offload_off(o, OFFLOAD_UDP_GSO, "a segmented send failed: %s", strerror(errno));
        return;
    }
    if (receive_all(rx, data, TEST_N, &timeout))
        return;
    offload_off(o, OFFLOAD_UDP_GSO, "a segmented batch %s on the loopback",
        timeout ? "got lost" : "was changed");
    offload_off(o, OFFLOAD_UDP_GRO, "not tested without segmentation that works");
}

void offload_test_udp(struct offloads *o)
{
    struct sockaddr_in at, from;
    _cleanup_(closep) int rx = loopback_socket(&at);
    _cleanup_(closep) int tx = loopback_socket(&from);
    int seg = TEST_SEG, on = 1;

    if (o->on[OFFLOAD_UDP_GRO] && rx >= 0 &&
        setsockopt(rx, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) < 0)
        offload_off(o, OFFLOAD_UDP_GRO, "the kernel refuses it: %s", strerror(errno));
    if (!o->on[OFFLOAD_UDP_GSO] || rx < 0 || tx < 0)
        return;
    if (setsockopt(tx, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)) < 0) {
        offload_off(o, OFFLOAD_UDP_GSO, "the kernel refuses it: %s", strerror(errno));
        return;
    }
    if (connect(tx, (struct sockaddr *)&at, sizeof(at)) == 0)
        test_through_loopback(o, tx, rx);
}
