/* rtnl_rule.c - routing rules; see rtnl.h. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"

/* The number of a table of ours is this with 24 bits of a hash of the interface's name. */
#define TABLE_BASE 0x57000000u
#define TABLE_MASK 0xff000000u

static int change_rule(
    struct netlink *nl, uint16_t type, uint16_t flags, bool v4, const struct rtnl_rule *rule)
{
    struct netlink_message rq;
    struct fib_rule_hdr *frh = netlink_start(&rq, type, NLM_F_ACK | flags, sizeof(*frh));

    frh->family = v4 ? AF_INET : AF_INET6;
    frh->action = FR_ACT_TO_TBL;
    mnl_attr_put_u32(rq.nlh, FRA_TABLE, rule->table);
    mnl_attr_put_u32(rq.nlh, FRA_PRIORITY, rule->priority);
    if (rule->mark != 0) {
        frh->flags = FIB_RULE_INVERT;
        mnl_attr_put_u32(rq.nlh, FRA_FWMARK, rule->mark);
        mnl_attr_put_u32(rq.nlh, FRA_FWMASK, UINT32_MAX);
    } else {
        frh->src_len = v4 ? 32 : 128;
        mnl_attr_put(rq.nlh, FRA_SRC, v4 ? 4 : 16, v4 ? &rule->from.b[12] : rule->from.b);
    }
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

uint32_t rtnl_table_of(const char *interface)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (const char *p = interface; *p; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    return TABLE_BASE | ((h ^ h >> 24) & ~TABLE_MASK);
}

bool rtnl_is_own_table(uint32_t table)
{
    return (table & TABLE_MASK) == TABLE_BASE;
}

struct search {
    const struct rtnl_rule *rule;
    bool v4;
    bool found;
};

static bool is_from(const struct search *s, const struct nlattr *src)
{
    const struct ip_addr *from = &s->rule->from;
    const uint8_t *b = s->v4 ? &from->b[12] : from->b;
    size_t len = s->v4 ? 4 : 16;

    return src && mnl_attr_get_payload_len(src) == len &&
           memcmp(mnl_attr_get_payload(src), b, len) == 0;
}

static uint32_t get_u32(const struct nlattr *attr)
{
    return attr && mnl_attr_get_payload_len(attr) == sizeof(uint32_t) ? mnl_attr_get_u32(attr) : 0;
}

static int compare_rule(const struct nlmsghdr *nlh, void *ctx)
{
    const struct fib_rule_hdr *frh = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[FRA_MAX + 1];
    struct search *s = ctx;

    if (nlh->nlmsg_type != RTM_NEWRULE || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*frh)))
        return 0;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(*frh)),
        mnl_nlmsg_get_payload_len(nlh) - NLMSG_ALIGN(sizeof(*frh)), attrs, FRA_MAX + 1);
    if (frh->action == FR_ACT_TO_TBL && !(frh->flags & FIB_RULE_INVERT) == (s->rule->mark == 0) &&
        get_u32(attrs[FRA_TABLE]) == s->rule->table &&
        get_u32(attrs[FRA_PRIORITY]) == s->rule->priority &&
        get_u32(attrs[FRA_FWMARK]) == s->rule->mark &&
        (s->rule->mark != 0 || is_from(s, attrs[FRA_SRC])))
        s->found = true;
    return 0;
}

int rtnl_find_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule)
{
    struct netlink_message rq;
    struct fib_rule_hdr *frh = netlink_start(&rq, RTM_GETRULE, NLM_F_DUMP, sizeof(*frh));
    struct search s = {.rule = rule, .v4 = v4};
    int r;

    frh->family = v4 ? AF_INET : AF_INET6;
    r = netlink_request(nl, rq.nlh, compare_rule, &s);
    return r == 0 && !s.found ? RTNL_E_ABSENT : r;
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
