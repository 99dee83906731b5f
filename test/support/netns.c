/* netns.c - see netns.h. */
#include "test/support/netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"

int netns_enter(void **state)
{
    static struct netlink nl;

    if (unshare(CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "no network namespace: %s\n", strerror(errno));
        *state = NULL;
        return 0;
    }
    if (netlink_open(&nl, NETLINK_ROUTE) < 0)
        return -1;
    *state = &nl;
    return 0;
}

int netns_leave(void **state)
{
    if (*state)
        netlink_close(*state);
    return 0;
}

struct netlink *netns_need(void **state)
{
    if (!*state)
        skip();
    return *state;
}

unsigned netns_raise_loopback(struct netlink *nl)
{
    struct rtnl_link lo;

    assert_int_equal(rtnl_find_link(nl, "lo", &lo), 0);
    assert_int_equal(rtnl_set_link(nl, lo.ifindex, true, 0), 0);
    return lo.ifindex;
}

void netns_be_alone(void)
{
    static void *state;

    if (netns_enter(&state) != 0)
        abort();
    if (state)
        (void)netns_raise_loopback(state);
}

struct ip_prefix netns_prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}
