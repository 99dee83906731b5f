/* udp_batch.c - the inbox and the outbox of udp_batch.h. */
#include "net/socket/udp_batch.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "net/address/sockaddr.h"

/* Room for each message. */
#define INBOX_SIZE 65536

/* Most system-call messages that wait in one outbox. */
#define OUTBOX_MESSAGES 64

/* ---- receiving ---- */

#define RECEIVE_CONTROL                                                                            \
    (CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)))

struct udp_inbox_slots {
    struct mmsghdr msgs[UDP_INBOX_MESSAGES];
    struct iovec iovs[UDP_INBOX_MESSAGES];
    union sockaddr_inet from[UDP_INBOX_MESSAGES];
    _Alignas(struct cmsghdr) uint8_t control[UDP_INBOX_MESSAGES][RECEIVE_CONTROL];
};

int udp_inbox_init(struct udp_inbox *in)
{
    void *bufs = mmap(NULL, (size_t)UDP_INBOX_MESSAGES * INBOX_SIZE, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct udp_inbox_slots *slots = calloc(1, sizeof(*slots));

    *in = (struct udp_inbox){.bufs = bufs == MAP_FAILED ? NULL : bufs, .slots = slots};
    if (!in->bufs || !slots) {
        udp_inbox_deinit(in);
        return -ENOMEM;
    }
    for (size_t i = 0; i < UDP_INBOX_MESSAGES; i++)
        slots->iovs[i] = (struct iovec){in->bufs + i * INBOX_SIZE, INBOX_SIZE};
    return 0;
}

void udp_inbox_deinit(struct udp_inbox *in)
{
    if (in->bufs)
        (void)munmap(in->bufs, (size_t)UDP_INBOX_MESSAGES * INBOX_SIZE);
    free(in->slots);
    *in = (struct udp_inbox){0};
}

static void take_control_v4(struct udp_run *run, const struct cmsghdr *c)
{
    if (c->cmsg_type == IP_TOS) {
        run->tos = *CMSG_DATA(c);
    } else if (c->cmsg_type == IP_PKTINFO) {
        struct in_pktinfo pi;
        uint8_t b[4];

        memcpy(&pi, CMSG_DATA(c), sizeof(pi));
        memcpy(b, &pi.ipi_spec_dst, sizeof(b));
        run->path.local = ip_addr_v4(b);
        run->path.ifindex = (uint32_t)pi.ipi_ifindex;
    }
}

static void take_control_v6(struct udp_run *run, const struct cmsghdr *c)
{
    if (c->cmsg_type == IPV6_TCLASS) {
        int tclass;

        memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
        run->tos = (uint8_t)tclass;
    } else if (c->cmsg_type == IPV6_PKTINFO) {
        struct in6_pktinfo pi;

        memcpy(&pi, CMSG_DATA(c), sizeof(pi));
        memcpy(run->path.local.b, &pi.ipi6_addr, 16);
        run->path.ifindex = pi.ipi6_ifindex;
    }
}

/* UDP_GRO: the size of the datagrams that were put together. */
static void take_control_udp(struct udp_run *run, const struct cmsghdr *c)
{
    int seg;

    if (c->cmsg_type != UDP_GRO)
        return;
    memcpy(&seg, CMSG_DATA(c), sizeof(seg));
    if (seg > 0 && (uint32_t)seg < run->len)
        run->seg = (uint16_t)seg;
}

static void take_control(struct udp_run *run, struct msghdr *mh)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level == IPPROTO_IP)
            take_control_v4(run, c);
        else if (c->cmsg_level == IPPROTO_IPV6)
            take_control_v6(run, c);
        else if (c->cmsg_level == IPPROTO_UDP)
            take_control_udp(run, c);
    }
}

unsigned udp_receive(struct udp_inbox *in, int fd)
{
    struct udp_inbox_slots *s = in->slots;
    unsigned n_runs = 0;
    int n;

    for (size_t i = 0; i < UDP_INBOX_MESSAGES; i++)
        s->msgs[i].msg_hdr = (struct msghdr){.msg_name = &s->from[i],
            .msg_namelen = sizeof(s->from[i]),
            .msg_iov = &s->iovs[i],
            .msg_iovlen = 1,
            .msg_control = s->control[i],
            .msg_controllen = sizeof(s->control[i])};
    do
        n = recvmmsg(fd, s->msgs, UDP_INBOX_MESSAGES, MSG_DONTWAIT, NULL);
    while (n < 0 && (errno == EINTR || errno == ECONNREFUSED));
    for (int i = 0; i < n; i++) {
        struct udp_run *run = &in->runs[n_runs];
        uint32_t len = s->msgs[i].msg_len;

        if (len == 0 || len > INBOX_SIZE - 1)
            continue;
        *run = (struct udp_run){.buf = s->iovs[i].iov_base, .len = len, .seg = (uint16_t)len};
        if (!sockaddr_to_endpoint(&s->from[i], &run->path.remote))
            continue;
        take_control(run, &s->msgs[i].msg_hdr);
        n_runs++;
    }
    return n_runs;
}

