/* stream_pump.c - see stream_pump.h. */
#include "net/socket/stream_pump.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "net/socket/udp_batch.h"
#include "os/file.h"
#include "wire/stream.h"

/* Datagrams are collected up to a TLS record (RFC 8446 section 5.1), then written. */
#define RECORD 16384

/* The last run may be as long as UDP allows, and of datagrams of a few bytes. */
#define RUN_MAX 65536
#define OUT_CAP (RECORD + 2 * RUN_MAX)

/* Read from the stream at once. */
#define READ_MAX 65536

/* Rounds of one call, so that the two directions, and other streams, get their turns. */
#define ROUNDS 16

/* What may wait for the stream: some tens of milliseconds at a gigabit. */
#define RECEIVE_BUFFER (2 << 20)

/* ---- the UDP end ---------------------------------------------------------------------------- */

int stream_pump_open(struct stream_pump *p, const struct endpoint *local,
    const struct endpoint *remote, bool echoes, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, local);
    int one = 1;
    int r;

    fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, &sa.any, len) < 0)
        return err_set(e, -errno, "a UDP socket on loopback cannot be made: %s", strerror(errno));
    /* Without either of the two the pump works, but slower. */
    socket_set_receive_buffer(fd, RECEIVE_BUFFER);
    (void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
    *p = (struct stream_pump){.udp_fd = fd, .echoes = echoes, .gso = true};
    if (!endpoint_is_none(remote)) {
        r = stream_pump_connect(p, remote);
        if (r < 0) {
            p->udp_fd = -1;
            return err_set(e, r, "a UDP socket on loopback cannot be connected: %s", strerror(-r));
        }
    }
    fd = -1;
    return 0;
}

void stream_pump_close(struct stream_pump *p)
{
    stream_pump_restart(p);
    closep(&p->udp_fd);
}

int stream_pump_connect(const struct stream_pump *p, const struct endpoint *remote)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, remote);

    return connect(p->udp_fd, &sa.any, len) < 0 ? -errno : 0;
}

struct endpoint stream_pump_local(const struct stream_pump *p)
{
    struct endpoint ep = {0};

    if (p->udp_fd >= 0)
        (void)sockaddr_local(p->udp_fd, &ep);
    return ep;
}

static void forget_out(struct stream_pump *p)
{
    free(p->out);
    p->out = NULL;
    p->out_len = 0;
    p->out_off = 0;
}

static void forget_in(struct stream_pump *p)
{
    free(p->in);
    p->in = NULL;
    p->in_len = 0;
}

void stream_pump_restart(struct stream_pump *p)
{
    forget_out(p);
    forget_in(p);
    p->owes_heartbeat = false;
}

bool stream_pump_is_full(const struct stream_pump *p)
{
    return p->out != NULL;
}

/* ---- outward -------------------------------------------------------------------------------- */

/* Fill the buffer with what has arrived; false when that was nothing. */
static bool collect(struct stream_pump *p)
{
    uint8_t buf[RUN_MAX];
    struct udp_run run;
    struct writer out;

    p->out = malloc(OUT_CAP);
    if (!p->out)
        return false;
    out = writer_make(p->out, OUT_CAP);
    if (p->owes_heartbeat)
        writer_be16(&out, 0);
    p->owes_heartbeat = false;
    while (writer_len(&out) < RECORD && udp_receive_connected(p->udp_fd, buf, sizeof(buf), &run)) {
        /* A run of tiny datagrams, for whose lengths there is no room, is not WireGuard's. */
        if (run.seg > STREAM_FRAME_MAX ||
            stream_frame_size(run.len, run.seg) > OUT_CAP - writer_len(&out))
            continue;
        stream_frame_put(&out, buf, run.len, run.seg);
        p->tx_bytes += run.len;
    }
    p->out_len = writer_len(&out);
    p->out_off = 0;
    if (p->out_len == 0)
        forget_out(p);
    return p->out_len > 0;
}

/* 0 when all is out; -EAGAIN; or another negative errno. */
static int drain(struct stream_pump *p, const struct stream_bytes *bytes)
{
    while (p->out_off < p->out_len) {
        size_t left = p->out_len - p->out_off;
        ssize_t n = bytes->write(bytes->ctx, p->out + p->out_off, left < RECORD ? left : RECORD);

        if (n < 0)
            return (int)n;
        p->out_off += (size_t)n;
    }
    forget_out(p);
    return 0;
}

