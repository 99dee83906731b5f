/* env_internal.h - the table of env_rules.c, as env.c goes through it. */
#pragma once

#include "train/env.h"

/** Which kinds of command a rule is for, as bits. */
#define ENV_FOR(kind) (1u << (COMMAND_KIND_##kind))
#define ENV_FOR_ALL   ((1u << COMMAND_KIND_N) - 1)

struct env_rule {
    const char *name;
    unsigned kinds;        /* bits of ENV_FOR() */
    bool needs_command;    /* not for `weft env`, which does not know what will be run */
    const char *otherwise; /* another variable by which a person says the same; NULL: none */

    /*
     * The value on this node: true with @value, or false with @note, which says why it is not
     * needed.
     */
    bool (*make)(const struct env_facts *f, char value[static ENV_VALUE_MAX],
        char note[static ENV_NOTE_MAX]);

    /* Does the person's own value break the job? True with @note. NULL: whatever it is, it may. */
    bool (*hurts)(const struct env_facts *f, const char *theirs, char note[static ENV_NOTE_MAX]);

    const char *value;  /* in words, for the documentation */
    const char *reason; /* see struct env_entry */
    const char *source;
};

extern const struct env_rule env__rules[];
extern const size_t env__n_rules;
