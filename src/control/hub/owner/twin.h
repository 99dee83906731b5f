/*
 * twin.h - does another process run as this hub, on the same store, with its name and key?
 *
 * Theory of operation. A state directory that was copied, or a machine that was cloned, makes two
 * hubs of one: both would serve the same jobs, and nodes would be told now of the one place, now of
 * the other. Each run of a hub writes its own number with its beats (owner_record.h), so both hear
 * of each other, in the same order. Who was heard before this run's first beat is the former one,
 * which has ended in most cases; if its beats go on, it lives, and this one, which was started
 * later, ends. A run that stood still (a frozen machine) hears that another one has beaten
 * meanwhile, and ends.
 *
 * Pure: no clock, no store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** What is known of other runs. Zeroes with @own set: nothing. */
struct twin {
    uint64_t own;     /* the number of this run */
    bool has_begun;   /* a beat of this run was heard */
    uint64_t former;  /* of the run that has beaten before this one did; 0: none */
    uint64_t other;   /* of the last other run that has beaten since; 0: none */
    unsigned n_heard; /* its beats in a row */
    nsec_t heard_at;  /* when the last of them was heard */
};

enum twin_verdict {
    TWIN_NONE,     /* it says nothing new */
    TWIN_NEW,      /* another run has begun to beat, which is to end by itself */
    TWIN_IS_OLDER, /* this run has to end: the former one lives */
    TWIN_REPLACED, /* this run has to end: it stood still, and another one was started */
};

/** How many beats of the former run are needed to say that it lives: one may have been on its way
 * when it was killed. */
#define TWIN_FORMER_BEATS 2

/**
 * twin_hear() - a beat of this hub's name was heard, in the order of the store
 * @run:	the number of the run that wrote it
 * @stored_at:	when this run began its last beat that was stored; 0: none was yet
 */
enum twin_verdict twin_hear(struct twin *t, uint64_t run, nsec_t stored_at, nsec_t now);

/**
 * twin_has_left() - was there another run, which is not heard any more?
 *
 * Return: true once after each: what it wrote of this hub has to be written anew.
 */
bool twin_has_left(struct twin *t, nsec_t now);
