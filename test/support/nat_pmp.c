/* nat_pmp.c - see nat_pmp.h. */
#include "test/support/nat_pmp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <net/route.h>
#include <netinet/in.h>

#include "net/netlink/rtnl.h"
#include "test/support/netns.h"

#define NAT_PMP_PORT 5351

/* The kernel takes no gateway that is this machine itself, so the address comes after the route. */
void nat_pmp_start(struct nat_pmp *r, struct netlink *nl, unsigned lo)
{
    const struct ip_prefix gateway = netns_prefix("192.0.2.1/32");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(NAT_PMP_PORT)};
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = (char[]){"lan"}};

    *r = (struct nat_pmp){.external = 6000};
    memcpy(&at.sin_addr, gateway.addr.b + 12, sizeof(at.sin_addr));
    memcpy(&route.rt_gateway, &at, sizeof(at));
    route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
    r->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(r->fd >= 0);
    assert_int_equal(ioctl(r->fd, SIOCADDRT, &route), 0);
    assert_int_equal(rtnl_add_address(nl, lo, &gateway, false), 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

void nat_pmp_stop(struct nat_pmp *r)
{
    (void)close(r->fd);
}

static void put_be32(uint8_t *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* RFC 6886 section 3.2: its public address; 3.3: a mapping of UDP. */
void nat_pmp_answer(struct nat_pmp *r)
{
    static const uint8_t public_address[4] = {203, 0, 113, 60};
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    uint8_t rq[64];
    uint8_t out[16] = {0};
    ssize_t n = recvfrom(r->fd, rq, sizeof(rq), 0, (struct sockaddr *)&from, &from_len);
    size_t len = 12;

    if (n < 2 || rq[1] > 1)
        return;
    out[1] = (uint8_t)(128 + rq[1]);
    put_be32(out + 4, 100);
    if (rq[1] == 0) {
        memcpy(out + 8, public_address, sizeof(public_address));
    } else {
        assert_int_equal(n, 12);
        r->n_granted++;
        r->asked = (uint16_t)(rq[4] << 8 | rq[5]);
        r->suggested = (uint16_t)(rq[6] << 8 | rq[7]);
        r->lifetime =
            (uint32_t)rq[8] << 24 | (uint32_t)rq[9] << 16 | (uint32_t)rq[10] << 8 | rq[11];
        memcpy(out + 8, rq + 4, 2);
        out[10] = (uint8_t)(r->external >> 8);
        out[11] = (uint8_t)r->external;
        put_be32(out + 12, r->lifetime);
        len = 16;
    }
    (void)sendto(r->fd, out, len, 0, (struct sockaddr *)&from, from_len);
}
