/*
 * owner_record.h - what hubs of one store tell each other: that they live, and who serves what.
 *
 *     hub/NAME        {"boot": of its run, "beat": counts up}, written every two seconds
 *     owner/NET       {"hub": the name of the one that serves the network's jobs, "epoch": counts
 * up with each hub that does so, "network": the key by which that network is told from others of
 * its name}; without "hub" the last one has given them up
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "crypto/x25519.h"
#include "hub/record/record.h"

struct err;

#define OWNER_BEAT_PREFIX   "hub/"
#define OWNER_RECORD_PREFIX "owner/"

/** The value of hub/NAME. */
struct beat_record {
    uint64_t boot; /* of the hub's run, random */
    uint64_t beat;
};

/** The value of owner/NET. */
struct owner_record {
    char hub[NAME_MAX_LEN + 1];   /* "": nobody's now */
    uint64_t epoch;               /* at least 1 */
    bool has_network;             /* older hubs did not say of which network */
    struct x25519_public network; /* its struct network_maker's */
};

/** owner_key() - OWNER_BEAT_PREFIX or OWNER_RECORD_PREFIX, and a name. Returns @buf. */
const char *owner_key(char buf[static RECORD_KEY_MAX], const char *prefix, const char *name);

/** beat_record_encode() - text for free(); NULL: no memory. */
char *beat_record_encode(const struct beat_record *b);

/** beat_record_decode() - 0; -EINVAL with words; -ENOMEM. */
int beat_record_decode(struct beat_record *ret, const char *text, struct err *e);

/** owner_record_encode() - text for free(); NULL: no memory. */
char *owner_record_encode(const struct owner_record *o);

/** owner_record_decode() - 0; -EINVAL with words; -ENOMEM. */
int owner_record_decode(struct owner_record *ret, const char *text, struct err *e);
