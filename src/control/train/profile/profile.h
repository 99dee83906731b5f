/*
 * profile.h - what NCCL and libfabric need to be told on each kind of fabric.
 *
 * One table, in profile.c: a row for each kind of fabric and machine, with the plugin, the
 * variables, and for each of them the reason and its source. A row holds for a job that stays
 * inside one island. A job that crosses islands uses sockets over the overlay instead (env.h).
 * What a plugin sets by itself is left to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fabric/fabric.h"

#define PROFILE_VALUE_MAX 512 /* bytes of a value, with its zero */
#define PROFILE_NOTE_MAX  256 /* bytes of a note, with its zero */

/** A variable of a profile. */
struct profile_var {
    const char *name;
    const char *value; /* NULL: made from the facts, by @make */
    /*
     * Sets @value to what the machine needs and returns true; or sets @note to why it needs
     * nothing, and returns false.
     */
    bool (*make)(const struct fabric_facts *f, char value[static PROFILE_VALUE_MAX],
        char note[static PROFILE_NOTE_MAX]);
    const char *reason;
    const char *source;
};

/** A profile: one row of the table. */
struct profile {
    const char *name; /* such as "efa" */
    enum fabric_kind kind;
    const char *machine;  /* the row is for machines whose type begins so; NULL: all others */
    const char *networks; /* beginnings of NCCL's names of its network then, between commas */
    const struct profile_var *vars;
    size_t n_vars;
};

/** profile_say() - write a value. Return: true, as a function that makes one does. */
bool profile_say(char value[static PROFILE_VALUE_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** profile_unneeded() - write why no value is needed. Return: false, likewise. */
bool profile_unneeded(char note[static PROFILE_NOTE_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** profile_of() - the profile for a machine. Never NULL. */
const struct profile *profile_of(const struct fabric_facts *f);

/** profile_plain() - the profile of plain sockets, for a job that crosses islands. */
const struct profile *profile_plain(void);

/** profile_at() - the profile of that index, NULL: there are no more. For the tests and docs. */
const struct profile *profile_at(size_t i);

/** profile_find() - the variable of that name in the profile; NULL: it has none. */
const struct profile_var *profile_find(const struct profile *p, const char *name);

/** profile_takes() - is a network that NCCL calls so the profile's? */
bool profile_takes(const struct profile *p, const char *network);

/**
 * profile_decides() - does another value of the variable take the job off the fabric?
 *
 * The others are for speed only.
 */
bool profile_decides(const struct profile_var *var);

/**
 * profile_make() - the value of a variable on a machine
 *
 * Return: true with @value set; false with @note set to why it is not needed.
 */
bool profile_make(const struct profile_var *var, const struct fabric_facts *f,
    char value[static PROFILE_VALUE_MAX], char note[static PROFILE_NOTE_MAX]);
