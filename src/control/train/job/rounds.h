/*
 * rounds.h - every pair of n members, in as few rounds as there can be, nobody twice in a round.
 *
 * The circle method for a 1-factorisation of the complete graph: n - 1 rounds
 * for an even n, n for an odd one, in each of which one member rests. The pairs
 * of a round share no member, so that they can be measured at the same time.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>

struct rounds_pair {
    size_t a; /* a < b */
    size_t b;
};

/** rounds_count() - how many rounds; 0 for fewer than two members. */
size_t rounds_count(size_t n);

/** rounds_pairs() - how many pairs there are in all. */
size_t rounds_pairs(size_t n);

/**
 * rounds_get() - the pairs of one round
 * @round:	below rounds_count()
 * @ret:	room for @n / 2
 *
 * Return: how many.
 */
size_t rounds_get(size_t n, size_t round, struct rounds_pair *ret);

/** rounds_index() - a number for a pair, in [0, rounds_pairs()); @a < @b < @n. */
size_t rounds_index(size_t n, size_t a, size_t b);
