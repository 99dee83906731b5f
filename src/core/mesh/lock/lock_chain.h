/*
 * lock_chain.h - the lock of a network: the entries that operators have signed, and what they come
 * to.
 *
 * Each member has the chain, or reads it from its own disk and from a hub, and applies one entry
 * after the other. What is refused changes nothing. So all who have the same head have the same
 * state, and a hub cannot put anything into it, take anything out of it, or show it in another
 * order: it can only hold back what is newest, or show two members two ends. The first is found out
 * when the lock expires, and both when two members compare heads over their own tunnel.
 *
 * Who signs:
 *
 *   genesis          so many of its own signers as it demands; whether they are the right ones the
 *                    pins of the join token say
 *   recover          the key of one code of recovery, alone
 *   join             the key of a token, alone
 *   all others       so many of the signers as are demanded before the entry
 *
 * Spec: docs/wire/lock.md. Pure: times are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/lock/lock_entry.h"
#include "mesh/lock/lock_state.h"

struct err;

/** Most entries of a chain. */
#define LOCK_ENTRIES_MAX (1u << 20)

/**
 * The signers that a join token names, so that its holder takes no other chain for the network's.
 *
 * They are those of when the token was made. Their signatures under one entry vouch for all
 * entries before it, and what follows it is held to the rules.
 */
struct lock_pins {
    struct ed25519_public keys[LOCK_SIGNERS_MAX];
    unsigned n;         /* 0: none, whichever chain comes first is taken */
    unsigned threshold; /* so many of them under one entry; at least 1 */
};

/** The end of a chain, which says all of it. */
struct lock_head {
    uint64_t seq; /* of the last entry */
    struct lock_hash hash;
};

struct lock_chain {
    char network[NAME_MAX_LEN + 1];
    struct lock_pins pins;
    lock_verify_fn verify;    /* ed25519_verify() */
    struct lock_hash *hashes; /* owns; of each entry */
    size_t n;                 /* entries */
    size_t cap;
    uint64_t made_at;        /* of the last entry by operators; s since 1970 */
    bool is_vouched;         /* an entry is signed by those whom the pins name */
    bool is_broken;          /* there was no memory; lock_chain_deinit() is all that is left */
    struct lock_state state; /* all zeroes while there is no entry */
};

/** lock_chain_init() - no entry yet; @pins may be NULL: none. */
void lock_chain_init(struct lock_chain *c, const char *network, const struct lock_pins *pins);

/** lock_chain_deinit() - release what it owns; idempotent. */
void lock_chain_deinit(struct lock_chain *c);

/**
 * lock_chain_apply() - one entry more
 * @entry:	what its body owns moves into the state, if it is applied
 *
 * Return: 0; -EINVAL with a sentence that names the entry and why it is refused: nothing has
 * changed; -ENOMEM: nothing can be done with @c any more but lock_chain_deinit().
 */
int lock_chain_apply(struct lock_chain *c, struct lock_entry *entry, struct err *e);

/**
 * lock_chain_read() - apply all entries that stand one behind the other
 * @ret_len:	the bytes of those that were applied, also on failure; may be NULL
 *
 * Return: as lock_chain_apply(), of the first entry that was refused.
 */
int lock_chain_read(
    struct lock_chain *c, const void *p, size_t len, size_t *ret_len, struct err *e);

/** lock_chain_next() - set the place of an entry that is to be signed, and when it was made: @now,
 * s since 1970, or the time of the entry before it if that clock was ahead. */
void lock_chain_next(const struct lock_chain *c, uint64_t now, struct lock_entry *entry);

/** lock_chain_check_usable() - is it a chain that may be believed at all? 0, or -EINVAL with words:
 * it is empty, or the signers that the join token names have signed nothing of it. */
int lock_chain_check_usable(const struct lock_chain *c, struct err *e);

/** lock_chain_head() - of a chain that is not empty. */
struct lock_head lock_chain_head(const struct lock_chain *c);

/** How two chains stand to each other. */
enum lock_order {
    LOCK_ORDER_SAME,
    LOCK_ORDER_AHEAD,  /* this one has what the other one has, and more */
    LOCK_ORDER_BEHIND, /* the other one has more entries; whether it has these, it can tell alone */
    LOCK_ORDER_FORKED, /* at the same place they have different entries: there are two histories */
    LOCK_ORDER_N,
};

/** lock_order_names - "same", "ahead", "behind", "forked". */
extern const char *const lock_order_names[];

/** lock_chain_compare() - with the head that another member says; @c is not empty. */
enum lock_order lock_chain_compare(const struct lock_chain *c, const struct lock_head *head);
