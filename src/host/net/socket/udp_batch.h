/*
 * udp_batch.h - sending and receiving many datagrams with one system call.
 *
 * The unit is the run: datagrams of one size, back to back in memory, from or
 * to one place. UDP_GRO delivers runs, UDP_SEGMENT takes them, and a relay can
 * hand one on without touching a byte.
 *
 * A socket here is a pair, one per address family with the same port, because
 * the two need different options and either family may be missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct iovec;
struct offloads;

/** Most bytes in one run: what a UDP datagram over IPv4 can carry. */
#define UDP_RUN_BYTES_MAX 65507

/** Most datagrams in one sent run: the kernel's UDP_MAX_SEGMENTS was 64 before Linux 6.9. */
#define UDP_RUN_SEGMENTS_MAX 64

/** Where a run came from, or goes to. */
struct udp_path {
    struct endpoint remote; /* the other end */
    struct ip_addr local;   /* our address on the packet; none: the kernel chooses */
    uint32_t ifindex;       /* arrived on; used when sending to link-local addresses only */
};

/** udp_path_equal() - the same other end, by the same interface and address of ours. */
static inline bool udp_path_equal(const struct udp_path *a, const struct udp_path *b)
{
    return a->ifindex == b->ifindex && ip_addr_equal(&a->local, &b->local) &&
           endpoint_equal(&a->remote, &b->remote);
}

/** Datagrams of one size, back to back. */
struct udp_run {
    uint8_t *buf;         /* borrows: the first datagram */
    uint32_t len;         /* bytes of all together, at least 1 */
    uint16_t seg;         /* bytes of each but the last, which may be shorter */
    uint8_t tos;          /* the IP header's TOS or traffic class byte */
    uint8_t hops;         /* IP time to live (hop limit) when sending; 0: the socket's own */
    struct udp_path path; /* from or to */
};

/** udp_run_count() - how many datagrams. */
static inline unsigned udp_run_count(const struct udp_run *run)
{
    return (run->len + run->seg - 1) / run->seg;
}

enum udp_family { UDP_FAMILY_V4, UDP_FAMILY_V6, UDP_FAMILY_N };

/** A pair of sockets; fd -1 where the family is missing. */
struct udp_sockets {
    int fd[UDP_FAMILY_N]; /* owns */
    uint16_t port;        /* local, host order; the same for both */
};

#define UDP_SOCKETS_NULL                                                                           \
    {                                                                                              \
        .fd = { -1, -1 }                                                                           \
    }

/** Is the port shared (SO_REUSEPORT), among several workers of one process? */
enum udp_share {
    UDP_SHARE_NONE,
    UDP_SHARE_FIRST, /* with those that will come; until then the port is nobody's */
    UDP_SHARE_NEXT,  /* with the first */
};

/**
 * udp_open() - bind both families to one port
 * @port:	0 to have the kernel choose
 * @fwmark:	SO_MARK of everything sent; 0 for none
 * @offloads:	UDP_GRO is turned on where it may be used
 *
 * Return: 0; -EADDRINUSE; other negative errno. With words.
 */
int udp_open(struct udp_sockets *ret, uint16_t port, uint32_t fwmark, enum udp_share share,
    const struct offloads *offloads, struct err *e);

/**
 * udp_open_at() - one socket only, of @local's family and bound to it
 * @local:	port 0: the kernel chooses; an address of zeroes: all of that family
 *
 * Return: 0 or negative errno with words.
 */
int udp_open_at(struct udp_sockets *ret, const struct endpoint *local,
    const struct offloads *offloads, struct err *e);

/** udp_connect() - hear @remote only, with the socket of its family. 0 or negative errno. */
int udp_connect(const struct udp_sockets *s, const struct endpoint *remote);

/** udp_close() - idempotent. */
void udp_close(struct udp_sockets *s);

/**
 * udp_drops() - what the kernel has dropped of what arrived at @s, for want of room there, since
 * it was opened
 *
 * Datagrams that it had merged (UDP_GRO) count as one, so it may have been UDP_RUN_SEGMENTS_MAX
 * times as many. A question to the kernel, which costs the datagrams nothing.
 */