bool udp_receive_connected(int fd, uint8_t *buf, size_t cap, struct udp_run *ret)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {buf, cap};
    struct msghdr mh = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT);

    if (n <= 0 || n > UINT16_MAX)
        return false;
    *ret = (struct udp_run){.buf = buf, .len = (uint32_t)n, .seg = (uint16_t)n};
    take_control(ret, &mh);
    return true;
}

/* ---- sending ---- */

#define SEND_CONTROL                                                                               \
    (CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) +                        \
        CMSG_SPACE(sizeof(uint16_t)))

struct udp_outbox_slots {
    struct mmsghdr msgs[OUTBOX_MESSAGES];
    struct iovec iovs[OUTBOX_MESSAGES];
    union sockaddr_inet to[OUTBOX_MESSAGES];
    struct udp_run runs[OUTBOX_MESSAGES]; /* what each message was made from */
    _Alignas(struct cmsghdr) uint8_t control[OUTBOX_MESSAGES][SEND_CONTROL];
};

int udp_outbox_init(struct udp_outbox *out, bool gso, bool wait)
{
    *out = (struct udp_outbox){.gso = gso, .wait = wait};
    out->slots = calloc(1, sizeof(*out->slots));
    return out->slots ? 0 : -ENOMEM;
}

void udp_outbox_deinit(struct udp_outbox *out)
{
    free(out->slots);
    out->slots = NULL;
    out->n = 0;
}

static void put_control(struct msghdr *mh, int level, int type, const void *data, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)mh->msg_control + mh->msg_controllen);

    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), data, len);
    mh->msg_controllen += CMSG_SPACE(len);
}

/* Leave from the address at which the other end knows us (several may be configured). */
static void put_local(struct msghdr *mh, const struct udp_path *path)
{
    if (ip_addr_is_none(&path->local))
        return;
    if (ip_addr_is_v4(&path->remote.addr)) {
        struct in_pktinfo pi = {0};

        memcpy(&pi.ipi_spec_dst, &path->local.b[12], 4);
        put_control(mh, IPPROTO_IP, IP_PKTINFO, &pi, sizeof(pi));
    } else {
        struct in6_pktinfo pi = {0};

        memcpy(&pi.ipi6_addr, path->local.b, 16);
        if (ip_addr_is_link_local(&path->local))
            pi.ipi6_ifindex = path->ifindex;
        put_control(mh, IPPROTO_IPV6, IPV6_PKTINFO, &pi, sizeof(pi));
    }
}

static void put_int(struct msghdr *mh, const struct udp_run *run, int type4, int type6, int value)
{
    bool v4 = ip_addr_is_v4(&run->path.remote.addr);

    put_control(mh, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? type4 : type6, &value, sizeof(value));
}

/* Fills message @i for @run, of which the path, TOS and hops are used; @iov is already set. */
static void fill_message(struct udp_outbox_slots *s, unsigned i, const struct udp_run *run)
{
    struct msghdr *mh = &s->msgs[i].msg_hdr;
    socklen_t len = sockaddr_from_endpoint(&s->to[i], &run->path.remote);

    s->runs[i] = *run;
    s->iovs[i] = (struct iovec){run->buf, run->len};
    *mh = (struct msghdr){.msg_name = &s->to[i],
        .msg_namelen = len,
        .msg_iov = &s->iovs[i],
        .msg_iovlen = 1,
        .msg_control = s->control[i]};
    put_local(mh, &run->path);
    if (run->tos)
        put_int(mh, run, IP_TOS, IPV6_TCLASS, run->tos);
    if (run->hops)
        put_int(mh, run, IP_TTL, IPV6_HOPLIMIT, run->hops);
    if (run->len > run->seg)
        put_control(mh, IPPROTO_UDP, UDP_SEGMENT, &run->seg, sizeof(run->seg));
    if (mh->msg_controllen == 0)
        mh->msg_control = NULL;
}

