/*
 * sample_late.h - a store whose every answer is late, and some are lost; for tests.
 *
 * It keeps what it is given in memory. Each store_dispatch() lets a few jobs, or none, take their
 * turn, by the seed; so whoever asks has others ask, and change things, before it is answered.
 * With a loss, some commits fail with nothing done, some are answered STORE_E_UNKNOWN with
 * nothing done, and some STORE_E_UNKNOWN though they were done, of which watches hear later. Some
 * reads fail.
 */
#pragma once

#include <stdint.h>

struct err;
struct store;

/**
 * sample_late_open() - an empty one
 * @seed:	of what is late, and what is lost
 * @loss:	one in so many is lost; 0: none is
 */
struct store *sample_late_open(uint64_t seed, unsigned loss);

/** sample_late_set_loss() - from now on; what waits already is meant too. */
void sample_late_set_loss(struct store *s, unsigned loss);
