/*
 * test-offload.c - a kernel that lacks an offload, or breaks one, and what is made of that.
 *
 * The system calls that the tests of offload.c and tun.c rely on are replaced
 * here by ones that fail in a chosen way, and otherwise do what they do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"

#define TUN_F_USO (0x20 | 0x40) /* Since Linux 6.2: both families. */

/** What is wrong with this kernel. */
static struct {
    bool refuses_gso; /* the option */
    bool refuses_gro;
    bool fails_send; /* of a segmented batch */
    bool loses;      /* the batch */
    bool corrupts;   /* a byte of it */
    bool refuses_tso;
    bool refuses_uso;
} kernel;

static void *real(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);

    assert_non_null(p);
    return p;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    int (*call)(int, int, int, const void *, socklen_t);
    void *p = real("setsockopt");

    memcpy(&call, &p, sizeof(call));
    if (level == IPPROTO_UDP && ((option == UDP_SEGMENT && kernel.refuses_gso) ||
                                    (option == UDP_GRO && kernel.refuses_gro))) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return call(fd, level, option, value, len);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    ssize_t (*call)(int, const void *, size_t, int);
    void *p = real("send");

    memcpy(&call, &p, sizeof(call));
    if (kernel.fails_send) {
        errno = EIO;
        return -1;
    }
    return kernel.loses ? (ssize_t)len : call(fd, buf, len, flags);
}

ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
    ssize_t (*call)(int, struct msghdr *, int);
    void *p = real("recvmsg");
    ssize_t n;

    memcpy(&call, &p, sizeof(call));
    n = call(fd, mh, flags);
    if (n > 0 && kernel.corrupts)
        ((uint8_t *)mh->msg_iov[0].iov_base)[n - 1] ^= 1;
    return n;
}

/* Every descriptor is a TUN interface here. */
int ioctl(int fd, unsigned long request, ...)
{
    struct ifreq *ifr;
    unsigned long features;
    va_list ap;

    (void)fd;
    va_start(ap, request);
    if (request == TUNGETIFF) {
        ifr = va_arg(ap, struct ifreq *);
        memcpy(ifr->ifr_name, "lo", 3);
        ifr->ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    }
    features = request == TUNSETOFFLOAD ? va_arg(ap, unsigned long) : 0;
    va_end(ap);
    if ((kernel.refuses_tso && (features & TUN_F_TSO4)) ||
        (kernel.refuses_uso && (features & TUN_F_USO))) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

static int make_whole(void **state)
{
    memset(&kernel, 0, sizeof(kernel));
    return 0;
}

/* Exactly those of @off are off, each with a reason that holds @why. */
static void check(const struct offloads *o, unsigned off, const char *why)
{
    for (int i = 0; i < OFFLOAD_N; i++) {
        assert_int_equal(o->on[i], !(off & 1u << i));
        if (!o->on[i])
            assert_non_null(strstr(o->why[i], why));
    }
}

static void check_udp(unsigned off, const char *why)
{
    struct offloads o = offloads_all();

    offload_test_udp(&o);
    check(&o, off, why);
}

static void test_udp(void **state)
{
    const unsigned gso = 1u << OFFLOAD_UDP_GSO, gro = 1u << OFFLOAD_UDP_GRO;

    check_udp(0, "");
    kernel.refuses_gso = true;
    check_udp(gso, "refuses");
    make_whole(NULL);
    kernel.refuses_gro = true;
    check_udp(gro, "refuses");
    make_whole(NULL);
    kernel.fails_send = true;
    check_udp(gso, "failed");
}

/* Which of the two broke it cannot be told, so both are off. */
static void test_udp_broken(void **state)
{
    struct offloads o = offloads_all();

    kernel.corrupts = true;
    offload_test_udp(&o);
    assert_false(o.on[OFFLOAD_UDP_GSO] || o.on[OFFLOAD_UDP_GRO]);
    assert_non_null(strstr(o.why[OFFLOAD_UDP_GSO], "was changed"));
    make_whole(NULL);
    o = offloads_all();
    kernel.loses = true;
    offload_test_udp(&o);
    assert_false(o.on[OFFLOAD_UDP_GSO] || o.on[OFFLOAD_UDP_GRO]);
    assert_non_null(strstr(o.why[OFFLOAD_UDP_GSO], "got lost"));
}

static void check_tun(unsigned off)
{
    struct offloads o = offloads_all();
    struct err e = ERR_NULL;
    struct tun t;

    assert_int_equal(tun_adopt(&t, eventfd(0, EFD_CLOEXEC), &o, &e), 0);
    check(&o, off, "kernel");
    tun_close(&t);
}

static void test_tun(void **state)
{
    const unsigned tso = 1u << OFFLOAD_TSO, uso = 1u << OFFLOAD_USO;

    check_tun(0);
    kernel.refuses_uso = true;
    check_tun(uso);
    kernel.refuses_tso = true;
    check_tun(tso | uso);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_udp, make_whole),
        cmocka_unit_test_setup(test_udp_broken, make_whole),
        cmocka_unit_test_setup(test_tun, make_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