int stream_pump_outward(struct stream_pump *p, const struct stream_bytes *bytes)
{
    for (int i = 0; i < ROUNDS; i++) {
        int r;

        if (!p->out && !collect(p))
            return 0;
        r = drain(p, bytes);
        if (r < 0)
            return r == -EAGAIN ? 0 : r;
    }
    return STREAM_PUMP_E_MORE;
}

/* ---- inward --------------------------------------------------------------------------------- */

/* Datagrams of one size, gathered from between their lengths. */
struct burst {
    struct iovec iov[UDP_RUN_SEGMENTS_MAX];
    unsigned n;
    size_t seg; /* of the first */
    size_t len; /* of all */
};

static void send_burst(struct stream_pump *p, struct burst *b)
{
    p->rx_bytes += b->len;
    if (b->n > 0)
        p->gso = udp_send_connected(p->udp_fd, b->iov, b->n, (uint16_t)b->seg, p->gso);
    *b = (struct burst){.n = 0};
}

/* May the datagram follow the others? A shorter one may, as the last. */
static bool fits(const struct burst *b, size_t len)
{
    return b->n < UDP_RUN_SEGMENTS_MAX && len <= b->seg && b->len + len <= UDP_RUN_BYTES_MAX &&
           b->len == b->n * b->seg;
}

/* All whole frames of @in. 0, or STREAM_PUMP_E_GARBAGE. */
static int unframe(struct stream_pump *p, struct reader *in)
{
    struct burst b = {.n = 0};
    const uint8_t *datagram;
    size_t len;
    int r;

    while ((r = stream_frame_next(in, &datagram, &len)) == 0) {
        if (len == 0) {
            p->owes_heartbeat |= p->echoes;
            continue;
        }
        if (b.n > 0 && !fits(&b, len))
            send_burst(p, &b);
        if (b.n == 0)
            b.seg = len;
        b.iov[b.n++] = (struct iovec){.iov_base = (void *)(uintptr_t)datagram, .iov_len = len};
        b.len += len;
    }
    send_burst(p, &b);
    return r == STREAM_FRAME_E_MORE ? 0 : STREAM_PUMP_E_GARBAGE;
}

/* @buf begins with what was kept of the last frame, and has @len bytes in all. */
static int take(struct stream_pump *p, const uint8_t *buf, size_t len)
{
    struct reader in = reader_make(buf, len);
    int r = unframe(p, &in);
    size_t left = reader_left(&in);

    forget_in(p);
    if (r != 0 || left == 0)
        return r;
    p->in = malloc(left);
    if (!p->in)
        return -ENOMEM;
    memcpy(p->in, in.p, left);
    p->in_len = left;
    return 0;
}

/* Copies what was kept of a frame to the beginning of @buf; returns its length. */
static size_t recall(const struct stream_pump *p, uint8_t *buf)
{
    if (p->in_len > 0)
        memcpy(buf, p->in, p->in_len);
    return p->in_len;
}

int stream_pump_inward(struct stream_pump *p, const struct stream_bytes *bytes)
{
    uint8_t buf[STREAM_FRAME_HEADER + STREAM_FRAME_MAX + READ_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        size_t kept = recall(p, buf);
        ssize_t n = bytes->read(bytes->ctx, buf + kept, READ_MAX);
        int r;

        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return n == 0 ? STREAM_PUMP_E_ENDED : (int)n;
        r = take(p, buf, kept + (size_t)n);
        if (r != 0)
            return r;
    }
    return STREAM_PUMP_E_MORE;
}

int stream_pump_take(struct stream_pump *p, const void *bytes, size_t len)
{
    uint8_t buf[STREAM_FRAME_HEADER + STREAM_FRAME_MAX + READ_MAX];
    const uint8_t *rest = bytes;

    while (len > 0) {
        size_t kept = recall(p, buf);
        size_t n = len < READ_MAX ? len : READ_MAX;
        int r;

        memcpy(buf + kept, rest, n);
        r = take(p, buf, kept + n);
        if (r != 0)
            return r;
        rest += n;
        len -= n;
    }
    return 0;
}
