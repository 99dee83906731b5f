/*
 * command.h - what kind of command a person wants to run, read off its words.
 *
 * Pure: nothing is looked up on disk. `weft run` decides by it which variables
 * the command needs, and what its own options say already, so that nothing the
 * person wrote is contradicted.
 */
#pragma once

#include <stdbool.h>

enum command_kind {
    COMMAND_KIND_PLAIN,      /* a script, or anything not named below */
    COMMAND_KIND_TORCHRUN,   /* torchrun, python -m torch.distributed.run */
    COMMAND_KIND_ACCELERATE, /* accelerate launch */
    COMMAND_KIND_DEEPSPEED,  /* deepspeed */
    COMMAND_KIND_MPI,        /* mpirun and its other names */
    COMMAND_KIND_N,
};

/** What is known of a command. Texts are borrowed from the words that it was read from. */
struct command {
    enum command_kind kind;
    const char *program; /* the first word */
    const char *script;  /* what is trained with, or its module's name; NULL: not found */
    const char *nnodes;  /* its own --nnodes; NULL: none */
    const char *backend; /* its own --rdzv_backend; NULL: none */
    const char *rdzv_id; /* its own --rdzv_id; NULL: none */
    bool says_meeting;   /* its own options tell where to meet, or that there is no need to */
    bool says_local_addr;
    bool says_rdzv_conf;
    bool says_max_restarts;
    bool says_streams; /* --redirects and --tee */
};

/**
 * command_read() - find out what a command is, from its words alone
 * @ret:	set; borrows from @words
 * @words:	at least one; ends with NULL
 */
void command_read(struct command *ret, char *const words[]);

/** command_kind_name() - "torchrun", "accelerate", ...; "command" for a plain one. */
const char *command_kind_name(enum command_kind kind);

/**
 * command_job_name() - the name of a job for which no name was given
 * @buf:	set to the script's stem, in the alphabet of names; "job" when there is none
 *
 * The same command gives the same name on every node.
 *
 * Return: @buf.
 */
const char *command_job_name(const struct command *c, char buf[static 64]);
