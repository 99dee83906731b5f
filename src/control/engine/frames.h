/*
 * frames.h - path frames through an engine's own UDP port.
 *
 * Who finds paths has to send from the port that WireGuard uses, because a NAT
 * keeps one mapping for it. `weft wg` has a socket for that
 * (port/frame_socket.h); beside the kernel's WireGuard raw sockets do it
 * (net/socket/raw_udp.h). What arrives is either of a type that WireGuard leaves alone
 * or the answer of a STUN server; nothing has been authenticated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

/** Longest frame, either way. */
#define ENGINE_FRAME_MAX 9216

/** A datagram and what is known of its way. */
struct engine_frame {
    struct endpoint remote; /* the other end */
    struct ip_addr local;   /* our address on it; none: the kernel chooses */
    uint32_t ifindex;       /* arrived on; 0: not known */
    nsec_t received_at;     /* monotonic; in only */
    bool dont_fragment;     /* out only: an MTU probe */
    uint8_t hops;           /* out only: IP time to live (hop limit); 0: as usual */
    size_t len;
    uint8_t data[ENGINE_FRAME_MAX];
};

struct engine_frames;

/** Nothing has arrived. */
#define ENGINE_FRAMES_E_EMPTY 1
/** The engine or its interface is gone: close, and open again later. */
#define ENGINE_FRAMES_E_GONE 2

/** What an engine's kind implements. */
struct engine_frames_ops {
    /* Never waits. 0, also when it was dropped for want of room; ENGINE_FRAMES_E_GONE; or negative
     * errno: -EMSGSIZE when @frame is longer than the interface takes, where that is known. */
    int (*send)(struct engine_frames *ef, const struct engine_frame *frame);
    /* 0; ENGINE_FRAMES_E_EMPTY; ENGINE_FRAMES_E_GONE; negative errno. */
    int (*receive)(struct engine_frames *ef, struct engine_frame *ret);
    void (*close)(struct engine_frames *ef);
};

/** The first member of each kind's own struct. */
struct engine_frames {
    const struct engine_frames_ops *ops;
    int fd; /* readable when there is something to receive; owned by the kind */
};

/** engine_frames_open_socket() - through the frame socket of `weft wg`, which runs @interface. 0 or
 * negative errno with words. */
int engine_frames_open_socket(struct engine_frames **ret, const char *interface, struct err *e);
