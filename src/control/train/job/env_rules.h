/*
 * env_rules.h - what is known of each variable: the table that env.c applies.
 *
 * A row is all of one variable. Adding one touches the table, and docs/TRAINING.md, which has the
 * table as `weft env --table` prints it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "train/job/env.h"

/* Which kinds of command a rule is for, as bits. */
#define ENV_FOR(kind) (1u << (COMMAND_KIND_##kind))
#define ENV_FOR_ALL   ((1u << COMMAND_KIND_N) - 1)

struct env_rule {
    const char *name;
    unsigned kinds;        /* bits of ENV_FOR() */
    bool needs_command;    /* left out by `weft env`, which does not know the command */
    const char *otherwise; /* if the person has set this one, @name is unneeded; NULL: none */

    /*
     * Finds the value on this node. Returns true and sets @value, or returns false and sets
     * @note, which says why the variable is not needed.
     */
    bool (*make)(const struct env_facts *f, char value[static ENV_VALUE_MAX],
        char note[static ENV_NOTE_MAX]);

    /*
     * Does the value that the person has set break the job? If so, returns true and sets @note
     * to what it breaks. NULL: no value does.
     */
    bool (*hurts)(const struct env_facts *f, const char *theirs, char note[static ENV_NOTE_MAX]);

    const char *value;  /* the value in words, for the documentation */
    const char *reason; /* see struct env_entry */
    const char *source; /* likewise */
};

/** The table: env_n_rules of them. */
extern const struct env_rule env_rules[];
extern const size_t env_n_rules;
