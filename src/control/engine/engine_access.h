/*
 * engine_access.h - the network's rules, as the data plane itself goes by them: said to it and read
 * from it.
 *
 * The text is that of `weft wg` (docs/DATAPLANE.md). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"

struct err;
struct str;

/** The request that asks what was let in and refused. */
#define ENGINE_ACCESS_READ "access_counts=1\n\n"

/** Most rules and kinds in an answer. */
#define ENGINE_ACCESS_MAX 65536

/** What a rule has let in. */
struct engine_access_rule {
    char name[NAME_MAX_LEN + 1];
    uint64_t passed; /* packets that have begun something */
};

/** Packets of one kind that were refused. */
struct engine_access_kind {
    struct ip_addr from;
    struct ip_addr to;
    uint8_t protocol; /* of IP */
    uint16_t port;    /* of TCP and UDP */
    uint64_t packets;
};

/** What a data plane has counted since its rules began. */
struct engine_access {
    bool is_on;                       /* it goes by rules */
    uint64_t tag;                     /* what they were called */
    struct engine_access_rule *rules; /* owns; those that have let something in */
    size_t n_rules;
    size_t cap_rules;
    struct engine_access_kind *kinds; /* owns */
    size_t n_kinds;
    size_t cap_kinds;
    uint64_t refused; /* packets, those of no kind too */
};

/** engine_access_deinit() - release. Idempotent. */
void engine_access_deinit(struct engine_access *a);

/**
 * engine_access_encode() - the request that has it go by rules
 * @lines:	as access/access_set.h has them, each with its newline; NULL: by none
 * @out:	appended to
 */
void engine_access_encode(const char *lines, uint64_t tag, struct str *out);

/**
 * engine_access_decode() - the answer to ENGINE_ACCESS_READ
 * @text:	@len bytes, up to and including the line "errno=..."
 * @ret:	untouched on failure
 *
 * Lines that are not known are passed over.
 *
 * Return: 0; -EBADMSG with words that name the line; -E2BIG; the errno that the engine answered,
 * negative, with words; -ENOMEM.
 */
int engine_access_decode(struct engine_access *ret, const char *text, size_t len, struct err *e);
