/*
 * lane.h - one direction of an emulated link.
 *
 * A lane decides, for each Ethernet frame that enters at a time, whether it is
 * lost and if not when it comes out, and holds it until then. It is sans-I/O:
 * time is an argument, randomness comes from a seed, and frames are only
 * carried. emulator.c gives it real TAP devices and a real clock; test-lane.c
 * gives it neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"

#define LANE_PPM            1000000u
#define LANE_ETHERNET_BYTES 14u          /* header, which does not count against the MTU */
#define LANE_HELD_MAX       (64u << 20)  /* bytes in flight in one lane */
#define LANE_QUEUE_DEFAULT  (128u << 10) /* bytes that wait before a rate limit */

/** How a lane treats its frames. All zero but @queue is a perfect wire. */
struct lane_params {
    nsec_t delay;         /* added to every frame */
    nsec_t jitter;        /* uniform in [-jitter, +jitter] on top of @delay, never below 0 */
    uint64_t rate;        /* bits/s of whole frames; 0 = unlimited */
    uint32_t queue;       /* bytes that may wait for @rate; the tail is dropped beyond it */
    uint32_t loss_ppm;    /* frames lost, per million */
    uint32_t reorder_ppm; /* frames that skip the delay and so overtake, per million */
    uint32_t mtu;         /* largest payload of a frame in bytes; 0 = any */
};

/** A wire that does nothing to its frames. */
#define LANE_PARAMS_PERFECT {.queue = LANE_QUEUE_DEFAULT}

/** What became of a frame that entered. */
enum lane_fate {
    LANE_FATE_HELD,        /* comes out later, or at once if due */
    LANE_FATE_DROP_CUT,    /* the lane is cut */
    LANE_FATE_DROP_MTU,    /* larger than the MTU */
    LANE_FATE_DROP_LOSS,   /* drawn by the loss rate */
    LANE_FATE_DROP_QUEUE,  /* the queue before the rate limit is full */
    LANE_FATE_DROP_MEMORY, /* LANE_HELD_MAX is reached, or no memory */
    LANE_FATE_N,
};

/** A frame in flight. */
struct lane_frame {
    struct heap_link flight; /* in lane.in_flight */
    size_t len;
    uint8_t bytes[]; /* from the Ethernet header on */
};

/**
 * One direction of a link.
 *
 * Theory of operation: a frame first passes the tests that need no time (cut,
 * MTU, loss), then a virtual transmitter that is busy until @busy_until (its
 * backlog follows from that time and the rate, so no second queue is needed),
 * then the delay. A frame that keeps its order is never due before the one
 * that entered earlier (@newest_due), as on a real line; a reordered one is
 * exempt both ways. Each frame draws the same number of random values whatever
 * the parameters are, so that changing one does not move another's decisions.
 */
struct lane {
    struct lane_params params;
    bool is_cut;
    uint64_t random;       /* state of the generator */
    nsec_t busy_until;     /* the transmitter is free from here on */
    nsec_t newest_due;     /* of the frames that keep their order */
    struct heap in_flight; /* owns struct lane_frame */
    size_t held_bytes;     /* of the frames in flight */
    uint64_t n_entered;
    uint64_t n_left;              /* came out */
    uint64_t n_fate[LANE_FATE_N]; /* entered, by fate */
};

/** lane_init() - a perfect wire, whose random decisions will follow from @seed. */
void lane_init(struct lane *lane, uint64_t seed);

/** lane_deinit() - free the frames in flight. Idempotent. */
void lane_deinit(struct lane *lane);

/**
 * lane_push() - a frame enters
 * @now:	never earlier than in the previous call
 * @bytes:	@len bytes from the Ethernet header on; copied
 *
 * Return: LANE_FATE_HELD, or why the frame is lost. Either way it is counted.
 */
enum lane_fate lane_push(struct lane *lane, nsec_t now, const uint8_t *bytes, size_t len);

/** lane_due() - when the next frame comes out, or NSEC_NEVER. */
nsec_t lane_due(const struct lane *lane);

/** lane_pop() - give the next frame that is due at @now, for free(); NULL if none is. */
struct lane_frame *lane_pop(struct lane *lane, nsec_t now);

/**
 * lane_set_cut() - cut the lane, or mend it
 *
 * Cutting also loses the frames in flight: nothing comes out of a cut lane.
 */
void lane_set_cut(struct lane *lane, bool is_cut);

/** lane_fate_name() - a word for statistics. */
const char *lane_fate_name(enum lane_fate fate);
