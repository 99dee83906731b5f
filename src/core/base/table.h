/*
 * table.h - columns of text for people, each as wide as its widest cell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

/** Cells row by row; the first row is the head. */
struct table {
    unsigned n_columns;
    char **cells; /* owns the array and the texts */
    size_t n;
    size_t cap;
    bool failed; /* no memory for some of it */
};

/** table_init() - empty. */
void table_init(struct table *t, unsigned n_columns);

/** table_deinit() - release; idempotent. */
void table_deinit(struct table *t);

/** table_add() - the next cell, as printf has it. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** table_format() - all complete rows, two blanks between columns, a newline after each. */
void table_format(const struct table *t, struct str *out);
