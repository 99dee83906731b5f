/*
 * secret.h - secret bytes: drawn, compared and wiped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Wiping and comparing what must not leak.
 *
 * Key types live with their algorithms (crypto/). None of them has a formatter
 * that a log call could reach.
 */

/** secret_wipe() - overwrite @len bytes at @p with zeroes, even if @p is never read again. */
void secret_wipe(void *p, size_t len);

/** secret_equal() - compare without a branch or early exit that depends on the contents. */
bool secret_equal(const void *a, const void *b, size_t len);

/** secret_is_zero() - all @len bytes are zero; constant time. */
bool secret_is_zero(const void *p, size_t len);

/**
 * secret_grow() - room for one more item in an array that may hold secrets
 * @items:	@n items of @size bytes, of which *@cap fit; taken, unless there is no memory
 *
 * Not as realloc(), which leaves a copy behind. Return: the array; NULL: no memory, and @items is
 * as it was.
 */
void *secret_grow(void *items, size_t n, size_t size, size_t *cap);

/*
 * Randomness as an argument.
 *
 * The lower half hands in the kernel's generator (os/clock.h); tests and the
 * simulation hand in a seeded one, so that a failure can be replayed.
 */

/** A source of random bytes. */
struct rng {
    void (*fill)(void *ctx, void *buf, size_t len); /* never fails: see os/clock.h */
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
