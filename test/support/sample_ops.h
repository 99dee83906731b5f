/*
 * sample_ops.h - requests of every kind at a hub, some as they should be, some not at all.
 *
 * What is asked is decided by bytes: a fuzzer's, or random ones by seed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample_hub;

/** Decisions, one after the other. When they are used up all are 0. */
struct choices {
    const uint8_t *bytes; /* borrowed */
    size_t n;
};

/** choices_below() - a number from 0 to @n - 1. */
unsigned choices_below(struct choices *c, unsigned n);

/** sample_ops_run() - requests until the choices are used up, and what follows from them. */
void sample_ops_run(struct sample_hub *s, struct choices *c);
