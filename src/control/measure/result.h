/*
 * result.h - what was measured, as structs and as the JSON of an answer.
 *
 * A decoder checks every field against its bounds; what comes from another
 * member is believed as a measurement, and never as a size.
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;

#define RESULT_WHY_MAX  160
#define RESULT_PATH_MAX 16

/** One direction of a pair without load: from who asks to the peer, and back. */
struct idle_test {
    char path[RESULT_PATH_MAX]; /* how the agent reaches the peer: "lan", "relay", ... */
    uint32_t sent;              /* pings of the train */
    uint32_t heard;             /* of these, how many the peer has heard */
    uint32_t back;              /* pongs that came back */
    uint32_t rtt_min_us;        /* 0 unless @back */
    uint32_t rtt_median_us;
    uint32_t rtt_p99_us;
    int64_t clock_us;         /* the peer's clock less ours */
    uint32_t clock_error_us;  /* that may be wrong by so much */
    uint32_t route_mtu;       /* bytes of the largest packet that the kernel would send */
    uint32_t packet_max;      /* bytes of the largest packet that arrived; 0: none of those tried */
    bool connected;           /* a TCP connection came about */
    uint32_t mss;             /* as its SYN and SYN-ACK agreed */
    bool transferred;         /* full-size segments got through, and were confirmed */
    char why[RESULT_WHY_MAX]; /* what failed; "" when nothing did */
};

/** A transfer in one direction, as its receiver saw it. */
struct flow {
    uint64_t bytes;
    uint64_t bits_per_s; /* of its second half, when slow start is over; 0: nothing came */
    uint32_t retransmits;
};

/** Throughput of a pair. */
struct bulk {
    struct flow out; /* to the peer */
    struct flow in;
    char via[IP_ADDR_TEXT_MAX]; /* the peer's address that was used */
    char why[RESULT_WHY_MAX];   /* what failed; "" when nothing did */
};

/** One member's part in an all-reduce. */
struct allreduce {
    nsec_t elapsed;           /* of one repeat, on average */
    uint32_t repeats;         /* how many there was time for */
    bool correct;             /* the sums are right */
    char why[RESULT_WHY_MAX]; /* what failed; "" when nothing did */
};

/* Each encoder gives a new reference, NULL for no memory. Each decoder: 0 or -EINVAL with words. */
json_t *idle_test_encode(const struct idle_test *l);
int idle_test_decode(struct idle_test *ret, const json_t *json, struct err *e);
json_t *bulk_encode(const struct bulk *b);
int bulk_decode(struct bulk *ret, const json_t *json, struct err *e);
json_t *allreduce_encode(const struct allreduce *rd);
int allreduce_decode(struct allreduce *ret, const json_t *json, struct err *e);
