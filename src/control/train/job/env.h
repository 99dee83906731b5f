/*
 * env.h - which environment variables a training command needs, and why.
 *
 * One table in env.c holds all that is known of each variable: the
 * kinds of command that it is for, its value on this node, when it is not
 * needed, which values that the person has set break the job, the reason, and
 * the source of that reason. `weft run` sets what the plan says, `weft env`
 * prints the plan, and docs/TRAINING.md is checked against the table. Pure: the
 * facts and the person's environment are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "train/job/command.h"
#include "train/job/rendezvous.h"

#define ENV_VALUE_MAX 512 /* bytes of a value, with its zero */
#define ENV_NOTE_MAX  256 /* bytes of a note, with its zero */
#define ENV_NAME_MAX  80  /* bytes of a name, with its zero */
#define ENV_SIZE      80  /* entries of a plan; at least as many as there are rules */

/** The facts that the rules decide by. Pointers are borrowed. */
struct env_facts {
    const struct command *command;           /* NULL: any command, for `weft env` */
    const char *interface;                   /* name of the overlay's interface */
    const char *address4;                    /* this node's IPv4 address on the overlay */
    const char *network;                     /* the network's name */
    const char *node;                        /* this node's name */
    const char *job;                         /* the job's name; NULL or "": none */
    const char *nnodes;                      /* "4", or a range "2:4"; NULL: not given */
    const struct env_rendezvous *rendezvous; /* NULL: the command needs no meeting from the hub */
    const struct ranks *ranks; /* of the nodes, for a plain command; NULL: not known */
    bool is_one_island; /* every other node is in this node's island: they share a fast fabric */
    const char *island_interface; /* of the island's private network, where the job is to use that;
                                     NULL or "": it is not */
    bool has_infiniband;          /* this machine has a verbs device */
    const struct fabric_facts *fabric; /* of this machine; NULL: not known */
    unsigned nccl;                     /* minor of the NCCL 2 that the command uses; 0: not known */
    const char *nccl_log; /* the file that `weft run` reads NCCL's log from; NULL: it reads none */
    const char *flight;   /* how the files of PyTorch's flight recorder begin that `weft run` reads;
                             NULL: it reads none */
    const char *flight_why; /* why it reads none; NULL: it does */
    const char *plan;       /* the file with the job's plan; NULL: it is given none */
    const char *nccl_why;   /* why it reads none; NULL: it does */
    char *const *theirs;    /* the person's environment, "NAME=VALUE", ends with NULL; NULL: none */
    unsigned first_port;    /* of those that this machine's kernel chooses; 0: not known */
    unsigned last_port;     /* the last of them */
    unsigned torch;         /* major * 100 + minor: 113 is 1.13; 0: not known */
    unsigned python;        /* likewise: 311 is 3.11; 0: not known */
};

/** What the plan does with a variable. */
enum env_verdict {
    ENV_VERDICT_SET,      /* the variable is to be set to the entry's value */
    ENV_VERDICT_KEPT,     /* the person has set it to a value that does no harm; it stays */
    ENV_VERDICT_HURTS,    /* the person has set it; it stays, and the note says what it breaks */
    ENV_VERDICT_UNNEEDED, /* it is not set, and the note says why */
};

/** The plan for one variable. Pointers are to constants. */
struct env_entry {
    char name[ENV_NAME_MAX];
    enum env_verdict verdict;
    char value[ENV_VALUE_MAX]; /* the value to set, or the person's own; "" when unneeded */
    char note[ENV_NOTE_MAX];   /* for HURTS and UNNEEDED, as said there; for KEPT what to know
                                  of the value, or "" */
    const char *reason;        /* why the variable matters, in a sentence or two */
    const char *source;        /* the document or source file that says so */
};

/** One entry for each rule that concerns the command, in the order of the rules. */
struct env_plan {
    struct env_entry entries[ENV_SIZE];
    size_t n;
};

/** Looks up a variable in the person's environment. Returns NULL when it is not set. */
typedef const char *(*env_lookup_fn)(void *ctx, const char *name);

/**
 * env_plan_make() - make the plan by applying every rule that concerns the command
 * @ret:	always set
 * @facts:	borrowed for this call
 * @lookup:	the person's environment; called with @ctx
 *
 * Inside one island the variables of the machine's fabric come too (profile.h), in place of the
 * rules of the same name. Never fails. A version that is not known is treated as the newest.
 */
void env_plan_make(
    struct env_plan *ret, const struct env_facts *facts, env_lookup_fn lookup, void *ctx);

/** env_plan_find() - lends the entry with that name; NULL: there is none. As strchr() it hands out
 * what may be written if @plan may. */
struct env_entry *env_plan_find(const struct env_plan *plan, const char *name);

/** env_plan_count() - how many entries have that verdict. */
size_t env_plan_count(const struct env_plan *plan, enum env_verdict verdict);

/** env_verdict_names - the verdict as a word: "set", "kept", "hurts" or "unneeded". */
extern const char *const env_verdict_names[];

/** env_format_table() - append the table of all rules in Markdown, as in docs/TRAINING.md. */
void env_format_table(struct str *out);

/* Writes a plan as text for shells, JSON, Kubernetes and Slurm, and for people. */

/** The forms. Only JSON also has the variables that are not to be set. */
enum env_text {
    ENV_TEXT_SH,    /* lines "export NAME='VALUE'", for a shell's eval */
    ENV_TEXT_JSON,  /* an object: "env" to be set, and "variables" with every entry */
    ENV_TEXT_K8S,   /* the "env:" list of a container, in YAML */
    ENV_TEXT_SLURM, /* lines "export NAME=VALUE", as a TaskProlog prints them */
    ENV_TEXT_N,     /* the number of forms */
};

/** env_text_parse() - a form from "sh", "json", "k8s" or "slurm". 0, or -EINVAL with words. */
int env_text_parse(enum env_text *ret, const char *name, struct err *e);

/** env_text_add() - append @plan in that form. Return: 0 or -ENOMEM. */
int env_text_add(struct str *out, const struct env_plan *plan, enum env_text form);

/** env_text_explain() - append every entry with its verdict, reason and source. */
void env_text_explain(struct str *out, const struct env_plan *plan);
