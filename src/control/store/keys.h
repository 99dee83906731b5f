/*
 * keys.h - an index of structs by their key, in byte order.
 *
 * It is a sorted array of pointers: a lookup is a binary search, and an
 * insertion moves the pointers behind it. That is fast enough for thousands of
 * structs: what the hub has by name, the members of a network, leases, and the
 * items of a store in memory. Chosen keys cannot make it slow, and its order is
 * the one that store_list() promises.
 */
#pragma once

#include <stddef.h>

/** The first member of each struct that an index holds. */
struct keyed {
    char *key; /* owned by the struct around it */
};

struct keys {
    struct keyed **items; /* owns the array; pins the structs */
    size_t n;             /* how many */
    size_t cap;           /* room in the array */
};

#define KEYS_NULL {0}

/** keys_deinit() - release the array; the structs are not touched. */
void keys_deinit(struct keys *k);

/** keys_lower() - index of the first struct whose key is not below @key. */
size_t keys_lower(const struct keys *k, const char *key);

/** keys_find() - the struct with that key, which begins with its struct keyed; NULL: there is none.
 */
void *keys_find(const struct keys *k, const char *key);

/** keys_add() - add @item, whose key must not be in the index yet. 0 or -ENOMEM. */
int keys_add(struct keys *k, struct keyed *item);

/** keys_remove() - take @item out of the index, if it is in it. */
void keys_remove(struct keys *k, const struct keyed *item);

/** keys_open() - the struct with that key, made of @size zeroed bytes if it is not there; NULL: no
 * memory. */
void *keys_open(struct keys *k, const char *key, size_t size);

/** keys_free() - take @item, which keys_open() has made, out of the index, and release it. */
void keys_free(struct keys *k, struct keyed *item);

/** keys_free_all() - all of them, and the array. */
void keys_free_all(struct keys *k);
