/*
 * frame_header.h - what stands before each path frame on the frame socket (frame_socket.h).
 */
#pragma once

#include <assert.h>
#include <stdint.h>

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