bool udp_send_connected(int fd, struct iovec *iov, unsigned n, uint16_t seg, bool gso)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(seg))] = {0};
    struct msghdr mh = {.msg_iov = iov, .msg_iovlen = n, .msg_control = control};

    if (n > 1 && gso) {
        put_control(&mh, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg));
        if (sendmsg(fd, &mh, MSG_DONTWAIT) >= 0 || (errno != EIO && errno != EINVAL))
            return true;
        gso = false;
    }
    for (unsigned i = 0; i < n; i++)
        (void)send(fd, iov[i].iov_base, iov[i].iov_len, MSG_DONTWAIT);
    return gso;
}

static int family_fd(const struct udp_sockets *s, const struct udp_run *run)
{
    return s->fd[ip_addr_is_v4(&run->path.remote.addr) ? UDP_FAMILY_V4 : UDP_FAMILY_V6];
}

static void count_failed(struct udp_outbox *out, const struct udp_run *run, int error)
{
    out->n_failed += udp_run_count(run);
    if (error == EAGAIN || error == ENOBUFS)
        out->n_full += udp_run_count(run);
    out->last_error = error;
}

/* One message by itself, in the slot that udp_outbox_add() leaves free for it. 0 or errno. */
static int send_one(struct udp_outbox *out, int fd, const struct udp_run *run)
{
    struct udp_outbox_slots *s = out->slots;
    unsigned i = OUTBOX_MESSAGES - 1;

    fill_message(s, i, run);
    while (sendmsg(fd, &s->msgs[i].msg_hdr, out->wait ? 0 : MSG_DONTWAIT) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* The datagrams of a refused run one at a time, so that the path's real limits apply: a size
 * beyond the path's MTU is then fragmented, as WireGuard does. */
static void send_apart(struct udp_outbox *out, int fd, const struct udp_run *run)
{
    for (uint32_t off = 0; off < run->len; off += run->seg) {
        struct udp_run one = *run;
        int error;

        one.buf = run->buf + off;
        one.len = run->len - off < run->seg ? run->len - off : run->seg;
        error = send_one(out, fd, &one);
        if (error)
            count_failed(out, &one, error);
    }
}

/* What to do with a run that the kernel refused with @error. */
static void send_refused(struct udp_outbox *out, int fd, const struct udp_run *refused, int error)
{
    struct udp_run run = *refused;

    if (!ip_addr_is_none(&run.path.local) &&
        (error == EINVAL || error == ENETUNREACH || error == EADDRNOTAVAIL || error == ENODEV)) {
        /* Our address of that time may be gone: let the kernel choose. */
        run.path.local = (struct ip_addr){0};
        error = send_one(out, fd, &run);
        if (!error)
            return;
    }
    if (run.len > run.seg && (error == EINVAL || error == EMSGSIZE || error == EIO)) {
        if (error == EIO)
            out->gso = false;
        send_apart(out, fd, &run);
        return;
    }
    count_failed(out, &run, error);
}

/* Sends messages [@from, @to), which all leave by @fd. */
static void send_range(struct udp_outbox *out, int fd, unsigned from, unsigned to)
{
    while (from < to) {
        int n = sendmmsg(fd, &out->slots->msgs[from], to - from, out->wait ? 0 : MSG_DONTWAIT);

        if (n > 0) {
            from += (unsigned)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        send_refused(out, fd, &out->slots->runs[from], errno);
        from++;
    }
}

void udp_outbox_flush(struct udp_outbox *out, const struct udp_sockets *s)
{
    unsigned from = 0;

    while (from < out->n) {
        int fd = family_fd(s, &out->slots->runs[from]);
        unsigned to = from + 1;

        while (to < out->n && family_fd(s, &out->slots->runs[to]) == fd)
            to++;
        if (fd >= 0)
            send_range(out, fd, from, to);
        for (unsigned i = from; fd < 0 && i < to; i++)
            count_failed(out, &out->slots->runs[i], EAFNOSUPPORT);
        from = to;
    }
    out->n = 0;
}

void udp_outbox_add(struct udp_outbox *out, const struct udp_sockets *s, const struct udp_run *run)
{
    uint32_t most = UDP_RUN_BYTES_MAX / run->seg;
    uint32_t step;

    if (most > UDP_RUN_SEGMENTS_MAX)
        most = UDP_RUN_SEGMENTS_MAX;
    step = run->seg * (out->gso && most > 0 ? most : 1);
    for (uint32_t off = 0; off < run->len; off += step) {
        struct udp_run part = *run;

        part.buf = run->buf + off;
        part.len = run->len - off < step ? run->len - off : step;
        if (out->n == OUTBOX_MESSAGES - 1)
            udp_outbox_flush(out, s);
        fill_message(out->slots, out->n++, &part);
    }
}
