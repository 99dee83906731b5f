/*
 * rounds.h - divides all pairs of n members into the fewest rounds in which nobody occurs twice.
 *
 * This is the circle method for a 1-factorisation of the complete graph. It
 * takes n - 1 rounds for an even n. For an odd n it takes n rounds, and in each
 * of them one member rests. The pairs of a round share no member, so they can be
 * measured at the same time.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>

/** Two members, as indices from 0 to n - 1. */
struct rounds_pair {
    size_t a; /* less than b */
    size_t b;
};

/** rounds_count() - how many rounds there are; 0 for fewer than two members. */
size_t rounds_count(size_t n);

/** rounds_pairs() - how many pairs there are in all. */
size_t rounds_pairs(size_t n);

/**
 * rounds_get() - the pairs of one round
 * @round:	below rounds_count()
 * @ret:	the pairs; has room for @n / 2
 *
 * Return: the number of pairs.
 */
size_t rounds_get(size_t n, size_t round, struct rounds_pair *ret);

/** rounds_index() - the number of a pair, from 0 to rounds_pairs() - 1. @a < @b < @n. */
size_t rounds_index(size_t n, size_t a, size_t b);
