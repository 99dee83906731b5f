/* raw_udp.c - see raw_udp.h. */
#include "net/socket/raw_udp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address/sockaddr.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "os/file.h"
#include "wire/ip.h"

/* Bytes that may wait, as the kernel counts: the probes of dozens of paths that begin at once. */
#define RECEIVE_BUFFER (4 << 20)

#define PACKET_MAX (sizeof(struct ip6_hdr) + sizeof(struct udphdr) + 9216)
#define TTL        64

/* What a frame begins with: a type that WireGuard leaves alone, or the first half of a STUN
 * answer's type, with STUN's magic cookie behind its length (RFC 8489 section 5). */
#define FIRST_TYPE  0x80
#define STUN_ANSWER 0x01
#define STUN_COOKIE 0x2112a442
#define COOKIE_OFF  4

/* ---- receiving ------------------------------------------------------------------------------ */

/* The filters begin at the IP header. A load beyond the packet's end refuses it. */

static int filter_v4(int fd, uint16_t port)
{
    enum { UDP = sizeof(struct udphdr) };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct iphdr, protocol)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 11),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct iphdr, frag_off)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IP_MF | IP_OFFMASK, 9, 0),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, offsetof(struct udphdr, dest)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 6),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, UDP),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_TYPE, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STUN_ANSWER, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_IND, UDP + COOKIE_OFF),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STUN_COOKIE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };

    return socket_filter(fd, SO_ATTACH_FILTER, code, sizeof(code) / sizeof(*code));
}

static int filter_v6(int fd, uint16_t port)
{
    enum { IP = sizeof(struct ip6_hdr), UDP = sizeof(struct udphdr) };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct ip6_hdr, ip6_nxt)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 8),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, IP + offsetof(struct udphdr, dest)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 6),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, IP + UDP),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_TYPE, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STUN_ANSWER, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP + UDP + COOKIE_OFF),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STUN_COOKIE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };

    return socket_filter(fd, SO_ATTACH_FILTER, code, sizeof(code) / sizeof(*code));
}

/* It is bound to its protocol after the filter is attached, so that nothing gets in unfiltered. */
static int open_in(enum raw_udp_family family, uint16_t port)
{
    _cleanup_(closep) int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_ll sa = {.sll_family = AF_PACKET,
        .sll_protocol = htons(family == RAW_UDP_V4 ? ETH_P_IP : ETH_P_IPV6)};
    int r;

    if (fd < 0)
        return -errno;
    r = family == RAW_UDP_V4 ? filter_v4(fd, port) : filter_v6(fd, port);
    if (r < 0)
        return r;
    socket_set_receive_buffer(fd, RECEIVE_BUFFER);
    if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Where the UDP header is, once the IP header before it makes sense; @len is cut to the packet. */
static bool find_udp(
    const uint8_t *packet, size_t *len, struct raw_udp_packet *ret, size_t *ret_off)
{
    struct iphdr v4;
    struct ip6_hdr v6;
    size_t total;

    if (*len >= sizeof(v4) && packet[0] >> 4 == 4) {
        memcpy(&v4, packet, sizeof(v4));
        *ret_off = (size_t)v4.ihl * 4;
        total = ntohs(v4.tot_len);
        ret->remote.addr = ip_addr_v4((const uint8_t *)&v4.saddr);
        ret->local = ip_addr_v4((const uint8_t *)&v4.daddr);
    } else if (*len >= sizeof(v6) && packet[0] >> 4 == 6) {
        memcpy(&v6, packet, sizeof(v6));
        *ret_off = sizeof(v6);
        total = sizeof(v6) + ntohs(v6.ip6_plen);
        ret->remote.addr = ip_addr_v6((const uint8_t *)&v6.ip6_src);
        ret->local = ip_addr_v6((const uint8_t *)&v6.ip6_dst);
    } else {
        return false;
    }
    if (total > *len || *ret_off < sizeof(v4) || total < *ret_off + sizeof(struct udphdr))
        return false;
    *len = total;
    return true;
}

/* A whole UDP datagram for our port. */
static bool take_apart(const struct raw_udp *ru, const uint8_t *packet, size_t len,
    struct raw_udp_packet *ret, const uint8_t **ret_data, size_t *ret_len)
{
    struct udphdr udp;
    size_t off;
    size_t udp_len;

    if (!find_udp(packet, &len, ret, &off))
        return false;
    memcpy(&udp, packet + off, sizeof(udp));
    udp_len = ntohs(udp.len);
    if (udp_len < sizeof(udp) || udp_len > len - off || ntohs(udp.dest) != ru->port)
        return false;
    ret->remote.port = ntohs(udp.source);
    *ret_data = packet + off + sizeof(udp);
    *ret_len = udp_len - sizeof(udp);
    return true;
}

/* One packet of one family: 0, RAW_UDP_E_EMPTY, or -EBADMSG for one to be passed over. */
static int receive_one(struct raw_udp *ru, int fd, struct raw_udp_packet *ret, uint8_t *data,
    size_t cap, size_t *ret_len)
{
    struct sockaddr_ll sa = {0};
    socklen_t sa_len = sizeof(sa);
    struct raw_udp_packet packet = {0};
    uint8_t buf[PACKET_MAX];
    const uint8_t *from;
    size_t len;
    ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_TRUNC, (struct sockaddr *)&sa, &sa_len);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? RAW_UDP_E_EMPTY : -errno;
    if ((size_t)n > sizeof(buf) || (sa.sll_pkttype != PACKET_HOST) ||
        !take_apart(ru, buf, (size_t)n, &packet, &from, &len) || len > cap)
        return -EBADMSG;
    packet.ifindex = (uint32_t)sa.sll_ifindex;
    if (ip_addr_is_link_local(&packet.remote.addr) && !ip_addr_is_v4(&packet.remote.addr))
        packet.remote.scope = packet.ifindex;
    memcpy(data, from, len);
    *ret = packet;
    *ret_len = len;
    return 0;
}

