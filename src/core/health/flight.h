/*
 * flight.h - where the ranks of a job are in their collective operations, by PyTorch's flight
 * recorder: which one each has entered last, and in which it waits.
 *
 * Theory of operation. With NCCL PyTorch keeps in each process the last operations that the process
 * has asked for, a few thousand, and writes them to a file when one times out, or when somebody
 * writes to a pipe. The file is a pickle (health/pickle.h) of a dictionary: "pg_config" has the
 * ranks of each process group, and "entries" the operations, oldest first. Of each group the
 * collective operations are counted, "collective_seq_id" (PyTorch 2.4 and later), so one operation
 * has the same number on all ranks; what two ranks send each other is not. Of a group operations
 * complete in their order: the first after the last that is completed is the one in which the rank
 * waits. An entry of operations that were put together may never be said to complete.
 *
 * Pure: bytes in, facts out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct fields;

/** Groups of a rank that are told of: those in which it waits, and then those used last. */
#define FLIGHT_GROUPS_MAX 8

/** Places of a node's ranks that are told of. */
#define FLIGHT_PLACES_MAX 64

/** Longest texts, with their zeroes. */
#define FLIGHT_GROUP_MAX     40
#define FLIGHT_OPERATION_MAX 32
#define FLIGHT_TYPE_MAX      16

/** More is as long as this, ms: a day. */
#define FLIGHT_MS_MAX 86400000

/** Greatest rank. */
#define FLIGHT_RANK_MAX 999999

/** Where a rank is in one of its groups. */
struct flight_place {
    uint64_t key;      /* of the group: the same on all its ranks, of its name and ranks */
    uint32_t rank;     /* in the whole job */
    uint32_t n_ranks;  /* of the group; 0: not known */
    uint32_t age_ms;   /* since the record was written */
    uint32_t wait_ms;  /* how long it waited then */
    uint64_t entered;  /* number of the last operation that it has asked for */
    uint64_t waits_in; /* of the one in which it waits; 0: in none, and what follows is empty */
    uint64_t elements; /* that it gives */
    char group[FLIGHT_GROUP_MAX];         /* "default_pg" */
    char operation[FLIGHT_OPERATION_MAX]; /* "all_reduce" */
    char type[FLIGHT_TYPE_MAX];           /* "Float"; "": not known */
};

/** What one record says: the places of a rank. */
struct flight_record {
    struct flight_place items[FLIGHT_GROUPS_MAX];
    unsigned n;
};

/** What a node says. */
struct flight_places {
    bool is_known; /* a recorder is there; it need not have written anything */
    struct flight_place items[FLIGHT_PLACES_MAX];
    unsigned n;
};

/**
 * flight_decode() - a record that was written whole
 * @ret:	untouched on failure
 * @rank:	whose it is, which its file's name says
 * @at:		when it was written, ns since 1970
 *
 * Return: 0; -EINVAL with words; -ENOMEM with words.
 */
int flight_decode(struct flight_record *ret, const void *bytes, size_t len, uint32_t rank,
    int64_t at, struct err *e);

/** flight_places_encode() - {"places"}; a new reference, NULL: no recorder is known. */
json_t *flight_places_encode(const struct flight_places *p);

/** flight_places_read() - take them from the field @name of @fields, which need not be there. @ret:
 * all zero. */
void flight_places_read(struct flight_places *ret, struct fields *fields, const char *name);
