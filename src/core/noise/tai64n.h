/*
 * tai64n.h - the timestamp of an initiation.
 *
 * Rounded down to 2^24 ns (about 17 ms), so that it does not tell more of our
 * clock than it must, and never repeated or decreased, whatever the clock does:
 * a responder refuses all but increasing ones.
 *
 * A responder remembers the greatest for longer than the sender lives. So a program that starts
 * again has to go on above what it sent before, and to know that it has to have it on disk before
 * it sends: struct tai64n_bounds, which os/timestamp_file.h fills.
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

/** Between what times a program may date what it sends, in ns since 1970. */
struct tai64n_bounds {
    nsec_t above; /* an earlier run may have sent up to here; 0: none is known */
    nsec_t upto;  /* a later run will know of times up to here; NSEC_NEVER: of all, or of none */
};

#define TAI64N_UNBOUNDED {.above = 0, .upto = NSEC_NEVER}

/**
 * tai64n_bound() - the time to give to tai64n_next()
 * @wall:	time since 1970
 *
 * Above what was sent wins: a peer refuses all else. Many more timestamps than were foreseen may
 * pass @b->upto by themselves, one step each, since a handshake is worth more than a later run.
 *
 * Return: @wall, or the nearest time within @b.
 */
nsec_t tai64n_bound(const struct tai64n_bounds *b, nsec_t wall);

/** tai64n_wall() - ns since 1970; of all zeroes 0. */
nsec_t tai64n_wall(const struct tai64n *t);

/** tai64n_compare() - less than, equal to or greater than zero, like memcmp(). */
int tai64n_compare(const struct tai64n *a, const struct tai64n *b);
