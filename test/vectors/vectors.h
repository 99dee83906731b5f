/*
 * vectors.h - reads test/vectors/NAME: cases of "name = value" lines.
 *
 * A case begins with "case = TITLE" and ends before the next. Every function
 * fails the test, with the file's and the field's name, instead of returning an
 * error: a vector that cannot be read proves nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One file, read whole. */
struct vectors {
    char *text;        /* owns; lines are cut by zeroes */
    size_t len;        /* of the text */
    size_t begin;      /* of the current case, after its "case" line */
    size_t end;        /* of the current case */
    const char *file;  /* pins: the name, for messages */
    const char *title; /* borrows from the text */
};

/** vectors_open() - $WEFT_SOURCE_ROOT/test/vectors/@file; before the first case. */
void vectors_open(struct vectors *v, const char *file);

void vectors_close(struct vectors *v);

/** vectors_next() - go to the next case; false at the end. */
bool vectors_next(struct vectors *v);

bool vectors_has(const struct vectors *v, const char *name);

/** vectors_bytes() - a hex field of at most @cap bytes into @ret; returns its length. */
size_t vectors_bytes(const struct vectors *v, const char *name, void *ret, size_t cap);

/** vectors_exact() - a hex field of exactly @len bytes. */
void vectors_exact(const struct vectors *v, const char *name, void *ret, size_t len);

/** vectors_u64() - a decimal field. */
uint64_t vectors_u64(const struct vectors *v, const char *name);
