/*
 * rng_kernel.h - the kernel's random generator as a `struct rng`.
 *
 * Not called random.h: with -Isrc that would hide the C library's own
 * <sys/random.h>.
 */
#pragma once

#include "base/rng.h"

/**
 * rng_kernel() - cryptographically secure randomness, for keys too
 *
 * Blocks at most once, early at boot, until the kernel's pool is ready.
 *
 * Threads: the returned rng may be used by all threads at once.
 */
struct rng rng_kernel(void);
