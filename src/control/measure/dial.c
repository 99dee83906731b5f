/* dial.c - see dial.h. */
#include "measure/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "base/err.h"
#include "measure/order.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/file.h"

int dial_bind_device(int fd, const char *interface)
{
    if (!interface)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0)
        return -errno;
    return 0;
}

/* Opens a socket of @type and connects it to the target. The TCP handshake may not be complete when
 * this returns. */
static int open_towards(const struct dial_target *to, int type, int *ret_fd)
{
    struct endpoint ep = {.addr = to->peer, .port = to->port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &ep);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return -errno;
    r = dial_bind_device(fd, to->interface);
    if (r < 0)
        return r;
    if (connect(fd, &sa.any, len) < 0 && errno != EINPROGRESS)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int finish_connect(int fd, nsec_t deadline)
{
    int one = 1;
    int error = 0;
    socklen_t len = sizeof(error);
    int r = socket_wait(fd, POLLOUT, deadline);

    if (r < 0)
        return r;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return -error;
}

int dial_udp(const struct dial_target *to, int *ret_fd, struct err *e)
{
    /* Packets are not fragmented, and the kernel sends those larger than its known path MTU, too.
     */
    int probe = IP_PMTUDISC_PROBE;
    _cleanup_(closep) int fd = -1;
    char text[IP_ADDR_TEXT_MAX];
    int r = open_towards(to, SOCK_DGRAM, &fd);

    if (r == 0 && ip_addr_is_v4(&to->peer) &&
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) < 0)
        r = -errno;
    if (r < 0)
        return err_set(
            e, r, "no datagrams to %s: %s", ip_addr_format(&to->peer, text), strerror(-r));
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int dial_send_order(int fd, const struct order *o, nsec_t deadline, struct err *e)
{
    json_t *json = order_encode(o);
    int r = line_write(fd, json, deadline, e);

    json_decref(json);
    return r;
}

/* @ret: gives a reference to the answer; NULL: the caller only wants to know of a refusal. */
static int dial_take_answer(int fd, nsec_t deadline, json_t **ret, struct err *e)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    json_t *json = NULL;
    int r = line_read(&lb, fd, deadline, &json, e);

    if (r == 0)
        r = line_check_answer(json, e);
    if (r == 0 && ret)
        *ret = json_incref(json);
    json_decref(json);
    return r;
}

/* Does each step for all connections before the next step, so that all wait for the same round
 * trips. @ret: NULL: the answers are not wanted. */
