/*
 * pickle.h - the values of a pickle, as PyTorch writes its records: dictionaries, lists, tuples,
 * texts, numbers and None.
 *
 * Theory of operation. A pickle is a program for a machine with a stack and a memo (Python's
 * Lib/pickletools.py lists its instructions). Of those of protocol 2 only those are carried out
 * that make plain values; one that looks up a name, calls something or builds an object is refused,
 * so a pickle can do nothing. Each instruction has at least a byte and makes at most one value, and
 * texts are not copied, so the memory that is taken follows from the bytes that are there, and from
 * no number in them. A value may be in several others, and a list even in itself: who walks has to
 * know how deep.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/** Longest pickle, bytes. */
#define PICKLE_BYTES_MAX (16u << 20)

/** Values of one, and places in its containers. */
#define PICKLE_VALUES_MAX (1u << 20)
#define PICKLE_CELLS_MAX  (4u << 20)

/** Containers that are begun inside of each other. */
#define PICKLE_DEPTH_MAX 32

/** Keys of a dictionary that are looked at; those after them are not found. */
#define PICKLE_KEYS_MAX 64

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_LIST, /* or a tuple */
    PICKLE_DICT,
};

struct pickle_value {
    enum pickle_kind kind;
    uint32_t len;   /* bytes of a text */
    uint32_t first; /* cell of a container, counted from 1; 0: it is empty */
    uint32_t last;  /* likewise */
    union {
        int64_t integer; /* also of a bool */
        double number;
        const char *text; /* borrows from the bytes; no zero at its end */
    };
};

/** A place in a container; in a dictionary a value follows its key. */
struct pickle_cell {
    uint32_t value;
    uint32_t next; /* counted from 1; 0: it is the last one */
};

/** All that a pickle has. */
struct pickle {
    struct pickle_value *values; /* owns */
    size_t n_values, cap_values;
    struct pickle_cell *cells; /* owns */
    size_t n_cells, cap_cells;
    uint32_t root;
};

/**
 * pickle_read() - carry out a pickle
 * @ret:	untouched on failure; its texts borrow from @bytes
 *
 * Return: 0; -EINVAL with words: it is cut off, or has what is not read here; -ENOMEM with words.
 */
int pickle_read(struct pickle *ret, const void *bytes, size_t len, struct err *e);

/** pickle_deinit() - idempotent, safe on all zero. */
void pickle_deinit(struct pickle *p);

/** pickle_root() - what the whole pickle is; lends. */
const struct pickle_value *pickle_root(const struct pickle *p);

/** pickle_find() - the value of the key @name; lends, NULL: there is none, or @dict is no
 * dictionary, or NULL. */
const struct pickle_value *pickle_find(
    const struct pickle *p, const struct pickle_value *dict, const char *name);

/** pickle_begin() - where the items of a list begin, for pickle_next(); @list may be NULL, or no
 * list, which has none. Of a dictionary these are each key and its value. */
uint32_t pickle_begin(const struct pickle_value *list);

/** pickle_next() - the item there, and go on; lends, NULL: there is none any more. */
const struct pickle_value *pickle_next(const struct pickle *p, uint32_t *at);
