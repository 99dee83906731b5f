/*
 * rate_memory.h - what rate is usual: the rates of the last hour or so, and their median.
 *
 * It is kept how often each rate was, in steps of a quarter of an octave. So a median is right to
 * an eighth. What is older than half an hour counts half.
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

/** rate_memory_add() - @rate, bytes/s, was seen. */
void rate_memory_add(struct rate_memory *m, uint64_t rate);

/** rate_memory_median() - bytes/s; 0: nothing was seen. */
uint64_t rate_memory_median(const struct rate_memory *m);
