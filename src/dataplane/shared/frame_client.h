/*
 * frame_client.h - path frames that arrive go to whoever has connected to the frame socket.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/drop.h"

struct rate;
struct udp_run;

/* What stands before each path frame on the frame socket (frame_socket.h). */

/** Longest frame: a probe of a jumbo path, and room. */
#define FRAME_SOCKET_FRAME_MAX 9216

/** Frames a second that each rx worker hands on, after a burst of as many. */
#define FRAME_SOCKET_RATE 2048

/** Bytes that may wait for either end, as the kernel counts: the probes of dozens of paths that
 * begin at once, the longest of which take 16 KiB each. */
#define FRAME_SOCKET_BUFFER (4 << 20)

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

/*
 * Path frames that arrive go to whoever has connected to the frame socket.
 *
 * The data plane never looks into one: docs/DATAPLANE.md, "Path frames". The socket itself, and
 * what its client sends, are frame_socket.h's.
 */

/** One in each port. frame_socket.c changes it under the port's lock. */
struct frame_client {
    int fd;                /* borrows; -1: there is none. Changed with the gate closed */
    _Atomic bool is_there; /* somebody finds paths: pinned peers keep their endpoints. Any thread */
};

/**
 * frame_client_offer() - hand a frame to the client
 * @rate:	the calling worker's, of FRAME_SOCKET_RATE
 * @one:	the frame, of kind RUN_FRAME (run_split.h), and where it came from
 * @ret_why:	set when it is not handed on: DROP_UNKNOWN_TYPE (there is no client, or the frame
 *		is longer than any), DROP_PATH_QUOTA or DROP_PATH_QUEUE_FULL
 *
 * Threads: an rx worker's, inside the gate.
 *
 * Return: false when it ends here.
 */
bool frame_client_offer(const struct frame_client *client, struct rate *rate,
    const struct udp_run *one, nsec_t now, enum drop_reason *ret_why);
