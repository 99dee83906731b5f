/*
 * traffic.h - classes of traffic, how fast they may be sent (rates that a person sets), and what
 * has arrived of what was sent.
 *
 * A rate is in bit/s, of IPv4 datagrams with their headers. 0 means that there is none, so that
 * nothing is slowed down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/** The classes, first to last; net/tun/tun.h has which packets are in which. */
enum traffic_class {
    TRAFFIC_CLASS_CONTROL,
    TRAFFIC_CLASS_PRIORITY,
    TRAFFIC_CLASS_NORMAL,
    TRAFFIC_CLASS_BULK,
    TRAFFIC_CLASS_N,
};

/** Allowed rates, in bit/s. Below the least a full packet alone takes over a tenth of a second. */
#define TRAFFIC_RATE_MIN UINT64_C(100000)
#define TRAFFIC_RATE_MAX UINT64_C(1000000000000)

/** How fast an interface sends. */
struct traffic_rates {
    uint64_t all;                      /* all that it sends */
    uint64_t classes[TRAFFIC_CLASS_N]; /* of each class */
};

/**
 * What has arrived of what a peer has sent, and what has not, by the counters in WireGuard's data
 * messages (docs/DATAPLANE.md, "What is lost").
 */
struct arrivals {
    uint64_t received;  /* authentic datagrams, each counted once */
    uint64_t lost;      /* counters that were passed over, and whose datagram has not come */
    uint64_t reordered; /* of @received: those that came behind one with a greater counter */
    uint64_t repeated;  /* refused: they had come before */
};

/** arrivals_add() - add @more to @sum, up to the greatest number that there is. */
static inline void arrivals_add(struct arrivals *sum, const struct arrivals *more)
{
    /* A peer chooses its counters, so what it seems to have lost has no bound. */
    if (__builtin_add_overflow(sum->lost, more->lost, &sum->lost))
        sum->lost = UINT64_MAX;
    sum->received += more->received;
    sum->reordered += more->reordered;
    sum->repeated += more->repeated;
}

/** traffic_class_names - as in "bulk". */
extern const char *const traffic_class_names[];

/** traffic_class_parse() - the class called by the @len bytes at @text. False: there is none. */
bool traffic_class_parse(enum traffic_class *ret, const char *text, size_t len);

/** traffic_rate_is_allowed() - 0, or TRAFFIC_RATE_MIN to TRAFFIC_RATE_MAX? */
static inline bool traffic_rate_is_allowed(uint64_t bits_per_s)
{
    return bits_per_s == 0 || (bits_per_s >= TRAFFIC_RATE_MIN && bits_per_s <= TRAFFIC_RATE_MAX);
}

/**
 * traffic_rate_parse() - a rate from text, as parse_rate() reads it: "100Mbit", "2.5Gbit/s"
 * @what:	its name for the sentence
 *
 * Return: 0, or -EINVAL with words when it is none, or not from TRAFFIC_RATE_MIN to
 * TRAFFIC_RATE_MAX.
 */
int traffic_rate_parse(uint64_t *ret, const char *text, const char *what, struct err *e);

/** Room for traffic_rate_format(). */
#define TRAFFIC_RATE_TEXT_MAX 32

/** traffic_rate_format() - "100Mbit", exactly: what is parsed again is the same. Returns @buf. */
const char *traffic_rate_format(uint64_t bits_per_s, char buf[static TRAFFIC_RATE_TEXT_MAX]);

/** Room for traffic_bytes_format(). */
#define TRAFFIC_BYTES_TEXT_MAX 32

/** traffic_bytes_format() - "21.30 MB", in decimal units, as providers bill them. Returns @buf. */
const char *traffic_bytes_format(uint64_t bytes, char buf[static TRAFFIC_BYTES_TEXT_MAX]);

/** traffic_rates_any() - is there a rate among them? */
bool traffic_rates_any(const struct traffic_rates *r);
