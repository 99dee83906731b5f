/*
 * tai64n.h - the timestamp of an initiation.
 *
 * Rounded down to 2^24 ns (about 17 ms), so that it does not tell more of our
 * clock than it must, and never repeated or decreased, whatever the clock does:
 * a responder refuses all but increasing ones.
 *
 * Spec: whitepaper 5.1 and 5.4.2; https://cr.yp.to/libtai/tai64.html.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/** Big-endian, so memcmp() orders by time. All zeroes is before every real one. */
struct tai64n {
    uint8_t b[12]; /* 8: 2^62 + 10 + seconds since 1970; 4: nanoseconds */
};

/**
 * tai64n_next() - the timestamp to send now
 * @last:	the greatest that was sent before; updated
 * @wall:	time since 1970, which may have jumped back
 *
 * Return: @wall rounded down, or one step after @last if that is not later.
 */
struct tai64n tai64n_next(struct tai64n *last, nsec_t wall);

/** tai64n_compare() - less than, equal to or greater than zero, like memcmp(). */
int tai64n_compare(const struct tai64n *a, const struct tai64n *b);
