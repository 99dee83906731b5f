/*
 * sample_lock.h - locks of the network "lab", of known keys, for tests.
 *
 * A key is made of a name, as in test/vectors/lock_reference.py: so "alice" is the same signer in
 * each test and in the vectors. Whatever should not fail and does fails the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/lock/lock_chain.h"

#define SAMPLE_LOCK_BEGUN_AT UINT64_C(1790000000) /* s since 1970 */
#define SAMPLE_LOCK_UNTIL    UINT64_C(1800000000)

/** A chain, and its bytes. */
struct sample_lock {
    struct lock_chain chain;
    uint8_t *bytes; /* owns; of all entries */
    size_t len;
    size_t cap;
    size_t *ends; /* owns; where each entry ends */
    uint64_t now; /* s since 1970; when the next entry is made */
};

/** sample_lock_secret() - of the signer, token or code of that name. */
struct ed25519_secret sample_lock_secret(const char *name);

/** sample_lock_signing() - its public key. */
struct ed25519_public sample_lock_signing(const char *name);

/** sample_lock_node_secret() - the WireGuard key of that name. */
struct x25519_secret sample_lock_node_secret(const char *name);

/** sample_lock_key() - its public key. */
struct x25519_public sample_lock_key(const char *name);

/** sample_lock_node() - a node with its name's key and the addresses 10.7.*.* and fd07::* of a
 * number; to be released with node_deinit(). */
struct node sample_lock_node(const char *name, unsigned host);

/** sample_lock_label() - give it a label; in the order of the keys. */
void sample_lock_label(struct node *node, const char *key, const char *value);

/** sample_lock_route() - give it a route. */
void sample_lock_route(struct node *node, const char *route);

/** sample_lock_signers() - of names with blanks between, sorted as a lock has them. */
struct lock_signers sample_lock_signers(unsigned threshold, const char *names, const char *codes);

/** sample_lock_edge() - an edge of which nothing is fixed. */
struct mesh_edge sample_lock_edge(const char *a, const char *b);

/** sample_lock_rule() - a rule of one peer each. */
struct object sample_lock_rule(
    const char *name, const char *from, const char *to, const char *service);

/** sample_lock_token() - a token for @uses nodes, which may have nothing; it is good for a day. */
struct lock_token sample_lock_token(const struct sample_lock *s, const char *name, uint32_t uses);

/** sample_lock_genesis() - of alice, bob and carol, of whom two are demanded, and two codes. */
struct lock_genesis sample_lock_genesis(void);

/** sample_lock_init() - no entry yet; @pins: NULL: none. */
void sample_lock_init(struct sample_lock *s, const struct lock_pins *pins);

/** sample_lock_begin() - with a genesis, and two nodes gpu-1 and gpu-2, hosts 2 and 3. */
void sample_lock_begin(struct sample_lock *s);

void sample_lock_deinit(struct sample_lock *s);

/** sample_lock_make() - an entry that says @body, in the place that is next; @by signs it: names
 * with blanks between. What @body owns moves into it. */
struct lock_entry sample_lock_make(struct sample_lock *s, struct lock_body *body, const char *by);

/** sample_lock_take() - apply an entry that is good; it is empty afterwards. */
void sample_lock_take(struct sample_lock *s, struct lock_entry *entry);

/** sample_lock_put() - both. */
void sample_lock_put(struct sample_lock *s, struct lock_body body, const char *by);

/** sample_lock_put_node() - an operators' entry of that node, which moves into it. */
void sample_lock_put_node(struct sample_lock *s, struct node node);

/** sample_lock_refuse() - make it, and see it refused with a sentence that has @words; nothing has
 * changed. */
void sample_lock_refuse(
    struct sample_lock *s, struct lock_body body, const char *by, const char *words);
