/* rtnl.c - see rtnl.h. */
#include "net/netlink/rtnl.h"

#include <errno.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "net/netlink/netlink.h"

#define RP_FILTER_LOOSE 2 /* Linux Documentation/networking/ip-sysctl.rst */

static uint8_t family_of(const struct ip_addr *a)
{
    return ip_addr_is_v4(a) ? AF_INET : AF_INET6;
}

static void put_address(struct nlmsghdr *nlh, uint16_t type, const struct ip_addr *a)
{
    if (ip_addr_is_v4(a))
        mnl_attr_put(nlh, type, 4, a->b + 12);
    else
        mnl_attr_put(nlh, type, 16, a->b);
}

/* False when the attribute is missing or not an address of that family. */
static bool get_address(const struct nlattr *attr, uint8_t family, struct ip_addr *ret)
{
    size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

    if (family == AF_INET && len == 4)
        *ret = ip_addr_v4(mnl_attr_get_payload(attr));
    else if (family == AF_INET6 && len == 16)
        *ret = ip_addr_v6(mnl_attr_get_payload(attr));
    else
        return false;
    return true;
}

/* The attributes behind a family header of @offset bytes. */
static void index_attributes(
    const struct nlmsghdr *nlh, size_t offset, const struct nlattr *attrs[], size_t n)
{
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, offset),
        mnl_nlmsg_get_payload_len(nlh) - MNL_ALIGN(offset), attrs, n);
}

static void copy_text(const struct nlattr *attr, char *ret, size_t cap)
{
    ret[0] = '\0';
    if (attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
        (void)snprintf(ret, cap, "%s", mnl_attr_get_str(attr));
}

static uint32_t get_u32(const struct nlattr *attr)
{
    return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(attr) : 0;
}

/* ---- links ---------------------------------------------------------------------------------- */

static uint64_t count_packets(const struct nlattr *stats)
{
    struct rtnl_link_stats64 s = {0};

    if (!stats || mnl_attr_get_payload_len(stats) < offsetof(struct rtnl_link_stats64, rx_bytes))
        return 0;
    memcpy(&s, mnl_attr_get_payload(stats), offsetof(struct rtnl_link_stats64, rx_bytes));
    return s.rx_packets + s.tx_packets;
}

static int take_link(const struct nlmsghdr *nlh, void *ctx)
{
    const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[IFLA_MAX + 1];
    const struct nlattr *info[IFLA_INFO_MAX + 1];
    struct rtnl_link *link = ctx;

    if (nlh->nlmsg_type != RTM_NEWLINK || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*ifi)))
        return 0;
    index_attributes(nlh, sizeof(*ifi), attrs, IFLA_MAX + 1);
    *link = (struct rtnl_link){
        .ifindex = (unsigned)ifi->ifi_index,
        .mtu = get_u32(attrs[IFLA_MTU]),
        .master = get_u32(attrs[IFLA_MASTER]),
        .up = ifi->ifi_flags & IFF_UP,
        .is_loopback = ifi->ifi_flags & IFF_LOOPBACK,
        .n_packets = count_packets(attrs[IFLA_STATS64]),
    };
    copy_text(attrs[IFLA_IFNAME], link->name, sizeof(link->name));
    if (attrs[IFLA_LINKINFO]) {
        netlink_attributes(mnl_attr_get_payload(attrs[IFLA_LINKINFO]),
            mnl_attr_get_payload_len(attrs[IFLA_LINKINFO]), info, IFLA_INFO_MAX + 1);
        copy_text(info[IFLA_INFO_KIND], link->kind, sizeof(link->kind));
    }
    return 0;
}

