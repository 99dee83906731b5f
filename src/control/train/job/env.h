/*
 * env.h - which environment variables a training command needs, and why.
 *
 * One table, rules in env.c, is the only place that knows a variable:
 * whom it is for, its value on this node, when it is not needed, when a value
 * that the person has set will hurt, the reason and where that can be read.
 * `weft run` sets what the plan says, `weft env` prints it, docs/TRAINING.md is
 * checked against it. Pure: the facts and the person's environment are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "train/job/command.h"

struct str;

#define ENV_VALUE_MAX 512 /* bytes of a value, with its zero */
#define ENV_NOTE_MAX  256
#define ENV_ROOM      40 /* at least as many as there are rules */

/** Do the job's nodes share one fast fabric? */
enum env_islands {
    ENV_ISLANDS_ONE,     /* every other node is in this node's island */
    ENV_ISLANDS_SEVERAL, /* some are not, or this node is in none */
};

/** Where a job meets. Empty texts: not known. */
struct env_meeting {
    char id[128];      /* of the job's present run */
    char epoch[32];    /* of the hub's present life */
    char c10d[64];     /* HOST:PORT of a TCPStore */
    char etcd[64];     /* HOST:PORT of an etcd with the v2 keys API */
    char backend[16];  /* "c10d" or "etcd-v2": which of them torchrun is to use */
    char endpoint[64]; /* that one's */
};

/** All that the rules may know. Texts are borrowed. */
struct env_facts {
    const struct command *command;     /* NULL: any command, for `weft env` */
    const char *interface;             /* of the overlay */
    const char *address4;              /* of this node on it */
    const char *nnodes;                /* "4", "2:4"; NULL: not said */
    const struct env_meeting *meeting; /* NULL: the command meets without our help, or alone */
    enum env_islands islands;
    bool has_infiniband; /* this machine has a verbs device */
    unsigned torch;      /* major * 100 + minor: 113 is 1.13; 0: not known */
    unsigned python;     /* likewise: 311 is 3.11 */
};

/** What becomes of a variable. */
enum env_verdict {
    ENV_VERDICT_SET,      /* to be set */
    ENV_VERDICT_KEPT,     /* the person has set it, and that is fine */
    ENV_VERDICT_HURTS,    /* the person has set it, it stays, and the note says what it breaks */
    ENV_VERDICT_UNNEEDED, /* the note says why not */
};

struct env_entry {
    const char *name;
    enum env_verdict verdict;
    char value[ENV_VALUE_MAX]; /* to set, or as the person has it; "" when unneeded */
    char note[ENV_NOTE_MAX];   /* see the verdicts; else "" */
    const char *reason;        /* one sentence */
    const char *source;        /* where that is written */
};

struct env_plan {
    struct env_entry entries[ENV_ROOM];
    size_t n;
};

/** What the person has in the environment; NULL when the variable is not set. */
typedef const char *(*env_lookup_fn)(void *ctx, const char *name);

/** env_plan_make() - go through the rules. Never fails: what is not known is a reason not to set.
 */
void env_plan_make(
    struct env_plan *ret, const struct env_facts *facts, env_lookup_fn lookup, void *ctx);

/** env_plan_find() - lends the entry of that name; NULL: there is none. */
const struct env_entry *env_plan_find(const struct env_plan *plan, const char *name);

/** env_plan_count() - entries with that verdict. */
size_t env_plan_count(const struct env_plan *plan, enum env_verdict verdict);

/** env_verdict_name() - "set", "kept", "hurts", "unneeded". */
const char *env_verdict_name(enum env_verdict v);

/** env_format_table() - every rule as a table in Markdown, as docs/TRAINING.md has it. */
void env_format_table(struct str *out);