static int dial_steps(const struct dial_target *to, const struct order *o, size_t n,
    nsec_t deadline, int *fds, json_t **ret, struct err *e)
{
    struct order own = *o;
    char text[IP_ADDR_TEXT_MAX];
    int r = 0;

    own.id = to->id;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = open_towards(to, SOCK_STREAM, &fds[i]);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = finish_connect(fds[i], deadline);
    if (r < 0)
        return err_set(e, r, "no TCP connection to %s port %u: %s", ip_addr_format(&to->peer, text),
            to->port, strerror(-r));
    for (size_t i = 0; r == 0 && i < n; i++)
        r = dial_send_order(fds[i], &own, deadline, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = dial_take_answer(fds[i], deadline, ret, e);
    return r;
}

int dial_all(const struct dial_target *to, const struct order *o, size_t n, nsec_t deadline,
    int *ret_fds, struct err *e)
{
    int fds[ORDER_STREAMS_MAX];
    int r;

    for (size_t i = 0; i < n; i++)
        fds[i] = -1;
    r = dial_steps(to, o, n, deadline, fds, NULL, e);
    for (size_t i = 0; i < n; i++) {
        if (r == 0)
            ret_fds[i] = fds[i];
        else
            closep(&fds[i]);
    }
    return r;
}

int dial_ask(const struct dial_target *to, const struct order *o, nsec_t deadline, json_t **ret,
    struct err *e)
{
    _cleanup_(closep) int fd = -1;

    return dial_steps(to, o, 1, deadline, &fd, ret, e);
}

int dial_open(const struct dial_target *to, const struct order *o, nsec_t deadline, int *ret_fd,
    json_t **ret, struct err *e)
{
    int fd = -1;
    int r = dial_steps(to, o, 1, deadline, &fd, ret, e);

    if (r < 0)
        closep(&fd);
    else
        *ret_fd = fd;
    return r;
}

bool dial_is_own(const struct ip_addr *a)
{
    /* Connecting a datagram socket sends nothing; the kernel only chooses the source address. */
    struct dial_target to = {.peer = *a, .port = PROBE_PORT};
    struct endpoint from;
    _cleanup_(closep) int fd = -1;

    return open_towards(&to, SOCK_DGRAM, &fd) == 0 && sockaddr_local(fd, &from) == 0 &&
           ip_addr_equal(&from.addr, a);
}

bool dial_is_fit_peer(const struct ip_addr *a)
{
    static const char *const unfit[] = {
        "127.0.0.0/8", "0.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8"};

    if (ip_addr_is_none(a) || ip_addr_is_link_local(a) || dial_is_own(a))
        return false;
    for (size_t i = 0; i < sizeof(unfit) / sizeof(*unfit); i++) {
        struct ip_prefix p;

        if (ip_prefix_parse(&p, unfit[i], NULL) < 0 || ip_prefix_has(&p, a))
            return false;
    }
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

#define GROW 4096

void line_buffer_deinit(struct line_buffer *lb)
{
    free(lb->text);
    *lb = (struct line_buffer)LINE_BUFFER_NULL;
}

int line_take(struct line_buffer *lb, json_t **ret, struct err *e)
{
    char *end = lb->len > 0 ? memchr(lb->text, '\n', lb->len) : NULL;
    size_t len;
    int r;

    if (!end)
        return -EAGAIN;
    len = (size_t)(end - lb->text);
    r = body_parse(ret, lb->text, len, e);
    lb->len -= len + 1;
    memmove(lb->text, end + 1, lb->len);
    return r;
}

int line_fill(struct line_buffer *lb, int fd, struct err *e)
{
    ssize_t n;

    if (lb->len >= ORDER_LINE_MAX)
        return err_set(e, -EINVAL, "a line is longer than %u bytes", ORDER_LINE_MAX);
    if (lb->cap - lb->len < GROW) {
        char *text = realloc(lb->text, lb->cap + GROW + lb->cap / 2);

        if (!text)
            return -ENOMEM;
        lb->text = text;
        lb->cap += GROW + lb->cap / 2;
    }
    n = recv(fd, lb->text + lb->len, lb->cap - lb->len, MSG_DONTWAIT);
    if (n == 0)
        return err_set(e, -EPIPE, "the other end has closed the connection");
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n < 0)
        return err_set(e, -errno, "the connection is lost: %s", strerror(errno));
    lb->len += (size_t)n;
    return 0;
}

int line_read(struct line_buffer *lb, int fd, nsec_t deadline, json_t **ret, struct err *e)
{
    for (;;) {
        int r = line_take(lb, ret, e);

        if (r != -EAGAIN)
            return r;
        r = socket_wait(fd, POLLIN, deadline);
        if (r < 0)
            return err_set(e, r, "no answer in time");
        r = line_fill(lb, fd, e);
        if (r < 0 && r != -EAGAIN)
            return r;
    }
}

int line_write(int fd, const json_t *json, nsec_t deadline, struct err *e)
{
    _cleanup_(freep) char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    size_t len;
    size_t off = 0;

    if (!text)
        return err_set(e, -ENOMEM, "no memory for a line");
    len = strlen(text);
    /* The newline takes the place of the terminating zero. */
    text[len++] = '\n';
    while (off < len) {
        ssize_t n = send(fd, text + off, len - off, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            off += (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return err_set(e, -errno, "the connection is lost: %s", strerror(errno));
        if (socket_wait(fd, POLLOUT, deadline) < 0)
            return err_set(e, -ETIMEDOUT, "the other end takes no data");
    }
    return 0;
}

int line_check_answer(const json_t *json, struct err *e)
{
    const char *refusal = body_refusal_text(json);

    return refusal ? err_set(e, -EPROTO, "%s", refusal) : 0;
}
