/*
 * path_door.h - path frames in and out of one device's UDP port, /run/wireguard/NAME.path.
 *
 * Whoever finds paths (the agent) has to send and to hear its own frames from
 * the very port that WireGuard uses, because a NAT keeps one mapping for it. The
 * data plane carries them and never interprets one: what arrives and is either
 * of a type that WireGuard leaves alone (first byte 0x80 and up)
 * or the answer of a STUN server goes to the door's client, and what the client
 * writes goes out.
 *
 * A unix socket, SOCK_SEQPACKET, mode 0600. One client at a time; a further one
 * is hung up on. Each message either way is a struct path_door_header and the
 * frame. Frames that come faster than PATH_DOOR_RATE, or while the client does
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
struct path_door;
struct rx_worker;
struct udp_run;

/** Longest frame: a probe of a jumbo path, and room. */
#define PATH_DOOR_FRAME_MAX 9216

/** Frames a second that each rx worker hands on, after a burst of as many. */
#define PATH_DOOR_RATE 2048

/** Bytes that may wait for either end, as the kernel counts: the probes of dozens of paths that
 * begin at once, the longest of which take 16 KiB each. */
#define PATH_DOOR_ROOM (4 << 20)

/** Send with DF, and never cut into fragments here: an MTU probe. */
#define PATH_DOOR_DONT_FRAGMENT 0x0001u

/** The flags' upper byte is the IP time to live (hop limit) to send with; 0: as usual. */
#define PATH_DOOR_HOPS_SHIFT 8

/** Before each frame, both ways. Both ends are on one machine: host order. */
struct path_door_header {
    uint8_t remote[16];  /*  0: the other end; IPv4 as v4-mapped */
    uint8_t local[16];   /* 16: our address on the packet; zeroes: the kernel chooses */
    uint16_t port;       /* 32: of the other end */
    uint16_t flags;      /* 34: out only; PATH_DOOR_ */
    uint32_t ifindex;    /* 36: arrived on; used when sending to a link-local address only */
    int64_t received_at; /* 40: in only; CLOCK_MONOTONIC, ns */
};

static_assert(sizeof(struct path_door_header) == 48, "the same for every version of this program");

/** A bucket of frames, one per rx worker; see PATH_DOOR_RATE. */
struct path_door_quota {
    nsec_t filled_at; /* 0: full */
    unsigned n_left;
};

/**
 * path_door_new() - listen and serve
 * @path:	replaced when a stale socket is there; refused when somebody answers
 *
 * Return: 0, -EADDRINUSE when another process serves @path, or negative errno; with words.
 */
int path_door_new(struct path_door **ret, struct device *d, const char *path, struct err *e);

/** path_door_free() - hang up, remove the socket; NULL is fine. Returns NULL. */
struct path_door *path_door_free(struct path_door *door);

/** path_door_takes() - is it a frame for the door? @len bytes; any content. */
bool path_door_takes(const uint8_t *frame, size_t len);

/**
 * path_door_offer() - hand a frame to the client, or drop it with a reason
 * @run:	where it came from
 * @frame:	@len bytes, for which path_door_takes() is true
 *
 * Threads: the rx worker's, inside the gate.
 */
void path_door_offer(
    struct rx_worker *w, const struct udp_run *run, const uint8_t *frame, size_t len);
