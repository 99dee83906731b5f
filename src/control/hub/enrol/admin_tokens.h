/*
 * admin_tokens.h - who administers from afar: the named tokens of the store, and that of the file.
 *
 * An admin token is "weft-admin1." and base64url of 32 random bytes. The store keeps their SHA-256
 * beside a name, a role and an end. The token in STATE/admin.token, which is made with the hub, is
 * no record: it has role admin and no end, and is replaced by admin_tokens_write_file().
 *
 * Theory of operation. The records are read at the start, and followed by a watch of their own: so
 * a token that is removed is unknown to the very next request. There are few, so a token is
 * looked for by comparing its hash with each of theirs, in constant time.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"
#include "base/rate.h"
#include "base/secret.h"
#include "hub/record/record.h"
#include "store/store.h"

/** Most admin tokens on one hub. */
#define ADMIN_TOKENS_MAX 256

/** Changes that one token may ask for: so many at once, and then one each so often. */
#define ADMIN_PACE_BURST 2000
#define ADMIN_PACE_EACH  (NSEC_PER_SEC / 10)

/** Wrong secrets, of enrolment as of administration, from one source: so many at once, and then one
 * each so often. Clients of a unix socket have no address and are not limited. */
#define GUESSES_BURST 10
#define GUESSES_EACH  (6 * NSEC_PER_SEC)

/** Room for the text of a token, with the terminating zero. */
#define ADMIN_TEXT_MAX 64

/* Outcomes. */
#define ADMIN_E_EXISTS 1 /* there is one of that name */
#define ADMIN_E_FULL   2 /* there are ADMIN_TOKENS_MAX */

struct admin_token {
    struct admin_record record;
    uint64_t revision;    /* of its record */
    int64_t last_used_at; /* s since 1970; 0: not since the hub's start */
    struct rate pace;     /* of the changes that it asks for */
};

struct admin_tokens {
    struct model *model;       /* pins: commits, and knows the networks */
    struct rng rng;            /* for secrets */
    struct admin_token *items; /* owns; @n of them, in room for ADMIN_TOKENS_MAX */
    size_t n;
    size_t n_coming;           /* that are on their way to the store */
    struct store_watch *watch; /* owns */
    struct token_hash file;    /* of the file's token */
    bool has_file;             /* there is one */
    struct ratelimit failures; /* by source */
    uint64_t n_failed;         /* since the start */
};

/** admin_tokens_init() - no token is known yet. @rng: copied. */
void admin_tokens_init(struct admin_tokens *at, struct model *model, const struct rng *rng);

/** admin_tokens_deinit() - idempotent. */
void admin_tokens_deinit(struct admin_tokens *at);

/**
 * admin_tokens_load() - read the records, and follow them
 *
 * One that cannot be understood is set aside: it opens nothing, and is named in the log.
 *
 * Return: 0 or negative errno with words.
 */
int admin_tokens_load(struct admin_tokens *at, struct err *e);

/**
 * admin_tokens_open_file() - read the token at @path, or make one
 *
 * A file that holds none is named and left as it is.
 *
 * Return: 0 or negative errno with words.
 */
int admin_tokens_open_file(struct admin_tokens *at, const char *path, struct err *e);

/**
 * admin_tokens_write_file() - put a new token at @path; waits for the disk, on any thread
 * @ret:	what the caller sets @file to, since the old token is to open nothing any more
 *
 * Return: 0 or negative errno with words.
 */
int admin_tokens_write_file(
    const struct rng *rng, const char *path, struct token_hash *ret, struct err *e);

/**
 * admin_tokens_identify() - who has the token @bearer
 * @from:	where it comes from: after too many failures from there the token is not looked at
 * @ret:	role, name and network, with CALLER_KNOWN; the name, with CALLER_EXPIRED
 */
enum caller_verdict admin_tokens_identify(struct admin_tokens *at, const char *bearer,
    const struct ip_addr *from, nsec_t now, int64_t wall_s, struct caller *ret);

/** admin_tokens_find() - by its name; NULL: there is none. */
struct admin_token *admin_tokens_find(const struct admin_tokens *at, const char *name);

/** The record of a token, admin's or join's, on its way to the store. */
struct token_write {
    char key[RECORD_KEY_MAX];
    char *value; /* owns */
    struct store_op op;
};

/** token_write_deinit() - release. */
void token_write_deinit(struct token_write *w);

/**
 * admin_tokens_make() - a new token, to be committed
 * @hub_key:	of the network that @rq names
 * @by:		who makes it
 * @ret:	what is to be committed
 * @ret_text:	the token; wipe after use
 *
 * Return: 0; ADMIN_E_* with words; negative errno with words.
 */
int admin_tokens_make(struct admin_tokens *at, const struct admin_request *rq,
    const struct x25519_public *hub_key, const char *by, int64_t wall_s, struct token_write *ret,
    char ret_text[static ADMIN_TEXT_MAX], struct err *e);
