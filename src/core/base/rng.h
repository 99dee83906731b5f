/*
 * rng.h - randomness as an argument.
 *
 * The lower half hands in the kernel's generator (os/rng_kernel.h); tests and the
 * simulation hand in a seeded one, so that a failure can be replayed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** A source of random bytes. */
struct rng {
    void (*fill)(void *ctx, void *buf, size_t len); /* never fails: see os/rng_kernel.h */
    void *ctx;                                      /* pins: handed to fill */
};

static inline void rng_fill(const struct rng *rng, void *buf, size_t len)
{
    rng->fill(rng->ctx, buf, len);
}

static inline uint32_t rng_u32(const struct rng *rng)
{
    uint32_t v;

    rng_fill(rng, &v, sizeof(v));
    return v;
}

static inline uint64_t rng_u64(const struct rng *rng)
{
    uint64_t v;

    rng_fill(rng, &v, sizeof(v));
    return v;
}

/**
 * rng_seeded() - a reproducible generator for tests and simulation (splitmix64)
 * @state:	the seed; advanced by every call; pinned by the returned rng
 *
 * Not for keys.
 */
struct rng rng_seeded(uint64_t *state);