uint64_t udp_drops(const struct udp_sockets *s);

/** udp_set_fwmark() - 0, or negative errno (-EPERM without CAP_NET_ADMIN). */
int udp_set_fwmark(const struct udp_sockets *s, uint32_t fwmark);

/**
 * udp_set_dont_fragment() - send with DF, whatever is known of the path, or as usual
 *
 * As usual means that outer packets may be fragmented on their way. A datagram
 * that is too long for the interface then fails with EMSGSIZE. 0 or negative errno.
 */
int udp_set_dont_fragment(const struct udp_sockets *s, bool on);

/** Messages taken by one receive call. */
#define UDP_INBOX_MESSAGES 8
/** Storage for received runs, one per worker. */
struct udp_inbox {
    uint8_t *bufs;                           /* owns */
    struct udp_inbox_slots *slots;           /* owns */
    struct udp_run runs[UDP_INBOX_MESSAGES]; /* as filled by the last receive */
};

/** udp_inbox_init() - 0 or -ENOMEM. */
int udp_inbox_init(struct udp_inbox *in);

/** udp_inbox_deinit() - free what it owns. */
void udp_inbox_deinit(struct udp_inbox *in);

/**
 * udp_receive() - take what has arrived, without waiting
 *
 * Return: how many of @in->runs are filled (the buffers are the caller's until
 * the next call); 0 when nothing was there. Errors of earlier sends, which
 * the kernel reports here, are swallowed.
 */
unsigned udp_receive(struct udp_inbox *in, int fd);

/**
 * udp_receive_connected() - one run from a connected socket, without waiting and without an inbox
 * @buf:	@cap bytes; a longer run is cut
 * @ret:	set when there was something: its bytes, in @buf, and the size of its datagrams
 *
 * For callers with thousands of sockets, which cannot keep an inbox for each (stream_pump.h).
 *
 * Return: false: nothing has arrived, or the error of an earlier send.
 */
bool udp_receive_connected(int fd, uint8_t *buf, size_t cap, struct udp_run *ret);

/**
 * udp_send_connected() - datagrams of one size by a connected socket, without waiting
 * @iov:	@n datagrams, which may lie apart; UDP_RUN_SEGMENTS_MAX and UDP_RUN_BYTES_MAX at
 * most
 * @seg:	bytes of each but the last, which may be shorter
 * @gso:	send them as one run (UDP_SEGMENT)
 *
 * What the kernel does not take is lost, as it would be on the way.
 *
 * Return: @gso; false when the kernel has refused a run: they were sent one at a time.
 */
bool udp_send_connected(int fd, struct iovec *iov, unsigned n, uint16_t seg, bool gso);

/** Runs about to be sent, one outbox per worker. */
struct udp_outbox {
    struct udp_outbox_slots *slots; /* owns */
    unsigned n;                     /* messages waiting */
    bool gso;                       /* use UDP_SEGMENT; cleared when the kernel says EIO */
    bool wait;                      /* wait for room in the socket, rather than drop */
    uint64_t n_failed;              /* datagrams that the kernel refused, since init */
    uint64_t n_full;                /* of them, those that it had no space for */
    int last_error;                 /* errno of the latest of them */
};

/** udp_outbox_init() - 0 or -ENOMEM. */
int udp_outbox_init(struct udp_outbox *out, bool gso, bool wait);

/** udp_outbox_deinit() - free what it owns; what was not flushed is not sent. */
void udp_outbox_deinit(struct udp_outbox *out);

/**
 * udp_outbox_add() - queue a run, flushing first when full
 * @s:		the sockets to flush to
 * @run:	copied; its bytes are borrowed until the flush
 */
void udp_outbox_add(struct udp_outbox *out, const struct udp_sockets *s, const struct udp_run *run);

/** udp_outbox_flush() - send all that waits, in order. */
void udp_outbox_flush(struct udp_outbox *out, const struct udp_sockets *s);
