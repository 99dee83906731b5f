/*
 * nccl_vars.h - which variables NCCL knows, and from which version to which.
 *
 * A variable that NCCL does not know does nothing, and nobody says so: old guides are full of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NCCL_NOTE_MAX 256 /* bytes of a note, with its zero */

/** What is known of one. Versions are minors of NCCL 2: 17 is 2.17. */
struct nccl_var {
    const char *name;
    unsigned since; /* the first that knows it; 0: 2.4 or before */
    unsigned until; /* the last that knows it; 0: it is still known */
};

/** The newest version whose source was looked through, as a minor of NCCL 2. */
#define NCCL_VARS_NEWEST 30

/** nccl_var_find() - what is known of the variable; NULL: no version has it. */
const struct nccl_var *nccl_var_find(const char *name);

/** nccl_var_owner() - the plugin that knows a variable which NCCL does not; NULL: none known. */
const char *nccl_var_owner(const char *name);

/** What is to be said of a variable that a person has set. */
enum nccl_verdict {
    NCCL_VERDICT_FINE,    /* nothing */
    NCCL_VERDICT_REMARK,  /* it works, and the note says what to know */
    NCCL_VERDICT_NOTHING, /* it does nothing, or it breaks the job, as the note says */
};

/**
 * nccl_var_judge() - judge a variable by its name and value
 * @name:	of NCCL's or libfabric's; others are fine
 * @nccl:	minor of the NCCL 2 that the command uses; 0: not known, the newest is assumed
 * @note:	set unless it is fine
 */
enum nccl_verdict nccl_var_judge(
    const char *name, const char *value, unsigned nccl, char note[static NCCL_NOTE_MAX]);
