/*
 * result.h - the results of measurements, as structs and as the JSON of an answer.
 *
 * A decoder checks every field against its bounds. Numbers from another member are
 * shown as measurements, and never used as the size of anything in memory.
 *
 * Pure: no socket, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "uplink/train.h"

#define RESULT_WHY_MAX  160
#define RESULT_PATH_MAX 16
#define RESULT_TCP_MAX  16 /* TCP_CA_NAME_MAX of the kernel */

/** The result of a test without load: from the member that measures to its peer, and back. */
struct idle_test {
    char path[RESULT_PATH_MAX]; /* how the agent reaches the peer: "lan", "relay", ... */
    uint32_t sent;              /* pings of the train */
    uint32_t heard;             /* how many of these the peer has received */
    uint32_t back;              /* pongs that came back */
    uint32_t rtt_min_us;        /* round trip times; all three are 0 while @back is 0 */
    uint32_t rtt_median_us;
    uint32_t rtt_p99_us;
    int64_t clock_us;        /* the peer's wall clock minus ours */
    uint32_t clock_error_us; /* largest error of @clock_us */
    uint32_t route_mtu;      /* bytes of the largest packet that the kernel would send */
    uint32_t packet_max;     /* bytes of the largest packet that arrived; 0: none arrived */
    bool connected;          /* a TCP connection was established */
    uint32_t mss;            /* bytes; on which its SYN and SYN-ACK agreed */
    bool transferred;        /* full-size segments arrived and were confirmed */
    /* What that connection's congestion control is called at the member that measures, such as
     * "cubic"; "": not known. A route may name another one than the machine does. */
    char congestion[RESULT_TCP_MAX];
    bool restarts; /* after a pause it begins again with a small window, or that is not known */
    char why[RESULT_WHY_MAX]; /* what failed; "" when nothing did */
};

/** A transfer in one direction, as its receiver saw it. */
struct flow {
    uint64_t bytes;
    uint64_t bits_per_s;  /* in its second half, when slow start is over; 0: nothing came */
    uint32_t retransmits; /* segments that the sender repeated; known only where it measures */
};

/** Throughput of a pair. */
struct bulk {
    struct flow out;            /* to the peer */
    struct flow in;             /* from the peer */
    char via[IP_ADDR_TEXT_MAX]; /* the peer's address that was used */
    char why[RESULT_WHY_MAX];   /* what failed; "" when nothing did */
};

/** How many of many datagrams arrived, from the member that measures to its peer. */
struct loss_test {
    uint32_t sent;
    uint32_t heard;           /* how many of these the peer has received; at most @sent */
    uint32_t ms;              /* for how long they were sent */
    char why[RESULT_WHY_MAX]; /* why that is not known; "" when it is */
};

/** What a burst of datagrams has shown of the way from the member that measures to its peer. */
struct burst {
    uint32_t rtt_min_us; /* round trip of small datagrams before it; both 0: not measured */
    uint32_t rtt_median_us;
    uint32_t size; /* bytes of each datagram, without headers */
    uint32_t sent;
    uint32_t heard;             /* how many of these arrived */
    uint64_t bits_per_s;        /* at which they arrived; of their bytes without headers */
    struct train_result train;  /* what it says of the line, where the peer has made marks */
    char via[IP_ADDR_TEXT_MAX]; /* the peer's address that was used */
    char why[RESULT_WHY_MAX];   /* what failed; "" when nothing did */
};

/** What a member says of the burst that it was sent. */
struct caught {
    uint32_t heard;
    uint64_t bits_per_s;      /* 0: too few arrived */
    uint32_t missed;          /* datagrams that were lost in its own socket */
    struct train_marks marks; /* none: it makes none, as one of an earlier version */
};

/** One member's part in an all-reduce. */
struct allreduce {
    nsec_t elapsed;           /* time of one repeat, on average */
    uint32_t repeats;         /* how many repeats were finished */
    bool correct;             /* the sums of all repeats are right */
    char why[RESULT_WHY_MAX]; /* what failed; "" when nothing did */
};

/** result_is_bbr() - is a congestion control of that name BBR, of any version ("bbr", "bbr2")? */
bool result_is_bbr(const char *congestion);

/**
 * result_window_kept() - share of its window that a loss leaves to a congestion control
 * @congestion:	the sender's; "": not known
 * @restarts:	its TCP begins again with a small window after a pause
 *
 * Where no name is known, BBR is what keeps its window over a pause, and CUBIC, which is what Linux
 * has by default, is what does not.
 * CUBIC: RFC 9438, section 4.6. Others, Reno among them: RFC 5681, section 3.1, equation 4.
 *
 * Return: 1 for BBR, which a loss does not slow down.
 */
double result_window_kept(const char *congestion, bool restarts);

/** A name that does not lead to its node on a member. */
struct wrong_name {
    char name[NAME_MAX_LEN + 1];
    char where[IP_ADDR_TEXT_MAX]; /* the address to which it leads there; "": to none */
};

/**
 * wrong_name_decode() - a field of "wrong" in the answer to ORDER_NAMES
 *
 * Return: false: it is not a name and an address; @ret is untouched then.
 */
bool wrong_name_decode(struct wrong_name *ret, const char *name, const json_t *where);

/** idle_test_encode() - as JSON: a new reference; NULL for no memory. */
json_t *idle_test_encode(const struct idle_test *l);
/**
 * idle_test_decode() - check every field against its bounds, and take them in
 * @ret:	untouched on failure
 *
 * Return: 0; or -EINVAL with words that name the field.
 */
int idle_test_decode(struct idle_test *ret, const json_t *json, struct err *e);
/** bulk_encode() - as JSON: a new reference; NULL for no memory. */
json_t *bulk_encode(const struct bulk *b);
/** bulk_decode() - as idle_test_decode(). */
int bulk_decode(struct bulk *ret, const json_t *json, struct err *e);
/** loss_test_encode() - as JSON: a new reference; NULL for no memory. */
json_t *loss_test_encode(const struct loss_test *l);
/** loss_test_decode() - as idle_test_decode(). */
int loss_test_decode(struct loss_test *ret, const json_t *json, struct err *e);
/** burst_encode() - as JSON: a new reference; NULL for no memory. */
json_t *burst_encode(const struct burst *b);
/** burst_decode() - as idle_test_decode(). */
int burst_decode(struct burst *ret, const json_t *json, struct err *e);
/** caught_encode() - as JSON: a new reference; NULL for no memory. */
json_t *caught_encode(const struct caught *c);
/** caught_decode() - as idle_test_decode(). */
int caught_decode(struct caught *ret, const json_t *json, struct err *e);
/** allreduce_encode() - as JSON: a new reference; NULL for no memory. */
json_t *allreduce_encode(const struct allreduce *rd);
/** allreduce_decode() - as idle_test_decode(). */
int allreduce_decode(struct allreduce *ret, const json_t *json, struct err *e);
