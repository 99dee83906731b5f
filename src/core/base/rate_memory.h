/*
 * rate_memory.h - what is usual of a figure that spans orders of magnitude, such as a rate or a
 * time: those of the last hour or so, and their median.
 *
 * It is kept how often each was, in steps of a quarter of an octave from 2^10 on. So a median is
 * right to an eighth. At one each three seconds, what is older than half an hour counts half.
 *
 * Pure.
 */
#pragma once

#include <stdint.h>

#define RATE_MEMORY_STEPS 112

/** All zero: nothing was seen. */
struct rate_memory {
    uint16_t n[RATE_MEMORY_STEPS];
    uint16_t total;
};

/** rate_memory_add() - @rate was seen. */
void rate_memory_add(struct rate_memory *m, uint64_t rate);

/** rate_memory_median() - 0: nothing was seen. */
uint64_t rate_memory_median(const struct rate_memory *m);