int raw_udp_receive(
    struct raw_udp *ru, struct raw_udp_packet *ret, uint8_t *data, size_t cap, size_t *ret_len)
{
    for (unsigned i = 0; i < RAW_UDP_FAMILY_N; i++) {
        int r = ru->in_fd[i] >= 0 ? -EBADMSG : RAW_UDP_E_EMPTY;

        for (unsigned n = 0; r == -EBADMSG && n < RAW_UDP_SKIPPED_MAX; n++)
            r = receive_one(ru, ru->in_fd[i], ret, data, cap, ret_len);
        if (r != RAW_UDP_E_EMPTY && r != -EBADMSG)
            return r;
    }
    return RAW_UDP_E_EMPTY;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* The protocol receives nothing: a raw UDP socket would get a copy of all that WireGuard gets. */
static int open_out(enum raw_udp_family family)
{
    int domain = family == RAW_UDP_V4 ? AF_INET : AF_INET6;
    _cleanup_(closep) int fd = socket(domain, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
    const uint32_t mark = RTNL_OUTER_MARK;
    int on = 1;

    if (fd < 0)
        return -errno;
    /* Packets take the same route as WireGuard's own. Without the right to set a mark they take
     * the usual one. */
    (void)setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
    if (family == RAW_UDP_V6 && setsockopt(fd, IPPROTO_IPV6, IPV6_HDRINCL, &on, sizeof(on)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static size_t put_ip_header(
    const struct raw_udp_packet *to, const struct ip_addr *source, size_t udp_len, uint8_t *out)
{
    struct iphdr v4 = {
        .version = 4,
        .ihl = sizeof(v4) / 4,
        .tot_len = htons((uint16_t)(sizeof(v4) + udp_len)),
        .frag_off = to->dont_fragment ? htons(IP_DF) : 0,
        .ttl = to->hops ? to->hops : TTL,
        .protocol = IPPROTO_UDP,
    };
    struct ip6_hdr v6 = {
        .ip6_flow = htonl(6u << 28),
        .ip6_plen = htons((uint16_t)udp_len),
        .ip6_nxt = IPPROTO_UDP,
        .ip6_hlim = to->hops ? to->hops : TTL,
    };

    if (ip_addr_is_v4(source)) {
        memcpy(&v4.saddr, source->b + 12, sizeof(v4.saddr));
        memcpy(&v4.daddr, to->remote.addr.b + 12, sizeof(v4.daddr));
        memcpy(out, &v4, sizeof(v4));
        return sizeof(v4);
    }
    memcpy(&v6.ip6_src, source->b, sizeof(v6.ip6_src));
    memcpy(&v6.ip6_dst, to->remote.addr.b, sizeof(v6.ip6_dst));
    memcpy(out, &v6, sizeof(v6));
    return sizeof(v6);
}

/* RFC 768; a checksum of zero is sent as its complement, because zero means that there is none. */
static void put_udp(const struct raw_udp *ru, const struct raw_udp_packet *to,
    const struct ip_addr *source, const uint8_t *data, size_t len, uint8_t *out)
{
    struct udphdr udp = {
        .source = htons(ru->port),
        .dest = htons(to->remote.port),
        .len = htons((uint16_t)(sizeof(udp) + len)),
    };
    uint64_t sum =
        ip_sum_pseudo(source, &to->remote.addr, IPPROTO_UDP, sizeof(udp) + (uint32_t)len);
    uint16_t check;

    sum = ip_sum_add(sum, &udp, sizeof(udp));
    check = (uint16_t)~ip_sum_fold(ip_sum_add(sum, data, len));
    udp.check = htons(check ? check : UINT16_MAX);
    memcpy(out, &udp, sizeof(udp));
    memcpy(out + sizeof(udp), data, len);
}

int raw_udp_send(
    struct raw_udp *ru, const struct raw_udp_packet *to, const uint8_t *data, size_t len)
{
    enum raw_udp_family family = ip_addr_is_v4(&to->remote.addr) ? RAW_UDP_V4 : RAW_UDP_V6;
    struct endpoint destination = to->remote;
    struct ip_addr source = to->local;
    union sockaddr_inet sa;
    uint8_t packet[PACKET_MAX];
    socklen_t sa_len;
    size_t off;
    int r = 0;

    if (ru->out_fd[family] < 0)
        return -EAFNOSUPPORT;
    if (len > PACKET_MAX - sizeof(struct ip6_hdr) - sizeof(struct udphdr))
        return -EMSGSIZE;
    /* The checksum covers the source. */
    if (ip_addr_is_none(&source))
        r = sockaddr_source(&to->remote, RTNL_OUTER_MARK, &source);
    if (r < 0)
        return r;
    off = put_ip_header(to, &source, sizeof(struct udphdr) + len, packet);
    put_udp(ru, to, &source, data, len, packet + off);
    /* A raw socket's address has no port; IPv6 insists on it. */
    destination.port = 0;
    sa_len = sockaddr_from_endpoint(&sa, &destination);
    if (sendto(ru->out_fd[family], packet, off + sizeof(struct udphdr) + len,
            MSG_DONTWAIT | MSG_NOSIGNAL, &sa.any, sa_len) < 0)
        return -errno;
    return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* A family that this machine does not have is no failure. */
static int open_family(struct raw_udp *ru, enum raw_udp_family family)
{
    struct epoll_event event = {.events = EPOLLIN};
    int r = ru->out_fd[family] = open_out(family);

    if (r == -EAFNOSUPPORT || r == -EPROTONOSUPPORT)
        return 0;
    if (r >= 0)
        r = ru->in_fd[family] = open_in(family, ru->port);
    if (r < 0)
        return r;
    return epoll_ctl(ru->poll_fd, EPOLL_CTL_ADD, ru->in_fd[family], &event) < 0 ? -errno : 0;
}

int raw_udp_open(struct raw_udp *ret, uint16_t port)
{
    struct raw_udp ru = RAW_UDP_NULL;
    int r;

    ru.port = port;
    r = ru.poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r < 0)
        return -errno;
    r = 0;
    for (unsigned i = 0; r == 0 && i < RAW_UDP_FAMILY_N; i++)
        r = open_family(&ru, (enum raw_udp_family)i);
    if (r < 0) {
        raw_udp_close(&ru);
        return r;
    }
    *ret = ru;
    return 0;
}

void raw_udp_close(struct raw_udp *ru)
{
    closep(&ru->poll_fd);
    for (unsigned i = 0; i < RAW_UDP_FAMILY_N; i++) {
        closep(&ru->in_fd[i]);
        closep(&ru->out_fd[i]);
    }
}
