/*
 * flight_causes.h - whom the ranks of a job wait for, from where all of them are in their
 * collective operations (health/flight.h).
 *
 * Theory of operation. The ranks of a group are compared at the number in which those that are
 * behind wait. Where they wait in different operations there, or in operations of different sizes
 * that have to be of the same, none can go on: those that differ from most are named. Otherwise
 * those are named that have not entered what others wait in, unless that is most of the group: one
 * that is alone ahead is not why others do not come. A rank that has not entered an operation of
 * one group because it waits in one of another group waits for somebody itself, and is named only
 * if there is nobody else: then the groups wait for each other.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flight_place;

/** A place that was heard of. Borrows. */
struct flight_heard {
    const struct flight_place *place;
    const void *who; /* has said it; of no matter here */
};

/** In the order of causes. */
enum flight_fault {
    FLIGHT_DIFFERS, /* waits in another operation, or in one of another size or type */
    FLIGHT_BEHIND,  /* has not entered what others wait in */
    FLIGHT_CROSSED, /* the same, and waits itself, in another group */
};

/** A rank that is waited for. Borrows. */
struct flight_cause {
    enum flight_fault fault;
    struct flight_heard rank;        /* where it is in the group */
    const struct flight_place *most; /* one of those that wait in the group, as most of them do */
    const struct flight_place *own;  /* CROSSED: where it waits itself; else NULL */
    uint32_t n_waiting;              /* ranks that do as @most */
};

/**
 * flight_causes_find() - the first causes in their order, all of one kind, of those who are waited
 * for longest
 * @heard:	@n places; sorted by this
 * @ret:	@cap of them at most
 *
 * Return: how many; 0 also without memory.
 */
size_t flight_causes_find(
    struct flight_heard *heard, size_t n, struct flight_cause *ret, size_t cap);
