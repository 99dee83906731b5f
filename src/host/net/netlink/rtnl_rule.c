/* rtnl_rule.c - routing rules; see rtnl.h. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"

static int change_rule(
    struct netlink *nl, uint16_t type, uint16_t flags, bool v4, const struct rtnl_rule *rule)
{
    _Alignas(struct nlmsghdr) char buf[256];
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
    struct fib_rule_hdr *frh;

    nlh->nlmsg_type = type;
    nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    frh = mnl_nlmsg_put_extra_header(nlh, sizeof(*frh));
    frh->family = v4 ? AF_INET : AF_INET6;
    frh->action = FR_ACT_TO_TBL;
    frh->flags = FIB_RULE_INVERT;
    mnl_attr_put_u32(nlh, FRA_TABLE, rule->table);
    mnl_attr_put_u32(nlh, FRA_PRIORITY, rule->priority);
    mnl_attr_put_u32(nlh, FRA_FWMARK, rule->mark);
    mnl_attr_put_u32(nlh, FRA_FWMASK, UINT32_MAX);
    return netlink_request(nl, nlh, NULL, NULL);
}

int rtnl_add_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule)
{
    int r = change_rule(nl, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, v4, rule);

    return r == -EEXIST ? 0 : r;
}

int rtnl_remove_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule)
{
    int r = change_rule(nl, RTM_DELRULE, 0, v4, rule);

    return r == -ENOENT ? 0 : r;
}
