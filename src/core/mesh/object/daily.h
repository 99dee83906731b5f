/*
 * daily.h - what the tunnel and the bare line between two nodes carry: one sample of each day.
 *
 * One end of a pair measures it once a day, both ways, and reports it (docs/EDGES.md, "Day by
 * day"). The hub keeps DAILY_DAYS_MAX days of as many as DAILY_PEERS_MAX peers of each node.
 *
 * Pure: JSON in, structs out, and back.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/parse.h"

#define DAILY_DAYS_MAX  30
#define DAILY_PEERS_MAX 64
#define DAILY_KBIT_MAX  4000000000u

/** One day. A figure of 0 was not measured. */
struct daily_sample {
    int32_t day;             /* since 1970-01-01, UTC */
    uint32_t tunnel_kbit[2]; /* kbit/s at which a burst arrived: at the peer, and back */
    uint32_t raw_kbit[2];    /* the same beside the tunnel */
    uint32_t tunnel_rtt_us;
    uint32_t raw_rtt_us;
    uint32_t tls_kbit[2]; /* in the tunnel, encrypted first as in TLS */
};

/** The days of one peer, the oldest first. */
struct daily_peer {
    char name[NAME_MAX_LEN + 1];
    unsigned n;
    struct daily_sample days[DAILY_DAYS_MAX];
};

/** Those of one node, in the order of the names. */
struct daily {
    struct daily_peer **items; /* owns, also what they point to */
    size_t n;
    size_t cap;
};

#define DAILY_NULL                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/** daily_deinit() - release all; idempotent. */
void daily_deinit(struct daily *d);

/** daily_find() - lends the days of a peer; NULL: there are none. */
const struct daily_peer *daily_find(const struct daily *d, const char *peer);

/**
 * daily_put() - take the sample of a day, in the place of one of that day
 *
 * Days that are DAILY_DAYS_MAX or more older go; and for a peer that has no room the one that was
 * measured longest ago, if that was before this day.
 *
 * Return: true: something is different; false: it was there, is too old, there is no room for one
 * more peer, or no memory.
 */
bool daily_put(struct daily *d, const char *peer, const struct daily_sample *s);

/** daily_cost_percent() - how much less the tunnel carries than the line, of the ways that were
 * measured both times. False: none was. */
bool daily_cost_percent(const struct daily_sample *s, int *ret);

/** daily_tls_cost_percent() - the same of how much less it carries with TLS inside. */
bool daily_tls_cost_percent(const struct daily_sample *s, int *ret);

/** daily_sample_encode() - for who reads it: {"day": "2026-11-29", ...}. A new reference; NULL: no
 * memory. */
json_t *daily_sample_encode(const struct daily_sample *s);

/** daily_peer_encode() - the same of all its days, the oldest first: an array. NULL: no memory. */
json_t *daily_peer_encode(const struct daily_peer *p);

/*
 * As it is reported and kept: {"PEER": [[DAY, KBIT, KBIT, KBIT, KBIT, US, US, KBIT, KBIT], ...]},
 * numbers in the order of struct daily_sample. The last two need not be there.
 */

/** daily_encode() - as many days of each as fit into @max bytes, the last ones. A new reference;
 * NULL: no memory. */
json_t *daily_encode(const struct daily *d, size_t max);

/** daily_sample_encode_short() - the array of one day. A new reference; NULL: no memory. */
json_t *daily_sample_encode_short(const struct daily_sample *s);

/** daily_sample_decode() - the array of one day. 0; or -EINVAL with words; @ret is untouched then.
 */
int daily_sample_decode(
    struct daily_sample *ret, const json_t *json, const char *where, struct err *e);

/** daily_decode() - as daily_encode() has it. @ret: DAILY_NULL; untouched on failure. @json: NULL:
 * none. 0; -EINVAL with words. */
int daily_decode(struct daily *ret, const json_t *json, const char *where, struct err *e);
