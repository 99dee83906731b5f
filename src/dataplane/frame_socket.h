/*
 * frame_socket.h - path frames in and out of one device's UDP port, /run/wireguard/NAME.path.
 *
 * Whoever finds paths (the agent) has to send and to hear its own frames from
 * the very port that WireGuard uses, because a NAT keeps one mapping for it. The
 * data plane carries them and never interprets one: what arrives and is either
 * of a type that WireGuard leaves alone (first byte 0x80 and up)
 * or the answer of a STUN server goes to the client, and what the client
 * writes goes out.
 *
 * A unix socket, SOCK_SEQPACKET, mode 0600. One client at a time; a further one
 * is hung up on. Each message either way is a struct frame_socket_header and the
 * frame. Frames that come faster than FRAME_SOCKET_RATE, or while the client does
 * not read, are dropped and counted.
 *
 * While there is a client, peers that were told `pinned_endpoint=true` do not
 * follow the source of what arrives: only the client moves them.
 *
 * Served by the port's control thread; the rx workers write to the client
 * themselves, inside the gate.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct device;
struct err;
struct frame_socket;
struct rx_worker;
struct udp_run;

/** Longest frame: a probe of a jumbo path, and room. */
#define FRAME_SOCKET_FRAME_MAX 9216

/** Frames a second that each rx worker hands on, after a burst of as many. */
#define FRAME_SOCKET_RATE 2048

/** Bytes that may wait for either end, as the kernel counts: the probes of dozens of paths that
 * begin at once, the longest of which take 16 KiB each. */
#define FRAME_SOCKET_ROOM (4 << 20)

/** Send with DF, and never cut into fragments here: an MTU probe. */
#define FRAME_SOCKET_DONT_FRAGMENT 0x0001u

/** The flags' upper byte is the IP time to live (hop limit) to send with; 0: as usual. */
#define FRAME_SOCKET_HOPS_SHIFT 8

/** Before each frame, both ways. Both ends are on one machine: host order. */
struct frame_socket_header {
    uint8_t remote[16];  /*  0: the other end; IPv4 as v4-mapped */
    uint8_t local[16];   /* 16: our address on the packet; zeroes: the kernel chooses */
    uint16_t port;       /* 32: of the other end */
    uint16_t flags;      /* 34: out only; FRAME_SOCKET_ */
    uint32_t ifindex;    /* 36: arrived on; used when sending to a link-local address only */
    int64_t received_at; /* 40: in only; CLOCK_MONOTONIC, ns */
};

static_assert(
    sizeof(struct frame_socket_header) == 48, "the same for every version of this program");

/**
 * frame_socket_new() - listen and serve
 * @path:	replaced when a stale socket is there; refused when somebody answers
 *
 * Return: 0, -EADDRINUSE when another process serves @path, or negative errno; with words.
 */
int frame_socket_new(struct frame_socket **ret, struct device *d, const char *path, struct err *e);

/** frame_socket_free() - hang up, remove the socket; NULL is fine. Returns NULL. */
struct frame_socket *frame_socket_free(struct frame_socket *fs);

/** frame_socket_takes() - is it a frame for the client? @len bytes; any content. */
bool frame_socket_takes(const uint8_t *frame, size_t len);

/**
 * frame_socket_offer() - hand a frame to the client, or drop it with a reason
 * @run:	where it came from
 * @frame:	@len bytes, for which frame_socket_takes() is true
 *
 * Threads: the rx worker's, inside the gate.
 */
void frame_socket_offer(
    struct rx_worker *w, const struct udp_run *run, const uint8_t *frame, size_t len);