int rtnl_find_link(struct netlink *nl, const char *name, struct rtnl_link *ret)
{
    struct rtnl_link link = {0};
    struct netlink_message rq;
    int r;

    (void)netlink_start(&rq, RTM_GETLINK, NLM_F_ACK, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(rq.nlh, IFLA_IFNAME, name);
    r = netlink_request(nl, rq.nlh, take_link, &link);
    if (r == -ENODEV || (r >= 0 && link.ifindex == 0))
        return RTNL_E_ABSENT;
    if (r >= 0)
        *ret = link;
    return r;
}

struct link_walk {
    rtnl_link_fn fn;
    void *ctx;       /* borrows */
    unsigned master; /* only its ports; 0: all links */
};

static int pass_link(const struct nlmsghdr *nlh, void *ctx)
{
    struct rtnl_link link = {0};
    const struct link_walk *w = ctx;

    (void)take_link(nlh, &link);
    if (link.ifindex == 0 || (w->master != 0 && link.master != w->master))
        return 0;
    return w->fn(&link, w->ctx);
}

int rtnl_each_link(struct netlink *nl, unsigned bridge, rtnl_link_fn fn, void *ctx)
{
    struct link_walk w = {.fn = fn, .ctx = ctx, .master = bridge};
    struct netlink_message rq;

    (void)netlink_start(&rq, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
    /* The kernel passes the others over; what it sends all the same, pass_link() does. */
    if (bridge) {
        mnl_attr_put_u32(rq.nlh, IFLA_MASTER, bridge);
        mnl_attr_put_u32(rq.nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    }
    return netlink_request(nl, rq.nlh, pass_link, &w);
}

/* Begins a change of a link. */
static struct ifinfomsg *start_change(struct netlink_message *rq, uint16_t type, unsigned ifindex)
{
    struct ifinfomsg *ifi = netlink_start(rq, type, NLM_F_ACK, sizeof(*ifi));

    ifi->ifi_index = (int)ifindex;
    return ifi;
}

int rtnl_add_link(struct netlink *nl, const char *name, const char *kind)
{
    struct netlink_message rq;
    struct nlattr *info;

    (void)netlink_start(
        &rq, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(rq.nlh, IFLA_IFNAME, name);
    info = mnl_attr_nest_start(rq.nlh, IFLA_LINKINFO);
    mnl_attr_put_strz(rq.nlh, IFLA_INFO_KIND, kind);
    mnl_attr_nest_end(rq.nlh, info);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_remove_link(struct netlink *nl, unsigned ifindex)
{
    struct netlink_message rq;
    int r;

    (void)start_change(&rq, RTM_DELLINK, ifindex);
    r = netlink_request(nl, rq.nlh, NULL, NULL);
    return r == -ENODEV ? 0 : r;
}

int rtnl_set_link(struct netlink *nl, unsigned ifindex, bool up, unsigned mtu)
{
    struct netlink_message rq;
    struct ifinfomsg *ifi = start_change(&rq, RTM_NEWLINK, ifindex);

    ifi->ifi_change = IFF_UP;
    ifi->ifi_flags = up ? IFF_UP : 0;
    if (mtu)
        mnl_attr_put_u32(rq.nlh, IFLA_MTU, mtu);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_rename_link(struct netlink *nl, unsigned ifindex, const char *name)
{
    struct netlink_message rq;

    (void)start_change(&rq, RTM_NEWLINK, ifindex);
    mnl_attr_put_strz(rq.nlh, IFLA_IFNAME, name);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_set_segments(struct netlink *nl, unsigned ifindex, unsigned n_segments)
{
    struct netlink_message rq;

    (void)start_change(&rq, RTM_NEWLINK, ifindex);
    mnl_attr_put_u32(rq.nlh, IFLA_GSO_MAX_SEGS, n_segments);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_accept_own(struct netlink *nl, unsigned ifindex)
{
    struct netlink_message rq;
    struct nlattr *families, *inet, *conf;

    (void)start_change(&rq, RTM_SETLINK, ifindex);
    families = mnl_attr_nest_start(rq.nlh, IFLA_AF_SPEC);
    inet = mnl_attr_nest_start(rq.nlh, AF_INET);
    conf = mnl_attr_nest_start(rq.nlh, IFLA_INET_CONF);
    mnl_attr_put_u32(rq.nlh, IPV4_DEVCONF_RP_FILTER, RP_FILTER_LOOSE);
    mnl_attr_put_u32(rq.nlh, IPV4_DEVCONF_ACCEPT_LOCAL, 1);
    mnl_attr_nest_end(rq.nlh, conf);
    mnl_attr_nest_end(rq.nlh, inet);
    mnl_attr_nest_end(rq.nlh, families);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

/** The largest so far. */
struct link_search {
    unsigned own;
    unsigned mtu;
};

static int weigh_link(const struct rtnl_link *link, void *ctx)
{
    static const char *const tunnels[] = {
        "wireguard", "tun", "ipip", "sit", "gre", "ip6tnl", "vti", "xfrm", "dummy"};
    const size_t n = sizeof(tunnels) / sizeof(*tunnels);
    struct link_search *s = ctx;

    if (link->ifindex != s->own && link->up && !link->is_loopback &&
        parse_word(link->kind, tunnels, n) == n && link->mtu > s->mtu)
        s->mtu = link->mtu;
    return 0;
}

int rtnl_largest_mtu(struct netlink *nl, unsigned own, unsigned *ret)
{
    struct link_search s = {.own = own};
    int r = rtnl_each_link(nl, 0, weigh_link, &s);

    if (r == 0)
        *ret = s.mtu;
    return r;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int change_address(struct netlink *nl, uint16_t type, uint16_t flags, unsigned ifindex,
    const struct ip_prefix *a, uint32_t address_flags)
{
    struct netlink_message rq;
    struct ifaddrmsg *ifa = netlink_start(&rq, type, NLM_F_ACK | flags, sizeof(*ifa));

    ifa->ifa_family = family_of(&a->addr);
    ifa->ifa_prefixlen = a->len;
    ifa->ifa_index = ifindex;
    if (address_flags)
        mnl_attr_put_u32(rq.nlh, IFA_FLAGS, address_flags);
    put_address(rq.nlh, IFA_LOCAL, &a->addr);
    put_address(rq.nlh, IFA_ADDRESS, &a->addr);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_add_address(struct netlink *nl, unsigned ifindex, const struct ip_prefix *a, bool is_bare)
{
    return change_address(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, ifindex, a,
        is_bare ? IFA_F_NOPREFIXROUTE : 0);
}

int rtnl_remove_address(struct netlink *nl, unsigned ifindex, const struct ip_prefix *a)
{
    int r = change_address(nl, RTM_DELADDR, 0, ifindex, a, 0);

    return r == -EADDRNOTAVAIL ? 0 : r;
}

/** Where the entries of a walk go. */
struct walk {
    rtnl_entry_fn fn;
    void *ctx;
    unsigned ifindex; /* only these; 0: all */
    bool all_tables;  /* not the main one only */
};

static int take_address(const struct nlmsghdr *nlh, void *ctx)
{
    const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[IFA_MAX + 1];
    struct rtnl_entry entry = {.is_address = true};
    struct walk *w = ctx;

    if (nlh->nlmsg_type != RTM_NEWADDR || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*ifa)))
        return 0;
    index_attributes(nlh, sizeof(*ifa), attrs, IFA_MAX + 1);
    entry.ifindex = ifa->ifa_index;
    entry.prefix.len = ifa->ifa_prefixlen;
    /* With a point-to-point peer IFA_ADDRESS is the other end. */
    if (!get_address(attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS], ifa->ifa_family,
            &entry.prefix.addr) ||
        (w->ifindex && entry.ifindex != w->ifindex))
        return 0;
    return w->fn(&entry, w->ctx);
}

int rtnl_each_address(struct netlink *nl, unsigned ifindex, rtnl_entry_fn fn, void *ctx)
{
    struct walk w = {.fn = fn, .ctx = ctx, .ifindex = ifindex};
    struct netlink_message rq;

    (void)netlink_start(&rq, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
    return netlink_request(nl, rq.nlh, take_address, &w);
}

/* ---- routes --------------------------------------------------------------------------------- */

static void put_metrics(struct nlmsghdr *nlh, const struct rtnl_metrics *m)
{
    struct nlattr *nest;

    if (!m->mtu && !m->advmss)
        return;
    nest = mnl_attr_nest_start(nlh, RTA_METRICS);
    if (m->mtu)
        mnl_attr_put_u32(nlh, RTAX_MTU, m->mtu);
    if (m->advmss)
        mnl_attr_put_u32(nlh, RTAX_ADVMSS, m->advmss);
    mnl_attr_nest_end(nlh, nest);
}

static int change_route(struct netlink *nl, uint16_t type, uint16_t flags, unsigned ifindex,
    const struct ip_prefix *dst, const struct rtnl_route *route)
{
    static const struct rtnl_route plain = {0};
    const struct rtnl_route *opt = route ? route : &plain;
    struct netlink_message rq;
    struct rtmsg *rtm = netlink_start(&rq, type, NLM_F_ACK | flags, sizeof(*rtm));

    rtm->rtm_family = family_of(&dst->addr);
    rtm->rtm_dst_len = dst->len;
    rtm->rtm_table = opt->table ? RT_TABLE_UNSPEC : RT_TABLE_MAIN;
    rtm->rtm_protocol = opt->protocol ? opt->protocol : RTPROT_STATIC;
    rtm->rtm_scope = ip_addr_is_v4(&dst->addr) ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    rtm->rtm_type = RTN_UNICAST;
    if (type == RTM_DELROUTE) {
        /* RTPROT_UNSPEC is 0: whoever made it. */
        rtm->rtm_protocol = opt->protocol;
        rtm->rtm_scope = RT_SCOPE_NOWHERE;
    } else {
        /* Of a route to remove nothing is said: the kernel would leave one with other metrics. */
        put_metrics(rq.nlh, &opt->metrics);
    }
    put_address(rq.nlh, RTA_DST, &dst->addr);
    mnl_attr_put_u32(rq.nlh, RTA_OIF, ifindex);
    if (opt->table)
        mnl_attr_put_u32(rq.nlh, RTA_TABLE, opt->table);
    if (opt->metric)
        mnl_attr_put_u32(rq.nlh, RTA_PRIORITY, opt->metric);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

int rtnl_add_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route)
{
    int r = change_route(nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, ifindex, dst, route);

    return r == -EEXIST ? 0 : r;
}

int rtnl_set_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route)
{
    return change_route(nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, ifindex, dst, route);
}

int rtnl_remove_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route)
{
    int r = change_route(nl, RTM_DELROUTE, 0, ifindex, dst, route);

    return r == -ESRCH ? 0 : r;
}

static int take_route(const struct nlmsghdr *nlh, void *ctx)
{
    const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[RTA_MAX + 1];
    const struct nlattr *metrics[RTAX_MAX + 1];
    struct rtnl_entry entry = {0};
    struct walk *w = ctx;

    if (nlh->nlmsg_type != RTM_NEWROUTE || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*rtm)))
        return 0;
    index_attributes(nlh, sizeof(*rtm), attrs, RTA_MAX + 1);
    entry.table = attrs[RTA_TABLE] ? get_u32(attrs[RTA_TABLE]) : rtm->rtm_table;
    entry.is_on_link = !attrs[RTA_GATEWAY] && !attrs[RTA_VIA] && !attrs[RTA_MULTIPATH];
    entry.ifindex = get_u32(attrs[RTA_OIF]);
    entry.prefix.len = rtm->rtm_dst_len;
    entry.protocol = rtm->rtm_protocol;
    if (attrs[RTA_METRICS]) {
        netlink_attributes(mnl_attr_get_payload(attrs[RTA_METRICS]),
            mnl_attr_get_payload_len(attrs[RTA_METRICS]), metrics, RTAX_MAX + 1);
        entry.metrics = (struct rtnl_metrics){
            .mtu = get_u32(metrics[RTAX_MTU]), .advmss = get_u32(metrics[RTAX_ADVMSS])};
    }
    if ((entry.table != RT_TABLE_MAIN && !w->all_tables) || rtm->rtm_flags & RTM_F_CLONED ||
        (w->ifindex && entry.ifindex != w->ifindex))
        return 0;
    if (!get_address(attrs[RTA_DST], rtm->rtm_family, &entry.prefix.addr)) {
        if (rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6)
            return 0;
        /* The default route has no destination. */
        if (rtm->rtm_family == AF_INET)
            entry.prefix.addr = ip_addr_v4((const uint8_t[4]){0});
    }
    return w->fn(&entry, w->ctx);
}

int rtnl_each_route(
    struct netlink *nl, unsigned ifindex, bool all_tables, rtnl_entry_fn fn, void *ctx)
{
    struct walk w = {.fn = fn, .ctx = ctx, .ifindex = ifindex, .all_tables = all_tables};
    struct netlink_message rq;

    (void)netlink_start(&rq, RTM_GETROUTE, NLM_F_DUMP, sizeof(struct rtmsg));
    return netlink_request(nl, rq.nlh, take_route, &w);
}

/* How the kernel would send a packet. */
struct way {
    struct ip_addr source; /* none: not told */
    unsigned ifindex;      /* 0: not told */
};

static int take_way(const struct nlmsghdr *nlh, void *ctx)
{
    const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[RTA_MAX + 1];
    struct way *way = ctx;

    if (nlh->nlmsg_type != RTM_NEWROUTE || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*rtm)))
        return 0;
    index_attributes(nlh, sizeof(*rtm), attrs, RTA_MAX + 1);
    (void)get_address(attrs[RTA_PREFSRC], rtm->rtm_family, &way->source);
    way->ifindex = get_u32(attrs[RTA_OIF]);
    return 0;
}

/* Begins the question for the way to @dst. */
static struct rtmsg *start_way(struct netlink_message *rq, const struct ip_addr *dst)
{
    struct rtmsg *rtm = netlink_start(rq, RTM_GETROUTE, NLM_F_ACK, sizeof(*rtm));

    rtm->rtm_family = family_of(dst);
    rtm->rtm_dst_len = ip_addr_is_v4(dst) ? 32 : 128;
    put_address(rq->nlh, RTA_DST, dst);
    return rtm;
}

static int ask_way(struct netlink *nl, struct netlink_message *rq, struct way *ret)
{
    int r = netlink_request(nl, rq->nlh, take_way, ret);

    return r == -ENETUNREACH || r == -EHOSTUNREACH ? RTNL_E_ABSENT : r;
}

int rtnl_source_for(struct netlink *nl, const struct ip_addr *dst, struct ip_addr *ret)
{
    struct way way = {0};
    struct netlink_message rq;
    int r;

    (void)start_way(&rq, dst);
    r = ask_way(nl, &rq, &way);
    if (r == 0 && ip_addr_is_none(&way.source))
        return RTNL_E_ABSENT;
    if (r == 0)
        *ret = way.source;
    return r;
}

int rtnl_way_out(struct netlink *nl, const struct rtnl_flow *flow, unsigned *ret)
{
    struct way way = {0};
    struct netlink_message rq;
    int r;

    start_way(&rq, &flow->to.addr)->rtm_src_len = ip_addr_is_v4(&flow->from) ? 32 : 128;
    put_address(rq.nlh, RTA_SRC, &flow->from);
    mnl_attr_put_u32(rq.nlh, RTA_MARK, flow->fwmark);
    mnl_attr_put_u8(rq.nlh, RTA_IP_PROTO, IPPROTO_UDP);
    mnl_attr_put_u16(rq.nlh, RTA_SPORT, htons(flow->from_port));
    mnl_attr_put_u16(rq.nlh, RTA_DPORT, htons(flow->to.port));
    r = ask_way(nl, &rq, &way);
    if (r == 0)
        *ret = way.ifindex;
    return r == 0 && way.ifindex == 0 ? RTNL_E_ABSENT : r;
}
