/*
 * keys_request.h - POST /v1/keys: what a member says of its own key, and of those of others.
 *
 * Pure. What a statement says of whom is checked where it is taken (hub/handlers/handlers_keys.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/parse.h"
#include "mesh/keys/key_statement.h"

struct err;

/** Most acknowledgements in a request, and bytes of one in base64. */
#define KEYS_REQUEST_ACKS_MAX 256
#define KEYS_REQUEST_ACK_LEN  44

/** Most nodes that are named for whom a change waits, and bytes of the reason. */
#define KEYS_REQUEST_NAMES_MAX 8
#define KEYS_REQUEST_WHY_MAX   200

/** How far a member is in changing its key. */
enum keys_stage {
    KEYS_STAGE_NONE,     /* it says nothing of that */
    KEYS_STAGE_PREPARED, /* its statement is to be kept */
    KEYS_STAGE_MOVED,    /* and its next key to be its own */
    KEYS_STAGE_ENDED,    /* the key before is erased */
    KEYS_STAGE_N,
};

/** keys_stage_names - "none", "prepared", "moved", "ended". */
extern const char *const keys_stage_names[];

struct keys_request {
    enum keys_stage stage;
    struct key_statement statement; /* read unless @stage is NONE */
    const char *text;               /* of it; borrowed from the body */
    const json_t *acks;             /* {"NODE": "base64"}, checked; borrowed; NULL: none */
    unsigned n_waits;               /* nodes for which the change waits */
    char waits[KEYS_REQUEST_NAMES_MAX][NAME_MAX_LEN + 1]; /* some of them; "": no more */
    char why[KEYS_REQUEST_WHY_MAX + 1];                   /* why else it waits; "": it does not */
};

/**
 * keys_request_decode() - check a body and take it in
 * @ret:	untouched on failure
 * @json:	borrowed for as long as @ret is used
 *
 * Return: 0, or -EINVAL with words.
 */
int keys_request_decode(struct keys_request *ret, const json_t *json, struct err *e);
