/*
 * clock.h - where time comes from.
 *
 * The only readers of the kernel's clocks. A loop reads once per turn and
 * passes the value down (see base/clock.h).
 */
#pragma once

#include "base/clock.h"

/** clock_now() - monotonic time, for timers; does not run while the machine sleeps. */
nsec_t clock_now(void);

/** clock_wall() - nanoseconds since 1970 (UTC), for timestamps on the wire and for people. */
nsec_t clock_wall(void);

/** clock_wall_s() - seconds since 1970 (UTC). */
int64_t clock_wall_s(void);
