/*
 * clock.h - where time and randomness come from.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/secret.h"

/*
 * Where time comes from.
 *
 * The only readers of the kernel's clocks. A loop reads once per turn and
 * passes the value down (see base/clock.h).
 */

/** clock_now() - monotonic time, for timers; does not run while the machine sleeps. */
nsec_t clock_now(void);

/** clock_wall() - nanoseconds since 1970 (UTC), for timestamps on the wire and for people. */
nsec_t clock_wall(void);

/** clock_wall_s() - seconds since 1970 (UTC). */
int64_t clock_wall_s(void);

/** Room for a time as text: "2026-11-29T22:04:05Z", and the zero. */
#define CLOCK_TEXT_MAX 24

/** clock_text() - @wall_s, seconds since 1970, up to the year 9999, by RFC 3339. Returns @buf. */
const char *clock_text(char buf[static CLOCK_TEXT_MAX], int64_t wall_s);

/** clock_text_parse() - that form alone; false: @text, which may be NULL, is not of it. */
bool clock_text_parse(const char *text, int64_t *ret_wall_s);

/*
 * The kernel's random generator as a `struct rng`.
 */

/**
 * rng_kernel() - cryptographically secure randomness, for keys too
 *
 * Blocks at most once, early at boot, until the kernel's pool is ready.
 *
 * Threads: the returned rng may be used by all threads at once.
 */
struct rng rng_kernel(void);
