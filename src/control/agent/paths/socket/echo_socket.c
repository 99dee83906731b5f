/* echo_socket.c - see echo_socket.h. */
#include "agent/paths/socket/echo_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "wire/ip.h"

/* Answers that are read in one turn of the loop. */
#define ANSWERS_PER_TURN 64

/* The longest IPv4 header, and what of an answer is looked at. */
#define ANSWER_SIZE (60 + ECHO_LEN)

/* ---- life ----------------------------------------------------------------------------------- */

/* Answers with our id alone. X becomes the length of the IP header. */
static int filter(const struct echo_socket *s)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_ECHOREPLY, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, s->id, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };

    return socket_filter(s->fd, SO_ATTACH_FILTER, code, sizeof(code) / sizeof(*code));
}

static int set_up(struct echo_socket *s)
{
    /* Whole, with DF clear, and up to the interface's MTU: what a route believes is what is to be
     * measured. */
    int whole = IP_PMTUDISC_INTERFACE;

    s->fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);
    s->is_raw = s->fd >= 0;
    if (s->fd < 0)
        s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);
    if (s->fd < 0)
        return -errno;
    if (setsockopt(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole)) < 0)
        return -errno;
    return s->is_raw ? filter(s) : 0;
}

int echo_socket_new(struct echo_socket **ret)
{
    struct echo_socket *s = calloc(1, sizeof(*s));
    struct rng rng = rng_kernel();
    int r;

    if (!s)
        return -ENOMEM;
    *s = (struct echo_socket){.fd = -1, .id = (uint16_t)rng_u32(&rng)};
    r = set_up(s);
    if (r < 0)
        s = echo_socket_free(s);
    else
        *ret = s;
    return r;
}

struct echo_socket *echo_socket_free(struct echo_socket *s)
{
    if (!s)
        return NULL;
    closep(&s->fd);
    free(s);
    return NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Takes one answer of @len bytes, of which @got are there. Its ping's number is its length. */
static void take(const struct echo_socket *s, const struct sockaddr_in *at, const uint8_t *p,
    size_t got, size_t len)
{
    size_t header = s->is_raw ? (size_t)(p[0] & 0xf) * 4 : 0;
    struct ip_addr from;
    struct echo echo;

    if (got < header || !echo_decode(&echo, true, p + header, got - header) ||
        len - header + IP_V4_HEADER_MIN < echo.seq)
        return;
    from = ip_addr_v4((const uint8_t *)&at->sin_addr);
    s->on_answer(s->ctx, &from, echo.cookie);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct echo_socket *s = poll->data;

    for (unsigned i = 0; i < ANSWERS_PER_TURN; i++) {
        union sockaddr_inet at = {.v4 = {.sin_family = AF_UNSPEC}};
        socklen_t at_len = sizeof(at);
        uint8_t p[ANSWER_SIZE];
        ssize_t n = recvfrom(s->fd, p, sizeof(p), MSG_DONTWAIT | MSG_TRUNC, &at.any, &at_len);

        if (n <= 0)
            return;
        if (at.any.sa_family == AF_INET)
            take(s, &at.v4, p, (size_t)n < sizeof(p) ? (size_t)n : sizeof(p), (size_t)n);
    }
}

int echo_socket_start(struct echo_socket *s, struct uv_loop_s *loop, const char *interface,
    echo_socket_fn on_answer, void *ctx)
{
    struct uv_poll_s *poll = calloc(1, sizeof(*poll));

    if (!poll)
        return -ENOMEM;
    if (uv_poll_init(loop, poll, s->fd) != 0) {
        free(poll);
        return -ENOMEM;
    }
    s->poll = poll;
    s->interface = interface;
    s->on_answer = on_answer;
    s->ctx = ctx;
    poll->data = s;
    (void)uv_poll_start(poll, UV_READABLE, on_readable);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

void echo_socket_stop(struct echo_socket *s)
{
    if (!s->poll)
        return;
    (void)uv_poll_stop(s->poll);
    uv_close((uv_handle_t *)s->poll, on_closed);
    s->poll = NULL;
}

/* ---- pings ---------------------------------------------------------------------------------- */

void echo_socket_send(const struct echo_socket *s, const struct ip_addr *from,
    const struct ip_addr *to, size_t len, uint64_t cookie)
{
    static const uint8_t zeroes[ECHO_SOCKET_LEN_MAX];
    struct echo echo = {.id = s->id, .seq = (uint16_t)len, .cookie = cookie};
    union sockaddr_inet at;
    uint8_t head[ECHO_LEN];
    struct iovec iov[2] = {{.iov_base = head, .iov_len = sizeof(head)},
        {.iov_base = (uint8_t *)zeroes, .iov_len = len - IP_V4_HEADER_MIN - sizeof(head)}};
    struct in_pktinfo way = {.ipi_ifindex = (int)if_nametoindex(s->interface)};
    union {
        struct cmsghdr header;
        uint8_t space[CMSG_SPACE(sizeof(way))];
    } control = {.space = {0}};
    struct msghdr msg = {.msg_name = &at,
        .msg_iov = iov,
        .msg_iovlen = 2,
        .msg_control = &control,
        .msg_controllen = sizeof(control)};

    /* Without the interface it would leave by another one, in the clear. */
    if (way.ipi_ifindex == 0 || len < IP_V4_HEADER_MIN + sizeof(head) || len > ECHO_SOCKET_LEN_MAX)
        return;
    /* The zeroes change no checksum. */
    echo_encode(&echo, true, head);
    msg.msg_namelen = sockaddr_from_endpoint(&at, &(struct endpoint){.addr = *to});
    memcpy(&way.ipi_spec_dst, from->b + 12, sizeof(way.ipi_spec_dst));
    control.header = (struct cmsghdr){
        .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(way))};
    memcpy(CMSG_DATA(&control.header), &way, sizeof(way));
    (void)sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}
