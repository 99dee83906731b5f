/*
 * allowedips.h - which peer owns which inner addresses: longest prefix match.
 *
 * Theory of operation. One path-compressed binary trie per family, all nodes in
 * one array with 32-bit links: 48 bytes a node, at most two nodes a prefix, and
 * a lookup is a chain of two xors and a shift per step. Nodes are found by
 * number, so the array may move when it grows: only under the write lock.
 *
 * A prefix has one owner. Owners are embedded in the caller's peers
 * (container_of) and link their prefixes, so removing a peer walks its own only.
 *
 * Threads: lookups under the owner's read lock, everything else under its write lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/** Embedded in a peer: the head of its list of prefixes. */
struct allowedips_owner {
    uint32_t first; /* node number, 0: none */
    uint32_t n;     /* how many prefixes */
};

/** One node: a prefix with an owner, or a fork without. */
struct allowedips_node {
    uint64_t key[2];                /* the prefix's bits, host order, upper half first; v4 in the
                                     * upper 32 bits; zero beyond len */
    uint32_t child[2];              /* node numbers by the bit after the prefix, 0: none; a free
                                     * node's child[0] is the next free one */
    struct allowedips_owner *owner; /* pins; NULL: a fork */
    uint32_t next;                  /* of the same owner, 0: last */
    uint32_t prev;                  /* of the same owner, 0: first */
    uint8_t len;                    /* bits of the prefix */
    bool is_v4;                     /* which trie */
};

struct allowedips {
    struct allowedips_node *nodes; /* owns; number 0 is not used */
    uint32_t cap;                  /* nodes allocated */
    uint32_t n_used;               /* nodes handed out at least once, number 0 included */
    uint32_t free;                 /* first of the free ones, 0: none */
    uint32_t root4;                /* 0: empty */
    uint32_t root6;                /* 0: empty */
};

#define ALLOWEDIPS_NULL {0}

/** allowedips_deinit() - release; owners are not touched. */
void allowedips_deinit(struct allowedips *t);

/**
 * allowedips_insert() - @owner gets @prefix, from whoever had exactly that one
 * @prefix:	host bits are ignored
 * @owner:	pins, until its prefixes are removed
 *
 * Return: 0 or -ENOMEM, and then nothing has changed.
 */
int allowedips_insert(
    struct allowedips *t, const struct ip_prefix *prefix, struct allowedips_owner *owner);

/** allowedips_remove() - take @prefix from @owner; nothing happens when it is not the owner. */
void allowedips_remove(
    struct allowedips *t, const struct ip_prefix *prefix, struct allowedips_owner *owner);

/** allowedips_remove_owner() - take all its prefixes. */
void allowedips_remove_owner(struct allowedips *t, struct allowedips_owner *owner);

/**
 * allowedips_find() - who owns the longest prefix that @addr is in
 *
 * Return: the owner; NULL when no prefix holds @addr.
 */
struct allowedips_owner *allowedips_find(const struct allowedips *t, const struct ip_addr *addr);

/**
 * allowedips_each() - walk one owner's prefixes, latest first
 * @cursor:	0 at first; advanced
 * @ret:	the next prefix
 *
 * The trie may not change meanwhile.
 *
 * Return: false at the end.
 */
bool allowedips_each(const struct allowedips *t, const struct allowedips_owner *owner,
    uint32_t *cursor, struct ip_prefix *ret);
