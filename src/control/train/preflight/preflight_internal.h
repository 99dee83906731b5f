/*
 * preflight_internal.h - what the files of preflight.h share: the list of findings, and what is
 * looked at in one of them for another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/preflight/preflight.h"

/**
 * preflight__add() - add a finding about @a and @b, or PREFLIGHT_NOBODY
 *
 * Return: lent until the next call. Never NULL: when memory runs out, the report remembers that in
 * its @failed.
 */
struct preflight_finding *preflight__add(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b);

/** preflight__say() - write a finding's text, or its fix. */
void preflight__say(char text[static 256], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** preflight__has_fatal_loss() - is so much lost that it explains why TCP carries nothing? */
bool preflight__has_fatal_loss(const struct preflight_pair *p);

/** preflight__assess_loss() - find the loss between two members who reach each other. */
void preflight__assess_loss(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p);

/** preflight__assess_unknown_loss() - note where a small loss would not have been seen. */
void preflight__assess_unknown_loss(struct preflight_report *r, const struct preflight_input *in);

/** preflight__assess_pair() - find what is wrong between two members; @median: of all, in bit/s */
void preflight__assess_pair(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median);
